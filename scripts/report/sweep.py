"""Scores over the values of one option: which runs belong to which, and their means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cmixup.errors import InputError
from scripts.stats.intervals import Interval, clustered_interval, summarise_values

Report = Mapping[str, Any]
ERM = "erm"


@dataclass(frozen=True)
class Point:
    """The runs of one value of an option."""

    value: Any
    scores: dict[int, float]  # of test, by seed
    on_val: float = math.nan  # mean of the same score on validation; NaN where it has no such score
    erm: Mapping[int, float] = field(default_factory=dict)  # of ERM with all other options the same, where it was run

    @property
    def interval(self) -> Interval:
        """The mean over seeds with its 95 % t interval; with one seed all three are its score."""
        return seed_interval(self.scores)


@dataclass(frozen=True)
class Sweep:
    """Scores over an option, of a dataset beside methods that do not have the option, or of a user's runs."""

    title: str  # the dataset's, or what tells the runs from others
    option: str
    metric: str
    points: list[Point]  # in ascending order of their values
    lines: dict[str, dict[int, float]] = field(default_factory=dict)  # test scores of other methods, by name and seed
    naive: dict[str, float] = field(default_factory=dict)  # of test, of predictions without training, where all agree


def seed_interval(scores: Mapping[int, float]) -> Interval:
    """Return the mean over seeds with its 95 % t interval; with one seed all three are its score."""
    interval = clustered_interval(list(scores.values()), list(scores))
    mean = summarise_values(list(scores.values())).mean
    return interval or Interval(mean, mean, mean, len(scores))


def option_value(report: Report, option: str) -> Any:
    """Return the value that a run had for an option such as `method.bandwidth`; of a part, its name."""
    node = report["config"]
    for word in option.split("."):
        if not isinstance(node, Mapping) or word not in node:
            raise InputError(f"option {option!r} is not in the configuration of {report['run']}")
        node = node[word]
    return node.get("name") if isinstance(node, Mapping) else tuple(node) if isinstance(node, list) else node


def scores_by_seed(reports: Iterable[Report], metric: str) -> dict[int, float]:
    """Return the test scores of runs by seed; two runs of one, or one without such a score, are an `InputError`."""
    runs: dict[int, Report] = {}
    for report in sorted(reports, key=lambda r: r["seed"]):
        if metric not in (scores := report["scores"]["test"]):
            raise InputError(f"metric must be one of {', '.join(scores)} for {report['dataset']}, got {metric!r}")
        if (other := runs.setdefault(int(report["seed"]), report)) is not report:
            both = f"{other['run']} and {report['run']}"
            raise InputError(f"seed {report['seed']} is there twice with the same options: {both}")
    return {seed: float(report["scores"]["test"][metric]) for seed, report in runs.items()}


def sweep_points(reports: Iterable[Report], option: str, metric: str) -> list[Point]:
    """Return a point a value of the option, numbers in ascending order before words; lists become tuples."""
    groups: dict[Any, list[Report]] = {}
    for report in reports:
        groups.setdefault(option_value(report, option), []).append(report)
    points = []
    for value, runs in groups.items():
        on_val = statistics.fmean(float(r["scores"]["val"].get(metric, math.nan)) for r in runs)
        points.append(Point(value, scores_by_seed(runs, metric), on_val))
    numbers = {value: option_number(value) for value in groups}
    return sorted(points, key=lambda p: (numbers[p.value] is None, numbers[p.value] or 0.0, str(p.value)))


def option_number(value: Any) -> float | None:
    """Return a value as a number, infinity written as a word too, or None if it is none."""
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def value_text(value: Any) -> str:
    """Return a value of an option as it is printed."""
    if isinstance(value, tuple):
        return " ".join(map(value_text, value))
    return f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def decimals_for(scores: Iterable[float]) -> int:
    """Return how many decimals tell scores of this size apart."""
    return 4 if max(map(abs, scores)) < 0.1 else 3
