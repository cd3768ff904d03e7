"""The losses that outputs are fitted by (`train.loss`), and the unit of labels (`train.label_scaling`).

Beside the squared error, `train.loss=gaussian` fits the negative log likelihood of a normal distribution. A model has
two outputs for each label: the mean, and a raw number r of the variance, `softplus(r) + 1e-6` (Lakshminarayanan,
Pritzel and Blundell 2017, "Simple and scalable predictive uncertainty estimation using deep ensembles", Section 2.4).
A run then predicts means and standard deviations side by side, `(..., N, 2 d_y)` in label units.

Networks start with outputs near 0 and small steps, so raw labels far from 0 are learned late and badly: on Airfoil (103
to 141 dB) standardised labels cost ERM 1 dB less. Mixing commutes with scaling, and partners are drawn from raw labels,
so a method stays what it is; bandwidths, predictions and scores are in the label's unit throughout. A network that
carries inputs to its output in the label's unit can lose by it, as LSTNet's highway does (`models/lstnet.py`).
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from cmixup.backbone import Backbone
from cmixup.data import Split, Tasks
from cmixup.errors import InputError
from cmixup.inputs.spread import varies
from cmixup.metrics import HALF_LOG

#: none: the network learns labels as they are. centre: minus their mean. standard: minus their mean, over their
#: standard deviation. loss: the network's outputs are in label units, and the loss standardises outputs and labels.
FORMS = ("none", "centre", "standard", "loss")
LEAST_VARIANCE = 1e-6  # in the loss's units
STD = "std"  # the predictor of standard deviations


class LabelScaling:
    """Maps labels to the loss's units and outputs of the network to labels: `y' = (y - mean) / std`.

    Mean and standard deviation of the training labels are `(1, d_y)`, or `(E, 1, d_y)` of the runs of a stack.
    """

    def __init__(self, form: str = "none", mean: Tensor | None = None, std: Tensor | None = None):
        self.form = form
        self.mean = torch.zeros(1, 1) if mean is None else mean
        self.std = torch.ones(1, 1) if std is None else std

    @classmethod
    def fit(cls, form: str, splits: Sequence[Split], device: torch.device | str = "cpu") -> Self:
        """Take mean and standard deviation (N in the denominator) from the training splits of a stack's runs.

        They are of each label dimension; `loss` pools the variance over dimensions, so that each keeps its share of the
        squared error. Tasks have one label, so all of their labels are pooled. Constant labels are divided by 1
        (`cmixup.inputs.spread`).
        """
        if form == "none":
            return cls()
        means, stds = [], []
        for split in splits:
            y = split.y.reshape(-1, 1) if isinstance(split.x, Tasks) else split.y
            mean = y.mean(dim=0, keepdim=True)
            variance = y.double().var(dim=0, keepdim=True, correction=0)
            if bool(mean.isnan().any()):  # labels with gaps
                mean = y.nanmean(dim=0, keepdim=True)
                variance = (y.double() - mean).square().nanmean(dim=0, keepdim=True)
            std = (variance.mean(dim=1, keepdim=True) if form == "loss" else variance).sqrt()
            means.append(mean)
            low, high = (torch.where(y.isnan(), fill, y.double()) for fill in (math.inf, -math.inf))
            vary = varies(low.amin(dim=0, keepdim=True), high.amax(dim=0, keepdim=True), len(y))
            vary = vary.any(dim=1, keepdim=True) if form == "loss" else vary
            stds.append(torch.where(vary & (form != "centre"), std, 1.0).to(y.dtype))
        stacked = [torch.stack(values) if len(values) > 1 else values[0] for values in (means, stds)]
        return cls(form, *(values.to(device) for values in stacked))

    def scale(self, y: Tensor) -> Tensor:
        """Return labels `(..., B, d_y)` in the loss's units."""
        if self.form == "none":
            return y
        mean, std = (v.unsqueeze(-3) if y.ndim > v.ndim else v for v in (self.mean, self.std))  # outputs of members
        return (y - mean) / std

    def to_labels(self, output: Tensor) -> Tensor:
        """Return the network's outputs `(..., B, d_y)` in label units."""
        return output * self.std + self.mean if self.form in ("centre", "standard") else output

    def facts(self, place: int) -> dict[str, list[float]]:
        """Return mean and standard deviation of the run at `place`, `d_y` numbers each, or nothing for `none`."""
        if self.form == "none":
            return {}
        moments = {"mean": self.mean, "std": self.std}
        return {name: (values[place] if values.ndim == 3 else values)[0].tolist() for name, values in moments.items()}


class InLossUnits(Backbone):
    """A model as the loss sees it where the network's outputs are in label units and the loss's are not."""

    def __init__(self, model: nn.Module, labels: LabelScaling):
        super().__init__()
        self.model, self.labels = model, labels

    def features(self, x: Tensor) -> Tensor:
        return self.model.features(x)  # type: ignore[operator]

    def head(self, features: Tensor) -> Tensor:
        return self.labels.scale(self.model.head(features))  # type: ignore[operator]

    def forward(self, x: Tensor) -> Tensor:
        return self.labels.scale(self.model(x))


def known_squared_error(prediction: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the mean squared error over the labels that are there, `(...)`, by the weight `(..., B)` of their row.

    NaN in the target `(..., B, d_y)` is a missing label. Without any other the error is 0.
    """
    known = (~target.isnan()).to(target.dtype) * (1.0 if weight is None else weight.unsqueeze(-1))
    squares = _known_squares(prediction, target)
    total = known.sum(dim=(-2, -1)).clamp_min(torch.finfo(target.dtype).tiny)
    return (known * squares).sum(dim=(-2, -1)) / total


def known_squared_errors(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the squared error of each row, averaged over the labels that are there, `(..., B)`."""
    return _known_squares(prediction, target).sum(dim=-1) / (~target.isnan()).sum(dim=-1).clamp_min(1)


@dataclass(frozen=True)
class Loss:
    """A way to fit outputs.

    Predictions are `(..., B, outputs * d_y)`, or `(..., k, B, outputs * d_y)` of k members, each with its own error;
    targets are `(..., B, d_y)`. Other shapes raise `InputError`.
    """

    name: str  #: the value of `train.loss`
    outputs: int  #: of the model for each label dimension
    of_labels: Callable[[Tensor, Tensor], Tensor]  #: the error of each label, `(..., B, d_y)`
    selection: str = ""  #: the metric on validation that picks the checkpoint; "" is the dataset's own

    def error(self, prediction: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return the mean error over rows, by their weight `(..., B)`, and label dimensions, `(...)`: one a model.

        Where all weights are 0 the error is 0.
        """
        errors = self.of_labels(prediction, target)
        if weight is None:
            return errors.mean(dim=(-2, -1))
        rows = errors.mean(dim=-1)
        return (weight * rows).sum(dim=-1) / weight.sum(dim=-1).clamp_min(torch.finfo(weight.dtype).tiny)

    def errors(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return the error of each row, averaged over label dimensions, `(..., B)`."""
        return self.of_labels(prediction, target).mean(dim=-1)

    def for_labels(self, y: Tensor) -> tuple[Callable[..., Tensor], Callable[[Tensor, Tensor], Tensor]]:
        """Return `error` and `errors` for labels `(N, d_y)`: with gaps (NaN) the known ones count, if it is squared."""
        if not bool(y.isnan().any()):
            return self.error, self.errors
        if self.outputs > 1:
            raise InputError(f"loss must be squared for labels with gaps, got {self.name}")
        return known_squared_error, known_squared_errors

    def to_labels(self, outputs: Tensor, labels: LabelScaling) -> Tensor:
        """Return outputs `(..., N, outputs * d_y)` in label units: means, and standard deviations if there are any."""
        if self.outputs == 1:
            return labels.to_labels(outputs)
        mean, raw = outputs.chunk(2, dim=-1)
        return torch.cat([labels.to_labels(mean), variance_of(raw).sqrt() * labels.std.to(raw.device)], dim=-1)

    def by_predictor(self, name: str, prediction: Tensor) -> dict[str, Tensor]:
        """Return what `to_labels` gave by the name of the predictor: `name`, and that of its standard deviations."""
        if self.outputs == 1:
            return {name: prediction}
        mean, std = prediction.chunk(2, dim=-1)
        return {name: mean.contiguous(), std_name(name): std.contiguous()}


def std_name(name: str) -> str:
    """Return the predictor of the standard deviations that belong to the means of another."""
    return f"{name}_{STD}" if name else STD


def mean_names(names: Iterable[str]) -> list[str]:
    """Return the names of the predictors of means among those of a run."""
    return [name for name in names if name != STD and not name.endswith(f"_{STD}")]


def joined(predictions: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return means and standard deviations side by side, `(N, 2 d_y)`, of each predictor that has both."""
    std_names = {name: std_name(name) for name in mean_names(predictions) if std_name(name) in predictions}
    return {name: torch.cat([predictions[name], predictions[std]], dim=-1) for name, std in std_names.items()}


def variance_of(raw: Tensor) -> Tensor:
    """Return the variances, in the loss's units, that a model's raw outputs stand for."""
    return softplus(raw) + LEAST_VARIANCE


def _squares(prediction: Tensor, target: Tensor) -> Tensor:
    """Return squared errors `(..., B, d_y)`; of members `(..., k, B, d_y)`, as TabM's, the mean over members."""
    if prediction.ndim == target.ndim + 1 and prediction.shape[-2:] == target.shape[-2:]:
        return (prediction - target.unsqueeze(-3)).square().mean(dim=-3)
    if prediction.shape != target.shape:
        raise InputError(
            f"prediction and target must have the same shape, got {tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    return (prediction - target).square()


def _known_squares(prediction: Tensor, target: Tensor) -> Tensor:
    """Return what `_squares` does, 0 where the target is NaN."""
    missing = target.isnan()
    return _squares(prediction, target.masked_fill(missing, 0.0)).masked_fill(missing, 0.0)


def _negative_log_likelihood(prediction: Tensor, target: Tensor) -> Tensor:
    """Return negative log likelihoods `(..., B, d_y)` in nats, of members their mean; `prediction: (..., B, 2 d_y)`."""
    members = prediction.ndim == target.ndim + 1
    shape = (*target.shape[:-1], 2 * target.shape[-1])
    if tuple(prediction.shape[-2:]) != shape[-2:] or (not members and tuple(prediction.shape) != shape):
        raise InputError(
            f"prediction must have a mean and a variance for each label, shape {shape}, got {tuple(prediction.shape)}"
        )
    mean, raw = prediction.chunk(2, dim=-1)
    variance = variance_of(raw)
    square = (mean - (target.unsqueeze(-3) if members else target)).square()
    nll = HALF_LOG + 0.5 * (variance.log() + square / variance)
    return nll.mean(dim=-3) if members else nll


SQUARED = Loss("squared", 1, _squares)
GAUSSIAN = Loss("gaussian", 2, _negative_log_likelihood, "nll")
LOSSES = {loss.name: loss for loss in (SQUARED, GAUSSIAN)}
squared_error, squared_errors = SQUARED.error, SQUARED.errors
