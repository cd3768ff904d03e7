"""Where the numbers of the pages come from: our records, the paper, the authors' code run by us, and CSV files.

`Evidence` returns a `Sample` of each, and `minus` the 95 % interval of a difference of two.
"""

import functools
import inspect
import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError
from scripts.plan.selection import recorded_under
from scripts.records.experiment import RESULTS, load_experiment, paper_rows, stands_for
from scripts.records.rescored import table_runs
from scripts.records.run_tables import by_seed, options_text
from scripts.stats.intervals import (
    Interval,
    Summary,
    clustered_interval,
    paired_or_none,
    summarise_values,
    welch_interval,
)

Query = Mapping[str, Any]
CELL = ("experiment", "dataset", "preset", "method", "options")
#: The authors' code splits these by the seed, or always alike, as ours does: the same seed has the same test rows.
SAME_SPLITS = ("airfoil", "crime", "skillcraft")
AUTHORS = "paper/original_rerun.csv"
#: Bandwidths that their C-Mixup ran with, where there are several; the last one is that of the released code.
AUTHORS_WIDTHS = {"crime": (0.1, 4.0), "skillcraft": (0.0005, 1.0)}
AUTHORS_METRICS = {"rmse": "test_rmse", "mape": "test_mape_percent", "r": "test_r", "worst_rmse": "worst_rmse"}
PAPER_FOLDS = {"poverty_map": 5}  # every other score of the paper is a mean over three seeds
OVER_TASKS, PAPER_TASKS = "std=ci95", 6000  # but these: their ± is a 95 % interval over tasks
NORMAL = 1.959964  # the half-width of a 95 % interval in standard errors


class Unsupported(InputError):
    """The published runs contradict a sentence, or have nothing on it."""


@dataclass(frozen=True)
class Sample:
    """Values of one quantity."""

    summary: Summary  # their mean, standard deviation and number
    # each of them by its unit: the seed, or the row of a file. It is empty for the paper
    values: Mapping[int, float] = field(default_factory=dict)
    units: str = ""  # the kind of unit, such as seeds. Two samples are paired where this is the same
    clusters: Mapping[int, Hashable] | None = None  # for units that depend on each other, the cluster of each
    decimals: int = 3  # how many the paper prints

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return self.summary.mean


def sample_of(values: Mapping[int, float], units: str, clusters: Mapping[int, Hashable] | None = None) -> Sample:
    """Return the sample of values; one that is not finite, as the score of a run that diverged, is an error."""
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


def minus(first: Sample, second: Sample) -> Interval:
    """Return the 95 % t interval of `first - second` by `sample_difference`, or raise `Unsupported`."""
    if difference := sample_difference(first, second):
        return difference
    raise Unsupported(f"{first.units} minus {second.units}: fewer than two values are shared")


