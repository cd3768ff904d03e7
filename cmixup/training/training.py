"""A run, and the training of a stack of them, as the loop drives it and as methods are given it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.metrics import metric_of, score
from cmixup.seeding import Draws, Streams, has_dropout, may_draw
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.loader import BatchLoader, predict
from cmixup.training.losses import LabelScaling
from cmixup.training.model_stack import ModelStack, stack_modules
from cmixup.training.settings import TrainSettings


@dataclass
class TrainState:
    """The state of a stack of E runs after `epoch` epochs; everything is saved in a checkpoint."""

    epoch: int
    seconds: float
    best: Tensor  #: `(E,)` float64, the best selection score of each run,
    best_epoch: Tensor  #: `(E,)` int64, and the epoch it was reached in; 0 if there was none
    history: list[list[dict[str, float]]]
    failed: dict[int, str] = field(default_factory=dict)  #: by place, where the numbers of a run stopped being finite
    going: list[int] = field(default_factory=list)  #: places of the runs that the stack has left; notes are of these
    stopped: list[int] = field(default_factory=list)  #: out of patience: nothing that follows is noted of them
    facts: dict[int, dict[str, float | str]] = field(default_factory=dict)  #: what their methods said when they ended

    def note_failures(self, epoch: int, losses: Tensor, prediction: Tensor) -> None:
        """Note where numbers stop being finite: `losses: (steps, E)`, or `prediction: (..., N, d_y)` on validation.

        The step counts from 1; predictions are those after the last one.
        """
        steps, count = losses.shape
        last_finite = torch.isfinite(prediction).reshape(count, -1).all(dim=1).cpu()
        not_finite = ~torch.cat([torch.isfinite(losses), last_finite[None]])
        for k in torch.nonzero(not_finite.any(dim=0)).flatten().tolist():
            first = int(not_finite[:, k].int().argmax())
            if self.going[k] not in self.stopped:
                quantity = "the training loss" if first < steps else "a prediction on val"
                where = f"{quantity} is not finite at epoch {epoch}, step {min(first + 1, steps)}"
                self.failed.setdefault(self.going[k], where)

    def note_epoch(self, epoch: int, score: Tensor, better: Tensor, columns: Mapping[str, Tensor]) -> None:
        """Note an epoch's end: each run's selection score, where it is better, and the history's columns, `(E,)`."""
        self.epoch, places = epoch, torch.tensor(self.going)
        self.best[places[better]] = score[better]
        self.best_epoch[places[better]] = epoch
        for k, place in enumerate(self.going):
            if place not in self.stopped:
                row = {"epoch": epoch, **{name: float(values[k]) for name, values in columns.items()}}
                self.history[place].append(row)

    def end_impatient(self, patience: float, selects_from: int) -> None:
        """End the runs without a better score in `patience` epochs, of those that may be selected."""
        waited = self.epoch - self.best_epoch.clamp_min(selects_from - 1)
        self.stopped += [k for k in self.going if waited[k] >= patience and k not in self.stopped]

    @property
    def left(self) -> list[int]:
        """The places of the runs that have neither failed nor ended."""
        return [place for place in self.going if place not in self.failed and place not in self.stopped]

    def failure(self, place: int, selection: str) -> str:
        """Return why the run at `place` has failed, or nothing; a run without any finite `selection` score has, too."""
        reason = "" if self.best_epoch[place] else f"val {selection} is not finite at any epoch"
        return self.failed.get(place, reason)


@dataclass
class Run:
    """One run of a stack; `lr` and `weight_decay` replace those of the settings."""

    data: RegressionData
    method: Any  #: a `cmixup.training.method.Method`
    model: nn.Module  #: freshly initialised
    streams: Streams
    lr: float | None = None
    weight_decay: float | None = None


EpochCallback = Callable[[int, list[dict[str, float]]], None]


