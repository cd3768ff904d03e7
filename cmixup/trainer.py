"""The training engine: one loop for every method, dataset and backbone, and for a stack of seeds at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData, Sampled, Split
from cmixup.errors import InputError, check_choice, check_positive
from cmixup.learner import Learner
from cmixup.methods.base import Method
from cmixup.metrics import evaluate, metric_of, score
from cmixup.optim import check_optimizer
from cmixup.order import Order
from cmixup.rows import Rows
from cmixup.seeding import Streams, torch_seed


@dataclass(frozen=True)
class TrainSettings:
    """How to train.

    Args:
        epochs: passes over the training split.
        batch_size: rows a step.
        lr: learning rate.
        optimizer: "adam" or "sgd".
        weight_decay: L2 penalty.
        drop_last: leave out a smaller last batch (released code).
        eval_batch_size: rows predicted at once; where rows have many views, views.
        track: splits besides "val" to score after every epoch, "train" or "test", for curves alone: whole splits, not
            mixed, in evaluation mode. Selection never looks at them.
        lr_decay: the learning rate is multiplied by this ...
        lr_decay_every: ... after every so many epochs (`torch.optim.lr_scheduler.StepLR`).
    """

    epochs: int
    batch_size: int
    lr: float
    optimizer: str = "adam"
    weight_decay: float = 0.0
    drop_last: bool = False
    eval_batch_size: int = 4096
    track: list = field(default_factory=list)
    lr_decay: float = 1.0
    lr_decay_every: int = 1

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "eval_batch_size", "lr_decay_every"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be 1 or more, got {getattr(self, name)!r}")
        for split in self.track:
            check_choice("track", split, ("train", "test"))
        check_optimizer(self.optimizer, self.lr, self.weight_decay)
        check_positive("lr_decay", self.lr_decay)

    def lr_at(self, epoch: int) -> float:
        """Return the learning rate of an epoch, counted from 1."""
        return self.lr * self.lr_decay ** ((epoch - 1) // self.lr_decay_every)


@dataclass
class Member:
    """One run of a stack: its data, method (fitted on the way in), freshly initialised model and random streams."""

    data: RegressionData
    method: Method
    model: nn.Module
    streams: Streams

    def __post_init__(self) -> None:
        self.method.fit(self.data.train, self.model)


@dataclass
class Outcome:
    """What training one member gave.

    Attributes:
        scores: metric name to value, for "val" and "test", with the selected checkpoint.
        best_epoch: the selected epoch, counted from 1; 0 if the selection metric was never finite.
        history: one dict an epoch: `epoch`, `train_loss`, and the selection metric as `val_<name>` and for each tracked
            split.
        seconds: wall-clock seconds of training and evaluation, divided by the size of the stack.
        facts: what the method says of itself (`effective_fraction`, ...).
        state_dict: the selected weights.
    """

    scores: dict[str, dict[str, float]]
    best_epoch: int
    history: list[dict[str, float]]
    seconds: float
    stack: int
    facts: dict[str, float]
    state_dict: dict[str, Tensor] = field(repr=False)

    @property
    def diverged(self) -> bool:
        """Whether no epoch gave a finite selection metric."""
        return self.best_epoch == 0


Progress = Callable[[int, list[dict[str, float]]], None]


def train(
    members: Sequence[Member],
    settings: TrainSettings,
    device: torch.device | str = "cpu",
    on_epoch: Progress | None = None,
) -> list[Outcome]:
    """Train every member and score its best checkpoint.

    Members whose method and model allow it train as one stack, with the same numbers as alone (up to rounding).

    Args:
        members: runs of one method and one architecture on equally large splits.
        settings: how to train.
        device: where.
        on_epoch: called after each epoch with its number (from 1) and one history row a member of the stack.

    Returns:
        One outcome a member, in order.
    """
    device = torch.device(device)
    together = all(m.method.stackable and getattr(m.model, "stackable", False) for m in members)
    resident = all(s.resident for m in members for s in (m.data.train, m.data.val, m.data.test))
    if together and resident:
        return _train_stack(members, settings, device, on_epoch)
    return [o for member in members for o in _train_stack([member], settings, device, on_epoch)]


def _train_stack(
    members: Sequence[Member], settings: TrainSettings, device: torch.device, on_epoch: Progress | None
) -> list[Outcome]:
    started = time.perf_counter()
    method, data = members[0].method, members[0].data
    for m in members:
        m.method.search(m.data.train, m.data.val, m.model, m.streams)
    learner = Learner([m.model for m in members], device, settings.optimizer, settings.lr, settings.weight_decay)
    method.begin(learner, members)
    source = Rows([m.data.train for m in members], device)
    val = Rows([m.data.val for m in members], device)
    tracked = {name: Rows([getattr(m.data, name) for m in members], device) for name in settings.track}
    metric = metric_of(data.selection)
    best = torch.full((len(members),), metric.worst, dtype=torch.float64)
    best_epoch = torch.zeros(len(members), dtype=torch.int64)
    history: list[list[dict[str, float]]] = [[] for _ in members]

    with torch_seed(members[0].streams.training, device):
        for epoch in range(1, settings.epochs + 1):
            orders = [
                m.method.order(m.data.train, settings.batch_size, m.streams, drop_last=settings.drop_last)
                for m in members
            ]
            draws = [_draw(m, order) for m, order in zip(members, orders, strict=True)]
            learner.optimizer.lr = settings.lr_at(epoch)
            learner.model.train()
            losses = [method.step(learner, batch) for batch in source.batches(orders, draws)]
            train_loss = torch.stack(losses).mean(dim=0).reshape(-1).double().cpu()

            prediction = predict(method, learner.model, val, settings.eval_batch_size)
            found = score(data.selection, prediction, val.y, val.domain).reshape(-1).cpu()
            better = metric.better(found, best)
            learner.keep(better.to(device))
            best = torch.where(better, found, best)
            best_epoch[better] = epoch

            scores = {"val": found}
            for name, rows in tracked.items():
                prediction = predict(method, learner.model, rows, settings.eval_batch_size)
                scores[name] = score(data.selection, prediction, rows.y, rows.domain).reshape(-1).cpu()
            for e, past in enumerate(history):
                curves = {f"{name}_{data.selection}": float(values[e]) for name, values in scores.items()}
                past.append({"epoch": epoch, "train_loss": float(train_loss[e]), **curves})
            if on_epoch:
                on_epoch(epoch, [rows[-1] for rows in history])

        learner.restore()
        predictions = {"val": predict(method, learner.model, val, settings.eval_batch_size).cpu()}
        test = Rows([m.data.test for m in members], device)
        predictions["test"] = predict(method, learner.model, test, settings.eval_batch_size).cpu()

    seconds = (time.perf_counter() - started) / len(members)
    return [
        Outcome(
            scores={
                name: _score(p.reshape(len(members), *p.shape[-2:])[e], m.data, name) for name, p in predictions.items()
            },
            best_epoch=int(best_epoch[e]),
            history=history[e],
            seconds=seconds,
            stack=len(members),
            facts=m.method.facts(),
            state_dict=learner.state_dict(e),
        )
        for e, m in enumerate(members)
    ]


def _draw(member: Member, order: Order) -> dict[str, np.ndarray]:
    """Return the method's draws, and which view of every row and partner is read, where inputs have several.

    Views have a stream of their own, and partners' are drawn even if there are none: every method sees the same views.
    """
    drawn = member.method.draw(order, member.streams)
    if not isinstance(member.data.train.x, Sampled):
        return drawn
    view, partner_view = member.streams.views.integers(2**63, size=(2, len(order.index)))
    return {**drawn, "view": view, "partner_view": partner_view}


def _score(prediction: Tensor, data: RegressionData, name: str) -> dict[str, float]:
    split: Split = getattr(data, name)
    return evaluate(prediction, split.y, split.domain, data.metrics, data.worst)


def predict(method: Method, model: nn.Module, rows: Rows, batch_size: int) -> Tensor:
    """Return predictions `(N, d_y)`, or `(E, N, d_y)` for a stack, in evaluation mode.

    Where rows have many views, a prediction is the mean over those of its row.
    """
    model.eval()
    with torch.no_grad():
        parts = []
        if rows.has_views:
            for row in range(rows.n_rows):
                each = [method.predict(model, x) for x in rows.views(row, batch_size)]
                parts.append(torch.cat(each).mean(dim=0, keepdim=True))
            return torch.cat(parts)
        for start in range(0, rows.n_rows, batch_size):
            index = torch.arange(start, min(start + batch_size, rows.n_rows), device=rows.home)
            parts.append(method.predict(model, rows.fetch(index.expand(rows.size, -1)).x))
    return torch.cat(parts, dim=-2)
