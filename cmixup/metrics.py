"""Scores that compare a prediction with its target.

Every function takes `prediction` and `target` of shape `(..., N, d_y)`, computes in float64 and returns `(...)`:
leading axes are models of a stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cmixup.errors import InputError


def mse(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared error over all rows and label dimensions, in squared label units."""
    prediction, target = _matched(prediction, target)
    return (prediction - target).square().mean(dim=(-2, -1))


def rmse(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the square root of `mse`, in label units."""
    return mse(prediction, target).sqrt()


def mape(prediction: Tensor, target: Tensor) -> Tensor:
    """Return 100 * mean |f - y| / |y| over the entries with y != 0, in percent; NaN where every entry is 0."""
    prediction, target = _matched(prediction, target)
    counted = target != 0
    ratio = (prediction - target).abs() / torch.where(counted, target.abs(), 1.0)
    return 100 * torch.where(counted, ratio, 0.0).sum(dim=(-2, -1)) / counted.sum(dim=(-2, -1))


def r(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the Pearson correlation of each label dimension, averaged over the dimensions whose labels vary.

    A constant prediction has no correlation and counts as 0. The result is NaN where no label dimension varies.
    """
    prediction, target = _matched(prediction, target)
    f = prediction - prediction.mean(dim=-2, keepdim=True)
    y = target - target.mean(dim=-2, keepdim=True)
    norm_f, norm_y = f.square().sum(dim=-2).sqrt(), y.square().sum(dim=-2).sqrt()
    varies = norm_y > 0
    scale = norm_f * norm_y
    each = torch.where(scale > 0, (f * y).sum(dim=-2) / torch.where(scale > 0, scale, 1.0), 0.0)
    return torch.where(varies, each, 0.0).sum(dim=-1) / varies.sum(dim=-1)


def mse_ci95(prediction: Tensor, target: Tensor) -> Tensor:
    """Return half the width of the 95 % interval of the mean squared error over rows, 1.96 std / sqrt(N).

    The paper's Table 2 reports this for tasks. It is NaN for a single row. It ignores the spread over seeds, and takes
    rows that share an object as independent.
    """
    prediction, target = _matched(prediction, target)
    each = (prediction - target).square().mean(dim=-1)
    if each.shape[-1] < 2:
        return torch.full_like(each[..., 0], float("nan"))
    return 1.96 * each.std(dim=-1) / each.shape[-1] ** 0.5


@dataclass(frozen=True)
class Metric:
    """A score and its direction.

    Attributes:
        score: takes `prediction` and `target`, `(..., N, d_y)` each, and returns `(...)` float64.
        lower_is_better: whether a lower value is better.
    """

    score: Callable[[Tensor, Tensor], Tensor]
    lower_is_better: bool = True

    def better(self, value: Tensor, than: Tensor) -> Tensor:
        """Return elementwise whether `value` is strictly better than `than`; NaN never is."""
        return value < than if self.lower_is_better else value > than

    @property
    def worst(self) -> float:
        """Return a value that every finite score beats."""
        return float("inf") if self.lower_is_better else float("-inf")


METRICS: dict[str, Metric] = {
    "rmse": Metric(rmse),
    "mse": Metric(mse),
    "mse_ci95": Metric(mse_ci95),
    "mape": Metric(mape),
    "r": Metric(r, lower_is_better=False),
}


# These prefixes of a metric's name say that it is computed for each domain, and how the domains are summarised.
OVER_DOMAINS = ("worst_", "mean_")


def _base(name: str) -> str:
    return next((name.removeprefix(p) for p in OVER_DOMAINS if name.startswith(p)), name)


def metric_of(name: str) -> Metric:
    """Return the metric called `name`, with or without a prefix `worst_` or `mean_`.

    Raises:
        InputError: there is no such metric.
    """
    if _base(name) not in METRICS:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {name!r}")
    return METRICS[_base(name)]


def score(name: str, prediction: Tensor, target: Tensor, domain: Tensor) -> Tensor:
    """Compute the score called `name`.

    Args:
        name: `<metric>` is computed over all rows; `worst_<metric>` and `mean_<metric>` are the worst and the mean of
            the metric's values in single domains.
        prediction, target: `(..., N, d_y)`.
        domain: `(..., N)` int64. NaN in one domain makes the scores over domains NaN.

    Returns:
        `(...)` float64.

    Raises:
        InputError: there is no such metric, or the shapes of prediction and target differ.
    """
    metric = metric_of(name)
    if name == _base(name):
        return metric.score(prediction, target)
    if domain.ndim > 1:
        return torch.stack([score(name, *one) for one in zip(prediction, target, domain, strict=True)])
    each = torch.stack([metric.score(prediction[domain == d], target[domain == d]) for d in torch.unique(domain)])
    if name.startswith("mean_"):
        return each.mean()
    return each.max() if metric.lower_is_better else each.min()


def lower_is_better(score: str) -> bool:
    """Return whether lower values of a reported score are better, such as "worst_r", "mse_ci95" or "mse_20_steps"."""
    return METRICS[_base(score).partition("_")[0]].lower_is_better


def evaluate(
    prediction: Tensor, target: Tensor, domain: Tensor, metrics: Sequence[str], worst: Sequence[str] = ()
) -> dict[str, float]:
    """Score one model's predictions.

    Args:
        prediction: `(N, d_y)` float32.
        target: `(N, d_y)` float32.
        domain: `(N,)` int64, for the scores over domains.
        metrics: names of the pooled scores.
        worst: names of the scores that are also computed for each domain: `worst_<name>`, and `mean_<name>` over them.

    Returns:
        The scores by name, and under `mape_skipped` the number of zero targets that MAPE leaves out, if any.

    Raises:
        InputError: the shapes of prediction and target differ.
    """
    scores = {name: float(METRICS[name].score(prediction, target)) for name in metrics}
    skipped = int((target == 0).sum())
    if "mape" in metrics and skipped:
        scores["mape_skipped"] = float(skipped)
    for name in worst:
        scores |= {f"{p}{name}": float(score(f"{p}{name}", prediction, target, domain)) for p in OVER_DOMAINS}
    return scores


def _matched(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    # A (N,) target against a (N, 1) prediction would silently broadcast to (N, N).
    if prediction.shape != target.shape:
        raise InputError(
            f"prediction and target must have the same shape, got {tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    return prediction.double(), target.double()
