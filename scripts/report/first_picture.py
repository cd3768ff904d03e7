"""The project's first picture: what C-Mixup does to rows of a curve, and what it changes on real tables."""

from __future__ import annotations

import math

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmixup import CMixup
from scripts.records.names import method_title
from scripts.report.figures import COLOURS, LOOKS, new_subplots
from scripts.report.register import draws
from scripts.report.study_evidence import METHOD, leading_setting
from scripts.stats.effects import VERDICTS, Effect


@draws
def first_picture() -> dict[str, Figure]:
    """Return the picture that README begins with, by its path below results/."""
    lead = leading_setting()
    effect = lead.effect(METHOD)
    assert effect is not None
    figure, ((left, right),) = new_subplots(1, 2, (10.4, 3.9))
    draw_mixing(left)
    draw_effects(right, effect, lead.rules.equal)
    figure.tight_layout()
    return {"study/first.png": figure}


def draw_mixing(axis: Axes) -> None:
    """Draw rows of a curve, mixed by mixup and by C-Mixup."""
    x = np.sort(3 * np.random.default_rng(0).random((60, 1), dtype=np.float32), axis=0)
    data = torch.from_numpy(x), torch.from_numpy(np.exp(x))
    axis.plot(x, np.exp(x), ".", color="0.45", markersize=5, label="rows", zorder=3)
    for name, bandwidth in (("mixup", math.inf), ("cmixup", 1.0)):
        mixed = CMixup(bandwidth, alpha=1.0, seed=0)(*data)
        colour, marker = LOOKS[name]
        axis.plot(mixed[0][:, 0], mixed[1][:, 0], marker, color=colour, label=f"mixed by {method_title(name)}",
                  markersize=5, alpha=0.8)  # fmt: skip
    axis.set(xlabel="input", ylabel="label")
    axis.set_title("mixup leaves the curve, C-Mixup stays on it", fontsize=11)
    axis.legend(frameon=False, fontsize=9)


def draw_effects(axis: Axes, effect: Effect, equal: float) -> None:
    """Draw what C-Mixup changes on every table, in the mean, and on a new table, in percent of ERM's error.

    Within the band `equal`, in percent, an effect is neither a gain nor a loss.
    """
    axis.axvspan(-equal, equal, color="0.92", linewidth=0, zorder=0)
    axis.axvline(0, color=COLOURS["erm"], linewidth=1)
    rows = sorted((interval for interval, _ in effect.tables.values()), key=lambda interval: interval.mean)
    for place, row in enumerate(rows):
        axis.errorbar(row.mean, place, xerr=[[row.mean - row.low], [row.high - row.mean]], markersize=3, fmt="o",
                      color="0.6", linewidth=1)  # fmt: skip
    known = {"mean over tables": effect.posterior.overall, "for a new table": effect.posterior.new}
    for k, (name, row) in enumerate(known.items()):
        place = len(rows) + 2 + 3 * k
        axis.errorbar(row.mean, place, xerr=[[row.mean - row.low], [row.high - row.mean]], markersize=6, fmt="D",
                      color=COLOURS[METHOD], linewidth=2.2)  # fmt: skip
        axis.annotate(name, (row.high, place), (5, 0), textcoords="offset points", va="center", fontsize=9)
    axis.text(-0.5 * equal, -2.4, f"within\n{equal:g} %", ha="center", va="center", fontsize=8, color="0.35")
    axis.set_yticks([])
    axis.set_ylim(len(rows) + 7, -4.5)
    axis.set_ylabel(f"{len(rows)} tables, one row each")
    axis.set_xlim(left=min(-1.4 * equal, axis.get_xlim()[0]))
    axis.set_xlabel("← better          worse →\nC-Mixup's error against training without mixing, %")
    counts = effect.counts()
    improves, worsens = (counts[verdict] or "none" for verdict in VERDICTS[:2])
    title = f"{len(rows)} tables: {improves} surely improve by {equal:g} %, {worsens} worsen as much"
    axis.set_title(title, fontsize=11)
