"""The training engine: one loop for every method, dataset and backbone, and for a stack of seeds at once."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmixup.data import RegressionData, Sampled, Split
from cmixup.errors import InputError
from cmixup.metrics import NAIVE, evaluate, evaluate_normal, metric_of
from cmixup.training.batch import EpochBatches, domain_batches
from cmixup.training.losses import joined, mean_names
from cmixup.training.method import Method, check_data, check_settings, shared_options
from cmixup.training.model_stack import unstack_modules
from cmixup.training.settings import TrainSettings
from cmixup.training.training import EpochCallback, Run, Training, TrainState


@dataclass
class RunResult:
    """The result of training one run."""

    #: Metric name to value, for "val" and "test", with the selected checkpoint; for "test" by the method's other
    #: predictors, too, as `<metric>_<predictor>`. Empty if the run failed.
    scores: dict[str, dict[str, float]]
    #: `(N, d_y)` float32 on the CPU, by split and predictor: "" is the method's own, "std" that of standard
    #: deviations where the loss fits variances.
    predictions: dict[str, dict[str, Tensor]] = field(repr=False)
    best_epoch: int  #: the selected epoch, counted from 1; 0 if the selection metric was never finite
    #: Of each epoch `epoch`, `train_loss` in the loss's units, and the selection metric as `val_<name>` and for each
    #: tracked split.
    history: list[dict[str, float]]
    seconds: float  #: wall-clock seconds of training and evaluation, divided by the size of the stack
    stack: int  #: how many runs were trained together
    diagnostics: dict[str, float | str]  #: of the method, in numbers (`effective_fraction`) and words (`verdict`)
    state_dict: dict[str, Tensor] = field(repr=False)  #: the selected weights
    failure: str  #: why the run was given up, if so
    #: `mean` and `std` of the labels, `d_y` numbers each; empty where they are not scaled. With the forms `centre` and
    #: `standard` an output of the weights is `output * std + mean` in label units.
    label_scaling: dict[str, list[float]] = field(default_factory=dict)


class Stack:
    """Runs that train as one, with their methods fitted; `places` are theirs among the runs given to `stacks`."""

    def __init__(
        self, places: list[int], runs: list[Run], settings: TrainSettings, device: torch.device, checkpoints: Any = None
    ):
        self._started = time.perf_counter()
        self.places, self.runs = places, runs
        self._settings, self._device, self._checkpoints = settings, device, checkpoints
        self._seeds = [run.streams.seed for run in runs]
        self._checksums = {name: checksum for run in runs for name, checksum in run.data.checksums.items()}
        self._saved = checkpoints.load(self._seeds, self._checksums) if checkpoints else None
        for run in runs:
            run.method.fit(run.data, run.model, None if self._saved else run.streams)

    def train(self, on_epoch: EpochCallback = lambda *_: None) -> list[RunResult]:
        """Train, once, score each run's best checkpoint, and return one result a run.

        A run whose training loss or predictions are not finite has failed; the others go on, and training ends early
        where all have failed. `on_epoch` is called after each epoch with its number (from 1) and one history row a run.
        Steps of a method's search before the first one count as epoch 0 with one row.
        """
        runs, settings, checkpoints = self.runs, self._settings, self._checkpoints
        full = training = Training(runs, settings, self._device, resumed=self._saved is not None, on_epoch=on_epoch)
        training.method.begin(training)
        metric = metric_of(training.selection)
        best = torch.full((len(runs),), metric.worst, dtype=torch.float64)
        never = torch.zeros(len(runs), dtype=torch.int64)
        state = TrainState(0, 0.0, best, never, [[] for _ in runs], going=list(range(len(runs))))

        with training.drawing():
            if self._saved:
                training.load_state_dict(self._saved)
                state = TrainState(**self._saved["train"])
                self._started -= state.seconds
            for epoch in range(state.epoch + 1, settings.epochs + 1):
                if not state.left:  # nor in what a checkpoint holds
                    break
                if epoch == training.method.selects_from:
                    state.best.fill_(metric.worst)  # the scores are forgotten, their weights are not
                # Rates come first, since RC-Mixup takes steps while its epoch is drawn.
                training.models.optimizer.lr = [settings.lr_at(epoch, lr) for lr in training.rates]
                orders, draws = zip(*(draw_epoch(run, settings) for run in training.runs), strict=True)
                losses = training.run_epoch(orders, draws)
                losses = losses.reshape(len(losses), len(training.runs)).double().cpu()
                scores = {}
                for name in ("val", *settings.track):
                    prediction = training.predict(name)
                    if name == "val":
                        state.note_failures(epoch, losses, prediction)
                    scores[name] = training.score(name, prediction)
                is_last = settings.select == "last" and epoch >= min(training.method.selects_from, settings.epochs)
                better = metric.better(scores["val"], state.best[state.going]) | is_last
                better &= torch.tensor([place not in state.stopped for place in state.going])
                training.models.keep_best(better.to(self._device))
                curves = {f"{name}_{training.selection}": values for name, values in scores.items()}
                state.note_epoch(epoch, scores["val"], better, {"train_loss": losses.mean(dim=0), **curves})
                training.end_epoch(epoch, scores["val"])
                state.end_impatient(settings.patience or math.inf, training.method.selects_from)
                if ended := [place for place in state.stopped if place not in state.facts]:
                    unstack_modules(training.method, training.methods)
                for place in ended:
                    facts = runs[place].method.diagnostics().items()  # plain numbers can be saved
                    state.facts[place] = {name: v if isinstance(v, str) else float(v) for name, v in facts}
                state.seconds = time.perf_counter() - self._started
                if checkpoints and (epoch % checkpoints.every == 0 or epoch == settings.epochs):
                    checkpoints.save(self._seeds, {"train": vars(state), **training.state_dict()}, self._checksums)
                on_epoch(epoch, [history[-1] for history in state.history])
                training = _smaller_stack(training, full, state, saves=checkpoints is not None)

            full.models.put_best(training.models, state.going)
            full.models.load_best()
            unstack_modules(training.method, training.methods)
            predictions = _predict_all(full)
            full.rows.clear()  # a method may have kept the training

        seconds = (time.perf_counter() - self._started) / len(runs)
        failures = [state.failure(e, training.selection) for e in range(len(runs))]
        return [
            RunResult(
                scores={} if failures[e] else _score_run(run.data, predictions[e]), predictions=predictions[e],
                best_epoch=int(state.best_epoch[e]), history=state.history[e], seconds=seconds, stack=len(runs),
                diagnostics=state.facts.get(e) or run.method.diagnostics(), failure=failures[e],
                state_dict=full.models.best_weights(e), label_scaling=full.models.labels.facts(e),
            )
            for e, run in enumerate(runs)
        ]  # fmt: skip


def train(
    runs: Sequence[Run], settings: TrainSettings, device: torch.device | str = "cpu", *,
    on_epoch: EpochCallback = lambda *_: None, checkpoints: Any = None,
) -> list[RunResult]:  # fmt: skip
    """Train every run, those that can as one stack, and return one result a run, in order; see `stacks`."""
    results: dict[int, RunResult] = {}
    for stack in stacks(runs, settings, device, checkpoints):
        results |= zip(stack.places, stack.train(on_epoch), strict=True)
    return [results[k] for k in range(len(runs))]


def stacks(
    runs: Sequence[Run], settings: TrainSettings, device: torch.device | str = "cpu", checkpoints: Any = None
) -> Iterator[Stack]:
    """Check all runs, then yield them in stacks to train, each once its methods are fitted: bad input is refused then.

    Runs are one stack if method and model allow it and their splits have the same shapes. Numbers are those of a run
    alone up to rounding, which grows over the steps: digits repeat only with the same runs in the stack. Methods may
    differ there in the parts that they draw with (`Method.per_run`), such as a bandwidth.

    Args:
        runs: runs of one architecture.
        checkpoints: save the state every so many epochs (`every`, `save`), and go on from it where there is one
            (`load`): the numbers are those of a run that was never interrupted. See `scripts.driver.checkpoints`.
    """
    for run in runs:
        check_data(run.method, run.data)
        check_settings(type(run.method), settings)
        if settings.fitted_by.outputs > 1 and not getattr(run.model, "variances", True):
            raise InputError(f"loss must be squared for {type(run.model).__name__}, got {settings.loss!r}")
        run.method.error, run.method.errors = settings.fitted_by.for_labels(run.data.labels)
        run.method.check_batch(settings.batch_size)
    for places in grouped(runs):
        yield Stack(places, [runs[k] for k in places], settings, torch.device(device), checkpoints)


def grouped(runs: Sequence[Run]) -> list[list[int]]:
    """Return the places of the runs of each stack: of like methods and shapes, and each alone that does not stack."""
    groups: dict[object, list[int]] = {}
    for place, run in enumerate(runs):
        splits = (run.data.train, run.data.val, run.data.test)
        can_stack = run.method.stackable and getattr(run.model, "stackable", False)
        if can_stack and all(split.stackable for split in splits):
            domains = len(set(run.data.train.domain.tolist())) if run.method.domains else 0
            shapes = [(tuple(getattr(split.x, "shape", ())), tuple(split.y.shape)) for split in splits]
            gaps = bool(run.data.labels.isnan().any())  # which choose the loss
            groups.setdefault((shared_options(run.method), domains, gaps, *shapes), []).append(place)
        else:
            groups["alone", place] = [place]
    return list(groups.values())


def draw_epoch(run: Run, settings: TrainSettings) -> tuple[EpochBatches, dict[str, np.ndarray]]:
    """Return the rows of the next epoch and the draws for them; batches are the method's own, or of domains."""
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
    draws = run.method.draw(order, run.streams)
    if not isinstance(run.data.train.x, Sampled):
        return draws
    view, partner_view = run.streams.views.integers(2**63, size=(2, len(order.index)))
    draws |= {"view": view, "partner_view": partner_view}
    if "other_partner" in draws:
        draws["other_partner_view"] = run.streams.views.integers(2**63, size=len(order.index))
    return draws


