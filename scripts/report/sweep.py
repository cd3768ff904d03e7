"""Scores over the values of one option: which runs belong to which, and their means."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from cmixup.errors import InputError
from scripts.records.run_tables import Row, by_seed, scores_of
from scripts.stats.intervals import Interval, clustered_interval, summarise_values

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


def seed_interval(scores: Mapping[int, float]) -> Interval:
    """Return the mean over seeds with its 95 % t interval; with one seed all three are its score."""
    interval = clustered_interval(list(scores.values()), list(scores))
    mean = summarise_values(list(scores.values())).mean
    return interval or Interval(mean, mean, mean, len(scores))


def option_value(run: Row, option: str) -> Any:
    """Return the value that a run had for an option such as `method.bandwidth`; of a part, its name."""
    node = run["shared"]["config"]
    for word in option.split("."):
        if not isinstance(node, Mapping) or word not in node:
            raise InputError(f"option {option!r} is not in the configuration of {run['run']}")
        node = node[word]
    return node.get("name") if isinstance(node, Mapping) else tuple(node) if isinstance(node, list) else node


def sweep_points(runs: pd.DataFrame, option: str, metric: str) -> list[Point]:
    """Return a point a value of the option, numbers in ascending order before words; lists become tuples.

    A run without such a test score, or two of one value and seed, are an `InputError`.
    """
    groups: dict[Any, list[int]] = {}
    for place, run in zip(runs.index, runs.to_dict("records"), strict=True):
        if math.isnan(run.get(f"test_{metric}", math.nan)):
            known = ", ".join(scores_of(run)["test"])
            raise InputError(f"metric must be one of {known} for {run['dataset']}, got {metric!r}")
        groups.setdefault(option_value(run, option), []).append(place)
    points = []
    for value, places in groups.items():
        value_runs = runs.loc[places]
        on_val = value_runs.get(f"val_{metric}", pd.Series([math.nan])).mean(skipna=False)
        points.append(Point(value, by_seed(value_runs, f"test_{metric}"), float(on_val)))
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
