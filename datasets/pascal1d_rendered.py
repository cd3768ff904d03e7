"""PASCAL3D rendered again: the CAD models that can be had, with our own renderer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from datasets.common.fetch import RawFile, github
from datasets.common.pose.meshes import Mesh, read_mat
from datasets.common.pose.rendered import RenderedDataset

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
        urls=(github(REPOSITORY, COMMIT, f"CAD/{name}.mat"),),
        page="https://cvgl.stanford.edu/projects/pascal3d.html (PASCAL3D+ release 1.1, folder CAD)",
        licence="none stated; published for research",
    )


class Pascal1DRendered(RenderedDataset):
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
    n_views: ClassVar[int] = 100
    n_test: ClassVar[int] = 12

    def notes(self) -> tuple[str, ...]:
        """Say that these are not the paper's images."""
        return (*super().notes(), "50 of the 65 CAD models, rendered by us: not the paper's images")

    def meshes(self) -> Iterator[Mesh]:
        """Read every category's models."""
        for _, path in self.fetch():
            yield from read_mat(path)
