"""Arrays as inputs, for training and for `load_run(folder).predict(array)`; they may lie in a file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cmixup.errors import InputError, format_value
from cmixup.files import ARRAYS_FORMAT
from cmixup.inputs.preprocessing import Preprocessing
from cmixup.inputs.spread import VANISH, is_new, warn_of_new

CHUNK = 4096  # rows that are read at a time


def chunks(array: Any, source: str, *, gaps: bool = False) -> Iterator[tuple[int, np.ndarray]]:
    """Yield blocks of an array `(N, ...)` of finite numbers, or NaN if `gaps`, float64, with the first row's place."""
    if np.dtype(array.dtype).kind not in "biuf":
        raise InputError(f"{source} must hold numbers, got dtype {array.dtype}")
    for start in range(0, len(array), CHUNK):
        block = np.asarray(array[start : start + CHUNK], np.float64)
        usable = np.isfinite(block) | (np.isnan(block) & gaps)
        if not (finite := usable.reshape(len(block), -1).all(axis=1)).all():
            raise InputError(f"{source}, row {start + int(np.argmin(finite)) + 1}: a number is not finite")
        yield start, block


class ArrayRows:
    """Rows of an array `(N, ...)` as a network reads them, `(value - mean) / std`, read when a batch needs them."""

    stackable: ClassVar[bool] = True
    batch_size: ClassVar[int] = CHUNK

    def __init__(self, array: Any, rows: np.ndarray, mean: Tensor, std: Tensor):
        self.array, self.rows, self.mean, self.std = array, rows, mean, std
        self.shape = torch.Size((len(rows), *array.shape[1:]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the rows `index: (B,)` int64 as `(B, ...)` float32."""
        rows, inverse = np.unique(self.rows[index.numpy()], return_inverse=True)  # files of HDF5 are read in order
        double = not np.can_cast(self.array.dtype, np.float32)  # 1e9 + 1 is none, but may be once the mean is taken off
        values = np.asarray(self.array[rows], np.float64 if double else np.float32)[inverse]
        return torch.from_numpy(values).sub_(self.mean).div_(self.std).float()


@dataclass(frozen=True)
class ArrayPreprocessing(Preprocessing):
    """How a run makes inputs of arrays."""

    format: ClassVar[str] = ARRAYS_FORMAT
    shape: tuple[int, ...]  # of a row
    mean: tuple[float, ...]  # as std of each entry of a row, or one for all
    std: tuple[float, ...]

    @property
    def in_shape(self) -> tuple[int, ...]:
        return self.shape

    def as_given(self, new: Any) -> Any:
        """Return rows as an array: of a list, a tensor, a data frame, or a dict with the array x."""
        if isinstance(new, Mapping) and set(new) & {"x", "X"}:
            new = new.get("x", new.get("X"))
        try:
            if isinstance(new, Tensor):
                new = new.detach().cpu()
                return (new.float() if new.dtype == torch.bfloat16 else new).numpy()
            if isinstance(new, np.ma.MaskedArray):
                new = np.ma.filled(new.astype(np.float64), np.nan)  # which is refused
            is_array = hasattr(new, "shape") and hasattr(new, "__array__") and not hasattr(new, "iloc")  # or in a file
            array = new if is_array else np.asarray(new)
        except (TypeError, ValueError, RuntimeError):
            array = None
        if array is None or np.dtype(array.dtype).kind not in "biuf":
            expected = ", ".join(["N", *map(str, self.in_shape)])
            raise InputError(f"rows must be an array or lists of numbers ({expected}), got {type(new).__name__}")
        return array

    def apply(self, new: Any, source: str = "arrays") -> ArrayRows:
        """Return the rows of an array `(N, *in_shape)` of finite numbers."""
        array = self.as_given(new)
        if tuple(array.shape[1:]) != self.in_shape or not array.shape:
            expected = ", ".join(["N", *map(str, self.in_shape)])
            raise InputError(f"{source}: x must have shape ({expected}), got {format_value(tuple(array.shape))}")
        constant = np.flatnonzero(np.array(self.std) >= VANISH)
        has_new = np.zeros(len(constant), dtype=bool)
        for _, block in chunks(array, f"{source}: x"):
            columns = block.reshape(-1, len(self.std))[:, constant]
            has_new |= is_new(columns, np.array(self.mean)[constant])
        warn_of_new([f"column {k + 1} of x" if len(self.std) > 1 else "x" for k in constant[has_new]], source)
        return self.rows(array, np.arange(len(array)))

    def rows(self, array: Any, rows: np.ndarray) -> ArrayRows:
        """Return some rows of an array as inputs."""
        return ArrayRows(array, rows, *(torch.tensor(moment, dtype=torch.float64) for moment in (self.mean, self.std)))
