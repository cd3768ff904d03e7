"""PASCAL3D (Pascal1D): the released renderings."""

from datasets.common.fetch import raw_files, sha256_of
from datasets.common.pose.tasks import TaskDataset
from datasets.common.pose.views import Views, converted


class Pascal1D(TaskDataset):
    """Azimuth of rendered CAD models, the paper's PASCAL3D.

    Origin: google-research meta_learning_without_memorization (Yin et al. 2020), rendered from PASCAL3D+ (Xiang et al.
    2014); the files are on Google Drive alone, so they are placed by hand.
    y: 10 x azimuth of the 15 query views, in [0, 10). x: 15 labelled support views and 15 query views of one object.
    Shapes: views (1, 128, 128) grey in [0, 1], y (N, 15); 50 training and 15 test objects of 10 categories, 100 views
    each; the paper calls the objects categories. No domains but the object of each task.
    Licence: none stated. Citation: Yin, Tucker, Zhou, Levine and Finn, "Meta-Learning without Memorization", ICLR 2020;
    Xiang, Mottaghi and Savarese, "Beyond PASCAL", WACV 2014.
    """

    name = "pascal1d"
    files = raw_files("pascal1d")

    def views(self) -> tuple[Views, Views]:
        train, test = (
            converted(path.with_suffix(".npz"), {file.path: sha256_of(path)}, path.read_bytes)
            for file, path in self.fetch()
        )
        return train, test
