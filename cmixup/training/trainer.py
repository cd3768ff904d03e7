"""The training engine: one loop for every method, dataset and backbone, and for a stack of seeds at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import Predict
from cmixup.data import RegressionData, Sampled, Split
from cmixup.errors import InputError, check_choice, check_positive
from cmixup.learner import Learner
from cmixup.methods.base import Method
from cmixup.metrics import evaluate, metric_of, score
from cmixup.optim import check_optimizer
from cmixup.order import Order
from cmixup.seeding import Streams, torch_seed
from cmixup.tasks import Tasks
from cmixup.training.checkpoint import Checkpoints, random_state, set_random_state
from cmixup.training.loader import BatchLoader
from cmixup.training.predict import predict


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
        shuffle: a new random order every epoch; otherwise the rows' own (released code, out of distribution). Methods
            that draw rows by domain always draw.
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
    shuffle: bool = True
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
        tasks = isinstance(self.data.train.x, Tasks)
        if tasks != self.method.episodic:
            kind = "tasks (support and query of one object)" if self.method.episodic else "plain rows"
            raise InputError(f"method {type(self.method).__name__} needs a dataset of {kind}, got {self.data.name}")
        self.method.fit(self.data.train, self.model)


@dataclass
class Outcome:
    """What training one member gave.

    Attributes:
        scores: metric name to value, for "val" and "test", with the selected checkpoint; for "test" by the method's
            other ways to predict, too, as `<metric>_<way>`.
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
    checkpoints: Checkpoints | None = None,
) -> list[Outcome]:
    """Train every member and score its best checkpoint.

    Members whose method and model allow it train as one stack, with the same numbers as alone (up to rounding).

    Args:
        members: runs of one method and one architecture on equally large splits.
        settings: how to train.
        device: where.
        on_epoch: called after each epoch with its number (from 1) and one history row a member of the stack.
        checkpoints: save the state now and then, and go on from it where there is one: the numbers are those of a run
            that was never interrupted.

    Returns:
        One outcome a member, in order.
    """
    device = torch.device(device)
    together = all(m.method.stackable and getattr(m.model, "stackable", False) for m in members)
    resident = all(s.resident for m in members for s in (m.data.train, m.data.val, m.data.test))
    if together and resident:
        return _train_stack(members, settings, device, on_epoch, checkpoints)
    return [o for member in members for o in _train_stack([member], settings, device, on_epoch, checkpoints)]


def _train_stack(
    members: Sequence[Member],
    settings: TrainSettings,
    device: torch.device,
    on_epoch: Progress | None,
    checkpoints: Checkpoints | None,
) -> list[Outcome]:
    started = time.perf_counter()
    method = members[0].method
    for m in members:
        m.method.search(m.data.train, m.data.val, m.model, m.streams)
    learner = Learner([m.model for m in members], device, settings.optimizer, settings.lr, settings.weight_decay)
    method.begin(learner, members)
    source = BatchLoader([m.data.train for m in members], device)
    scored = {name: BatchLoader([getattr(m.data, name) for m in members], device) for name in ("val", *settings.track)}
    selection = members[0].data.selection
    metric = metric_of(selection)
    past = _Past.start(len(members), metric.worst)

    with torch_seed(members[0].streams.training, device):
        if checkpoints and (saved := checkpoints.load([m.streams.seed for m in members])):
            past = _resume(saved, members, learner, settings, device)
            started -= past.seconds
        for epoch in range(past.epoch + 1, settings.epochs + 1):
            orders, draws = zip(*(_draw_epoch(m, settings) for m in members), strict=True)
            learner.optimizer.lr = settings.lr_at(epoch)
            learner.model.train()
            losses = [method.step(learner, batch) for batch in source.batches(orders, draws)]
            train_loss = torch.stack(losses).mean(dim=0).reshape(-1).double().cpu()

            scores = {}
            for name, rows in scored.items():
                prediction = predict(method.predict, learner.model, rows, settings.eval_batch_size)
                scores[name] = score(selection, prediction, rows.y, rows.domain).reshape(-1).cpu()
            better = metric.better(scores["val"], past.best)
            learner.keep(better.to(device))
            past.best = torch.where(better, scores["val"], past.best)
            past.best_epoch[better] = epoch
            for e, rows_of_one in enumerate(past.history):
                curves = {f"{name}_{selection}": float(values[e]) for name, values in scores.items()}
                rows_of_one.append({"epoch": epoch, "train_loss": float(train_loss[e]), **curves})
            past.epoch, past.seconds = epoch, time.perf_counter() - started
            if checkpoints and (epoch % checkpoints.every == 0 or epoch == settings.epochs):
                _save(past, members, learner, checkpoints, device)
            if on_epoch:
                on_epoch(epoch, [rows_of_one[-1] for rows_of_one in past.history])

        learner.restore()
        final = _score_all(members, learner, scored["val"], settings)

    seconds = (time.perf_counter() - started) / len(members)
    return [
        Outcome(
            scores=final[e],
            best_epoch=int(past.best_epoch[e]),
            history=past.history[e],
            seconds=seconds,
            stack=len(members),
            facts=m.method.facts(),
            state_dict=learner.state_dict(e),
        )
        for e, m in enumerate(members)
    ]


