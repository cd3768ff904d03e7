"""PASCAL3D rendered again: the CAD models that are public, with our own renderer."""

from collections.abc import Iterator

from datasets.common.fetch import raw_files
from datasets.common.pose.rendered import RenderedDataset
from datasets.common.pose.rendering import Mesh, read_mat


class Pascal1DRendered(RenderedDataset):
    """Azimuth of 50 of the 65 CAD models of the paper's PASCAL3D, rendered here.

    Origin: CAD models of PASCAL3D+ (Xiang et al. 2014): aeroplane 7, bicycle 5, boat 6, bus 6, chair 10, diningtable 6,
    sofa 6, tvmonitor 4; car (10) and motorbike (5) are missing, bottle and train are left out as in the original.
    A real pose task, but not the paper's pixels: camera, light and background are ours
    (`datasets.common.pose.rendering`), and the objects are fewer. Results on it never enter the paper's column.
    y: 10 x azimuth of the 15 query views, in [0, 10). x: 15 labelled support views and 15 query views of one object.
    Shapes: views (1, 128, 128) grey in [0, 1], y (N, 15); 38 training and 12 test objects, drawn over all categories by
    `split_seed`, 100 views each. No domains but the object of each task.
    Licence: none stated; published for research. Citation: Xiang, Mottaghi and Savarese, "Beyond PASCAL", WACV 2014.
    """

    name = "pascal1d_rendered"
    files = raw_files("pascal1d_rendered")
    n_views = 100
    n_test = 12

    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), "50 of the 65 CAD models, rendered by us: not the paper's images")

    def meshes(self) -> Iterator[Mesh]:
        for _, path in self.fetch():
            yield from read_mat(path)
