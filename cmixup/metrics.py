"""Scores that compare a prediction with its target, each a function registered with `@metric`.

A new metric is a function here: runs of a dataset whose `metrics` name it report it. With `everywhere` published runs
get it from their stored predictions (`python -m scripts.render`, into results/tables/*.csv).

Every function takes `prediction` and `target` of shape `(..., N, d_y)`, computes in float64 and returns `(...)`:
leading axes are models of a stack. Sums and roots are exactly rounded (`math`), so a score depends on nothing but its
predictions and targets: not on the order of the rows, the device or the library. A score is NaN where a prediction is
not finite. Metrics of normal distributions (`normal=True`) take `(..., N, 2 d_y)`: means, then standard deviations.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from cmixup.errors import InputError

Function = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Metric:
    """A score, how it is printed, and its direction."""

    score: Function
    title: str = ""
    unit: str = ""  # "label", "label^2", "%", "nats" or none
    lower_is_better: bool = True
    everywhere: bool = True  # runs that do not report it get it from their predictions (`scripts.records.rescored`)
    normal: bool = False  # of normal distributions, so that only runs with `train.loss=gaussian` have it
    by_label: bool = False  # the mean of its values for single label dimensions

    def better(self, value: Tensor, than: Tensor) -> Tensor:
        """Return elementwise whether `value` is strictly better than `than`; NaN never is."""
        return value < than if self.lower_is_better else value > than

    @property
    def worst(self) -> float:
        """Return a value that every finite score beats."""
        return float("inf") if self.lower_is_better else float("-inf")


METRICS: dict[str, Metric] = {}
HALF_LOG = 0.5 * math.log(2 * math.pi)
NINETY = 1.6448536269514722  # standard deviations to either side that hold 90 % of a normal distribution
NAIVE = "naive_"  # begins the predictor of a score that needs no training (`cmixup.data.RegressionData.naive`)
RESCALED = "rescaled"  # ends the name of a score after one factor on all standard deviations, from validation


def metric(title: str, unit: str, **options: bool) -> Callable[[Function], Function]:
    """Return a decorator that registers a function as the metric of its name; see `Metric` for the arguments."""

    def register(function: Function) -> Function:
        METRICS[function.__name__] = Metric(function, title, unit, **options)
        return function

    return register


@metric("MSE", "label^2", everywhere=False)
def mse(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the mean squared error over all rows and label dimensions, in squared label units."""
    prediction, target = _matched(prediction, target)
    return _mean((prediction - target).square().flatten(start_dim=-2))


