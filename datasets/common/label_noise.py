"""Noise on the labels of the training split (paper, appendix, table "noise"; every dataset has the option).

The validation split may have as much, as where all labels at hand are measured alike; the test split stays clean.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch

from cmixup.data import Split, Tasks
from cmixup.errors import check_choice, check_nonnegative
from cmixup.seeding import stream


@dataclass(frozen=True)
class LabelNoise:
    """Gaussian noise that is drawn once for a run seed, from a stream of its own, and stays over the epochs.

    Its standard deviation is `ratio` times that of the training labels, pooled over all their entries, or where labels
    have several units that of each output (`per="target"`). On tasks each
    example (a view of an object) has one noisy label, in the support and in the query of every training task.

    Args:
        ratio: 0 or more; 0 leaves the labels as they are.
        per: "output" draws a number for every entry of a label; "example" adds one number to all outputs of a row, as
            the released helper does; "target" draws for every entry, by the spread of its own output. For labels of
            width 1 and on tasks all are the same.
    """

    ratio: float = 0.0
    per: str = "output"

    def __post_init__(self) -> None:
        check_nonnegative("label_noise", self.ratio)
        check_choice("label_noise_per", self.per, ("output", "example", "target"))

    def add(self, split: Split, seed: int, std: np.ndarray | None = None) -> tuple[Split, np.ndarray]:
        """Return a split with noise on its labels, and the noise's standard deviation `(1,)`, per="target" `(d_y,)`.

        For the split of validation, which has a stream of its own, `std` is that of the training labels' noise.
        """
        rng = stream("label_noise" if std is None else "val_label_noise", seed)
        clean_tasks = split.x if isinstance(split.x, Tasks) else None
        labels = split.y.numpy() if clean_tasks is None else clean_tasks.labels
        width = 1 if self.per == "example" and clean_tasks is None else labels.shape[1]
        if std is None:
            per_output = self.per == "target" and clean_tasks is None and labels.shape[1] > 1
            spread = np.nanstd if np.isnan(labels).any() else np.std  # which differ in the last digit
            std = self.ratio * np.atleast_1d(spread(labels, axis=0 if per_output else None, dtype=np.float64))
        noisy = (labels + std * rng.standard_normal((len(labels), width))).astype(labels.dtype)
        if clean_tasks is None:
            return replace(split, y=torch.from_numpy(noisy)), std
        tasks = Tasks(clean_tasks.images, noisy, clean_tasks.objects, clean_tasks.views, clean_tasks.shots)
        return replace(split, x=tasks, y=tasks.y), std

    def note(self, std: np.ndarray) -> str:
        """Return the note for a reader of the results, with the standard deviation in the labels' unit."""
        stds = ", ".join(f"{value:.4g}" for value in std)
        return (
            f"the training labels have Gaussian noise of standard deviation {stds}, {self.ratio:g} times theirs, "
            f"independent per {self.per}"
        )