class Evidence:
    """Everything that a page may say a number of: published runs, and the other files of the folder `results`.

    Missing numbers raise `Unsupported`.
    """

    def __init__(self, runs: pd.DataFrame, results: Path = RESULTS) -> None:
        self.results = results
        #: Of a CSV file, read once.
        self.frame = functools.cache(lambda path: pd.read_csv(path).fillna({"change": ""}))
        self._printed = functools.cache(lambda name: paper_rows(experiment_of(name), results))
        self._cells = dict(iter(runs.groupby([*CELL], sort=False)))

    def runs(self, experiment: str, dataset: str, preset: str, method: str, options: Query | None = None, *,
             metric: str = "rmse", split: str = "test") -> Sample:  # fmt: skip
        """Return the scores of a cell of our records by seed; they must be of one model and layer."""
        key = experiment, dataset, preset, method, options_text(options or {})
        sample, variants = self._cell(key, f"{split}_{metric}")
        if sample is None:
            raise Unsupported(f"{len(variants) or 'no'} records of {' '.join(filter(None, (*key, split, metric)))}")
        return sample

    def _cell(self, key: tuple[str, ...], column: str) -> tuple[Sample | None, set[tuple[str, str]]]:
        """Return the scores of a cell by seed, None unless it is of one model and layer, and these pairs."""
        rows = self._cells.get(key)
        if rows is None or column not in rows:
            return None, set()
        rows = rows[rows[column].notna()]
        variants = set(zip(rows["model"], rows["layer"], strict=True))
        return sample_of(by_seed(rows, column), f"seeds of {key[1]}") if len(variants) == 1 else None, variants

    def cells(self, **where: Any) -> list[tuple[dict[str, str], Sample]]:
        """Return every cell of our records whose columns `CELL` have these values, and its test RMSE by seed.

        A cell's `layer` stands beside its columns; those of several layers or models are left out.
        """
        matches = []
        for key in self._cells:
            cell = dict(zip(CELL, key, strict=True))
            if cell.items() >= where.items():
                sample, variants = self._cell(key, "test_rmse")
                matches += [({**cell, "layer": layer}, sample) for _, layer in variants if sample]
        return matches

    def gain(self, experiment: str, dataset: str, preset: str, method: str, options: Query | None = None) -> Interval:
        """Return a method minus ERM under the same preset and options; see `minus`."""
        places = [(recorded_under(experiment_of(experiment), name, dataset), name) for name in (method, "erm")]
        return minus(*(self.runs(place, dataset, preset, name, options) for place, name in places))

    def paper(self, experiment: str, dataset: str, method: str, *, metric: str = "rmse") -> Sample:
        """Return what the paper prints."""
        ours = stands_for(experiment_of(experiment), dataset, method)
        for row in self._printed(experiment):
            if (row["dataset"], row["method"], row["metric"]) == (dataset, ours, metric):
                n, spread = PAPER_FOLDS.get(dataset, 3), float(row["std"] or math.nan)
                if OVER_TASKS in row["setting"]:
                    n, spread = PAPER_TASKS, spread / NORMAL * math.sqrt(PAPER_TASKS)
                return Sample(Summary(float(row["mean"]), spread, n), decimals=len(row["mean"].partition(".")[2]))
        raise Unsupported(f"the paper has no {metric} of {method} on {dataset} in {experiment}")

    def authors(self, dataset: str, method: str, *, metric: str = "rmse", bandwidth: float | None = None,
                change: str = "") -> Sample:  # fmt: skip
        """Return the scores of the authors' code, run by us, by seed, by default with its own bandwidth.

        The one `change` to the released code is named where there is one.
        """
        if bandwidth is None and method == "cmixup":
            bandwidth = AUTHORS_WIDTHS.get(dataset, (None,))[-1]
        where: dict[str, Any] = {"dataset": dataset, "method": method, "change": change}
        where |= {} if bandwidth is None else {"bandwidth": bandwidth}
        if metric not in AUTHORS_METRICS:
            raise Unsupported(f"the authors' code, run by us, has no {metric}")
        sample = self.rows(AUTHORS, AUTHORS_METRICS[metric], **where)
        if not sample.units.startswith("seeds"):
            raise InputError(f"{AUTHORS} has a seed twice of {dataset} with {method}: name the bandwidth, at one layer")
        return replace(sample, units=f"seeds of {dataset}" if dataset in SAME_SPLITS else "their seeds")

    def rows(self, file: str, column: str, *, cluster: str = "", **where: Any) -> Sample:
        """Return a column of a CSV file below results/, of the rows that have some values in others.

        `cluster` is a column that names the cluster of each row.
        """
        rows = self.frame(self.results / file)
        for key in where:
            rows = rows[rows[key] == rows[key].dtype.type(where[key])]
        rows = rows[rows[column].notna()]
        if rows.empty:
            raise Unsupported(f"{file} has no {column} of {options_text(where)}")
        by_seed = "seed" in rows and not rows["seed"].duplicated().any()
        rows = rows.set_index(rows["seed"].astype(int)) if by_seed else rows
        clusters = rows[cluster].to_dict() if cluster else None
        return sample_of(rows[column].astype(float).to_dict(), f"{'seeds' if by_seed else 'rows'} of {file}", clusters)

    def sample(self, query: Query) -> Sample:
        """Return what a query of results/artefacts.yaml finds: arguments of a method above, by default of `runs`."""
        source, rest = query.get("from", "runs"), {key: value for key, value in query.items() if key != "from"}
        if source not in ("runs", "paper", "authors"):
            return self.rows(source, **rest)
        method = getattr(self, source)
        known = inspect.signature(method).parameters
        return method(**{key: value for key, value in rest.items() if key in known})

    def find(self, query: Query) -> Sample | None:
        """Return the sample that a query finds, or None."""
        try:
            return self.sample(query)
        except Unsupported:
            return None


@functools.cache
def published_evidence() -> Evidence:
    """Return the evidence of results/, read once."""
    return Evidence(table_runs())


#: An experiment by name, read once.
experiment_of = functools.cache(load_experiment)
