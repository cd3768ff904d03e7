"""The project's first picture: pairs on a curve, and the regressor beside rivals."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmixup import CMixup
from scripts.records.names import method_title
from scripts.report.evidence import Evidence, published_evidence
from scripts.report.figures import COLOURS, GREY, LOOKS, new_subplots
from scripts.report.rendering import draws
from scripts.report.sentences import rival_numbers

#: Regressors of the first picture, and where the name of each stands beside its mark, in points.
RIVALS = {
    "tabular": ("TabularRegressor", (-8, -14), "right"), "catboost": ("CatBoost (reference)", (-8, 6), "right"),
    "tabular_catboost": ("blend=CatBoost", (8, -14), "left"), "realmlp": ("RealMLP", (8, 4), "left"),
    "catboost_5": ("mean of 5 CatBoosts", (8, 8), "left"), "lightgbm": ("LightGBM", (8, 4), "left"),
}  # fmt: skip


@draws
def pictures() -> dict[str, Figure]:
    """Return the picture that README begins with, by its path below results/."""
    first, ((left, right),) = new_subplots(1, 2, (10.4, 3.9))
    draw_mixing(left)
    draw_rivals(right, published_evidence())
    first.tight_layout()
    return {"study/first.png": first}


def draw_rivals(axis: Axes, e: Evidence) -> None:
    """Draw the test error of regressors with default hyperparameters over the time of a fit, on fresh tables."""
    axis.axhline(0, color=COLOURS["erm"], linewidth=1)
    for model, (title, place, side) in RIVALS.items():
        seconds, behind, _ = rival_numbers(e, model)
        mean, ours = behind.mean, model.startswith("tabular")
        axis.errorbar(seconds, mean, yerr=behind.bar, fmt="s" if ours else "o", markersize=8,
                      color="black" if ours else GREY, capsize=3)  # fmt: skip
        axis.annotate(title, (seconds, mean), place, textcoords="offset points", ha=side, fontsize=9)
    axis.set(xscale="log", xlabel="median seconds of a fit, one thread; bars: 95 % intervals")
    axis.set_xticks([0.03, 0.1, 0.3, 1, 3, 10, 30, 100], ["0.03", "0.1", "0.3", "1", "3", "10", "30", "100"])
    axis.set_ylabel("difference from CatBoost's test RMSE, %\n← better          worse →")
    axis.yaxis.tick_right()  # a narrow screen shows each half by itself
    axis.yaxis.set_label_position("right")
    axis.set_title(f"{behind.n} datasets used for no choice", fontsize=11)


def draw_mixing(axis: Axes) -> None:
    """Draw rows of a curve, mixed by mixup and by C-Mixup."""
    x = np.sort(3 * np.random.default_rng(0).random((60, 1), dtype=np.float32), axis=0)
    data = torch.from_numpy(x), torch.from_numpy(np.exp(x))
    axis.plot(x, np.exp(x), ".", color="0.45", markersize=5, label="training data", zorder=3)
    for name, bandwidth in (("mixup", math.inf), ("cmixup", 1.0)):
        mixed = CMixup(bandwidth, alpha=1.0, seed=0)(*data)
        colour, marker = LOOKS[name]
        axis.plot(mixed[0][:, 0], mixed[1][:, 0], marker, color=colour, label=f"mixed by {method_title(name)}",
                  markersize=5, alpha=0.8)  # fmt: skip
    axis.set(xlabel="input", ylabel="label")
    axis.set_title("The idea, on made-up data", fontsize=11)
    axis.legend(frameon=False, fontsize=9)
