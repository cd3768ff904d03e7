"""The metrics of cmixup/metrics.py and the errors of the study once more, in NumPy and by code that shares nothing.

Sums are exactly rounded (`math.fsum`), so that both must agree to the last bit.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from scripts.stats.scored import Scored


def mse(f: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of (f - y)^2 over all entries of two `(N, d)` float64 arrays."""
    return math.fsum(((f - y) ** 2).ravel()) / f.size


def mse_ci95(f: np.ndarray, y: np.ndarray) -> float:
    """Return 1.96 standard errors of the rows' mean squared errors."""
    errors = [math.fsum(row) / f.shape[1] for row in (f - y) ** 2]
    if len(errors) < 2:
        return math.nan
    mean = math.fsum(errors) / len(errors)
    variance = math.fsum((error - mean) ** 2 for error in errors) / (len(errors) - 1)
    return 1.96 * math.sqrt(variance / len(errors))


def mae(f: np.ndarray, y: np.ndarray) -> float:
    """Return the mean of |f - y| over all entries."""
    return math.fsum(np.abs(f - y).ravel()) / f.size


def mape(f: np.ndarray, y: np.ndarray) -> float:
    """Return 100 times the mean of |f - y| / |y| over the entries with y != 0."""
    kept = y != 0
    ratio = np.abs(f[kept] - y[kept]) / np.abs(y[kept])
    return 100 * math.fsum(ratio) / ratio.size if ratio.size else math.nan


def pearson(f: np.ndarray, y: np.ndarray) -> float:
    """Return the mean over columns with varying labels of Pearson's correlation; 0 for a constant prediction."""
    values = []
    for predicted, label in zip(f.T, y.T, strict=True):
        if (label == label[0]).all():
            continue
        if (predicted == predicted[0]).all():
            values.append(0.0)
            continue
        a, b = predicted - math.fsum(predicted) / predicted.size, label - math.fsum(label) / label.size
        scale = math.sqrt(math.fsum(a * a)) * math.sqrt(math.fsum(b * b))
        values.append(math.fsum(a * b) / scale if scale else 0.0)
    return math.fsum(values) / len(values) if values else math.nan


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "rmse": lambda f, y: math.sqrt(mse(f, y)),
    "mse": mse,
    "mse_ci95": mse_ci95,
    "mae": mae,
    "mape": mape,
    "r": pearson,
    "mape_skipped": lambda _, y: float((y == 0).sum()),
}


def normal_score(name: str, kept: Scored, val: Scored, unit: Sequence[float]) -> float:
    """Return a score of normal distributions, such as "nll_rescaled", of labels in units of `unit`."""

    def parts(one: Scored) -> tuple[list[float], list[float]]:
        width = np.tile(np.array(unit, dtype=np.float64), (len(one.target), 1)).ravel()
        f, s, y = (value.astype(np.float64).ravel() / width for value in
                   (one.prediction[""], one.prediction["std"], one.target))  # fmt: skip
        return ((y - f) / s).tolist(), s.tolist()

    z, s = parts(kept)
    base, _, scaled = name.partition("_")
    if scaled:
        theirs = parts(val)[0]
        factor = math.sqrt(math.fsum(value * value for value in theirs) / len(theirs))
        z, s = [value / factor for value in z], [factor * value for value in s]
    if base == "coverage90":
        return sum(abs(value) <= 1.6448536269514722 for value in z) / len(z)
    if base == "nll":
        value = [0.5 * math.log(2 * math.pi) + math.log(b) + a * a / 2 for a, b in zip(z, s, strict=True)]
    else:
        value = [b * (a * math.erf(a / math.sqrt(2)) + 2 * math.exp(-a * a / 2) / math.sqrt(2 * math.pi)
                     - 1 / math.sqrt(math.pi)) for a, b in zip(z, s, strict=True)]  # fmt: skip
    return math.fsum(value) / len(value)


def score(name: str, kept: Scored, std: Sequence[float] = (1.0,)) -> float:
    """Return the score that a report calls `name`, such as "worst_rmse" or "mse_20_steps".

    Args:
        name: of the score.
        kept: what it is computed from.
        std: standard deviations of the targets, the unit of "nrmse".
    """
    if name.startswith("nrmse"):
        return study_error(name, kept, np.array(std))
    over, metric = next(((p, name.removeprefix(p)) for p in ("worst_", "mean_") if name.startswith(p)), ("", name))
    by_length = sorted(METRICS, key=len, reverse=True)
    base = next(m for m in by_length if metric == m or metric.startswith(f"{m}_"))
    predictor = metric.removeprefix(base).removeprefix("_")
    f, y = (values.astype(np.float64) for values in (kept.prediction[predictor], kept.target))
    if not np.isfinite(f).all():
        return math.nan
    if not over:
        return METRICS[base](f, y)
    scores = [METRICS[base](f[kept.domain == d], y[kept.domain == d]) for d in np.unique(kept.domain)]
    if over == "mean_":
        return math.fsum(scores) / len(scores)
    return min(scores) if base == "r" else max(scores)


def study_error(name: str, kept: Scored, std: np.ndarray) -> float:
    """Return an error of the study, in standard deviations of the label; see `scripts.stats.scored`."""
    y, f = kept.target.astype(np.float64), kept.prediction[""].astype(np.float64)
    squares = ((f - y) / std) ** 2
    if not np.isfinite(squares).all():
        return math.inf
    if name == "nrmse_worst":
        large = [d for d in np.unique(kept.domain) if (kept.domain == d).sum() >= 30]
        return float(max(np.sqrt(squares[kept.domain == d].mean()) for d in large))
    if name == "nrmse":
        return float(np.sqrt(squares.mean()))
    targets = []
    for column, label in zip(squares.T, y.T, strict=True):
        low, width = label.min(), (label.max() - label.min()) or 1.0
        tenths = np.array([min(int(10 * (value - low) / width), 9) for value in label])
        targets.append(np.mean([column[tenths == tenth].mean() for tenth in range(10) if (tenths == tenth).any()]))
    return math.sqrt(float(np.mean(targets)))
