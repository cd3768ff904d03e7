"""Random shapes rendered, for where ShapeNet1D is out of reach."""

from collections.abc import Iterator

import numpy as np

from datasets.common.fetch import raw_files
from datasets.common.pose.rendered import RenderedDataset
from datasets.common.pose.rendering import Mesh, read_objs

N_ALL, N_MESHES, MESH_SEED = 1000, 200, 0


class ShapeNet1DRandom(RenderedDataset):
    """Azimuth of 200 random shapes, rendered here.

    Origin: 200 of the 1000 random objects that pybullet ships, drawn by seed. Not in the paper: they have no categories
    and no shared canonical pose. So the azimuth of a new object can be told from its support views alone, which is
    another kind of task than ShapeNet1D, and harder. Results on it never enter the paper's column.
    y: 10 x azimuth of the 15 query views, in [0, 10). x: 15 labelled support views and 15 query views of one object.
    Shapes: views (1, 128, 128) grey in [0, 1], y (N, 15); 160 training and 40 test objects, drawn by `split_seed`,
    50 views each. No domains but the object of each task.
    Licence: zlib (pybullet). Citation: Coumans and Bai, "PyBullet", 2016-2021.
    """

    name = "shapenet1d_random"
    files = raw_files("shapenet1d_random")
    n_views = 50
    n_test = 40

    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), "random shapes without a canonical pose, rendered by us: not the paper's ShapeNet1D")

    def meshes(self) -> Iterator[Mesh]:
        ((_, path),) = self.fetch()
        chosen = np.random.default_rng(MESH_SEED).choice(N_ALL, N_MESHES, replace=False)
        yield from read_objs(path, [f"random_urdfs/{k:03d}/{k:03d}.obj" for k in chosen])
