"""Types of the arrays in this package, and the checks and conversions of arguments, before any work."""

from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from cmixup.errors import InputError, format_value, not_dense

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Indices that are stored in 32 bits where that is enough, and in 64 bits otherwise.
SmallInts = NDArray[np.signedinteger]
#: Labels as the algorithms hold them: (N,) or (N, d), float32 or float64, possibly a memory map.
Labels = NDArray[np.floating]
#: Labels or indices as callers may pass them.
Given = ArrayLike | Tensor
Rng = np.random.Generator | torch.Generator

#: The largest label (in absolute value): squares of labels and of label / bandwidth stay finite in float64.
MAX_LABEL = 1e150


def as_labels(name: str, labels: Given, *, gaps: bool = False) -> Labels:
    """Return labels, a real array, sequence or tensor (N,) or (N, d), as a float array; (N, 1) is returned as (N,).

    float32 and float64 are passed on without a copy (memory maps stay memory maps, tensors of the CPU share their
    memory); everything else is converted to float64. With `gaps` NaN stands for a missing output of a row that has
    others.

    Raises:
        InputError: the shape or type is wrong, there are no labels, or one is NaN, infinite or above `MAX_LABEL`; with
            `gaps`, a row has no output at all.
    """
    if isinstance(labels, Tensor) and (form := not_dense(labels)):
        raise InputError(f"{name} must be a dense tensor with values, got {form}")
    values = _float_array(name, to_numpy(labels) if isinstance(labels, Tensor) else labels)
    shape = tuple(values.shape)
    if len(shape) not in (1, 2):
        raise InputError(f"{name} must have shape (N,) or (N, d), got {shape}")
    if 0 in shape:
        raise InputError(f"{name} must not be empty, got shape {shape}")
    values = values[:, 0] if shape[1:] == (1,) else values
    if float(values.min()) >= -MAX_LABEL and float(values.max()) <= MAX_LABEL:  # either is NaN if any label is
        return values
    rows = values.astype(np.float64).reshape(len(values), -1)
    is_bad = ~(np.abs(rows) <= MAX_LABEL)
    if gaps and rows.shape[1] > 1:
        is_bad &= ~np.isnan(rows)
    if is_bad.any():
        got = f"got {float(rows[is_bad][0])!r} in row {int(is_bad.any(axis=1).argmax())}"
        raise InputError(f"{name} must be finite (and within +-{MAX_LABEL:g}), {got}")
    if (empty := np.isnan(rows).all(axis=1)).any():
        raise InputError(f"{name} must have an output in each row, got only NaN in row {int(empty.argmax())}")
    return values


def has_gaps(labels: Labels) -> bool:
    """Return whether an output of a row is missing, in labels (N, d) that `as_labels` has checked."""
    return labels.ndim == 2 and len(labels) > 0 and bool(labels.min() != labels.min())  # NaN if any label is


def check_common(name: str, labels: Labels) -> None:
    """Raise `InputError` if labels (N, d) have gaps, and no output is common to any two rows."""
    if len(labels) > 1 and has_gaps(labels) and int((~np.isnan(labels)).sum(axis=0).max()) < 2:
        raise InputError(f"{name} must have an output that two rows have, got none among {labels.shape[1]} outputs")


def as_anchors(name: str, anchors: Given, n: int) -> Ints:
    """Return indices 0..n-1 as a NumPy array (B,) int64, or raise `InputError`."""
    try:
        rows = to_numpy(anchors)
    except (TypeError, ValueError, RuntimeError):  # rows of two lengths, tensors without values
        raise InputError(f"{name} must be a one-dimensional array of integers, got {format_value(anchors)}") from None
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise InputError(f"{name} must be a one-dimensional array of integers, got {rows.shape} {rows.dtype}")
    if rows.size and not 0 <= rows.min() <= rows.max() < n:
        raise InputError(f"{name} must lie in 0..{n - 1}, got {rows.min() if rows.min() < 0 else rows.max()}")
    return rows.astype(np.int64, copy=False)


def to_numpy(values: Given) -> NDArray[Any]:
    """Return an array or tensor of any device as a NumPy array, without a copy where that is possible."""
    if isinstance(values, Tensor):
        values = values.detach().cpu()
        return (values.double() if values.dtype == torch.bfloat16 else values).numpy()
    return np.asarray(values)


def as_kind_of(given: Given, values: NDArray[Any]) -> Any:
    """Return an array as a tensor on the device of `given` if that is a tensor, else as it is."""
    return torch.from_numpy(values).to(given.device) if isinstance(given, Tensor) else values


def copied_numpy(values: Given) -> NDArray[Any]:
    """Return an array or tensor as a NumPy array of its own; a memory map stays one.

    PyTorch moves the memory of tensors that it hands to spawned workers (macOS, Windows), and an array that shared it
    would read freed memory.
    """
    array = to_numpy(values)
    return array if isinstance(values, np.memmap) else np.array(array)


def numpy_rng(rng: Rng) -> np.random.Generator:
    """Return `rng`, or a NumPy generator seeded by (and so advancing) a torch one; raise `InputError` for neither."""
    if isinstance(rng, torch.Generator):
        seed = torch.randint(2**62, (2,), generator=rng, device=rng.device)
        return np.random.default_rng(seed.tolist())
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng must be a numpy.random.Generator or torch.Generator, got {format_value(rng)}")
    return rng


def _float_array(name: str, labels: ArrayLike) -> Labels:
    if isinstance(labels, np.ma.MaskedArray) and np.ma.getmaskarray(labels).any():
        raise InputError(f"{name} must have no masked entries, got {int(np.ma.getmaskarray(labels).sum())}")
    try:
        array = np.asarray(labels)
    except ValueError:
        raise InputError(f"{name} must have rows of one length, got {format_value(labels)}") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be real numbers, got dtype {array.dtype}")
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
