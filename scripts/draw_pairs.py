"""Draw who is mixed with whom (the paper's Figure 1): under label distance, feature distance and uniform mixing.

`python -m scripts.draw_pairs [objects,rcf_mnist] [--results DIR]` writes figures/pairs_objects.png from the rendered
views of pascal1d_rendered, which `make render-pascal1d` makes, and figures/pairs_rcf_mnist.png from RCF-MNIST.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from matplotlib.figure import Figure

from cmixup.data import Split
from cmixup.errors import InputError
from datasets.common.pose.rendered import RenderedDataset
from datasets.common.pose.tasks import SCALE
from datasets.common.pose.views import Views
from scripts.driver.cli import chosen, user_errors
from scripts.driver.compose import part_file
from scripts.driver.config import dataset_class
from scripts.measure.pairs import Pool, candidates, pairings, pairs_figure
from scripts.records.experiment import RESULTS
from scripts.report.figure_files import write_figures

PICTURES = ["objects", "rcf_mnist"]
OBJECTS, RCF_ROWS = "pascal1d_rendered", 4000
ANCHOR, TURNS = 60.0, (-45.0, -10.0, 5.0, 60.0, 180.0)  # degrees: of the anchor, and of partners from there
SHRINK = 2  # views of 128 pixels a side are compared at 64


def bandwidth(dataset: str) -> float:
    """Return the label bandwidth of a dataset's preset paper."""
    return float(part_file("dataset", dataset)["presets"]["paper"]["bandwidth"])


def object_pool(views: Views) -> Pool:
    """Return the views of all objects as one pool, whose groups are the objects."""
    objects, n, height, width = views.x.shape
    small = views.x.reshape(objects * n, height // SHRINK, SHRINK, width // SHRINK, SHRINK).mean(axis=(2, 4)) / 255
    return Pool(small.astype(np.float32), SCALE * views.y.reshape(-1), np.repeat(np.arange(objects), n), SCALE)


def colour_pool(split: Split, rows: int = RCF_ROWS) -> Pool:
    """Return the first rows of RCF-MNIST's training split, whose groups are the colour directions."""
    images = split.x[torch.arange(min(rows, len(split)))].permute(0, 2, 3, 1).clamp(0, 1).numpy()
    return Pool(images, split.y[: len(images), 0].numpy(), split.domain[: len(images)].numpy(), 1.0)


def anchor_of(pool: Pool, group: int) -> int:
    """Return the row of a group that is nearest to the anchor's angle."""
    rows = np.flatnonzero(pool.group == group)
    return int(rows[np.argmin(np.abs(pool.degrees[rows] - ANCHOR))])


def draw_objects() -> Figure:
    """Return the picture of rendered objects.

    Raises:
        InputError: they are not rendered yet.
    """
    dataset = dataset_class(OBJECTS)()
    assert isinstance(dataset, RenderedDataset)
    if not dataset.rendered().is_file():
        raise InputError(f"no rendered views at {dataset.rendered()}: `make render-pascal1d` renders them (2 minutes)")
    pool = object_pool(dataset.render())
    objects = len(np.unique(pool.group))
    first, *others = (np.linspace(0, objects - 1, len(TURNS) + 1).astype(int)).tolist()
    anchor = anchor_of(pool, first)
    shown = candidates(pool, anchor, TURNS, [[first], others])
    return pairs_figure(pool, anchor, shown, pairings(pool, bandwidth(OBJECTS)), group="object",
                        title_of_all="Rendered objects, label 10 x azimuth")  # fmt: skip


def draw_colours() -> Figure:
    """Return the picture of RCF-MNIST."""
    data = dataset_class("rcf_mnist")(scaling="unit").load(0)  # type: ignore[call-arg]
    pool = colour_pool(data.train)
    anchor = anchor_of(pool, 0)
    shown = candidates(pool, anchor, TURNS, [[0], [1]])
    return pairs_figure(pool, anchor, shown, pairings(pool, bandwidth("rcf_mnist")), group="domain",
                        title_of_all="RCF-MNIST, label rotation; domains are colour directions")  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.draw_pairs", description=__doc__)
    parser.add_argument("pictures", nargs="?", default="", help="comma-separated; default: both")
    parser.add_argument("--results", default="", help="where figures/ is; default results/")
    given = parser.parse_args(argv)
    missing = 0
    with user_errors():
        pictures = chosen("pictures", given.pictures, PICTURES)
        for name in pictures:
            try:
                figure = draw_objects() if name == "objects" else draw_colours()
                (path,) = write_figures({f"figures/pairs_{name}.png": figure}, Path(given.results or RESULTS))
            except InputError as error:
                print(f"not drawn: {name}: {error}", file=sys.stderr)
                missing += 1
            else:
                print(f"illustration: {path}")
    if missing:
        raise SystemExit(2)


if __name__ == "__main__":
    main()
