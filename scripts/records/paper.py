"""The numbers that the paper prints for a table, with our spellings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment
from scripts.records.records import read_csv


def paper_rows(experiment: Experiment, results: Path = RESULTS) -> list[dict[str, str]]:
    """Return the paper's numbers for this table, with our spellings of dataset, method and metric.

    The worst domain is a setting in the paper's file and a metric of ours.

    Raises:
        InputError: a row names a dataset, method or metric that is none of ours.
    """
    rows = [
        r
        for r in read_csv(results / "paper" / "results.csv")
        if r["table"] == experiment.paper_table and r["setting"] in experiment.setting.split()
    ]
    return [{**r, **_our_spellings(experiment, r)} for r in rows]


def _our_spellings(experiment: Experiment, row: Mapping[str, str]) -> dict[str, str]:
    """Return which of our datasets, methods and metrics a row of the paper is about."""
    dataset = names.part_spelling("dataset", row["dataset"], experiment.datasets)
    here = experiment.methods_of.get(dataset, experiment.methods)
    meant = [method for method in experiment.paper_methods.get(row["method"], []) if method in here]
    method = str(meant[0]) if meant else names.part_spelling("method", row["method"], here)
    metric = ("worst_" if row["setting"] == "ood-worst" else "") + names.metric_spelling(row["metric"])
    return {"dataset": dataset, "method": stands_for(experiment, dataset, method), "metric": metric}


def stands_for(experiment: Experiment, dataset: str, method: str) -> str:
    """Return which of our methods the paper's row of `method` is about on `dataset`."""
    return str(experiment.paper_trains.get(dataset, {}).get(method, method))
