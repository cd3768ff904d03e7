"""Prediction against truth, residuals and calibration of one run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from scripts.driver.predictions import calibration

MOST_OUTPUTS = 6
COLOUR = "#1f77b4"


def draw_predictions(target: np.ndarray, prediction: np.ndarray, names: Sequence[str], title: str) -> Figure:
    """Draw a row of three panels for each output, the first six of them.

    Args:
        target, prediction: `(N, d_y)`, the rows that the title names.
        names: of the outputs.
        title: of the figure.
    """
    target, prediction = target.astype(np.float64), prediction.astype(np.float64)
    shown = min(target.shape[1], MOST_OUTPUTS)
    figure = Figure(figsize=(12, 3.6 * shown + 0.4))
    axes = figure.subplots(shown, 3, squeeze=False)
    size = 12 if len(target) < 1000 else 3
    for k, row in enumerate(axes):
        truth, found, name = target[:, k], prediction[:, k], names[k] if k < len(names) else f"output {k + 1}"
        ends = [min(truth.min(), found.min()), max(truth.max(), found.max())]
        row[0].scatter(truth, found, s=size, alpha=0.5, color=COLOUR, linewidths=0)
        row[0].set(xlabel=f"{name}, truth", ylabel="prediction", title="prediction against truth")
        row[1].scatter(found, truth - found, s=size, alpha=0.5, color=COLOUR, linewidths=0)
        row[1].axhline(0, color="black", linewidth=0.8)
        row[1].set(xlabel="prediction", ylabel="truth - prediction", title="residuals")
        means, truths = calibration(truth, found)
        row[2].plot(means, truths, "o-", color=COLOUR, markersize=4)
        row[2].set(xlabel="mean prediction", ylabel="mean truth", title=f"calibration, {len(means)} bins of equal size")
        for axis in (row[0], row[2]):
            axis.plot(ends, ends, color="black", linewidth=0.8)
        for axis in row:
            axis.grid(alpha=0.3)
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    return figure
