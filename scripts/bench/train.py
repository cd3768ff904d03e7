"""Training speed against a straightforward loop, and a mixed batch against four lines, each measured in one run.

The straightforward loop is the original's way: an N x N table of partner probabilities, `numpy.random.choice(p=row)`
for each example, and a conversion of every batch.

Example: python -m scripts.bench train
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from cmixup.data import RegressionData
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.networks.fcn3 import FCN3
from cmixup.pairing.label import LabelDistance
from cmixup.seeding import Streams, torch_seed
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import Run, train
from datasets.airfoil import Airfoil
from scripts.bench import batch
from scripts.bench.clock import SHORT, SPEED, measured_seconds, store_rows, stored_rows, with_machine
from scripts.config.arguments import Args
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table

KEYS = SHORT
COLUMNS = ("way", "fastest", "slowest", "ratio")
BANDWIDTH, ALPHA, STACK = 1.75, 2.0, 10
EPOCHS, BATCH, LR = 100, 16, 0.01


def train_plainly(data: RegressionData, seed: int, epochs: int) -> float:
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


def run(given: Args) -> None:
    """Measure training of Airfoil in three ways; they take turns, so that a slow minute of the machine meets all."""
    epochs, repeats = (1, 1) if given.switch("short") else (EPOCHS, 3)
    data = [Airfoil("all").load(seed) for seed in range(STACK)]
    ways: dict[str, tuple[Callable[[], object], int]] = {
        "straightforward loop": (lambda: train_plainly(data[0], 0, epochs), 1),
        "ours, one model": (lambda: train_stack(data[:1], [0], epochs), 1),
        f"ours, a stack of {STACK} seeds": (lambda: train_stack(data, list(range(STACK)), epochs), STACK),
    }
    rounds = [[measured_seconds(work) / models for work, models in ways.values()] for _ in range(repeats + 1)]
    ends = [(min(times), max(times)) for times in zip(*rounds[1:], strict=True)]  # the first warms up
    rows = [
        dict(zip(COLUMNS, (way, f"{low:.2f}", f"{high:.2f}", f"{ends[0][0] / low:.1f}"), strict=True))
        for way, (low, high) in zip(ways, ends, strict=True)
    ]
    store_rows(given, "train", rows, COLUMNS)
    batch.run(given)


@fills
def training_table() -> dict[str, dict[str, str]]:
    """Return the table of training."""
    body = [[r["way"], r["fastest"], r["slowest"], f"{r['ratio']}x"] for r in stored_rows("train")]
    table = markdown_table(["way", "fastest, s", "slowest, s", "speed-up"], body)
    return {SPEED: {"training": with_machine(table, "train")}}
