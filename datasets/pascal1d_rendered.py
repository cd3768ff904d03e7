"""PASCAL3D rendered again: the CAD models that can be had, with our own renderer."""

from __future__ import annotations

import zlib
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import ClassVar

import numpy as np
from tqdm import tqdm  # type: ignore[import-untyped]

from cmixup.errors import InputError
from cmixup.processes import core_count
from datasets.common.fetch import RawFile, data_root
from datasets.common.pose import rendering
from datasets.common.pose.rendering import Mesh, read_mat
from datasets.common.pose.tasks import TaskDataset
from datasets.common.pose.views import Views, read_views, write_views

AZIMUTH_SEED = 0
REPOSITORY = "Azulgrana1/ObjectSLAM-TRO"
COMMIT = "a9f9586bbcc7ed5e81d9e695bf9f2ec41b9a3877"
CATEGORIES = {
    "aeroplane": ("9566a1ba232bb9d9f6bec9bf439e6a8b1134d269ace2ef318a3cd7c9068c610e", 2083768),
    "bicycle": ("50ee0c8fceb928937f8f0c19f8f9c85731f6409a708abaee502a95c162300b94", 1041548),
    "boat": ("0be21a96718a608df0c81f30adb0175309cb5e56ec1c4614e631d8a21c2b0df4", 890633),
    "bus": ("3a2411ef609860979f8308a38e5fde9451807fa8a333589e9c23380c561cd346", 1337930),
    "chair": ("6ac7cba6b3c86c4658c00e7277427b8c80114cef0bebed58464f0d076f6b4faa", 1357005),
    "diningtable": ("c79d0055d2f1f73e13b9357732f5004d23b37f99312f186b11e34429abc1cb5f", 353162),
    "sofa": ("067f008c3a5e9a8382a14dd742cf8e09a4718a1ed321e3885b26e967953cb5e7", 435262),
    "tvmonitor": ("bef4b6a9906ae6cceb7a54e1d564dfa2e066ff43004fe698a259e24594942904", 162956),
}


def _category(name: str, sha256: str, size: int) -> RawFile:
    return RawFile(
        path=f"pascal1d/CAD/{name}.mat",
        sha256=sha256,
        size=size,
        urls=(f"https://raw.githubusercontent.com/{REPOSITORY}/{COMMIT}/CAD/{name}.mat",),
        page="https://cvgl.stanford.edu/projects/pascal3d.html (PASCAL3D+ release 1.1, folder CAD)",
        licence="none stated; published for research",
    )


class Pascal1DRendered(TaskDataset):
    """Azimuth of 50 of the 65 CAD models behind the paper's PASCAL3D, rendered here.

    Origin: CAD models of PASCAL3D+ (Xiang et al. 2014): aeroplane 7, bicycle 5, boat 6, bus 6, chair 10, diningtable 6,
    sofa 6, tvmonitor 4; car (10) and motorbike (5) could not be had, bottle and train are left out as in the original.
    A real pose task, but not the paper's pixels: camera, light and background are ours
    (`datasets.common.pose.rendering`), and the objects are fewer. Results on it never enter the paper's column.
    y: 10 x azimuth of the 15 query views, in [0, 10). x: 15 labelled support views and 15 query views of one object.
    Shapes: views (1, 128, 128) grey in [0, 1], y (N, 15); 38 training and 12 test objects, drawn over all categories by
    `split_seed`, 100 views each. No domains but the object of each task.
    Licence: none stated; published for research. Citation: Xiang, Mottaghi and Savarese, "Beyond PASCAL", WACV 2014.
    """

    name: ClassVar[str] = "pascal1d_rendered"
    files: ClassVar[tuple[tuple[RawFile, ...], ...]] = tuple(
        (_category(name, sha256, size),) for name, (sha256, size) in CATEGORIES.items()
    )
    n_views: ClassVar[int] = 100  # of each object
    n_test: ClassVar[int] = 12  # objects

    def notes(self) -> tuple[str, ...]:
        """Say that these are not the paper's images."""
        return (*super().notes(), "50 of the 65 CAD models, rendered by us: not the paper's images")

    def meshes(self) -> list[Mesh]:
        """Return the models of every category; fetches the files that are missing."""
        return [mesh for _, path in self.fetch() for mesh in read_mat(path)]

    def rendered(self) -> Path:
        """Return where the views are kept."""
        return data_root() / self.name / f"views_{rendering.VERSION}.npz"

    def render(self, workers: int = 0) -> Views:
        """Return the views, rendered first unless the file is there.

        Args:
            workers: processes; 0 takes one a core.

        Raises:
            FetchError: a file cannot be had.
            InputError: a mesh without faces, or a file made from other sources.
        """
        path, sources = self.rendered(), {file.path: file.sha256 for (file, *_) in self.files}
        about = {"sources": sources, "renderer": rendering.VERSION, "azimuth_seed": AZIMUTH_SEED}
        if not path.is_file():
            meshes = self.meshes()
            y = np.stack([azimuths(mesh.name, self.n_views) for mesh in meshes])
            x = np.stack(_render_all(meshes, y, workers, self.name))
            write_views(path, Views(x, y, tuple(mesh.name for mesh in meshes), about))
        views = read_views(path)
        if dict(views.about) != about:
            raise InputError(f"{path} was made from other files or settings; remove it, and it is made again")
        return views

    def views(self) -> tuple[Views, Views]:
        """Return the views of the training objects and of the test objects."""
        every = self.render()
        order = np.random.default_rng(self.split_seed).permutation(len(every.names))
        return every.select(np.sort(order[self.n_test :])), every.select(np.sort(order[: self.n_test]))


def azimuths(name: str, n: int) -> np.ndarray:
    """Return `(n,)` float32 azimuths in [0, 1), uniform, seeded by the object's name."""
    rng = np.random.default_rng([AZIMUTH_SEED, zlib.crc32(name.encode())])
    return rng.random(n, dtype=np.float32)


def _render_all(meshes: list[Mesh], y: np.ndarray, workers: int, name: str) -> list[np.ndarray]:
    workers = min(workers or core_count(), len(meshes))
    bar = tqdm(total=len(meshes), desc=f"rendering {name}", unit=" objects", ncols=79)
    with bar, ProcessPoolExecutor(workers, get_context("spawn")) if workers > 1 else nullcontext() as pool:
        images = []
        for image in (pool.map if pool else map)(rendering.render, meshes, y):
            images.append(image)
            bar.update()
        return images
