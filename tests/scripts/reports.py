"""A report as runs write it, for tests of runs and records."""

from typing import Any


def report(**changes: Any) -> dict[str, Any]:
    """The report of a run, with some of its values changed."""
    return {
        "experiment": "table1", "dataset": "airfoil", "model": "fcn3", "method": "cmixup", "preset": "paper",
        "layer": "hidden", "bandwidth": 1.75, "alpha": None, "options": {"train.lr": 0.1, "method.bandwidth": 1.75},
        "seed": 3, "run": "table1/airfoil/seed=3", "scores": {"val": {"rmse": 2.5, "r": 0.9}, "test": {"rmse": 1 / 3}},
        "facts": {"effective_fraction": 0.27, "bandwidth": 1.75}, "seconds": 1.5, "best_epoch": 80, **changes,
    }  # fmt: skip