@metric("RMSE", "label", everywhere=False)
def rmse(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the square root of `mse`, in label units."""
    return _sqrt(mse(prediction, target))


@metric("MAE", "label")
def mae(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the mean of |f - y| over all rows and label dimensions, in label units."""
    prediction, target = _matched(prediction, target)
    return _mean((target - prediction).abs().flatten(start_dim=-2))


@metric("MAPE(%)", "%", everywhere=False)
def mape(prediction: Tensor, target: Tensor) -> Tensor:
    """Return 100 * mean |f - y| / |y| over the entries with y != 0, in percent; NaN where every entry is 0."""
    prediction, target = _matched(prediction, target)
    nonzero = target != 0
    ratio = (prediction - target).abs() / torch.where(nonzero, target.abs(), 1.0)
    total = _sum(torch.where(nonzero, ratio, 0.0).flatten(start_dim=-2))
    return 100 * total / nonzero.sum(dim=(-2, -1))


@metric("R", "", lower_is_better=False, everywhere=False, by_label=True)
def r(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the Pearson correlation of each label dimension, averaged over the dimensions whose labels vary.

    A constant prediction has no correlation and counts as 0. The result is NaN where no label dimension varies.
    """
    prediction, target = (values.mT for values in _matched(prediction, target))
    constant, varies = (prediction == prediction[..., :1]).all(dim=-1), (target != target[..., :1]).any(dim=-1)
    f = prediction - _mean(prediction)[..., None]
    y = target - _mean(target)[..., None]
    scale = _sqrt(_sum(f.square())) * _sqrt(_sum(y.square()))
    undefined = constant | (scale == 0)
    correlation = torch.where(undefined, 0.0, _sum(f * y) / torch.where(undefined, 1.0, scale))
    return _sum(torch.where(varies, correlation, 0.0)) / varies.sum(dim=-1)


@metric("95 % interval over tasks ±", "label^2", everywhere=False)
def mse_ci95(prediction: Tensor, target: Tensor) -> Tensor:
    """Return half the width of the 95 % interval of the mean squared error over rows, 1.96 std / sqrt(N); NaN for one.

    The paper's Table 2 reports this for tasks. It ignores the spread over seeds, and that rows share objects.
    """
    prediction, target = _matched(prediction, target)
    n = prediction.shape[-2]
    if n < 2:
        return torch.full_like(prediction[..., 0, 0], float("nan"))
    error = _mean((prediction - target).square())
    variance = _sum((error - _mean(error)[..., None]).square()) / (n - 1)
    return 1.96 * _sqrt(variance / n)


@metric("NLL", "nats", everywhere=False, normal=True)
def nll(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the mean negative log likelihood of the labels over all rows and label dimensions, in nats.

    A label in another unit shifts it by a constant.
    """
    z, std = _standardised(prediction, target)
    return _mean((HALF_LOG + _elementwise(math.log, std) + 0.5 * z.square()).flatten(start_dim=-2))


@metric("CRPS", "label", everywhere=False, normal=True)
def crps(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the mean continuous ranked probability score, in label units (Gneiting and Raftery 2007, Section 4.2).

    For a normal distribution it is `std (z (2 Phi(z) - 1) + 2 phi(z) - 1 / sqrt(pi))`; of a std of 0 it is the MAE.
    """
    z, std = _standardised(prediction, target)
    density = _elementwise(math.exp, -0.5 * z.square()) * math.sqrt(2 / math.pi)
    scores = std * (z * _elementwise(math.erf, z / math.sqrt(2)) + density - 1 / math.sqrt(math.pi))
    return _mean(scores.flatten(start_dim=-2))


@metric("coverage of 90 %", "", lower_is_better=False, everywhere=False, normal=True)
def coverage90(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the share of labels in the central interval that should hold 90 % of them; nearer to 0.9 is better."""
    z, _ = _standardised(prediction, target)
    inside = torch.where(z.isnan(), z, (z.abs() <= NINETY).double())
    return _mean(inside.flatten(start_dim=-2))


def std_factor(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the factor on all standard deviations that makes labels most likely, `(...)`, of rows not fitted to.

    It is the root of the mean squared standardised error, for all label dimensions together.
    """
    z, _ = _standardised(prediction, target)
    return _sqrt(_mean(z.square().flatten(start_dim=-2)))


# These prefixes of a metric's name say that it is computed for each domain, and how the domains are summarised.
OVER_DOMAINS = ("worst_", "mean_")


def score(name: str, prediction: Tensor, target: Tensor, domain: Tensor) -> Tensor:
    """Return the score called `name`, `(...)` float64.

    Args:
        name: `<metric>` over all rows, or `worst_<metric>` and `mean_<metric>` of its values in single domains, which
            are NaN if that of one domain is.
        prediction, target: `(..., N, d_y)`.
        domain: `(..., N)` int64.
    """
    prefix, pooled, _ = parse_score(name)
    metric = METRICS[pooled]
    if not prefix:
        return _known_score(metric, prediction, target)
    if domain.ndim > 1:
        return torch.stack([score(name, *run) for run in zip(prediction, target, domain, strict=True)])
    by_domain = torch.stack(
        [_known_score(metric, prediction[domain == d], target[domain == d]) for d in torch.unique(domain)]
    )
    if prefix == "mean_":
        return _mean(by_domain)
    return by_domain.max() if metric.lower_is_better else by_domain.min()


def _known_score(metric: Metric, prediction: Tensor, target: Tensor) -> Tensor:
    """Return a metric of the labels that are there: over all of them, or as the mean over label dimensions."""
    known = ~target.isnan()
    if bool(known.all()) or prediction.shape != target.shape:
        return metric.score(prediction, target)
    if target.ndim > 2:
        return torch.stack([_known_score(metric, *run) for run in zip(prediction, target, strict=True)])
    if not metric.by_label:
        return metric.score(prediction[known][:, None], target[known][:, None])
    columns = [(p[k, None], t[k, None]) for p, t, k in zip(prediction.T, target.T, known.T, strict=True) if k.any()]
    return torch.stack([metric.score(*column) for column in columns]).nanmean()


def parse_score(score: str) -> tuple[str, str, str]:
    """Return the prefix, the metric and the predictor of a reported score.

    "worst_r" is ("worst_", "r", ""), and "mse_ci95_20_steps" is ("", "mse_ci95", "20_steps").
    """
    prefix = next((over for over in OVER_DOMAINS if score.startswith(over)), "")
    base = score.removeprefix(prefix)
    matches = [name for name in METRICS if base == name or base.startswith(f"{name}_")]
    if not matches:
        raise InputError(f"metric must be one of {', '.join(METRICS)}, got {score!r}")
    name = max(matches, key=len)
    return prefix, name, base.removeprefix(name).removeprefix("_")


def metric_of(score: str) -> Metric:
    """Return the metric of a reported score, such as "worst_r", "mse_ci95" or "mse_20_steps"."""
    return METRICS[parse_score(score)[1]]


def with_everywhere(metrics: Iterable[str]) -> list[str]:
    """Return names of metrics, followed by those that every run has."""
    return list(dict.fromkeys([*metrics, *(name for name, metric in METRICS.items() if metric.everywhere)]))


def evaluate(
    prediction: Tensor, target: Tensor, domain: Tensor, metrics: Sequence[str], worst: Sequence[str] = ()
) -> dict[str, float]:
    """Return one model's scores by name: the pooled `metrics`, and of those in `worst` both over domains, see `score`.

    Under `mape_skipped` is the number of zero targets that MAPE leaves out, if any.
    """
    scores = {name: float(_known_score(METRICS[name], prediction, target)) for name in metrics}
    skipped = int((target == 0).sum())
    if "mape" in metrics and skipped:
        scores["mape_skipped"] = float(skipped)
    for name in worst:
        scores |= {f"{p}{name}": float(score(f"{p}{name}", prediction, target, domain)) for p in OVER_DOMAINS}
    return scores


def evaluate_normal(
    prediction: Tensor, target: Tensor, validation: tuple[Tensor, Tensor], suffix: str = ""
) -> dict[str, float]:
    """Score one model's normal distributions `(N, 2 d_y)`, as they are and with `std_factor` of the validation rows.

    Returns:
        `nll`, `crps`, `coverage90`, `nll_rescaled` and so on; `nll_<suffix>` for a predictor such as "20_steps".
    """
    factor = float(std_factor(*validation))
    mean, std = prediction.double().chunk(2, dim=-1)
    scores = {}
    for ending, distribution in (("", prediction), (RESCALED, torch.cat([mean, factor * std], dim=-1))):
        for name in (name for name, metric in METRICS.items() if metric.normal):
            scores["_".join(filter(None, [name, suffix, ending]))] = float(METRICS[name].score(distribution, target))
    return scores


def _matched(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return both in float64; the predictions of a model that has one which is not finite are all NaN."""
    if prediction.shape != target.shape:  # (N,) against (N, 1) would silently broadcast to (N, N)
        raise InputError(
            f"prediction and target must have the same shape, got {tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    finite = torch.isfinite(prediction).all(dim=-1, keepdim=True).all(dim=-2, keepdim=True)
    return torch.where(finite, prediction.double(), float("nan")), target.double()


def _standardised(prediction: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return `(target - mean) / std` and the standard deviations of normal distributions, `(..., N, d_y)` float64.

    All of a model are NaN where one is not finite or a standard deviation is not above 0.
    """
    if prediction.shape != (*target.shape[:-1], 2 * target.shape[-1]):
        raise InputError(
            "prediction must hold a mean and a standard deviation for each target, got shapes "
            f"{tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    finite = torch.isfinite(prediction).chunk(2, dim=-1)
    usable = finite[0] & finite[1] & (prediction.chunk(2, dim=-1)[1] > 0)
    complete = usable.all(dim=-1, keepdim=True).all(dim=-2, keepdim=True)
    mean, std = torch.where(complete, prediction.double(), float("nan")).chunk(2, dim=-1)
    return (target.double() - mean) / std, std


def _elementwise(function: Callable[[float], float], values: Tensor) -> Tensor:
    """Return a function of every value: the C library's, as PyTorch's own (also its root, MKL's) vary by processor."""
    return values.new_tensor(list(map(function, values.flatten().tolist()))).reshape(values.shape)


def _mean(values: Tensor) -> Tensor:
    return _sum(values) / values.shape[-1]


def _sum(values: Tensor) -> Tensor:
    """Return the exactly rounded sum over the last axis of float64 `values: (..., n)`."""
    rows = values.reshape(-1, values.shape[-1]).tolist()
    return values.new_tensor([_fsum(row) for row in rows]).reshape(values.shape[:-1])


def _sqrt(values: Tensor) -> Tensor:
    return _elementwise(math.sqrt, values)


def _fsum(values: list[float]) -> float:
    try:
        return math.fsum(values)
    except (OverflowError, ValueError):  # beyond float64, or infinities of both signs
        return float(sum(values))
