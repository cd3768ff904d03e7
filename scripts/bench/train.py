"""Training speed against a straightforward loop, measured in one run.

The straightforward loop is the original's way: an N x N table of partner probabilities, `numpy.random.choice(p=row)`
for each example, and a conversion of every batch.

Example: python -m scripts.bench train
"""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from cmixup import PairBatchSampler, PairDataset
from cmixup.data import RegressionData
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from cmixup.seeding import Streams, torch_seed
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import Run, train
from datasets.airfoil import Airfoil
from models.fcn3 import FCN3
from scripts.bench.clock import FOLDER, PAGE, SHORT, Work, in_turn, store_rows, stored_rows, with_machine
from scripts.config.arguments import Args
from scripts.records.register import fills
from scripts.records.tables import markdown_rows

KEYS = SHORT
COLUMNS = ("measured", "way", "fastest", "slowest", "ratio")
BANDWIDTH, ALPHA, STACK = 1.75, 2.0, 10
EPOCHS, BATCH, LR = 100, 16, 0.01
ROWS, LOADED = 20_000, 64  # of an epoch of loaders, and of their batches


def train_plainly(data: RegressionData, seed: int, epochs: int) -> float:
    """Train FCN3 with C-Mixup as the original does; returns the test RMSE."""
    rng = np.random.RandomState(seed)
    assert isinstance(data.train.x, torch.Tensor)
    x, y = data.train.x.numpy(), data.train.y.numpy()
    squared = (y.astype(np.float64) - y.T) ** 2
    table = np.exp(-squared / (2 * BANDWIDTH**2))
    table /= table.sum(axis=1, keepdims=True)
    with torch_seed(seed):
        first = nn.Sequential(nn.Linear(x.shape[1], 128), nn.LeakyReLU(0.1))
        rest = nn.Sequential(nn.Linear(128, 128), nn.LeakyReLU(0.1), nn.Linear(128, 1))
    both = nn.ModuleList([first, rest])
    optimizer = torch.optim.Adam(both.parameters(), lr=LR)
    best, test = float("inf"), float("nan")
    for _ in range(epochs):
        order = rng.permutation(len(x))
        for start in range(0, len(x) - BATCH + 1, BATCH):
            i = order[start : start + BATCH]
            j = np.array([rng.choice(len(x), p=table[a]) for a in i])
            lam = rng.beta(ALPHA, ALPHA)
            x_i, x_j = torch.tensor(x[i]), torch.tensor(x[j])
            mixed = torch.tensor(lam * y[i] + (1 - lam) * y[j], dtype=torch.float32)
            loss = (rest(lam * first(x_i) + (1 - lam) * first(x_j)) - mixed).square().mean()
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


class Rows:
    """A map-style dataset of rows that are made one at a time, as those of files are."""

    def __init__(self, x: torch.Tensor, y: torch.Tensor):
        self.x, self.y = x, y

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        return self.x[index] + 0, self.y[index]


def loader_epochs(rows: int) -> dict[str, Work]:
    """Return an epoch of a `DataLoader` by name: plain, and of rows mixed with partners from everything."""
    draws = torch.Generator().manual_seed(0)
    x, y = torch.randn(rows, 10, generator=draws), torch.randn(rows, generator=draws)
    ways = dict[str, Work]()
    for name, dataset in (("map-style rows", Rows(x, y)), ("a TensorDataset", TensorDataset(x, y))):
        pairs = PairDataset(dataset, y, ("std", 0.1))
        sampler = PairBatchSampler(pairs, LOADED, seed=0)
        plain = DataLoader(dataset, LOADED, shuffle=True)  # type: ignore[arg-type]
        ways[f"{name}, plain"] = partial(list, plain)
        ways[f"{name}, PairDataset"] = partial(list, DataLoader(pairs, batch_sampler=sampler))
        ways[f"{name}, PairDataset, batch_size=None"] = partial(list, DataLoader(pairs, None, sampler=sampler))
    return ways


def run(given: Args) -> None:
    """Measure training of Airfoil in three ways, and loaders."""
    epochs, repeats = (1, 1) if given.switch("short") else (EPOCHS, 3)
    data = [Airfoil("all").load(seed) for seed in range(STACK)]
    ways: dict[str, tuple[Work, int]] = {
        "straightforward loop": (lambda: train_plainly(data[0], 0, epochs), 1),
        "ours, one model": (lambda: train_stack(data[:1], [0], epochs), 1),
        f"ours, a stack of {STACK} seeds": (lambda: train_stack(data, list(range(STACK)), epochs), STACK),
    }
    taken = in_turn({name: work for name, (work, _) in ways.items()}, repeats)
    times = {name: [t / models for t in taken[name]] for name, (_, models) in ways.items()}
    base = min(times["straightforward loop"])
    rows = [("training", name, f"{min(t):.2f}", f"{max(t):.2f}", f"{base / min(t):.1f}") for name, t in times.items()]
    epoch = {name: min(seconds) for name, seconds in in_turn(loader_epochs(ROWS), repeats).items()}
    plain = {name: epoch[f"{name.partition(',')[0]}, plain"] for name in epoch}
    rows += [("loader", name, f"{1e3 * t:.0f}", "", f"{t / plain[name]:.2f}") for name, t in epoch.items()]
    store_rows(given, "train", [dict(zip(COLUMNS, row, strict=True)) for row in rows], COLUMNS)


@fills(FOLDER)
def training_tables() -> dict[str, dict[str, str]]:
    """Return the tables of training and of loaders."""
    rows = stored_rows("train")
    training = [[r["way"], r["fastest"], r["slowest"], f"{r['ratio']}x"] for r in rows if r["measured"] == "training"]
    loader = [[r["way"], r["fastest"], f"{r['ratio']}x"] for r in rows if r["measured"] == "loader"]
    first = markdown_rows(["way", "fastest, s", "slowest, s", "speed-up"], training)
    second = markdown_rows(["rows, loader", "fastest, ms", "against plain"], loader)
    return {PAGE: {"training": "\n".join(first), "loaders": with_machine(second, "train")}}
