"""The state of a stack between two epochs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Failure:
    """Where the numbers of a run stopped being finite.

    Attributes:
        epoch: counted from 1.
        step: of that epoch, counted from 1; the last one where the scores after it are meant.
        what: the number in question, in words.
    """

    epoch: int
    step: int
    what: str

    def __str__(self) -> str:
        return f"{self.what} is not finite at epoch {self.epoch}, step {self.step}"


@dataclass
class TrainState:
    """The state of a stack of E runs after `epoch` epochs; everything is saved in a checkpoint.

    Attributes:
        epoch: how many epochs are done.
        seconds: how long they took.
        best: `(E,)` float64, the best selection score of each run.
        best_epoch: `(E,)` int64, the epoch it was reached in; 0 if there was none.
        history: for each run a dict an epoch.
        failed: by the place of a run that has failed: epoch, step and the number in question.
    """

    epoch: int
    seconds: float
    best: Tensor
    best_epoch: Tensor
    history: list[list[dict[str, float]]]
    failed: dict[int, tuple[int, int, str]] = field(default_factory=dict)

    @classmethod
    def start(cls, size: int, worst: float) -> TrainState:
        """Return the state before the first epoch; `worst` is a score that every finite one beats."""
        best = torch.full((size,), worst, dtype=torch.float64)
        return cls(0, 0.0, best, torch.zeros(size, dtype=torch.int64), [[] for _ in range(size)])

    def begin_epoch(self, epoch: int, selects_from: int, worst: float) -> None:
        """Forget the best scores, not their weights, where `epoch` is the first whose weights may be selected."""
        if epoch == selects_from:
            self.best = torch.full_like(self.best, worst)

    def note_losses(self, epoch: int, losses: Tensor) -> None:
        """Note the first step of each run whose training loss is not finite; `losses: (steps, E)`."""
        bad = ~torch.isfinite(losses)
        for place in torch.nonzero(bad.any(dim=0)).flatten().tolist():
            step = int(bad[:, place].int().argmax()) + 1
            self.failed.setdefault(place, (epoch, step, "the training loss"))

    def note_epoch(self, epoch: int, score: Tensor, better: Tensor, columns: Mapping[str, Tensor]) -> None:
        """Note the end of an epoch: the selection score of each run, where it is better, and a row of every history.

        `score`, `better` and each of `columns` are `(E,)`.
        """
        self.epoch = epoch
        self.best = torch.where(better, score, self.best)
        self.best_epoch[better] = epoch
        for place, history in enumerate(self.history):
            history.append({"epoch": epoch, **{name: float(values[place]) for name, values in columns.items()}})

    def note_predictions(self, epoch: int, steps: int, prediction: Tensor) -> None:
        """Note the runs with a validation prediction that is not finite; `prediction: (..., N, d_y)`."""
        finite = torch.isfinite(prediction).reshape(len(self.history), -1).all(dim=1)
        for place in torch.nonzero(~finite).flatten().tolist():
            self.failed.setdefault(place, (epoch, steps, "a prediction on val"))

    @property
    def all_failed(self) -> bool:
        """Whether no run is left."""
        return len(self.failed) == len(self.history)

    def failure(self, place: int, selection: str) -> Failure | None:
        """Return why the run at `place` has failed, if so; a run without any finite `selection` score has, too."""
        if place in self.failed:
            return Failure(*self.failed[place])
        if int(self.best_epoch[place]) == 0:
            return Failure(1, 1, f"val {selection} of any epoch")
        return None
