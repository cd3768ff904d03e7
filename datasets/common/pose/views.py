"""Views of objects at known azimuths: kept in one `.npz` file, or in a released pickle, whose code is not run.

All images of a file are read at once: tasks draw their objects at random, so every image is soon asked for, and one
array in memory (82 MB for 50 objects of 100 views) takes any index and is shared with forked processes.
"""

import contextlib
import io
import json
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from cmixup.errors import InputError
from cmixup.files import put, temporary_beside
from datasets.common.damaged import naming

SIDE = 128  # pixels of the released images


def _latin1(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"it names encoding {encoding!r}: only latin1 is read")
    return text.encode("latin1")


#: The names in NumPy's own pickles of arrays and scalars, and no others; NumPy says itself by which functions.
ALLOWED: dict[str, Any] = {
    "numpy.core.multiarray._reconstruct": np.empty(1).__reduce__()[0],
    "numpy.core.multiarray.scalar": np.float64(0).__reduce__()[0],
    "numpy.core.numeric._frombuffer": np.empty(1).__reduce_ex__(5)[0], "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype, "_codecs.encode": _latin1,
}  # fmt: skip


@dataclass(frozen=True)
class Views:
    """All views of some objects."""

    x: np.ndarray  # (objects, views, H, W) uint8
    y: np.ndarray  # (objects, views) float32, azimuths as fractions of a full turn, in [0, 1]
    names: tuple[str, ...]  # of the objects
    about: Mapping[str, Any]  # where they come from: `sources` (SHA-256 by file) and the tools that made them

    def __post_init__(self) -> None:
        wrong = ~((self.y >= 0) & (self.y <= 1))  # NaN, too
        if wrong.any():
            k, v = map(int, np.argwhere(wrong)[0])
            raise InputError(f"y must lie in [0, 1], got {self.y[k, v]} for view {v} of {self.names[k]}")

    def select(self, objects: np.ndarray) -> Self:
        """Return the views of the objects `(n,)` int64."""
        return replace(self, x=self.x[objects], y=self.y[objects], names=tuple(self.names[k] for k in objects))

    def shrunk(self, side: int) -> Self:
        """Return the views at `side` pixels, a divisor of theirs, as means over squares; smaller ones as they are."""
        blocks = self.x.shape[2] // side
        if blocks < 2:
            return self
        shape = (*self.x.shape[:2], side, blocks, side, blocks)
        x = np.stack([views.mean(axis=(2, 4)).round().astype(np.uint8) for views in self.x.reshape(shape)])
        return replace(self, x=x)


def write_views(path: Path, views: Views) -> None:
    """Write views to an `.npz` file, whole or not at all."""
    with temporary_beside(path, ".part") as part:
        with part.open("wb") as stream:
            np.savez(stream, x=views.x, y=views.y, names=np.array(views.names), about=np.array(json.dumps(views.about)))
        put(part, path)


def read_views(path: Path) -> Views:
    """Return the views in a file of `write_views`, whose format has checksums."""
    with naming(path, "a file of views (remove it, and it is made again)"), np.load(path, allow_pickle=False) as file:
        return Views(file["x"], file["y"], tuple(file["names"].tolist()), json.loads(str(file["about"])))


class ArrayUnpickler(pickle.Unpickler):
    """Rebuilds arrays, containers, numbers and strings; every other name, which a pickle may call, stops it."""

    def find_class(self, module: str, name: str) -> Any:
        """Return the object that an array's pickle names, else raise `UnpicklingError`."""
        known = f"{module.replace('numpy._core', 'numpy.core')}.{name}"
        if known not in ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}: only arrays, tuples and lists are read")
        return ALLOWED[known]


def read_pickle(content: bytes, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images `(objects, views, 128, 128)` uint8 and azimuths `(objects, views)` float32 of a released pickle.

    The pickle holds the pair (x, y): x `(objects, views, 128, 128[, 1])` or flat, in 0..255; y `(objects, views[, d])`,
    azimuth last. Anything else is an `InputError` that calls it `source`.
    """
    with naming(source, "a pickle of arrays"):
        pair = ArrayUnpickler(io.BytesIO(content), encoding="latin1").load()  # Python 2's pickles of arrays, too
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InputError(f"{source} must hold the pair (x, y), got {type(pair).__name__}")
    x, y = (_as_array(part, label, source) for label, part in zip("xy", pair, strict=True))
    y = y[..., -1] if y.ndim == 3 else y
    if y.ndim != 2 or x.shape[:2] != y.shape or int(np.prod(x.shape[2:])) != SIDE * SIDE:
        raise InputError(
            f"{source} must hold x (objects, views, {SIDE}, {SIDE}) and y (objects, views, d), "
            f"got shapes {x.shape} and {y.shape}"
        )
    if x.dtype != np.uint8:
        if not (x.min() >= 0 and x.max() <= 255 and (x == np.rint(x)).all()):
            raise InputError(f"x of {source} must be whole numbers in 0..255, got {x.dtype} {x.min()} to {x.max()}")
        x = x.astype(np.uint8)
    return x.reshape(*y.shape, SIDE, SIDE), y.astype(np.float32)


def _as_array(part: Any, label: str, source: str) -> np.ndarray:
    with contextlib.suppress(ValueError):
        if (array := np.asarray(part)).dtype.kind in "buif":
            return array
    raise InputError(f"{label} of {source} must be one array of numbers (every object with as many views)")


def converted(path: Path, sources: Mapping[str, str], content: Callable[[], bytes]) -> Views:
    """Return the views of the released pickle that `content` gives, converted to the file `path` the first time.

    Its stem names the objects. `sources` has the SHA-256 of the file that holds the pickle: another is converted again.
    """
    about = {"sources": dict(sources)}
    if path.is_file():
        views = read_views(path)
        if dict(views.about) == about:
            return views
    x, y = read_pickle(content(), path.stem)
    views = Views(x, y, tuple(f"{path.stem} {k}" for k in range(len(x))), about)
    write_views(path, views)
    return views
