"""Training the network of `CMixupRegressor`, one for every bandwidth that is tried, as one stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError, check_count
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.model_stack import ModelStack, stack_modules
from cmixup.seeding import Streams, torch_seed
from cmixup.sklearn.network import MLP
from cmixup.sklearn.rows import Rows, WeightedLabels, epoch_batches
from cmixup.training.loader import BatchLoader
from cmixup.training.predict import predict

EVAL_BATCH = 4096


@dataclass(frozen=True)
class Settings:
    """The checked arguments of `CMixupRegressor` that training reads; see there."""

    hidden: tuple[int, ...]
    epochs: int
    batch_size: int
    lr: float
    weight_decay: float
    alpha: float
    layer: str
    early_stopping: bool
    patience: int
    device: torch.device
    threads: int | None


@dataclass(frozen=True)
class Trained:
    """The network that one bandwidth gave.

    Attributes:
        weights: state of the `MLP`, of the epoch that was chosen.
        score: root mean squared error on the rows held out, in standard deviations; NaN if there are none.
        best_epoch: the epoch that was chosen, from 1.
        epochs: how many were trained.
    """

    weights: dict[str, Tensor]
    score: float
    best_epoch: int
    epochs: int


def train_networks(
    train: Rows, held_out: Rows | None, bandwidths: Sequence[float], settings: Settings, seed: int
) -> list[Trained]:
    """Train a network for each bandwidth on standardised rows, all with the same weights, batches and lambda.

    Args:
        train: standardised rows.
        held_out: standardised rows to choose the epoch by, or to score the last one where it is not chosen.
        bandwidths: in units of the standardised labels.
        settings: how to train.
        seed: of all random streams.

    Raises:
        InputError: no network has finite weights.
    """
    streams = [Streams(seed) for _ in bandwidths]
    data = _data(train, held_out or train)
    models, methods = [], []
    for bandwidth, own in zip(bandwidths, streams, strict=True):
        with torch_seed(own.init):
            models.append(MLP((train.x.shape[1], *settings.hidden, train.y.shape[1])))
        methods.append(Mix(WeightedLabels(train.y, train.weight, bandwidth), Beta(settings.alpha), settings.layer))
        methods[-1].fit(data, models[-1], own)
    stack = ModelStack(models, settings.device, "adam", settings.lr, settings.weight_decay)
    method = stack_modules(methods)
    source = BatchLoader([data.train] * stack.size, settings.device)
    scored = BatchLoader([data.val] * stack.size, settings.device)
    score = torch.full((stack.size,), torch.inf, dtype=torch.float64)
    best_epoch, stopped = torch.zeros(stack.size, dtype=torch.int64), torch.zeros(stack.size, dtype=torch.bool)

    with threads(settings.threads), torch_seed(streams[0].training, settings.device), torch.enable_grad():
        for epoch in range(1, settings.epochs + 1):
            order = epoch_batches(train.weight, settings.batch_size, streams[0].order)
            draws = [method.draw(order, own) for method, own in zip(methods, streams, strict=True)]
            stack.model.train()
            for batch in source.batches([order] * stack.size, draws):
                method.step(stack, batch)
            if not settings.early_stopping and epoch < settings.epochs:
                continue
            errors = _errors(predict(method.predictors()[""], stack.model, scored, EVAL_BATCH), scored.y)
            now = errors @ torch.from_numpy((held_out or train).weight / (held_out or train).weight.sum())
            # A run that has stopped keeps its epoch, so that it ends as it would have without the others.
            better = torch.isfinite(now) & ~stopped & ((now < score) | (not settings.early_stopping))
            stack.keep_best(better.to(settings.device))
            score, best_epoch = torch.where(better, now, score), torch.where(better, epoch, best_epoch)
            stopped |= epoch - best_epoch >= settings.patience
            if bool(stopped.all()):
                break
    if bool((best_epoch == 0).all()):
        raise InputError(f"lr must be smaller: training diverged, got {settings.lr!r}")
    roots = score.sqrt() if held_out is not None else torch.full_like(score, torch.nan)
    return [Trained(stack.best_weights(e), float(roots[e]), int(best_epoch[e]), epoch) for e in range(stack.size)]


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let PyTorch use so many threads inside the block, and put the number back; None leaves it."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else check_count("n_threads", count, 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _data(train: Rows, held_out: Rows) -> RegressionData:
    def split(name: str, rows: Rows) -> Split:
        x, y = (torch.from_numpy(values.astype(np.float32)) for values in (rows.x, rows.y))
        return Split(x, y, torch.zeros(len(rows), dtype=torch.int64), name)

    val = split("the rows held out", held_out)
    return RegressionData("X", split("X", train), val, val, unit="standard deviations")


def _errors(prediction: Tensor, y: Tensor) -> Tensor:
    """Return squared errors `(E, N)` float64 on the CPU, averaged over outputs."""
    errors = (prediction.double() - y.double()).square().mean(dim=-1).cpu()
    return errors.reshape(-1, errors.shape[-1])
