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
        going: the places of the runs that the stack has left, in order; what is noted is of these.
        ended: those that have run out of patience: nothing that follows is noted of them.
    """

    epoch: int
    seconds: float
    best: Tensor
    best_epoch: Tensor
    history: list[list[dict[str, float]]]
    failed: dict[int, tuple[int, int, str]] = field(default_factory=dict)
    going: list[int] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)

    @classmethod
    def start(cls, size: int, worst: float) -> TrainState:
        """Return the state before the first epoch; `worst` is a score that every finite one beats."""
        best = torch.full((size,), worst, dtype=torch.float64)
        none = torch.zeros(size, dtype=torch.int64)
        return cls(0, 0.0, best, none, [[] for _ in range(size)], going=list(range(size)))

    def begin_epoch(self, epoch: int, selects_from: int, worst: float) -> None:
        """Forget the best scores, not their weights, where `epoch` is the first whose weights may be selected."""
        if epoch == selects_from:
            self.best = torch.full_like(self.best, worst)

    def note_failures(self, epoch: int, losses: Tensor, prediction: Tensor) -> None:
        """Note where a run's numbers stop being finite.

        Args:
            epoch: counted from 1.
            losses: `(steps, E)` on the CPU, of its steps.
            prediction: `(..., N, d_y)`, on validation after them.
        """
        steps, count = losses.shape
        after = torch.isfinite(prediction).reshape(count, -1).all(dim=1).cpu()
        bad = ~torch.cat([torch.isfinite(losses), after[None]])
        for k in torch.nonzero(bad.any(dim=0)).flatten().tolist():
            first = int(bad[:, k].int().argmax())
            if self.going[k] not in self.stopped:
                what = "the training loss" if first < steps else "a prediction on val"
                self.failed.setdefault(self.going[k], (epoch, min(first + 1, steps), what))

    def note_epoch(self, epoch: int, score: Tensor, better: Tensor, columns: Mapping[str, Tensor]) -> None:
        """Note the end of an epoch: the selection score of each run, where it is better, and a row of every history.

        `score`, `better` and each of `columns` are `(E,)`.
        """
        self.epoch, places = epoch, torch.tensor(self.going)
        self.best[places[better]] = score[better]
        self.best_epoch[places[better]] = epoch
        for k, place in enumerate(self.going):
            if place not in self.stopped:
                row = {"epoch": epoch, **{name: float(values[k]) for name, values in columns.items()}}
                self.history[place].append(row)

    def end_impatient(self, patience: int | None, selects_from: int) -> None:
        """End the runs without a better score in `patience` epochs, of those that may be selected."""
        if patience is None:
            return
        waited = self.epoch - self.best_epoch.clamp_min(selects_from - 1)
        late = [place for place in self.going if waited[place] >= patience]
        self.stopped += [place for place in late if place not in self.stopped]

    @property
    def left(self) -> list[int]:
        """The places of the runs that have neither failed nor ended."""
        return [place for place in self.going if place not in self.failed and place not in self.stopped]

    @property
    def open(self) -> Tensor:
        """Which of the runs that the stack has left may still have a better epoch, `(len(going),)` bool."""
        return torch.tensor([place not in self.stopped for place in self.going])

    def failure(self, place: int, selection: str) -> Failure | None:
        """Return why the run at `place` has failed, if so; a run without any finite `selection` score has, too."""
        if place in self.failed:
            return Failure(*self.failed[place])
        if int(self.best_epoch[place]) == 0:
            return Failure(1, 1, f"val {selection} of any epoch")
        return None
