"""Tiny tasks and a tiny network for the tests of methods on tasks."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.backbone import Backbone
from cmixup.data import RegressionData, Split, Tasks
from cmixup.methods.maml import MAML, InnerLoop
from cmixup.methods.meta_aug import MetaAug
from cmixup.methods.mr_maml import MRMAML
from cmixup.seeding import Streams, torch_seed
from cmixup.training.batch import Batch
from cmixup.training.loader import BatchLoader
from cmixup.training.method import Method
from cmixup.training.trainer import Run
from tests.helpers import composed, fitted

SHOTS, SIDE = 6, 4
LR = 0.05


def loop(inner_steps: int = 2, **changes: Any) -> InnerLoop:
    return InnerLoop(LR, inner_steps, **changes)


METHODS: dict[str, Callable[[], Method]] = {
    "maml": lambda: MAML(loop(report_steps=3)), "mr_maml": lambda: MRMAML(loop(report_steps=3), beta=1e-3),
    "meta_aug": lambda: MetaAug(loop(report_steps=3)), "metamix": lambda: composed("metamix"),
    "metamix_random": lambda: composed("metamix", lam_per="task", layer="random", pairing="support_uniform"),
    "k_metamix": lambda: composed("k_metamix", k=3), "local_metamix": lambda: composed("local_metamix"),
    "cmixup_meta": lambda: composed("cmixup_meta", bandwidth=1.0),
}  # fmt: skip


class Head(nn.Module):
    """Two layers that adapt, with the mix points that the methods ask for."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = nn.Linear(5, 4), nn.Linear(4, 1)

    def forward(self, state: Tensor, start: str = "encoder", stop: str = "") -> Tensor:
        state = self.hidden(state).tanh() if start == "encoder" and stop != "encoder" else state
        return state if stop else self.out(state)


class Small(Backbone):
    layers = ("input", "encoder", "block1")
    default_layer = "encoder"
    draws = False

    def __init__(self, in_shape: tuple[int, ...] = (1, SIDE, SIDE), out_features: int = SHOTS):
        super().__init__()
        self.encoder = nn.Sequential(nn.Flatten(), nn.Linear(SIDE * SIDE, 5), nn.Tanh())
        self.decoder = Head()

    def forward(self, x: Tensor, start: str = "input", stop: str = "") -> Tensor:
        if stop == start:
            return x
        code = self.encoder(x) if start == "input" else x
        return code if stop == "encoder" else self.decoder(code, "encoder" if start == "input" else start, stop)


def make_split(n: int, seed: int = 0, name: str = "train") -> Split:
    """Tasks on 4 objects of 14 views."""
    rng = np.random.default_rng([seed, n])
    images = rng.integers(0, 256, (4, 14, SIDE, SIDE), np.uint8)
    labels = rng.uniform(0, 10, (4, 14)).astype(np.float32)
    views = rng.permuted(np.tile(np.arange(14), (n, 1)), axis=1)[:, : 2 * SHOTS]
    tasks = Tasks(images, labels, rng.integers(4, size=n), views, SHOTS)
    return Split(tasks, tasks.y, torch.from_numpy(tasks.objects), name)


def make_run(method: Method, seed: int = 0, n: int = 6, model: Callable[[], nn.Module] = Small) -> Run:
    parts = [make_split(n, seed, "train"), make_split(3, seed + 100, "val"), make_split(4, 7, "test")]
    data = RegressionData("poses", *parts, unit="none", metrics=("mse", "mse_ci95"), selection="mse")
    streams = Streams(seed)
    with torch_seed(streams.init):
        made = model()
    return Run(data, method, made, streams)


def make_fitted(method: Method, seed: int = 0, n: int = 6, model: Callable[[], nn.Module] = Small) -> Run:
    """A run whose method is fitted, as the trainer does before training."""
    return fitted(make_run(method, seed, n, model))


def one_batch(run: Run, size: int = 3) -> Batch:
    """The first batch of a run's next epoch."""
    order = run.method.order(run.data.train, size, run.streams, drop_last=False)
    drawn = run.method.draw(order, run.streams)
    return next(iter(BatchLoader([run.data.train], torch.device("cpu")).batches([order], [drawn])))


def with_draws(batch: Batch, **draws: Any) -> Batch:
    return replace(batch, draws={**batch.draws, **draws})


def call(net: nn.Module, weights: dict[str, Tensor], state: Tensor) -> Tensor:
    """Run the decoder of `Small` with other weights, `(B,)`."""
    hidden = torch.tanh(state @ weights["hidden.weight"].T + weights["hidden.bias"])
    return (hidden @ weights["out.weight"].T + weights["out.bias"])[:, 0]
