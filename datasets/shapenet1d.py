"""ShapeNet1D: the released renderings."""

import tarfile
from functools import partial
from pathlib import Path

from datasets.common.fetch import raw_files
from datasets.common.pose.tasks import TaskDataset
from datasets.common.pose.views import Views, converted

TRAIN, TEST = "train_data_large.pkl", "val_data.pkl"


class ShapeNet1D(TaskDataset):
    """Azimuth of rendered ShapeNet objects.

    Origin: boschresearch/what-matters-for-meta-learning (Gao et al. 2022), rendered from ShapeNetV2.
    y: 10 x azimuth of the 15 query views, in [0, 10). x: 15 labelled support views and 15 query views of one object.
    Shapes: views (1, 128, 128) grey in [0, 1], y (N, 15); 27 categories of 60 objects, 1350 training and 270 test
    objects. The test objects are the archive's validation objects: unseen objects of the training categories, as the
    C-Mixup paper has it; the archive's own test file holds unseen categories. No domains but the object of each task.
    Licence: AGPL-3.0 (repository). Citation: Gao, Ziesche, Vien, Volpp and Neumann, "What Matters for Meta-Learning
    Vision Regression Tasks?", CVPR 2022.
    """

    name = "shapenet1d"
    files = raw_files("shapenet1d")

    def views(self) -> tuple[Views, Views]:
        ((file, path),) = self.fetch()
        sources = {file.path: file.sha256}
        train, test = (
            converted(path.with_name(name).with_suffix(".npz"), sources, partial(_member, path, name))
            for name in (TRAIN, TEST)
        )
        return train, test


def _member(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as opened:
        stream = next(opened.extractfile(member) for member in opened if Path(member.name).name == name)
        assert stream is not None
        return stream.read()
