"""A run, and the training of a stack of them, as the loop drives it and as methods are given it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import Batch, join_draws
from cmixup.data import RegressionData, Sampled
from cmixup.errors import InputError
from cmixup.handle import SearchCallback, Training
from cmixup.label_scaling import LabelScaling
from cmixup.methods.base import Method
from cmixup.metrics import lower_is_better, score
from cmixup.model_stack import ModelStack, stack_modules
from cmixup.order import EpochBatches, domain_batches
from cmixup.seeding import Draws, Streams, has_dropout, may_draw
from cmixup.training.loader import BatchLoader, predict
from cmixup.training.settings import TrainSettings


@dataclass
class Run:
    """One run of a stack: its data, its method, its freshly initialised model and its random streams.

    `lr` and `weight_decay` replace those of the settings, so that runs of several rates train as one stack.
    """

    data: RegressionData
    method: Method
    model: nn.Module
    streams: Streams
    lr: float | None = None
    weight_decay: float | None = None


class StackTraining(Training):
    """The training of some runs as one stack.

    Args:
        runs: with fitted methods.
        settings, device: see `cmixup.training.trainer.train`.
        resumed, on_search: see `Training`.

    Attributes:
        models: the stack as predictions take it; the outputs of `stack` are in the loss's units.
        method: the stack of the methods.
        rates: the learning rate of each run.
        rows: the rows of each split that is read, by name.
    """

    def __init__(
        self,
        runs: Sequence[Run],
        settings: TrainSettings,
        device: torch.device,
        *,
        resumed: bool = False,
        on_search: SearchCallback | None = None,
    ):
        self.runs, self.settings, self.device = list(runs), settings, device
        self.resumed, self.on_search = resumed, on_search
        self.data, self.methods = [run.data for run in runs], [run.method for run in runs]
        self.streams = [run.streams for run in runs]
        self._random = Draws(self.streams[0].training)
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
        """Return a context in which models draw from the first run's stream for training (dropout)."""
        anywhere = may_draw(self.models.model) or any(map(has_dropout, self.method.modules()))
        return self._random.used(everywhere=anywhere)

    @property
    def divisible(self) -> bool:
        """Whether some of the runs can go on alone: the methods hold nothing that was made for the whole stack."""
        held = [*self.method.parameters(), *self.method.buffers()]
        return self.stack.size > 2 and not held and all(method.divisible for method in self.methods)

    def part(self, places: Sequence[int]) -> StackTraining:
        """Return the training of some of the runs, two or more, which goes on where they are."""
        part = StackTraining([self.runs[place] for place in places], self.settings, self.device, resumed=True)
        part.method.begin(part)
        part.models.take(self.models, places)
        return part

    def load(self, split: str) -> None:
        """Bring a split of all runs to the device, unless it is there."""
        if split not in self.rows:
            splits = [getattr(data, split) for data in self.data]
            self.rows[split] = BatchLoader(splits, self.stack.device, self.stack.labels)

    def read(self, split: str, rows: np.ndarray | Tensor) -> Batch:
        """Return rows of a split; see `Training.read`."""
        source = self.rows[split]
        return source.fetch(torch.as_tensor(rows).to(source.index_device).expand(self.stack.size, -1))

    def batches(self, orders: Sequence[EpochBatches], draws: Sequence[Mapping[str, np.ndarray]]) -> Iterator[Batch]:
        """Yield the batches of an epoch."""
        return self.rows["train"].batches(orders, draws)

    def run_epoch(self, orders: Sequence[EpochBatches], draws: Sequence[Mapping[str, np.ndarray]]) -> Tensor:
        """Take the steps of an epoch and return the losses."""
        self.models.model.train()
        try:
            return torch.stack([self.method.step(self.stack, batch) for batch in self.batches(orders, draws)])
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            what = "the last batch has one row, which batch normalisation cannot take"
            raise InputError(f"{what}: give another batch_size, or drop_last") from None

    def predict(self, split: str, predictor: str = "") -> Tensor:
        """Return the predictions for a split, by one of the method's predictors; see `predict`."""
        how, size = self.method.predictors()[predictor], self.settings.eval_batch_size
        return predict(how, self.models.model, self.rows[split], size, self.fitted_by)

    def score(self, split: str, prediction: Tensor) -> Tensor:
        """Return the selection score of each run's `predict` for a split, `(E,)` float64 on the CPU."""
        rows = self.rows[split]
        return score(self.selection, prediction, rows.y, rows.domain).reshape(-1).cpu()

    def validate(self) -> Tensor:
        """Return the selection scores on validation."""
        return self.score("val", self.predict("val"))

    def end_epoch(self, epoch: int, validation: Tensor) -> None:
        """Tell the method of each run its error, of the selection scores `validation: (E,)`."""
        errors = validation if lower_is_better(self.selection) else -validation
        for method, error in zip(self.methods, errors.tolist(), strict=True):
            method.end_epoch(epoch, error)

    def state_dict(self) -> dict[str, Any]:
        """Return what a run needs to go on, beside the trainer's state."""
        return {
            "models": self.models.state_dict(),
            "streams": [streams.state_dict() for streams in self.streams],
            "methods": [method.state_dict() for method in self.methods],
            "stacked_method": self.method.state_dict(),
            "random": self._random.state_dict(),
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned."""
        for streams, state in zip(self.streams, saved["streams"], strict=True):
            streams.load_state_dict(state)
        for method, state in zip(self.methods, saved["methods"], strict=True):
            method.load_state_dict(state)
        self.method.load_state_dict(saved["stacked_method"])
        self.models.load_state_dict(saved["models"])
        self._random.load_state_dict(saved["random"])


def draw_epoch(run: Run, settings: TrainSettings) -> tuple[EpochBatches, dict[str, np.ndarray]]:
    """Return the rows of the next epoch and the draws for them.

    Batches are the method's own, or have as many rows of each domain.

    Raises:
        InputError: batches of domains for a method that makes other batches, or more domains than there are.
    """
    method, train, size, domains = run.method, run.data.train, settings.batch_size, settings.domains_per_batch
    if not domains or method.domains:
        order = method.order(train, size, run.streams, drop_last=settings.drop_last, shuffle=settings.shuffle)
    elif type(method).order is not Method.order:
        raise InputError(f"domains_per_batch must be 0 for {type(method).__name__}, which makes batches of its own")
    else:
        order = domain_batches(train.domain.numpy(), domains, size // domains, run.streams.order)
    return order, draws_of(run, order)


def draws_of(run: Run, order: EpochBatches) -> dict[str, np.ndarray]:
    """Return the method's draws, and which view of every row and partner is read, where inputs have several.

    Views have a stream of their own, and partners' are drawn even if there are none: every method sees the same views.
    """
    drawn = run.method.draw(order, run.streams)
    if not isinstance(run.data.train.x, Sampled):
        return drawn
    view, partner_view = run.streams.views.integers(2**63, size=(2, len(order.index)))
    views = {"view": view, "partner_view": partner_view}
    if "other_partner" in drawn:
        views["other_partner_view"] = run.streams.views.integers(2**63, size=len(order.index))
    return join_draws({f"method {type(run.method).__name__}": drawn, "the trainer": views})
