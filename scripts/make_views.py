"""Render the views of `pascal1d_rendered` and `shapenet1d_random` into the data root, and a contact sheet of each.

`python -m scripts.make_views [pascal1d_rendered,shapenet1d_random] [--workers 2]`; what is there is not rendered
again. The datasets render by themselves when they are loaded; this does it beforehand.
"""

from __future__ import annotations

import argparse
import io
import time

import numpy as np

from cmixup.files import write_atomically
from datasets.common.pose.rendered import RenderedDataset
from datasets.common.pose.views import Views
from scripts.driver.cli import user_errors
from scripts.driver.config import dataset_class
from scripts.records.experiment import RESULTS

SHOWN = ("pascal1d_rendered", "shapenet1d_random")
SHEET_OBJECTS, SHEET_VIEWS = 12, 8  # of the contact sheet: objects, and views in order of their azimuth


def contact_sheet(views: Views) -> bytes:
    """Return a PNG of views of some of the objects, one a row, the azimuth rising from left to right."""
    from PIL import Image

    objects = np.unique(np.linspace(0, len(views.names) - 1, SHEET_OBJECTS).astype(int))
    lines = []
    for k in objects:
        order = np.argsort(views.y[k])
        chosen = order[np.linspace(0, len(order) - 1, SHEET_VIEWS).astype(int)]
        lines.append(np.concatenate(list(views.x[k][chosen]), axis=1))
    stream = io.BytesIO()
    Image.fromarray(np.concatenate(lines)).save(stream, "PNG", optimize=True)
    return stream.getvalue()


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.make_views", description=__doc__)
    parser.add_argument("datasets", nargs="?", default=",".join(SHOWN), help="comma-separated; default: both")
    parser.add_argument("--workers", type=int, default=0, help="processes; default one a core")
    given = parser.parse_args()
    with user_errors():
        for name in given.datasets.split(","):
            dataset = dataset_class(name)()
            assert isinstance(dataset, RenderedDataset), f"{name} is not rendered"
            started = time.perf_counter()
            views = dataset.render(given.workers)
            seconds = time.perf_counter() - started
            n_objects, n_views = views.y.shape
            print(f"{name}: {n_objects} objects x {n_views} views in {seconds:.0f} s -> {dataset.rendered()}")
            sheet = RESULTS / "figures" / f"{name}.png"
            write_atomically(sheet, contact_sheet(views))
            print(f"contact sheet: {sheet}")


if __name__ == "__main__":
    main()
