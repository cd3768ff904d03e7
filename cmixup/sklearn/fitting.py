"""Training the networks of `CMixupRegressor`, those of all members and bandwidths that are tried, as one stack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cmixup.batch import EpochBatches
from cmixup.data import RegressionData, Split
from cmixup.errors import check_count
from cmixup.methods.base import Method
from cmixup.methods.erm import ERM
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.model_stack import ModelStack, stack_modules
from cmixup.sampling.inputs import Floats, Ints
from cmixup.seeding import Streams, torch_seed
from cmixup.sklearn.effects import joined
from cmixup.sklearn.held_out import Part
from cmixup.sklearn.losses import Loss
from cmixup.sklearn.network import MLP, Pieces
from cmixup.sklearn.options import Settings
from cmixup.sklearn.rows import Rows, WeightedLabels, epoch_batches
from cmixup.training.loader import BatchLoader

EVAL_BATCH = 4096


@dataclass(frozen=True)
class Trained:
    """What a network came to.

    Attributes:
        weights: state of the `MLP`, of the epoch that was chosen.
        errors: of the rows held out, by the loss of standardised labels; averaged over outputs.
        best_epoch: the epoch that was chosen, from 1; 0 if training diverged.
        losses: the mean training loss of each epoch.
    """

    weights: dict[str, Tensor]
    errors: Floats
    best_epoch: int
    losses: list[float]


def train_networks(
    rows: Rows,
    parts: Sequence[Part],
    nets: Sequence[tuple[float, int]],
    settings: Settings,
    *,
    pieces: Floats,
    effects: Floats,
    seed: int,
) -> list[Trained]:
    """Train networks on standardised rows as one stack; those of one member have the same weights, batches and lambda.

    Args:
        rows: standardised rows.
        parts: the rows that each member is trained on, and those that it holds out: they choose the epoch, or score the
            last one where it is not chosen. Where members train on different numbers of rows, an epoch of each is as
            long as that of the largest.
        nets: bandwidth, in units of the standardised labels, and member of each network.
        settings: how to train.
        pieces: the table of `Pieces`.
        effects: (M, N, E) further columns of each member.
        seed: of all random streams.
    """
    inputs, mixed = joined(rows.x, effects), any(bandwidth > 0 for bandwidth, _ in nets)
    data = [_data(x, rows.y) for x in inputs.reshape(-1, *inputs.shape[-2:])]  # one for all where there are no effects
    data_of = [data[member % len(data)] for _, member in nets]
    error = settings.loss.of_batch(bool(np.isnan(rows.y).any()))
    streams = [Streams(int(np.random.default_rng([seed, member]).integers(2**62))) for _, member in nets]
    trained_on = [parts[member].train for _, member in nets]
    length = max(map(len, trained_on))
    encoding = Pieces(pieces, settings.device, torch.float32)
    models: list[MLP] = []
    methods: list[Method] = []
    for (bandwidth, _), run_data, run_streams, index in zip(nets, data_of, streams, trained_on, strict=True):
        with torch_seed(run_streams.init):
            models.append(MLP((inputs.shape[-1], *settings.hidden, rows.y.shape[1] * settings.loss.outputs), encoding))
        pairing = WeightedLabels(rows.y[index], rows.weight[index], bandwidth)
        methods.append(Mix(pairing, Beta(settings.alpha), settings.layer) if mixed else ERM())
        methods[-1].error = error
        methods[-1].fit(run_data, models[-1], run_streams)
    stack = ModelStack(models, settings.device, "adam", settings.lr, settings.weight_decay)
    method = stack_modules(methods)
    loader = BatchLoader([one.train for one in data_of], settings.device)
    held = [parts[member].held for _, member in nets]
    scored, weight = padded(held), torch.from_numpy(_shares(rows.weight, held))
    score = torch.full((stack.size,), torch.inf, dtype=torch.float64)
    kept = torch.full(scored.shape, torch.inf, dtype=torch.float64)
    best_epoch, stopped = torch.zeros(stack.size, dtype=torch.int64), torch.zeros(stack.size, dtype=torch.bool)
    losses: list[Tensor] = []

    with threads(settings.threads), torch.enable_grad():
        for epoch in range(1, settings.epochs + 1):
            orders, draws = [], []
            for run_method, run_streams, index in zip(methods, streams, trained_on, strict=True):
                order = epoch_batches(rows.weight[index], settings.batch_size, run_streams.order, length)
                drawn = run_method.draw(order, run_streams)
                draws.append(drawn | ({"partner": index[drawn["partner"]]} if mixed else {}))
                orders.append(EpochBatches(index[order.index], order.sizes))
            stack.model.train()
            steps = [method.step(stack, batch) for batch in loader.batches(orders, draws)]
            losses.append(torch.stack(steps).reshape(len(steps), -1).double().mean(dim=0).cpu())
            score_text = ""
            if settings.early_stopping or epoch == settings.epochs:
                errors = _errors(stack, loader, torch.from_numpy(scored), settings.loss)
                now = (errors * weight).sum(dim=1) if scored.size else losses[-1]
                score_text = f", {now.mean():.4f} held out" if scored.size else ""
                # A run that has stopped keeps its epoch, so that it ends as it would have without the others.
                better = torch.isfinite(now) & ~stopped & ((now < score) | (not settings.early_stopping))
                stack.keep_best(better.to(settings.device))
                score, best_epoch = torch.where(better, now, score), torch.where(better, epoch, best_epoch)
                kept = torch.where(better[:, None], errors, kept)
                stopped |= epoch - best_epoch >= settings.patience
            if settings.verbose:
                print(f"epoch {epoch}: {settings.loss.name} error {losses[-1].mean():.4f}{score_text}", flush=True)  # noqa: T201 - asked
            if bool(stopped.all()):
                break
    curves = torch.stack(losses, dim=1).tolist()
    return [
        Trained(stack.best_weights(e), kept[e, : len(held[e])].numpy(), int(best_epoch[e]), curves[e])
        for e in range(stack.size)
    ]


def choose(errors: Floats, weight: Floats) -> int:
    """Return the place of the bandwidth that wins: the first, unless another one is better by a standard error.

    Args:
        errors: (B, n) of each bandwidth on the same rows, infinite where training diverged.
        weight: (n,) of these rows.
    """
    means = np.average(errors, axis=1, weights=weight)
    if not np.isfinite(means[0]):
        return int(means.argmin())
    gains = errors[0] - errors
    mean = means[0] - means
    with np.errstate(invalid="ignore"):
        variance = np.average((gains - mean[:, None]) ** 2, axis=1, weights=weight)
    wins = mean > np.sqrt(variance * (weight**2).sum()) / weight.sum()
    return int(np.where(wins, means, np.where(np.arange(len(means)) == 0, means, np.inf)).argmin())


def _shares(weights: Floats, held: Sequence[Ints]) -> Floats:
    """Return what each member's held-out rows count for, with sum 1, as `padded` rows."""
    scored, counted = padded(held), padded([np.ones(len(index)) for index in held])
    weight = weights[scored] * counted
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def padded(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """Return one-dimensional arrays as rows of one, with 0 behind the shorter ones."""
    rows = np.zeros((len(arrays), max(map(len, arrays))), dtype=arrays[0].dtype)
    for row, array in zip(rows, arrays, strict=True):
        row[: len(array)] = array
    return rows


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """Let PyTorch use so many threads inside the block, and put the number back; None leaves it."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if count is None else check_count("n_threads", count, 1))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _data(inputs: Floats, labels: Floats) -> RegressionData:
    x, y = (torch.from_numpy(values.astype(np.float32)) for values in (inputs, labels))
    split = Split(x, y.nan_to_num(), torch.zeros(len(x), dtype=torch.int64), "X")
    split.y.copy_(y)  # a data set has no gaps, so the labels that are missing come back behind its check
    return RegressionData("X", split, split, split, unit="standard deviations")


def _errors(stack: ModelStack, loader: BatchLoader, index: Tensor, loss: Loss) -> Tensor:
    """Return errors `(E, n)` float64 on the CPU of the rows `index: (E, n)`, averaged over known outputs."""
    stack.model.eval()
    errors = []
    with torch.no_grad():
        for part in torch.split(index.to(loader.index_device), EVAL_BATCH, dim=1):
            batch = loader.fetch(part)
            of_rows = loss.of_rows(stack.model(batch.x).double(), batch.y.double())
            errors.append(of_rows.reshape(len(part), -1).cpu())
    return torch.cat(errors, dim=1)
