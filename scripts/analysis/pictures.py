"""Draw pictures from raw images: who is mixed with whom, as the paper's Figure 1, and RCF-MNIST in its colours.

figures/pairs_*.png have probabilities of partners of one example under several pairings, with their images: of views of
objects (pascal1d_rendered), as in the paper, and of RCF-MNIST.

Example: python -m scripts.analysis pictures results=/tmp/pictures
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from cmixup.data import RegressionData, Split
from cmixup.sampling.sampler import PartnerSampler
from datasets.common.pose.rendered import RenderedDataset
from datasets.common.pose.tasks import SCALE
from scripts.analysis.runs import RESULTS_KEY, write_analysis
from scripts.config.arguments import Args
from scripts.config.compose import part_file
from scripts.config.parts import dataset_class
from scripts.report.figures import ORANGE, SKY, new_subplots

#: Bandwidth of d(x): its square is this share of the median squared distance. The paper gives none.
FEATURE_SHARE = 0.1
PAIRS_FOR_MEDIAN = 2000
OBJECTS, RCF_ROWS = "pascal1d_rendered", 4000
ANCHOR, TURNS = 60.0, (-45.0, -10.0, 5.0, 60.0, 180.0)  # degrees: of the anchor, and of partners from there
SHRINK = 2  # views of 128 pixels a side are compared at 64
IMAGES_PER_ANGLE, N_ANGLES = 4, 18  # of each split of RCF-MNIST
SPLITS = {"train": "training", "val": "validation", "test": "test"}
KEYS = {"results": RESULTS_KEY}


@dataclass(frozen=True)
class Pool:
    """Examples that may be mixed with each other."""

    images: np.ndarray  # (N, H, W) or (N, H, W, 3) in [0, 1]
    y: np.ndarray  # (N,) labels
    degrees: np.ndarray  # (N,) the angles that these are of
    group: np.ndarray  # (N,) the object or the domain of each
    dataset: str  # whose preset paper has the bandwidth of the label kernel
    kind: str  # the name of a group's kind, in one word
    title: str  # of the picture


def make_samplers(pool: Pool) -> dict[str, PartnerSampler]:
    """Return the samplers of C-Mixup (label distance), of d(x) and of uniform mixing, by title."""
    x, y = pool.images.reshape(len(pool.y), -1).astype(np.float32), pool.y.astype(np.float64)
    first, second = np.random.default_rng(0).integers(0, len(x), (2, PAIRS_FOR_MEDIAN))
    apart, presets = first != second, part_file("dataset", pool.dataset)["presets"]
    median = float(np.median(np.square(x[first[apart]] - x[second[apart]]).sum(axis=1)))
    return {
        "C-Mixup: label distance": PartnerSampler(y, presets["paper"]["bandwidth"], method="rows"),
        "feature distance d(x)": PartnerSampler(x, float(np.sqrt(FEATURE_SHARE * median)), method="rows"),
        "mixup: uniform": PartnerSampler(y, np.inf, method="rows"),
    }


def partner_candidates(pool: Pool, anchor: int, angles: Sequence[float], groups: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the partners (K,) to show, by angle: for each of `angles` and each set of `groups` the nearest one.

    Angles are in degrees from the anchor's, not wrapped: a label of 0 is far from one of a full turn. The candidates of
    a set are of its groups in turns, one an angle.
    """
    chosen = [anchor]
    for k, angle in enumerate(angles):
        for candidates in groups:
            free = np.setdiff1d(np.flatnonzero(pool.group == candidates[k % len(candidates)]), chosen)
            distance = np.abs(pool.degrees[free] - pool.degrees[anchor] - angle)
            chosen.append(int(free[np.argmin(distance)]))
    return np.array(sorted(chosen[1:], key=lambda row: pool.degrees[row]))


def pairs_figure(pool: Pool, groups: Sequence[Sequence[int]]) -> Figure:
    """Draw an anchor of the first group, candidates by angle, and bars of their probabilities under every pairing."""
    rows = np.flatnonzero(pool.group == groups[0][0])
    anchor = int(rows[np.argmin(np.abs(pool.degrees[rows] - ANCHOR))])
    candidates, samplers = partner_candidates(pool, anchor, TURNS, groups), make_samplers(pool)
    n, same = len(candidates), pool.group == pool.group[anchor]
    figure = Figure(figsize=(1.6 + 1.1 * n, 2.2 + 1.35 * len(samplers)))
    ratios = {"height_ratios": [1.1, *([1.0] * len(samplers))], "width_ratios": [1.0, 0.45, *([1.0] * n)]}
    grid = figure.add_gridspec(1 + len(samplers), n + 2, left=0.02, right=0.98, top=0.86, bottom=0.03, wspace=0.08,
                               hspace=0.45, **ratios)  # fmt: skip
    for column, row in zip((0, *range(2, n + 2)), (anchor, *candidates), strict=True):
        axis = figure.add_subplot(grid[0, column])
        axis.imshow(pool.images[row], cmap="gray", vmin=0, vmax=1)
        axis.set(xticks=[], yticks=[])
        label = "anchor" if row == anchor else "same" if same[row] else "other"
        axis.set_title(f"{label}, {pool.degrees[row]:.0f}°", fontsize=9)
    probabilities = {title: sampler.probabilities(anchor) for title, sampler in samplers.items()}
    shares = {title: row[candidates] / row[candidates].sum() for title, row in probabilities.items()}
    top = 1.05 * max(values.max() for values in shares.values())
    for line, (title, row) in enumerate(probabilities.items(), start=1):
        axis = figure.add_subplot(grid[line, 2:])
        axis.bar(range(n), shares[title], color=[ORANGE if s else SKY for s in same[candidates]], width=0.6)
        axis.axhline(1 / n, color="grey", linestyle=":", linewidth=1)
        axis.set(xlim=(-0.5, n - 0.5), ylim=(0, top), xticks=[])
        axis.yaxis.set_major_locator(MaxNLocator(2))
        row[anchor] = 0  # means are over the others
        other_share, gap = (row @ values / row.sum() for values in (~same, np.abs(pool.degrees - pool.degrees[anchor])))
        axis.set_title(
            f"{title}; over all {len(pool.y)}: {100 * other_share:.0f} % of the probability is of another {pool.kind}, "
            f"partners are {gap:.0f}° away on average",
            fontsize=9, loc="left",
        )  # fmt: skip
    figure.suptitle(
        f"{pool.title}\nP of each partner, given that it is one of those shown; orange: same {pool.kind}, "
        "blue: another, dotted: uniform", fontsize=10,
    )  # fmt: skip
    return figure


