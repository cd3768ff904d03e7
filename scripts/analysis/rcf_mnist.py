"""Draw RCF-MNIST from the real images: those of every split over the angle, in their colours.

Example: python -m scripts.analysis rcf_mnist
"""

from __future__ import annotations

import numpy as np
import torch

from cmixup.data import Split
from scripts.analysis.runs import RESULTS_KEY, write_analysis
from scripts.config.arguments import Args
from scripts.config.parts import dataset_class
from scripts.report.figures import new_subplots

KEYS = {"results": RESULTS_KEY}
IMAGES_PER_ANGLE, N_ANGLES = 4, 18  # of each split
SPLITS = {"train": "training", "val": "validation", "test": "test"}


def image_mosaic(split: Split, angles: np.ndarray) -> np.ndarray:
    """Return `(n * height, A * width, 3)` in [0, 1]: a column for each of `angles` (A,) in turns, of nearest images.

    They are in the split's order.
    """
    away = np.abs(split.y[:, 0].numpy() - angles[:, None])
    rows = np.sort(np.argsort(away, axis=1, kind="stable")[:, :IMAGES_PER_ANGLE], axis=1)
    images = split.x[torch.from_numpy(rows.T.reshape(-1))]
    grid = images.reshape(IMAGES_PER_ANGLE, len(angles), *images.shape[1:]).permute(0, 3, 1, 4, 2)
    return grid.flatten(2, 3).flatten(0, 1).clamp(0, 1).numpy()


def colouring_rule(split: Split) -> str:
    """Return how a split's images are coloured, in words, from its domains, and the correlation that gives."""
    share = {d: float((split.domain == d).float().mean()) for d in torch.unique(split.domain).tolist()}
    words = {0: "rho = g", 1: "rho = 1 - g", 2: "rho at random"}
    parts = [
        words[d] if share[d] == 1 else f"{words[d]} for {100 * share[d]:.0f} %"
        for d in sorted(share, key=lambda d: -share[d])
    ]
    rho = split.x.rho  # type: ignore[union-attr]
    correlation = float(torch.corrcoef(torch.stack([rho, split.y[:, 0]]))[0, 1])
    return f"{', '.join(parts)}; correlation of rho and g {correlation:+.2f}"


def run(given: Args) -> None:
    """Write results/figures/rcf_mnist.png: a block of images for each split, the angle rising from left to right."""
    data = dataset_class("rcf_mnist")(scaling="unit").load(0)  # type: ignore[call-arg]
    figure, axes = new_subplots(len(SPLITS), 1, figsize=(9, 2.4 * len(SPLITS)))
    for axis, (name, title) in zip(axes[:, 0], SPLITS.items(), strict=True):
        split: Split = getattr(data, name)
        picture = image_mosaic(split, (np.arange(N_ANGLES) + 0.5) / N_ANGLES)
        axis.imshow(picture, extent=(0, 360, 0, 360 * picture.shape[0] / picture.shape[1]), interpolation="nearest")
        axis.set_title(f"{title}: {colouring_rule(split)}", fontsize=10, loc="left")
        axis.set_yticks([])
        axis.set_xticks(range(0, 361, 45))
    axes[-1, 0].set_xlabel("rotation in degrees (label g = rotation / 360)")
    figure.suptitle("RCF-MNIST: pixels times (rho, 0, 1 - rho), so red is rho = 1 and blue rho = 0", fontsize=11)
    figure.tight_layout()
    write_analysis(given, figures={"figures/rcf_mnist.png": figure})
