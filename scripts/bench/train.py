"""Training speed against a straightforward loop, and a mixed batch against four lines, each measured in one run.

The straightforward loop is the original's way: an N x N table of partner probabilities, `numpy.random.choice(p=row)`
for each example, and a conversion of every batch.

Example: python -m scripts.bench train
"""

import itertools
from collections.abc import Callable, Iterator
from time import process_time_ns
from typing import Any

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from cmixup import CMixup
from cmixup.data import RegressionData
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.networks.fcn3 import FCN3
from cmixup.pairing.label import LabelDistance
from cmixup.seeding import Streams, torch_seed
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import Run, train
from datasets.airfoil import Airfoil
from scripts.bench.clock import SHORT, SPEED, measured_seconds, store_rows, stored_rows, with_machine
from scripts.config.arguments import Args
from scripts.report.figures import SERIES, legend_below, new_subplots
from scripts.report.rendering import draws, fills
from scripts.report.result_table import markdown_table

KEYS = SHORT
COLUMNS = ("way", "fastest", "slowest", "ratio")
BANDWIDTH, ALPHA, STACK = 1.75, 2.0, 10
EPOCHS, BATCH, LR = 100, 16, 0.01
FEATURES, CALLS, BATCHES = 10, 40, 8
LABELS, OUTPUTS, BANDWIDTHS = ("independent", "correlated"), (1, 2, 4, 8, 16), (0.1, 0.5, 2.0)
SIZES = (16, 32, 64, 100, 128, 192, 256, 384, 512, 1024)
CASE = ("labels", "outputs", "bandwidth", "rows", "ours_us", "dense_us", "ratio")


def train_straightforward(data: RegressionData, seed: int, epochs: int) -> float:
    """Train FCN3 with C-Mixup as the original does; returns the test RMSE."""
    rng = np.random.RandomState(seed)
    assert isinstance(data.train.x, torch.Tensor)
    x, y = data.train.x.numpy(), data.train.y.numpy()
    table = np.exp(-((y.astype(np.float64) - y.T) ** 2) / (2 * BANDWIDTH**2))
    table /= table.sum(axis=1, keepdims=True)
    with torch_seed(seed):
        first = nn.Sequential(nn.Linear(x.shape[1], 128), nn.LeakyReLU(0.1))
        rest = nn.Sequential(nn.Linear(128, 128), nn.LeakyReLU(0.1), nn.Linear(128, 1))
    optimizer = torch.optim.Adam([*first.parameters(), *rest.parameters()], lr=LR)
    best, test = float("inf"), float("nan")
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            i = order[start : start + BATCH]
            j = np.array([rng.choice(len(x), p=table[a]) for a in i])
            lam = rng.beta(ALPHA, ALPHA)
            hidden = lam * first(torch.tensor(x[i])) + (1 - lam) * first(torch.tensor(x[j]))
            mixed = torch.tensor(lam * y[i] + (1 - lam) * y[j], dtype=torch.float32)
            loss = (rest(hidden) - mixed).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            val = float((rest(first(data.val.x)) - data.val.y).square().mean())
            if val < best:
                best, test = val, float((rest(first(data.test.x)) - data.test.y).square().mean().sqrt())
    return test


def train_stack(data: list[RegressionData], seeds: list[int], epochs: int) -> list[float]:
    """Train the same with this library, all seeds as one stack; returns the test RMSEs."""
    runs = []
    for loaded, seed in zip(data, seeds, strict=True):
        streams = Streams(seed)
        with torch_seed(streams.init):
            model = FCN3((5,), 1)
        runs.append(Run(loaded, Mix(LabelDistance(BANDWIDTH), Beta(ALPHA, "batch"), "hidden"), model, streams))
    results = train(runs, TrainSettings(epochs, BATCH, LR, drop_last=True))
    return [outcome.scores["test"]["rmse"] for outcome in results]