class Training:
    """The training of E runs, whose methods are fitted, as one stack.

    Tensors have a leading axis of E, or none where E is 1. A method that is given it reads these and calls `read`,
    `batches`, `run_epoch`, `predict` and `score`:

    Attributes:
        stack: the models with their optimiser, freshly initialised when training begins, with outputs in the loss's
            units; `models`, which predict, have them in the network's.
        data, methods, streams: of each run, whose test split must not be read; methods are fitted.
        random: the generators that models draw from (dropout).
        resumed: whether runs go on from a checkpoint, which holds the findings of a search before training.
        on_epoch: told of the steps of such a search, as epoch 0 with one row.
    """

    def __init__(
        self, runs: Sequence[Run], settings: TrainSettings, device: torch.device, *, resumed: bool = False,
        on_epoch: EpochCallback = lambda *_: None,
    ):  # fmt: skip
        self.runs, self.settings, self.device = list(runs), settings, device
        self.resumed, self.on_epoch = resumed, on_epoch
        self.data, self.methods = [run.data for run in runs], [run.method for run in runs]
        self.streams = [run.streams for run in runs]
        self.random = Draws(self.streams[0].training)
        self.rates = [settings.lr if run.lr is None else run.lr for run in runs]
        decays = [settings.weight_decay if run.weight_decay is None else run.weight_decay for run in runs]
        labels = LabelScaling.fit(settings.label_scaling, [data.train for data in self.data], device)
        models = [run.model for run in runs]
        self.models = ModelStack(models, device, settings.optimizer, self.rates, decays, labels=labels)
        self.stack, self.method = self.models.seen_by_loss(), stack_modules(self.methods).to(device)
        self.fitted_by = settings.fitted_by
        self.selection = self.fitted_by.selection or self.data[0].selection
        self.rows: dict[str, BatchLoader] = {}
        for name in ("train", "val", *settings.track):
            self.load(name)

    def drawing(self) -> AbstractContextManager[Draws]:
        """Return a context in which models draw (dropout) from the first run's stream for training."""
        may_drop = may_draw(self.models.model) or any(map(has_dropout, self.method.modules()))
        return self.random.used(everywhere=may_drop)

    @property
    def divisible(self) -> bool:
        """Whether some of the runs can go on alone: the methods hold nothing that was made for the whole stack."""
        state = [*self.method.parameters(), *self.method.buffers()]
        return self.stack.size > 2 and not state and all(method.divisible for method in self.methods)

    def part(self, places: Sequence[int]) -> "Training":
        """Return the training of some of the runs, two or more, which goes on where they are."""
        smaller = Training([self.runs[place] for place in places], self.settings, self.device, resumed=True)
        smaller.method.begin(smaller)
        smaller.models.take(self.models, places)
        return smaller

    def load(self, split: str) -> None:
        """Bring a split of all runs to the device, unless it is there."""
        if split not in self.rows:
            splits = [getattr(data, split) for data in self.data]
            self.rows[split] = BatchLoader(splits, self.stack.device, self.stack.labels)

    def read(self, split: str, rows: np.ndarray | Tensor) -> Batch:
        """Return rows of "train" or "val" as a step gets them: on the device, labels as the loss sees them.

        Rows are `(E, B)` int64, or `(B,)` for the same rows of every run.
        """
        loader = self.rows[split]
        return loader.fetch(torch.as_tensor(rows).to(loader.index_device).expand(self.stack.size, -1))

    def batches(self, orders: Sequence[EpochBatches], draws: Sequence[Mapping[str, np.ndarray]]) -> Iterator[Batch]:
        """Yield the batches of an epoch from the order and the draws of each run; see `Method.draw`."""
        return self.rows["train"].batches(orders, draws)

    def run_epoch(self, orders: Sequence[EpochBatches], draws: Sequence[Mapping[str, np.ndarray]]) -> Tensor:
        """Take the method's step on each of these batches and return the losses, `(n_batches,)` or `(n_batches, E)`."""
        self.models.model.train()
        bfloat16 = self.settings.precision == "bfloat16"
        try:
            # No cast weights are cached, since a step may change weights and read them again.
            with torch.autocast(self.device.type, torch.bfloat16, cache_enabled=False) if bfloat16 else nullcontext():
                return torch.stack([self.method.step(self.stack, batch) for batch in self.batches(orders, draws)])
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            problem = "the last batch has one row, which batch normalisation cannot take"
            raise InputError(f"{problem}: give another batch_size, or drop_last") from None

    def predict(self, split: str, predictor: str = "") -> Tensor:
        """Return the current predictions for a whole split, `(..., N, d_y)` in label units, in evaluation mode."""
        predict_fn, size = self.method.predictors()[predictor], self.settings.eval_batch_size
        return predict(predict_fn, self.models.model, self.rows[split], size, self.fitted_by)

    def score(self, split: str, prediction: Tensor) -> Tensor:
        """Return the selection score of each run's `predict` for a split, `(E,)` float64 on the CPU."""
        rows = self.rows[split]
        return score(self.selection, prediction, rows.y, rows.domain).reshape(-1).cpu()

    def end_epoch(self, epoch: int, validation: Tensor) -> None:
        """Tell the method of each run its error, of the selection scores `validation: (E,)`."""
        errors = validation if metric_of(self.selection).lower_is_better else -validation
        for method, error in zip(self.methods, errors.tolist(), strict=True):
            method.end_epoch(epoch, error)

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a run needs to go on, beside the trainer's."""
        return {
            "models": self.models.state_dict(), "streams": [streams.state_dict() for streams in self.streams],
            "methods": [method.state_dict() for method in self.methods], "stacked_method": self.method.state_dict(),
            "random": self.random.state_dict(),
        }  # fmt: skip

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned."""
        for streams, state in zip(self.streams, saved["streams"], strict=True):
            streams.load_state_dict(state)
        for method, state in zip(self.methods, saved["methods"], strict=True):
            method.load_state_dict(state)
        self.method.load_state_dict(saved["stacked_method"])
        self.models.load_state_dict(saved["models"])
        self.random.load_state_dict(saved["random"])