def colour_pool(split: Split) -> Pool:
    """Return the first rows of RCF-MNIST's training split, whose groups are the colour directions."""
    images = split.x[torch.arange(min(RCF_ROWS, len(split)))].permute(0, 2, 3, 1).clamp(0, 1).numpy()
    y, group = split.y[: len(images), 0].numpy(), split.domain[: len(images)].numpy()
    title = "RCF-MNIST, label rotation; domains are colour directions"
    return Pool(images, y, 360 * y, group, "rcf_mnist", "domain", title)


def draw_objects() -> Figure:
    """Return the picture of rendered objects, whose views are one pool; groups are the objects."""
    dataset = dataset_class(OBJECTS)()
    assert isinstance(dataset, RenderedDataset)
    views = dataset.render()
    objects, n, height, width = views.x.shape
    small = views.x.reshape(objects * n, height // SHRINK, SHRINK, width // SHRINK, SHRINK).mean(axis=(2, 4)) / 255
    turns, title = views.y.reshape(-1), "Rendered objects, label 10 x azimuth"
    pool = Pool(small.astype(np.float32), SCALE * turns, 360 * turns, np.repeat(np.arange(objects), n),
                OBJECTS, "object", title)  # fmt: skip
    first, *others = np.linspace(0, objects - 1, len(TURNS) + 1).astype(int).tolist()
    return pairs_figure(pool, [[first], others])


def image_mosaic(split: Split, angles: np.ndarray) -> np.ndarray:
    """Return `(n * height, A * width, 3)` in [0, 1]: a column for each of `angles` (A,) in turns, of nearest images.

    They are in the split's order.
    """
    distance = np.abs(split.y[:, 0].numpy() - angles[:, None])
    rows = np.sort(np.argsort(distance, axis=1, kind="stable")[:, :IMAGES_PER_ANGLE], axis=1)
    images = split.x[torch.from_numpy(rows.T.reshape(-1))]
    grid = images.reshape(IMAGES_PER_ANGLE, len(angles), *images.shape[1:]).permute(0, 3, 1, 4, 2)
    return grid.flatten(2, 3).flatten(0, 1).clamp(0, 1).numpy()


def colouring_rule(split: Split) -> str:
    """Return how a split's images are coloured, in words, from its domains, and the correlation that gives."""
    words = {0: "rho = g", 1: "rho = 1 - g", 2: "rho at random"}
    share = {words[d]: float((split.domain == d).float().mean()) for d in torch.unique(split.domain).tolist()}
    parts = [word if part == 1 else f"{word} for {100 * part:.0f} %"
             for word, part in sorted(share.items(), key=lambda pair: -pair[1])]  # fmt: skip
    rho = split.x.rho  # type: ignore[union-attr]
    correlation = float(torch.corrcoef(torch.stack([rho, split.y[:, 0]]))[0, 1])
    return f"{', '.join(parts)}; correlation of rho and g {correlation:+.2f}"


def colours_figure(data: RegressionData) -> Figure:
    """Draw a block of RCF-MNIST's images for each split, the angle rising from left to right."""
    figure, axes = new_subplots(len(SPLITS), 1, figsize=(9, 2.4 * len(SPLITS)))
    for axis, (name, title) in zip(axes[:, 0], SPLITS.items(), strict=True):
        split: Split = getattr(data, name)
        picture = image_mosaic(split, (np.arange(N_ANGLES) + 0.5) / N_ANGLES)
        axis.imshow(picture, extent=(0, 360, 0, 360 * picture.shape[0] / picture.shape[1]), interpolation="nearest")
        axis.set_title(f"{title}: {colouring_rule(split)}", fontsize=10, loc="left")
        axis.set(xticks=range(0, 361, 45), yticks=[])
    axes[-1, 0].set_xlabel("rotation in degrees (label g = rotation / 360)")
    figure.suptitle("RCF-MNIST: pixels times (rho, 0, 1 - rho), so red is rho = 1 and blue rho = 0", fontsize=11)
    figure.tight_layout()
    return figure


def run(args: Args) -> None:
    """Draw the pictures, those of RCF-MNIST first."""
    data = dataset_class("rcf_mnist")(scaling="unit").load(0)  # type: ignore[call-arg]
    pairs = pairs_figure(colour_pool(data.train), [[0], [1]])
    write_analysis(args, figures={"figures/rcf_mnist.png": colours_figure(data), "figures/pairs_rcf_mnist.png": pairs})
    write_analysis(args, figures={"figures/pairs_objects.png": draw_objects()})