def mix_densely(x: Tensor, y: Tensor, bandwidth: float, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Return a batch in which rows are mixed with partners of it, by all B x B weights."""
    weight = torch.exp(-torch.cdist(y, y).square() / (2 * bandwidth**2))
    partner = torch.multinomial(weight, 1)[:, 0]
    lam = torch.from_numpy(rng.beta(ALPHA, ALPHA, (len(x), 1))).float()
    return lam * x + (1 - lam) * x[partner], lam * y + (1 - lam) * y[partner]


def cases(sizes: tuple[int, ...]) -> Iterator[dict[str, Any]]:
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
    nanoseconds = np.empty((2, CALLS))
    for call in range(-BATCHES, CALLS):  # the first calls warm up
        x, y = batches[call % BATCHES]
        for way in (0, 1) if call % 2 else (1, 0):
            start = process_time_ns()
            ways[way](x, y)
            nanoseconds[way, max(call, 0)] = process_time_ns() - start
    ours, dense = np.quantile(nanoseconds, 0.25, axis=1) / 1000
    return {**case, "ours_us": f"{ours:.0f}", "dense_us": f"{dense:.0f}", "ratio": f"{ours / dense:.2f}"}


def run(args: Args) -> None:
    """Measure training of Airfoil in three ways, then batches; ways take turns, so that a slow minute meets all."""
    epochs, repeats = (1, 1) if args.switch("short") else (EPOCHS, 3)
    data = [Airfoil("all").load(seed) for seed in range(STACK)]
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "straightforward loop": (lambda: train_straightforward(data[0], 0, epochs), 1),
        "ours, one model": (lambda: train_stack(data[:1], [0], epochs), 1),
        f"ours, a stack of {STACK} seeds": (lambda: train_stack(data, list(range(STACK)), epochs), STACK),
    }
    rounds = [[measured_seconds(work) / models for work, models in ways.values()] for _ in range(repeats + 1)]
    ends = [(min(times), max(times)) for times in zip(*rounds[1:], strict=True)]  # the first warms up
    rows = [
        dict(zip(COLUMNS, (way, f"{low:.2f}", f"{high:.2f}", f"{ends[0][0] / low:.1f}"), strict=True))
        for way, (low, high) in zip(ways, ends, strict=True)
    ]
    store_rows(args, "train", rows, COLUMNS)
    sizes = SIZES[:1] if args.switch("short") else SIZES
    store_rows(args, "batch", [measure(case) for case in cases(sizes)], CASE)


@fills
def training_table() -> dict[str, dict[str, str]]:
    """Return the table of training, and how fast own images are trained on beside a plain loop."""
    body = [[r["way"], r["fastest"], r["slowest"], f"{r['ratio']}x"] for r in stored_rows("train")]
    table = markdown_table(["way", "fastest, s", "slowest, s", "speed-up"], body)
    image_row = next(r for r in stored_rows("images") if "method=cmixup" in r["way"] and "H100" in r["machine"])
    speed, share = float(image_row["images_a_second"]), float(image_row["ratio"])
    images = f"{speed:,.0f} images of 224 x 224 a second on an H100, {share:.0%} of a plain loop without mixing"
    return {SPEED: {"training": with_machine(table, "train"), "images_on_a_gpu": images}}


@draws
def batch_figure() -> dict[str, Figure]:
    """Return the figure of all ratios over the rows of a batch, a panel for each number of outputs."""
    frame = pd.DataFrame(stored_rows("batch")).astype({"outputs": int, "bandwidth": float, "rows": int, "ratio": float})
    figure, (panels,) = new_subplots(1, len(OUTPUTS), (12, 3.4), sharex=True, sharey=True)
    handles = {}
    for axes, (outputs, group) in zip(panels, frame.groupby("outputs"), strict=True):
        for (labels, bandwidth), line in group.groupby(["labels", "bandwidth"], sort=False):
            look = {"linestyle": ("--", "-")[labels == LABELS[0]], "color": SERIES[BANDWIDTHS.index(bandwidth)]}
            (handles[f"{labels}, bandwidth {bandwidth:g}"],) = axes.plot(line["rows"], line["ratio"], **look)
        axes.axhline(1, color="black", linewidth=0.8)
        title = f"{outputs} outputs" if outputs > 1 else "1 output"
        axes.set(xscale="log", yscale="log", xlabel="rows of a batch", title=title)
        axes.grid(visible=True, alpha=0.3)
    panels[0].set_ylabel("CMixup / four lines, process time")
    legend_below(figure, handles)
    return {"benchmarks/batch.png": figure}