def _smaller_stack(training: Training, full: Training, state: TrainState, *, saves: bool) -> Training:
    """Return the training of the runs left, once they are half of the stack; a checkpoint is of a whole one."""
    left = state.left
    if saves or not 1 < len(left) <= len(state.going) // 2 or not training.divisible:
        return training
    full.models.put_best(training.models, state.going)
    smaller = training.part([state.going.index(place) for place in left])
    state.going = left
    return smaller


def _predict_all(training: Training) -> list[dict[str, dict[str, Tensor]]]:
    """Return the `RunResult.predictions` of each run."""
    training.load("test")
    predictions: list[dict[str, dict[str, Tensor]]] = [{"val": {}, "test": {}} for _ in training.data]
    for split, name in [("val", ""), *(("test", name) for name in training.method.predictors())]:
        prediction = training.predict(split, name).float().cpu()
        for e, run_prediction in enumerate(prediction.reshape(len(predictions), *prediction.shape[-2:])):
            predictions[e][split] |= training.fitted_by.by_predictor(name, run_prediction)
    return predictions


def _score_run(data: RegressionData, predictions: Mapping[str, Mapping[str, Tensor]]) -> dict[str, dict[str, float]]:
    """Return the `RunResult.scores` of one run's predictions."""
    normal = {part: joined(by_predictor) for part, by_predictor in predictions.items()}
    scores: dict[str, dict[str, float]] = {"val": {}, "test": {}}
    for part, by_predictor in predictions.items():
        split: Split = getattr(data, part)
        for name, normal_outputs in normal[part].items():
            scores[part] |= evaluate_normal(normal_outputs, split.y, (normal["val"][""], data.val.y), name)
        for name in mean_names(by_predictor):
            values = evaluate(by_predictor[name], split.y, split.domain, data.metrics, data.worst)
            scores[part] |= {f"{metric}_{name}" if name else metric: value for metric, value in values.items()}
        for name, by_part in data.naive.items():
            values = evaluate(by_part[part], split.y, split.domain, data.metrics)
            scores[part] |= {f"{metric}_{NAIVE}{name}": values[metric] for metric in data.metrics}
    return scores
