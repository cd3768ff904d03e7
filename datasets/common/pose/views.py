"""Views of objects at known azimuths, kept in one HDF5 file.

All images of a file are read at once: tasks draw their objects at random, so every image is soon asked for, and one
array in memory (82 MB for 50 objects of 100 views) takes any index and is shared with forked processes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cmixup.errors import InputError
from cmixup.files import put, temporary_beside, write_atomically
from datasets.common.fetch import sha256_of

REMEDY = "remove it, and it is made again"


@dataclass(frozen=True)
class Views:
    """All views of some objects.

    Args:
        x: `(objects, views, H, W)` uint8.
        y: `(objects, views)` float32, azimuths as fractions of a full turn, in [0, 1].
        names: one an object.
        about: what the file says of its origin: `sources` (SHA-256 by file) and what it was made with.

    Raises:
        InputError: arrays that do not fit together, azimuths out of range.
    """

    x: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    about: Mapping[str, object]

    def __post_init__(self) -> None:
        if self.x.ndim != 4 or self.x.dtype != np.uint8:
            raise InputError(f"x must be (objects, views, H, W) uint8, got shape {self.x.shape} {self.x.dtype}")
        if self.y.shape != self.x.shape[:2]:
            raise InputError(f"y must be {self.x.shape[:2]}, an azimuth for each view, got shape {self.y.shape}")
        if len(self.names) != len(self.x):
            raise InputError(f"names must be {len(self.x)}, one an object, got {len(self.names)}")
        wrong = ~((self.y >= 0) & (self.y <= 1))  # NaN, too
        if wrong.any():
            k, v = map(int, np.argwhere(wrong)[0])
            raise InputError(f"y must lie in [0, 1], got {self.y[k, v]} for view {v} of {self.names[k]}")

    def select(self, objects: np.ndarray) -> Views:
        """Return the views of the objects `(n,)` int64."""
        return Views(self.x[objects], self.y[objects], tuple(self.names[k] for k in objects), self.about)

    def shrunk(self, side: int) -> Views:
        """Return the views at `side` pixels, a divisor of theirs, as means over squares; smaller ones as they are."""
        blocks = self.x.shape[2] // side
        if blocks < 2:
            return self
        shape = (*self.x.shape[:2], side, blocks, side, blocks)
        x = np.stack([views.mean(axis=(2, 4)).round().astype(np.uint8) for views in self.x.reshape(shape)])
        return Views(x, self.y, self.names, self.about)


def write_views(
    path: Path, images: Iterable[np.ndarray], y: np.ndarray, names: Sequence[str], about: Mapping[str, object]
) -> None:
    """Write a file of views, whole or not at all.

    Args:
        path: where.
        images: one `(views, H, W)` uint8 array an object, taken one after another.
        y, names, about: see `Views`; `about` is stored as JSON.
    """
    import h5py

    with temporary_beside(path, ".part") as part:
        with h5py.File(part, "w") as file:
            x = None
            for k, image in enumerate(images):
                if x is None:
                    x = file.create_dataset("x", (len(names), *image.shape), np.uint8)
                x[k] = image
            file["y"] = np.asarray(y, np.float32)
            file["names"] = [name.encode() for name in names]
            file.attrs["about"] = json.dumps(about)
        write_atomically(_sum_file(path), sha256_of(part))
        put(part, path)


def read_views(path: Path) -> Views:
    """Return the views in a file.

    Raises:
        InputError: the file is not what `write_views` writes.
    """
    import h5py

    beside = _sum_file(path)
    # Without it, as earlier versions left it, the file is read unchecked.
    if beside.is_file() and beside.read_bytes() != (found := sha256_of(path)).encode():
        raise InputError(f"{path} is damaged: its SHA-256 is {found}, not that in {beside.name}; {REMEDY}")
    try:
        with h5py.File(path) as file:
            names = tuple(name.decode() for name in file["names"][:])
            x, y, about = file["x"][:], file["y"][:], json.loads(file.attrs["about"])
        return Views(x, y, names, about)
    except Exception as error:  # a damaged file can raise anything
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is not a file of views ({reason}); {REMEDY}") from None


def _sum_file(path: Path) -> Path:
    """Return where the SHA-256 of a file of views stands; the HDF5 library can hang in a damaged one."""
    return path.with_name(f"{path.name}.sha256")
