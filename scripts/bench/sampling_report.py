"""Tables and plots of the sampling benchmark, from its measurements."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scripts.bench.sampling_case import FEATURES, ORIGINAL
from scripts.records.records import to_csv
from scripts.records.tables import markdown_rows

SHOWN = {
    "setup_s": "set-up, s",
    "epoch_s": "epoch, s",
    "ns_per_draw": "ns a draw",
    "state_mb": "held, MB",
    "peak_setup_mb": "peak in set-up, MB",
    "peak_mb": "peak, MB",
}


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Return all measurements, one line a case."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return to_csv([{k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows], columns)


def report(rows: list[dict[str, Any]]) -> list[str | list[str]]:
    """Return the report: how it was measured, all cases, and the figures that compare with the original's way."""
    body = [[r["case"], r["used"], *(f"{r[key]:.3g}" for key in SHOWN)] for r in rows]
    about = (
        "Each case in a fresh process with one thread. Times are medians of repeated calls (set-ups above 2 s: one "
        "call). Memory is resident memory beside the labels: peak in set-up, and with an epoch's N int64 partners. "
        "Small tables reuse memory that the process had freed, so that a peak can read below what is held. The "
        "15,591 x 321 labels are made up (a few rhythms and noise). Every number, and bandwidths: `sampling.csv`. "
        "`make bench-sampling` measures again."
    )
    return [
        about,
        markdown_rows(["case", "method", *SHOWN.values()], body),
        "![growth with N](sampling.png)",
        "![label and feature distance](sampling_distance.png)",
    ]


def figures(rows: list[dict[str, Any]]) -> dict[str, Figure]:
    """Return the figures of measurements, also of those that were read from the CSV, by the names of their files."""
    return {"sampling.png": plot_growth(rows), "sampling_distance.png": plot_distance(rows)}


def plot_growth(rows: list[dict[str, Any]]) -> Figure:
    """Draw set-up and draw time over N, log-log, ours and the original's (dashed where extrapolated)."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, key, power, title in zip(
        figure.subplots(1, 2), ("setup_s", "ns_per_draw"), (2, 1), ("set-up, s", "a draw, ns"), strict=True
    ):
        for curve, colour in (("cells", "C0"), (ORIGINAL, "C1")):
            n, value = curve_of(rows, curve, key)
            axes.loglog(n, value, "o-", color=colour, label="ours (cells)" if curve == "cells" else curve)
        far = np.array([n[-1], max(float(r["n"]) for r in rows)])
        axes.loglog(far, value[-1] * (far / n[-1]) ** power, "--", color="C1", label="original, extrapolated")
        axes.set(xlabel="N", title=title)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def plot_distance(rows: list[dict[str, Any]]) -> Figure:
    """Draw the cost of the first epoch (set-up and draws) on labels and on features over N, log-log."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for curve, label in (
        ("label, cells", "label distance, d = 1, cells"),
        ("label, rows", "label distance, d = 1, all N x N rows"),
        ("features, rows", f"feature distance, d = {FEATURES}, all N x N rows"),
    ):
        n, setup = curve_of(rows, curve, "setup_s")
        axes.loglog(n, setup + curve_of(rows, curve, "epoch_s")[1], "o-", label=label)
    axes.set(xlabel="N", title="set-up and one epoch of draws, s")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def curve_of(rows: list[dict[str, Any]], curve: str, key: str) -> tuple[Any, Any]:
    """Return N and the values of one curve."""
    points = [(r["n"], r[key]) for r in rows if r.get("curve") == curve]
    return tuple(np.array(points, dtype=float).T)
