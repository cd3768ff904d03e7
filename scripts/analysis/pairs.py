"""Draw who is mixed with whom: probabilities of partners of one example under several pairings, with their images.

The paper's Figure 1 shows this for views of objects. figures/pairs_objects.png is drawn from the rendered views of
pascal1d_rendered, which `python -m scripts.data render` makes, and figures/pairs_rcf_mnist.png from RCF-MNIST.

Example: python -m scripts.analysis pairs results=/tmp/pairs
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.sampling import PartnerSampler
from datasets.common.pose.rendered import RenderedDataset
from datasets.common.pose.tasks import SCALE
from datasets.common.pose.views import Views
from scripts.analysis.runs import RESULTS_KEY, results_of, write_analysis
from scripts.config.arguments import Args
from scripts.config.compose import part_file
from scripts.config.parts import dataset_class
from scripts.report.figures import ORANGE, SKY

#: Bandwidth of d(x): its square is this share of the median squared distance. The paper gives none.
FEATURE_SHARE = 0.1
PAIRS_FOR_MEDIAN = 2000
OBJECTS, RCF_ROWS = "pascal1d_rendered", 4000
ANCHOR, TURNS = 60.0, (-45.0, -10.0, 5.0, 60.0, 180.0)  # degrees: of the anchor, and of partners from there
SHRINK = 2  # views of 128 pixels a side are compared at 64
KEYS = {"results": RESULTS_KEY}


@dataclass(frozen=True)
class Pool:
    """Examples that may be mixed with each other.

    Attributes:
        images: (N, H, W) or (N, H, W, 3) in [0, 1].
        y: (N,) labels.
        group: (N,) the object or the domain of each.
        turns: label units of a full turn: angles are drawn and sorted in degrees.
        bandwidth: of the label kernel.
        kind: what a group is, in one word.
        title: of the picture.
    """

    images: np.ndarray
    y: np.ndarray
    group: np.ndarray
    turns: float
    bandwidth: float
    kind: str
    title: str

    @property
    def degrees(self) -> np.ndarray:
        """Return the angles (N,)."""
        return 360 * self.y / self.turns


def make_samplers(pool: Pool) -> dict[str, PartnerSampler]:
    """Return the samplers of C-Mixup (label distance), of d(x) and of uniform mixing, by title."""
    x = pool.images.reshape(len(pool.y), -1).astype(np.float32)
    first, second = np.random.default_rng(0).integers(0, len(x), (2, PAIRS_FOR_MEDIAN))
    apart = first != second
    median = float(np.median(np.square(x[first[apart]] - x[second[apart]]).sum(axis=1)))
    return {
        "C-Mixup: label distance": PartnerSampler(pool.y.astype(np.float64), pool.bandwidth, method="rows"),
        "feature distance d(x)": PartnerSampler(x, float(np.sqrt(FEATURE_SHARE * median)), method="rows"),
        "mixup: uniform": PartnerSampler(pool.y.astype(np.float64), np.inf, method="rows"),
    }


def partner_probabilities(sampler: PartnerSampler, anchor: int, candidates: np.ndarray) -> np.ndarray:
    """Return the probabilities (K,) of the partners `shown` of one row, given that it is one of these."""
    row = sampler.probabilities(anchor)[candidates]
    return row / row.sum()


def expected_value(sampler: PartnerSampler, anchor: int, values: np.ndarray) -> float:
    """Return the mean of `values` (N,) over the partners of a row, each by its probability, without the row itself."""
    row = sampler.probabilities(anchor)
    row[anchor] = 0
    return float(row @ values / row.sum())


def partner_candidates(pool: Pool, anchor: int, angles: Sequence[float], groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return partners (K,) to show, in the order of their angle: one an angle and set of groups, nearest to the angle.

    Angles are in degrees from the anchor's, not wrapped: a label of 0 is far from one of a full turn. Each of `groups`
    has the groups that its candidates are of; an angle takes them in turns.
    """
    candidates: list[int] = []
    for k, angle in enumerate(angles):
        for several in groups:
            group = several[k % len(several)]
            free = np.setdiff1d(np.flatnonzero(pool.group == group), [anchor, *candidates])
            if not len(free):
                raise InputError(f"group {group} has no example besides the anchor's and those shown")
            away = np.abs(pool.degrees[free] - pool.degrees[anchor] - angle)
            candidates.append(int(free[np.argmin(away)]))
    return np.array(sorted(candidates, key=lambda row: pool.degrees[row]))


