"""Where the numbers of the pages come from: our records, the paper, the authors' code run by us, and CSV files.

A query is a mapping such as `{experiment: table1, dataset: airfoil, preset: released, method: erm, metric: rmse}`; its
key `from` says which source answers it, our records if it is absent.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError
from scripts.records.experiment import RESULTS, Experiment, load_experiment, paper_rows, stands_for
from scripts.records.records import options_text, read_csv
from scripts.records.stats import (
    Interval,
    Summary,
    clustered_interval,
    paired_or_none,
    summarise_values,
    welch_interval,
)

Query = Mapping[str, Any]
CELL = ("experiment", "dataset", "preset", "method", "options", "split", "metric")
VARIANT = ("model", "layer")  # what a query says only where its cell has runs of several
DEFAULTS = {"options": {}, "split": "test"}
#: The authors' code splits these by the seed, or always alike, as ours does: the same seed has the same test rows.
SAME_SPLITS = ("airfoil", "crime", "skillcraft")
AUTHORS = "paper/original_rerun.csv"
AUTHORS_METRICS = {"rmse": "test_rmse", "mape": "test_mape_percent", "r": "test_r", "worst_rmse": "worst_rmse"}
PAPER_FOLDS = {"poverty_map": 5}  # every other score of the paper is a mean over three seeds
OVER_TASKS, PAPER_TASKS = "std=ci95", 6000  # but these: what stands behind the ± is a 95 % interval over tasks
NORMAL = 1.959964  # the half-width of a 95 % interval in standard errors
IGNORED = {"preset", "options", "split"}  # a query of ours that is put to the paper or the authors' code keeps these


class Absent(InputError):
    """Nothing is recorded of what a query asks for."""


@dataclass(frozen=True)
class Sample:
    """What one query found.

    Attributes:
        summary: the mean, standard deviation and number of its values.
        values: each of them by its unit: the seed, or the row of a file. It is empty for the paper.
        units: what the units are. Two samples are paired where this is the same.
        clusters: for units that depend on each other, the cluster of each.
        decimals: how many the paper prints.
    """

    summary: Summary
    values: Mapping[int, float] = field(default_factory=dict)
    units: str = ""
    clusters: Mapping[int, Hashable] | None = None
    decimals: int = 3


def sample_of(values: Mapping[int, float], units: str, clusters: Mapping[int, Hashable] | None = None) -> Sample:
    """Return the sample that consists of these values.

    Raises:
        InputError: one of them is not finite, as the score of a run that diverged.
    """
    if bad := [unit for unit, value in values.items() if not math.isfinite(value)]:
        raise InputError(f"{units}: the value of {', '.join(map(str, bad))} is not finite")
    return Sample(summarise_values(list(values.values())), values, units, clusters)


def sample_difference(first: Sample, second: Sample) -> Interval | None:
    """Return the 95 % t interval of `first - second`, or None where a side has too few values.

    It is paired over shared units where both samples have the same, and robust to clusters where they have some;
    otherwise it is Welch's interval of two independent samples.
    """
    if not (first.units and first.units == second.units):
        return welch_interval(first.summary, second.summary)
    if first.clusters is None:
        return paired_or_none(first.values, second.values)
    shared = sorted(set(first.values) & set(second.values))
    return clustered_interval([first.values[u] - second.values[u] for u in shared], [first.clusters[u] for u in shared])


class Evidence:
    """Everything that a sentence may be held to.

    Args:
        records: tidy records; options are mappings, or their text as records.csv has it.
        results: the folder results/ with the other files.
    """

    def __init__(self, records: pd.DataFrame, results: Path = RESULTS) -> None:
        self.results = results
        self._rows = functools.cache(read_csv)
        self._cells: dict[tuple[str, ...], dict[tuple[str, ...], dict[int, float]]] = {}
        columns = [records[name].map(as_text) for name in CELL]
        variants = zip(*(records[name].map(as_text) for name in VARIANT), strict=True)
        for *key, variant, seed, value in zip(*columns, variants, records["seed"], records["value"], strict=True):
            found = self._cells.setdefault(tuple(key), {}).setdefault(variant, {})
            if int(seed) in found:
                raise InputError(f"records hold seed {seed} twice for {key}: runs that differ were not told apart")
            found[int(seed)] = as_number(value)

    def sample(self, query: Query) -> Sample:
        """Return what a query finds.

        Raises:
            InputError: a key that the source does not know, or nothing was found.
        """
        source = query.get("from", "records")
        rest = {key: value for key, value in query.items() if key != "from"}
        if source == "records":
            return sample_of(self._of_records(rest, str(rest.get("metric"))), f"seeds of {rest.get('dataset')}")
        if source == "paper":
            return self._of_paper(_check_keys(rest, {"experiment", "dataset", "method", "metric"}, {"bandwidth"}))
        if source == "authors":
            return self._of_authors(_check_keys(rest, {"experiment", "dataset", "method", "metric", "bandwidth"}))
        return self._of_file(source, rest)

    def find(self, query: Query) -> Sample | None:
        """Return what a query finds, or None where nothing is recorded of it."""
        try:
            return self.sample(query)
        except Absent:
            return None

    def facts(self, query: Query) -> list[list[float]]:
        """Return, for every run of our records or row of a file, its values of the metrics that fit `metric`.

        A `*` in `metric` stands for any letters.
        """
        if "from" in query:
            return [[value] for value in self.sample(query).values.values()]
        wanted = query["metric"]
        fitting = sorted({key[-1] for key in self._cells if fnmatchcase(key[-1], wanted)})
        runs: dict[int, list[float]] = {}
        for metric in fitting:
            for seed, value in self._of_records(query, metric, optional=True).items():
                runs.setdefault(seed, []).append(value)
        if not runs:
            raise Absent(f"no records of {_query_text(query)}")
        return list(runs.values())

    def _of_records(self, query: Query, metric: str, *, optional: bool = False) -> dict[int, float]:
        full = DEFAULTS | dict(_check_keys(query, {*CELL, *VARIANT})) | {"metric": metric}
        if missing := [name for name in CELL if name not in full]:
            raise InputError(f"query {_query_text(query)} must say {', '.join(missing)}")
        cell = self._cells.get(tuple(as_text(full[name]) for name in CELL), {})
        asked = {k: as_text(full[name]) for k, name in enumerate(VARIANT) if name in full}
        found = {variant: values for variant, values in cell.items() if all(variant[k] == v for k, v in asked.items())}
        if len(found) > 1:
            raise InputError(f"query {_query_text(full)} must say {' and '.join(VARIANT)}: there are {sorted(found)}")
        if not found and not optional:
            raise Absent(f"no records of {_query_text(full)}")
        return next(iter(found.values()), {})

    def _of_paper(self, query: Query) -> Sample:
        ours = stands_for(experiment_of(query["experiment"]), query["dataset"], query["method"])
        wanted = (query["dataset"], ours, query["metric"])
        for row in _paper_rows(query["experiment"], self.results):
            if (row["dataset"], row["method"], row["metric"]) == wanted:
                n, spread = PAPER_FOLDS.get(query["dataset"], 3), float(row["std"] or math.nan)
                if OVER_TASKS in row["setting"]:
                    n, spread = PAPER_TASKS, spread / NORMAL * math.sqrt(PAPER_TASKS)
                return Sample(Summary(float(row["mean"]), spread, n), decimals=len(row["mean"].partition(".")[2]))
        raise Absent(f"the paper has no number of {_query_text(query)}")

    def _of_authors(self, query: Query) -> Sample:
        column = AUTHORS_METRICS.get(query["metric"], "")
        where = {key: query[key] for key in ("dataset", "method", "bandwidth") if key in query}
        rows = [r for r in self._rows(self.results / AUTHORS) if r.get(column) and _row_fits(r, where)]
        if not rows:
            raise Absent(f"the authors' code was not run by us on {_query_text(query)}")
        if len({(r["layer"], r["bandwidth"]) for r in rows}) > 1:
            raise InputError(f"query {_query_text(query)} of the authors' code must say the bandwidth, at one layer")
        if len({r["seed"] for r in rows}) < len(rows):
            raise InputError(f"{AUTHORS} has a seed twice of {_query_text(query)}")
        same = query["dataset"] in SAME_SPLITS
        return sample_of(
            {int(r["seed"]): float(r[column]) for r in rows}, f"seeds of {query['dataset']}" if same else "their seeds"
        )

    def _of_file(self, source: str, query: Query) -> Sample:
        if source.startswith("curves/"):
            return self._of_curves(source, query)
        rows = list(enumerate(self._rows(self.results / source)))
        column, cluster = query["column"], query.get("cluster")
        where = {key: value for key, value in query.items() if key not in ("column", "cluster")}
        if unknown := {column, *where, *([cluster] if cluster else [])} - set(rows[0][1]):
            raise InputError(f"{source} has no column {', '.join(sorted(unknown))}")
        rows = [(i, r) for i, r in rows if _row_fits(r, where) and r[column]]
        if not rows:
            raise InputError(f"{source} has no row of {_query_text(where)}")
        seeds = [r.get("seed") for _, r in rows]
        by_seed = None not in seeds and len(set(seeds)) == len(seeds)
        units = [int(r["seed"]) if by_seed else i for i, r in rows]
        return sample_of(
            {u: as_number(r[column]) for u, (_, r) in zip(units, rows, strict=True)},
            f"{'seeds' if by_seed else 'rows'} of {source}",
            {u: r[cluster] for u, (_, r) in zip(units, rows, strict=True)} if cluster else None,
        )

    def _of_curves(self, source: str, query: Query) -> Sample:
        """Return one value a run from a table such as `curves/figure_overfitting/{dataset}/{method}.csv`.

        It is the one at `epoch`, or at the last epoch, or the lowest (`take: last` or `min`).
        """
        path, runs = self.results / source.format(**query), dict[tuple[int, str], dict[int, float]]()
        for r in self._rows(path) if path.is_file() else ():
            if r["preset"] == query.get("preset", r["preset"]):
                runs.setdefault((int(r["seed"]), r["options"]), {})[int(r["epoch"])] = as_number(r[query["column"]])
        if not runs:
            raise InputError(f"there is no run of {_query_text(query)} in {path}")
        if len({seed for seed, _ in runs}) < len(runs):
            raise InputError(f"{source} has several runs of a seed of {_query_text(query)}")
        found = {}
        for (seed, _), values in runs.items():
            at = max(values) if query.get("take") == "last" else int(query.get("epoch", 0))
            found[seed] = min(values.values()) if query.get("take") == "min" else values[at]
        return sample_of(found, f"seeds of {query.get('dataset')}")


@functools.lru_cache(maxsize=32)
def experiment_of(name: str) -> Experiment:
    """Return an experiment by name, read once."""
    return load_experiment(name)


@functools.lru_cache(maxsize=32)
def _paper_rows(experiment: str, results: Path) -> list[dict[str, str]]:
    return paper_rows(experiment_of(experiment), results)


def _check_keys(query: Query, keys: set[str], ignored: Collection[str] = ()) -> Query:
    if unknown := set(query) - keys - IGNORED - set(ignored):
        raise InputError(f"query {_query_text(query)} must not say {', '.join(sorted(unknown))}")
    return {key: value for key, value in query.items() if key in keys}


def _query_text(query: Query) -> str:
    return " ".join(f"{key}={as_text(value)}" for key, value in query.items() if value != {})


def as_text(value: Any) -> str:
    """Return a value of a query, or of a record, as text: options in the order of their keys."""
    return options_text(value) if isinstance(value, Mapping) else str(value)


def _row_fits(row: Mapping[str, str], where: Query) -> bool:
    """Return whether a row of a file has these values; numbers are compared as numbers."""
    return all(
        float(row[key]) == float(value) if isinstance(value, (int, float)) and row[key] else row[key] == str(value)
        for key, value in where.items()
    )


def as_number(value: Any) -> float:
    """Return a recorded value as a number; what is absent or no number is NaN."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan
