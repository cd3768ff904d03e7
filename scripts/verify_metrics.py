"""Compute every published score again from the predictions that are kept, and compare to the last bit.

`python -m scripts.verify_metrics [--results results]`. The formulas are written out here in NumPy and share no code
with cmixup/metrics.py. Sums are exactly rounded (`math.fsum`), so nothing but the numbers themselves can differ.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from scripts.driver.cli import user_errors
from scripts.driver.predictions import Scored, read_predictions
from scripts.records.experiment import RESULTS
from scripts.records.published import Report, cell_of, predictions_file, published_reports
from scripts.study.published import verify as verify_study


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


def mape(f: np.ndarray, y: np.ndarray) -> float:
    """Return 100 times the mean of |f - y| / |y| over the entries with y != 0."""
    kept = y != 0
    ratio = np.abs(f[kept] - y[kept]) / np.abs(y[kept])
    return 100 * math.fsum(ratio) / ratio.size if ratio.size else math.nan


def pearson(f: np.ndarray, y: np.ndarray) -> float:
    """Return the mean over columns with varying labels of Pearson's correlation; 0 for a constant prediction."""
    found = []
    for own, label in zip(f.T, y.T, strict=True):
        if (label == label[0]).all():
            continue
        if (own == own[0]).all():
            found.append(0.0)
            continue
        a, b = own - math.fsum(own) / own.size, label - math.fsum(label) / label.size
        scale = math.sqrt(math.fsum(a * a)) * math.sqrt(math.fsum(b * b))
        found.append(math.fsum(a * b) / scale if scale else 0.0)
    return math.fsum(found) / len(found) if found else math.nan


METRICS: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "rmse": lambda f, y: math.sqrt(mse(f, y)),
    "mse": mse,
    "mse_ci95": mse_ci95,
    "mape": mape,
    "r": pearson,
    "mape_skipped": lambda _, y: float((y == 0).sum()),
}


def score(name: str, kept: Scored) -> float:
    """Return the score that a report calls `name`, such as "worst_rmse" or "mse_20_steps"."""
    over, metric = next(((p, name.removeprefix(p)) for p in ("worst_", "mean_") if name.startswith(p)), ("", name))
    by_length = sorted(METRICS, key=len, reverse=True)
    base = next(m for m in by_length if metric == m or metric.startswith(f"{m}_"))
    predictor = metric.removeprefix(base).removeprefix("_")
    f, y = (values.astype(np.float64) for values in (kept.prediction[predictor], kept.target))
    if not np.isfinite(f).all():
        return math.nan
    if not over:
        return METRICS[base](f, y)
    each = [METRICS[base](f[kept.domain == d], y[kept.domain == d]) for d in np.unique(kept.domain)]
    if over == "mean_":
        return math.fsum(each) / len(each)
    return min(each) if base == "r" else max(each)


def differences(report: Report, kept: dict[str, Scored]) -> Iterator[str]:
    """Yield a line for each score of a report that its predictions do not give to the last bit."""
    for part, scores in report["scores"].items():
        for name, published in scores.items():
            again = score(name, kept[part])
            if published != again and not (math.isnan(published) and math.isnan(again)):
                yield f"{report['run']}: {part} {name} {published!r}, its predictions give {again!r}"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.verify_metrics", description=__doc__)
    parser.add_argument("--results", default="", help="where the published records are; default results/")
    results = Path(parser.parse_args(argv).results or RESULTS)
    with user_errors():
        cell, kept = "", dict[int, dict[str, Scored]]()
        wrong: list[str] = []
        without: Counter[str] = Counter()
        runs = scores = 0
        for report in published_reports(results):
            if cell_of(report) != cell:
                cell = cell_of(report)
                path = predictions_file(results, cell)
                kept = read_predictions(path) if path.is_file() else {}
            if report["seed"] not in kept:
                without[f"{report['experiment']} {report['dataset']}"] += 1
                continue
            wrong += differences(report, kept[report["seed"]])
            runs, scores = runs + 1, scores + sum(map(len, report["scores"].values()))
        of_study, differing = verify_study(results / "study")
        wrong, scores = wrong + differing, scores + of_study
        for line in wrong:
            print(f"DIFFERS {line}", file=sys.stderr)
        also = f" and {of_study} of the study" if of_study else ""
        same = f"{scores - len(wrong)} of {scores} scores of {runs} runs{also}"
        print(f"{same} are what their predictions give, bit for bit")
        for group, n in sorted(without.items()):
            print(f"no predictions are kept of {n} runs: {group}")
        if wrong or not runs:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
