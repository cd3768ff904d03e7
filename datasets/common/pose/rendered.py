"""Datasets of views rendered from meshes, made once and kept in the data root."""

import zlib
from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from typing import ClassVar

import numpy as np
from tqdm import tqdm  # type: ignore[import-untyped]

from cmixup.data import core_count
from cmixup.errors import InputError
from datasets.common.fetch import data_root
from datasets.common.pose import rendering
from datasets.common.pose.tasks import TaskDataset
from datasets.common.pose.views import Views, read_views, write_views

AZIMUTH_SEED = 0


class RenderedDataset(TaskDataset):
    """Tasks on objects that are rendered here from the dataset's files."""

    n_views: ClassVar[int]  # of each object, at uniform azimuths
    n_test: ClassVar[int]  # objects of the test split, drawn by `split_seed` from all of them; the others train

    @abstractmethod
    def meshes(self) -> Iterator[rendering.Mesh]:
        """Yield the objects, in the same order every time; fetches the files that are missing."""

    def render(self) -> Views:
        """Return the views, which are rendered first, by a process a core, unless the file is there.

        Raises:
            InputError: a file cannot be had, or the views were made from other files.
        """
        path = data_root() / self.name / f"views_{rendering.VERSION}.npz"
        sources = {file.path: file.sha256 for (file, *_) in self.files}
        about = {"sources": sources, "renderer": rendering.VERSION, "azimuth_seed": AZIMUTH_SEED}
        if not path.is_file():
            meshes = list(self.meshes())
            y = np.stack([azimuths(mesh.name, self.n_views) for mesh in meshes])
            workers = min(core_count(), len(meshes))
            with ProcessPoolExecutor(workers, get_context("spawn")) if workers > 1 else nullcontext() as pool:
                images = (pool.map if pool else map)(rendering.render, meshes, y)
                x = np.stack(list(tqdm(images, f"rendering {self.name}", len(meshes), unit=" objects", ncols=79)))
            write_views(path, Views(x, y, tuple(mesh.name for mesh in meshes), about))
        views = read_views(path)
        if dict(views.about) != about:
            raise InputError(f"{path} was made from other files or settings; remove it, and it is made again")
        return views

    def views(self) -> tuple[Views, Views]:
        every = self.render()
        order = np.random.default_rng(self.split_seed).permutation(len(every.names))
        return every.select(np.sort(order[self.n_test :])), every.select(np.sort(order[: self.n_test]))


def azimuths(name: str, n: int) -> np.ndarray:
    """Return `(n,)` float32 azimuths in [0, 1), uniform, seeded by the object's name."""
    rng = np.random.default_rng([AZIMUTH_SEED, zlib.crc32(name.encode())])
    return rng.random(n, dtype=np.float32)
