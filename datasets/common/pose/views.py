"""Views of objects at known azimuths, kept in one `.npz` file.

All images of a file are read at once: tasks draw their objects at random, so every image is soon asked for, and one
array in memory (82 MB for 50 objects of 100 views) takes any index and is shared with forked processes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from cmixup.errors import InputError
from cmixup.files import put, temporary_beside
from datasets.common.damaged import naming


@dataclass(frozen=True)
class Views:
    """All views of some objects.

    Args:
        x: `(objects, views, H, W)` uint8.
        y: `(objects, views)` float32, azimuths as fractions of a full turn, in [0, 1].
        names: one an object.
        about: what the file says of its origin: `sources` (SHA-256 by file) and what it was made with.

    Raises:
        InputError: azimuths out of range.
    """

    x: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]
    about: Mapping[str, Any]

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
    """Return the views in a file.

    Raises:
        InputError: the file is damaged (its format has checksums), or not what `write_views` writes.
    """
    with naming(path, "a file of views (remove it, and it is made again)"), np.load(path, allow_pickle=False) as file:
        return Views(file["x"], file["y"], tuple(file["names"].tolist()), json.loads(str(file["about"])))
