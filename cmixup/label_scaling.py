"""How labels are scaled for the loss: the one place where training leaves the label's own unit.

Networks start with outputs near 0 and small steps, so raw labels far from 0 are learned late and badly: on Airfoil (103
to 141 dB) standardised labels cost ERM 1 dB less. Mixing commutes with scaling, and partners are drawn from raw labels,
so a method stays what it is; bandwidths, predictions and scores are in the label's unit throughout. A network that
carries inputs to its output in the label's unit can lose by it, as LSTNet's highway does (`models/lstnet.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cmixup.backbone import Backbone
from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.tasks import Episode, Tasks

#: none: the network learns labels as they are. centre: minus their mean. standard: minus their mean, over their
#: standard deviation. loss: the network's outputs are in label units, and the loss standardises outputs and labels.
FORMS = ("none", "centre", "standard", "loss")


class LabelScaling:
    """Maps labels to the loss's units and outputs of the network to labels: `y' = (y - mean) / std`.

    Args:
        form: one of `FORMS`.
        mean: `(1, d_y)` of the training labels of one run, or `(E, 1, d_y)` of a stack's.
        std: their standard deviation, of the same shape, or `(1, 1)`, `(E, 1, 1)`.
    """

    def __init__(self, form: str = "none", mean: Tensor | None = None, std: Tensor | None = None):
        self.form = form
        self.mean = torch.zeros(1, 1) if mean is None else mean
        self.std = torch.ones(1, 1) if std is None else std

    @classmethod
    def fit(cls, form: str, splits: Sequence[Split], device: torch.device | str = "cpu") -> LabelScaling:
        """Take mean and standard deviation (N in the denominator) from the training splits of a stack's runs.

        They are of each label dimension; `loss` pools the variance over dimensions, so that each keeps its share of the
        squared error. Tasks have one label, so all of their labels are pooled. Constant labels are divided by 1.
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
            stds.append(torch.where((std > 0) & (form != "centre"), std, 1.0).to(y.dtype))
        together = [torch.stack(values) if len(values) > 1 else values[0] for values in (means, stds)]
        return cls(form, *(values.to(device) for values in together))

    def scale(self, y: Tensor) -> Tensor:
        """Return labels `(..., B, d_y)` in the loss's units."""
        return y if self.form == "none" else (y - self.mean) / self.std

    def scale_support(self, x: Any) -> Any:
        """Return inputs with the support labels of an `Episode` in the loss's units, and others as they are."""
        return x._replace(labels=self.scale(x.labels)) if isinstance(x, Episode) else x

    def to_labels(self, output: Tensor) -> Tensor:
        """Return the network's outputs `(..., B, d_y)` in label units."""
        return output * self.std + self.mean if self.form in ("centre", "standard") else output

    def seen_by_loss(self, model: nn.Module) -> nn.Module:
        """Return the model whose outputs are in the loss's units; it shares everything with `model`."""
        return InLossUnits(model, self) if self.form == "loss" else model

    def facts(self, place: int) -> dict[str, list[float]]:
        """Return mean and standard deviation of the run at `place`, `d_y` numbers each, or nothing for `none`."""
        if self.form == "none":
            return {}
        both = {"mean": self.mean, "std": self.std}
        return {name: (values[place] if values.ndim == 3 else values)[0].tolist() for name, values in both.items()}


class InLossUnits(Backbone):
    """A model as the loss sees it where the network's outputs are in label units and the loss's are not.

    Args:
        model: anything that predicts; `features` and `head` need a `Backbone`.
        labels: to which units.
    """

    def __init__(self, model: nn.Module, labels: LabelScaling):
        super().__init__()
        self.model, self.labels = model, labels

    def features(self, x: Tensor) -> Tensor:
        """Return the model's features."""
        return self.model.features(x)  # type: ignore[operator]

    def head(self, features: Tensor) -> Tensor:
        """Return the model's prediction from features, in the loss's units."""
        return self.labels.scale(self.model.head(features))  # type: ignore[operator]

    def forward(self, x: Tensor) -> Tensor:
        """Return the model's prediction in the loss's units."""
        return self.labels.scale(self.model(x))


def check_label_scaling(form: str, method: str, *, domains: bool) -> None:
    """Raise `InputError` for the form `loss` with a method that is not over domains: others reach into the model.

    Args:
        form: one of `FORMS`.
        method: how the error calls it.
        domains: whether the method is over domains (`Method.domains`).
    """
    if form == "loss" and not domains:
        raise InputError(f"label_scaling loss is for methods over domains, not {method}; use standard, got {form!r}")