@dataclass
class _Past:
    """What is known after `epoch` epochs of a stack: one entry a member."""

    epoch: int
    seconds: float
    best: Tensor
    best_epoch: Tensor
    history: list[list[dict[str, float]]]

    @classmethod
    def start(cls, size: int, worst: float) -> _Past:
        best = torch.full((size,), worst, dtype=torch.float64)
        return cls(0, 0.0, best, torch.zeros(size, dtype=torch.int64), [[] for _ in range(size)])


def _save(
    past: _Past, members: Sequence[Member], learner: Learner, checkpoints: Checkpoints, device: torch.device
) -> None:
    state = {
        "past": vars(past),
        "learner": learner.progress(),
        "streams": [m.streams.state() for m in members],
        "method": members[0].method.state(),  # it takes every step
        "random": random_state(device),
    }
    checkpoints.save([m.streams.seed for m in members], state)


def _resume(
    saved: Mapping[str, Any], members: Sequence[Member], learner: Learner, settings: TrainSettings, device: torch.device
) -> _Past:
    past = _Past(**saved["past"])
    for m, streams in zip(members, saved["streams"], strict=True):
        for _ in range(past.epoch):  # what a method counts of its draws is counted again
            _draw_epoch(m, settings)
        m.streams.restore(streams)
    members[0].method.restore(saved["method"])
    learner.resume(saved["learner"])
    set_random_state(saved["random"], device)
    return past


def _draw_epoch(member: Member, settings: TrainSettings) -> tuple[Order, dict[str, np.ndarray]]:
    m = member
    order = m.method.order(
        m.data.train, settings.batch_size, m.streams, drop_last=settings.drop_last, shuffle=settings.shuffle
    )
    return order, _draw(m, order)


def _draw(member: Member, order: Order) -> dict[str, np.ndarray]:
    """Return the method's draws, and which view of every row and partner is read, where inputs have several.

    Views have a stream of their own, and partners' are drawn even if there are none: every method sees the same views.
    """
    drawn = member.method.draw(order, member.streams)
    if not isinstance(member.data.train.x, Sampled):
        return drawn
    view, partner_view = member.streams.views.integers(2**63, size=(2, len(order.index)))
    return {**drawn, "view": view, "partner_view": partner_view}


def _score_all(
    members: Sequence[Member], learner: Learner, val: BatchLoader, settings: TrainSettings
) -> list[dict[str, dict[str, float]]]:
    """Return each member's scores on val and test, and on test by the method's other ways to predict."""
    method = members[0].method
    test = BatchLoader([m.data.test for m in members], val.device)
    ways: list[tuple[str, str, BatchLoader, Predict]] = [
        ("val", "", val, method.predict),
        ("test", "", test, method.predict),
    ]
    ways += [("test", f"_{name}", test, way) for name, way in method.alternatives().items()]
    scores: list[dict[str, dict[str, float]]] = [{"val": {}, "test": {}} for _ in members]
    for part, suffix, rows, way in ways:
        prediction = predict(way, learner.model, rows, settings.eval_batch_size).cpu()
        for e, m in enumerate(members):
            split: Split = getattr(m.data, part)
            one = prediction.reshape(len(members), *prediction.shape[-2:])[e]
            found = evaluate(one, split.y, split.domain, m.data.metrics, m.data.worst)
            scores[e][part] |= {f"{name}{suffix}": value for name, value in found.items()}
    return scores