def pairs_figure(pool: Pool, groups: Sequence[Sequence[int]]) -> Figure:
    """Draw an anchor of the first group, candidates by angle, and bars of their probabilities under every pairing."""
    rows = np.flatnonzero(pool.group == groups[0][0])
    anchor = int(rows[np.argmin(np.abs(pool.degrees[rows] - ANCHOR))])
    candidates, samplers = partner_candidates(pool, anchor, TURNS, groups), make_samplers(pool)
    n, same = len(candidates), pool.group[candidates] == pool.group[anchor]
    figure = Figure(figsize=(1.6 + 1.1 * n, 2.2 + 1.35 * len(samplers)))
    ratios = {"height_ratios": [1.1, *([1.0] * len(samplers))], "width_ratios": [1.0, 0.45, *([1.0] * n)]}
    grid = figure.add_gridspec(1 + len(samplers), n + 2, left=0.02, right=0.98, top=0.86, bottom=0.03, wspace=0.08,
                               hspace=0.45, **ratios)  # fmt: skip
    kinds = ["anchor", *("same" if is_same else "other" for is_same in same)]
    for column, row, kind in zip((0, *range(2, n + 2)), (anchor, *candidates), kinds, strict=True):
        axis = figure.add_subplot(grid[0, column])
        axis.imshow(pool.images[row], cmap="gray", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
        axis.set_title(f"{kind}, {pool.degrees[row]:.0f}°", fontsize=9)
    shares = {title: partner_probabilities(sampler, anchor, candidates) for title, sampler in samplers.items()}
    top = 1.05 * max(values.max() for values in shares.values())
    for line, (title, sampler) in enumerate(samplers.items(), start=1):
        axis = figure.add_subplot(grid[line, 2:])
        axis.bar(range(n), shares[title], color=[ORANGE if s else SKY for s in same], width=0.6)
        axis.axhline(1 / n, color="grey", linestyle=":", linewidth=1)
        axis.set(xlim=(-0.5, n - 0.5), ylim=(0, top), xticks=[])
        axis.yaxis.set_major_locator(MaxNLocator(2))
        away = expected_value(sampler, anchor, pool.group != pool.group[anchor])
        gap = expected_value(sampler, anchor, np.abs(pool.degrees - pool.degrees[anchor]))
        axis.set_title(
            f"{title}; over all {len(pool.y)}: {100 * away:.0f} % of the probability is of another {pool.kind}, "
            f"partners are {gap:.0f}° away on average",
            fontsize=9, loc="left",
        )  # fmt: skip
    figure.suptitle(
        f"{pool.title}\nP of each partner, given that it is one of those shown; orange: same {pool.kind}, "
        "blue: another, dotted: uniform", fontsize=10,
    )  # fmt: skip
    return figure


def paper_bandwidth(dataset: str) -> float:
    """Return the label bandwidth of a dataset's preset paper."""
    return float(part_file("dataset", dataset)["presets"]["paper"]["bandwidth"])


def object_pool(views: Views) -> Pool:
    """Return the views of all objects as one pool, whose groups are the objects."""
    objects, n, height, width = views.x.shape
    small = views.x.reshape(objects * n, height // SHRINK, SHRINK, width // SHRINK, SHRINK).mean(axis=(2, 4)) / 255
    group, title = np.repeat(np.arange(objects), n), "Rendered objects, label 10 x azimuth"
    return Pool(small.astype(np.float32), SCALE * views.y.reshape(-1), group, SCALE, paper_bandwidth(OBJECTS), "object",
                title)  # fmt: skip


def colour_pool(split: Split, rows: int = RCF_ROWS) -> Pool:
    """Return the first rows of RCF-MNIST's training split, whose groups are the colour directions."""
    images = split.x[torch.arange(min(rows, len(split)))].permute(0, 2, 3, 1).clamp(0, 1).numpy()
    y, group = split.y[: len(images), 0].numpy(), split.domain[: len(images)].numpy()
    title = "RCF-MNIST, label rotation; domains are colour directions"
    return Pool(images, y, group, 1.0, paper_bandwidth("rcf_mnist"), "domain", title)


def draw_objects() -> Figure:
    """Return the picture of rendered objects."""
    dataset = dataset_class(OBJECTS)()
    assert isinstance(dataset, RenderedDataset)
    if not dataset.rendered().is_file():
        raise InputError(
            f"no rendered views at {dataset.rendered()}: `python -m scripts.data render` makes them (2 minutes)"
        )
    pool = object_pool(dataset.render())
    first, *others = np.linspace(0, pool.group.max(), len(TURNS) + 1).astype(int).tolist()
    return pairs_figure(pool, [[first], others])


def draw_colours() -> Figure:
    """Return the picture of RCF-MNIST."""
    data = dataset_class("rcf_mnist")(scaling="unit").load(0)  # type: ignore[call-arg]
    return pairs_figure(colour_pool(data.train), [[0], [1]])


def run(given: Args) -> None:
    """Draw both pictures, that of RCF-MNIST first."""
    for name, draw in (("rcf_mnist", draw_colours), ("objects", draw_objects)):
        write_analysis(results_of(given), {}, {f"figures/pairs_{name}.png": draw()})
