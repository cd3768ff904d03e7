"""`CMixup` on a batch beside the four lines that people write themselves, measured in one run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from time import process_time_ns
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from cmixup import CMixup
from scripts.bench.clock import store_rows, stored_rows
from scripts.config.arguments import Args
from scripts.report.figures import SERIES, legend_below, new_subplots
from scripts.report.rendering import draws

ALPHA, FEATURES, CALLS, BATCHES = 2.0, 10, 40, 8
LABELS, OUTPUTS, BANDWIDTHS = ("independent", "correlated"), (1, 2, 4, 8, 16), (0.1, 0.5, 2.0)
SIZES = (16, 32, 64, 100, 128, 192, 256, 384, 512, 1024)
COLUMNS = ("labels", "outputs", "bandwidth", "rows", "ours_us", "dense_us", "ratio")


def mix_densely(x: Tensor, y: Tensor, bandwidth: float, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return a batch in which rows are mixed with partners of it, by all B x B weights."""
    weight = torch.exp(-torch.cdist(y, y).square() / (2 * bandwidth**2))
    partner = torch.multinomial(weight, 1)[:, 0]
    lam = torch.from_numpy(rng.beta(ALPHA, ALPHA, (len(x), 1))).float()
    return lam * x + (1 - lam) * x[partner], lam * y + (1 - lam) * y[partner]


def cases(sizes: tuple[int, ...] = SIZES) -> Iterator[dict[str, Any]]:
    """Yield the case of each row of the table; one output has nothing to correlate with."""
    for labels, outputs, bandwidth, rows in itertools.product(LABELS, OUTPUTS, BANDWIDTHS, sizes):
        if outputs > 1 or labels == LABELS[0]:
            yield {"labels": labels, "outputs": outputs, "bandwidth": bandwidth, "rows": rows}


def make_labels(labels: str, outputs: int, rows: int, seed: int) -> Tensor:
    """Return labels `(rows, outputs)` float32 with standard deviations of about 1, correlated by 0.99 or not at all."""
    generator = torch.Generator().manual_seed(seed)
    y = torch.randn(rows, outputs, generator=generator)
    return y if labels == LABELS[0] else 0.1 * y + 0.995 * torch.randn(rows, 1, generator=generator)


def measure(case: dict[str, Any]) -> dict[str, Any]:
    """Return the case with process microseconds of a call, the lower quartile of calls that take turns."""
    batches = [
        (torch.randn(case["rows"], FEATURES), make_labels(case["labels"], case["outputs"], case["rows"], seed))
        for seed in range(BATCHES)
    ]
    rng = np.random.default_rng(0)
    ways: tuple[Callable[[Tensor, Tensor], object], ...] = (
        CMixup(case["bandwidth"], ALPHA, seed=0),
        lambda x, y: mix_densely(x, y, case["bandwidth"], rng),
    )
    taken = np.empty((2, CALLS))
    for call in range(-BATCHES, CALLS):  # the first calls warm up
        x, y = batches[call % BATCHES]
        for way in (0, 1) if call % 2 else (1, 0):
            start = process_time_ns()
            ways[way](x, y)
            taken[way, max(call, 0)] = process_time_ns() - start
    ours, dense = np.quantile(taken, 0.25, axis=1) / 1000
    return {**case, "ours_us": f"{ours:.0f}", "dense_us": f"{dense:.0f}", "ratio": f"{ours / dense:.2f}"}


def run(given: Args) -> None:
    """Measure all cases, one after another."""
    sizes = SIZES[:1] if given.switch("short") else SIZES
    store_rows(given, "batch", [measure(case) for case in cases(sizes)], COLUMNS)


@draws
def batch_figure() -> dict[str, Figure]:
    """Return the figure of all ratios over the rows of a batch, a panel for each number of outputs."""
    rows = stored_rows("batch")
    figure, (panels,) = new_subplots(1, len(OUTPUTS), (12, 3.4), sharex=True, sharey=True)
    handles = {}
    for axes, outputs in zip(panels, OUTPUTS, strict=True):
        for (labels, style), (bandwidth, colour) in itertools.product(
            zip(LABELS, ("-", "--"), strict=True), zip(BANDWIDTHS, SERIES, strict=False)
        ):
            line = [
                r for r in rows if (r["labels"], r["outputs"], r["bandwidth"]) == (labels, str(outputs), str(bandwidth))
            ]
            if line:
                x, y = ([float(r[key]) for r in line] for key in ("rows", "ratio"))
                (handles[f"{labels}, bandwidth {bandwidth:g}"],) = axes.plot(x, y, style, color=colour)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set(
            xscale="log", yscale="log", xlabel="rows of a batch",
            title=f"{outputs} outputs" if outputs > 1 else "1 output",
        )  # fmt: skip
        axes.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("CMixup / four lines, process time")
    legend_below(figure, handles)
    return {"benchmarks/batch.png": figure}
