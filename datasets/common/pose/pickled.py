"""Released pickles of views, read without running the code that a pickle may hold."""

import io
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError
from datasets.common.damaged import naming
from datasets.common.pose.views import Views, read_views, write_views

SIDE = 128  # pixels of the released images


def _latin1(text: str, encoding: str) -> bytes:
    if encoding not in ("latin1", "latin-1"):
        raise pickle.UnpicklingError(f"it names encoding {encoding!r}: only latin1 is read")
    return text.encode("latin1")


#: What NumPy's own pickles of arrays and scalars name, and nothing else; NumPy says itself by which functions.
ALLOWED: dict[str, Any] = {
    "numpy.core.multiarray._reconstruct": np.empty(1).__reduce__()[0],
    "numpy.core.multiarray.scalar": np.float64(0).__reduce__()[0],
    "numpy.core.numeric._frombuffer": np.empty(1).__reduce_ex__(5)[0],
    "numpy.ndarray": np.ndarray,
    "numpy.dtype": np.dtype,
    "_codecs.encode": _latin1,
}


class ArrayUnpickler(pickle.Unpickler):
    """Rebuilds NumPy arrays and Python's containers, numbers and strings; every other name stops it.

    A pickle calls whatever it names.
    """

    def find_class(self, module: str, name: str) -> Any:
        """Return what an array's pickle needs, else raise `UnpicklingError`."""
        known = f"{module.replace('numpy._core', 'numpy.core')}.{name}"
        if known not in ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}: only arrays, tuples and lists are read")
        return ALLOWED[known]


def read_pickle(content: bytes, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Return images `(objects, views, 128, 128)` uint8 and azimuths `(objects, views)` float32 of a released pickle.

    The pickle holds the pair (x, y): x `(objects, views, 128, 128[, 1])` or flat, in 0..255; y `(objects, views[, d])`,
    azimuth last.

    Args:
        content: the pickle.
        source: how errors call it.

    Raises:
        InputError: it holds anything but arrays, tuples and lists, or arrays of other shapes.
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
    try:
        array = np.asarray(part)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "buif":
        raise InputError(f"{label} of {source} must be one array of numbers (every object with as many views)")
    return array


def converted(path: Path, sources: Mapping[str, str], content: Callable[[], bytes]) -> Views:
    """Return the views of a released pickle, converted to the file `path` the first time.

    Args:
        path: of the file of views; its stem names the objects.
        sources: SHA-256 by path of the file that the pickle lies in; another one is converted again.
        content: gives the pickle.
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
