"""How the features of the tables that ship with the project are scaled, and what a run keeps of it.

What is kept is the JSON that `cmixup.tables.preprocessing.TablePreprocessing` reads, so that a run on such a table
predicts new rows as a run on an own table does. This file writes it without pandas, whose import would delay every run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np

from cmixup.done import TABLE_FORMAT
from cmixup.errors import InputError

VANISH = 1e300  # what is divided by it is 0 in float32


def min_max(x: np.ndarray, fit_rows: np.ndarray | None) -> np.ndarray:
    """Scale each column of `x: (N, d)` to [0, 1] and clip what lies outside; a constant column becomes 0.

    Args:
        x: features.
        fit_rows: rows that minimum and maximum are taken from; None for all.
    """
    low, span = _extent(x, fit_rows)
    return np.clip((x - low) / span, 0.0, 1.0)


def standardise(x: np.ndarray, fit_rows: np.ndarray) -> np.ndarray:
    """Scale each column of `x: (N, d)` to mean 0 and standard deviation 1 on `fit_rows`; a constant one to 0."""
    mean, std = _moments(x, fit_rows)
    return (x - mean) / std


def fill_missing(x: np.ndarray, fit_rows: np.ndarray | None) -> np.ndarray:
    """Replace NaN by the mean of its column's known values over `fit_rows` (None for all rows).

    Raises:
        InputError: a column without any known value there.
    """
    fitted = x if fit_rows is None else x[fit_rows]
    known = ~np.isnan(fitted)
    if not known.any(axis=0).all():
        column = int(np.argmin(known.any(axis=0)))
        raise InputError(f"column {column} of x has no known value in the rows that scaling is fitted on")
    return np.where(np.isnan(x), _mean_of_known(fitted), x)


def scaling_json(
    names: Sequence[str], labels: Sequence[str], raw: np.ndarray, filled: np.ndarray, fit_rows: np.ndarray | None,
    *, form: str,
) -> str:  # fmt: skip
    """Return as JSON how `min_max` or `standardise`, and `fill_missing`, make features of a table.

    Args:
        names: of the d features.
        labels: names of the labels.
        raw: `(N, d)` features, NaN where unknown.
        filled: `raw` as `fill_missing` returns it.
        fit_rows: rows that everything is fitted on; None for all.
        form: "minmax" or "standard".
    """
    fit = _moments if form == "standard" else _extent
    shift, scale = (values.tolist() for values in fit(filled, fit_rows))
    mean = _mean_of_known(raw if fit_rows is None else raw[fit_rows]).tolist()
    columns = [
        {"kind": "number", "name": name, "median": mean[k], "shift": shift[k], "scale": scale[k], "missing": False}
        for k, name in enumerate(names)
    ]
    given = {"targets": list(labels), "group": "", "log_target": False, "scaling": form, "columns": columns}
    return json.dumps({"format": TABLE_FORMAT, **given, "dropped": {}}, indent=1, allow_nan=False) + "\n"


def _extent(x: np.ndarray, fit_rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the minimum `(d,)` and the span `(d,)` of every column, 1 where it is constant."""
    fitted = x if fit_rows is None else x[fit_rows]
    low, high = fitted.min(axis=0), fitted.max(axis=0)
    return low, np.where(high > low, high - low, 1.0)


def _moments(x: np.ndarray, fit_rows: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean `(d,)` and the standard deviation `(d,)` of every column; a constant one becomes 0."""
    fitted = x if fit_rows is None else x[fit_rows]
    varies = fitted.max(axis=0) > fitted.min(axis=0)
    return np.where(varies, fitted.mean(axis=0), fitted[0]), np.where(varies, fitted.std(axis=0), VANISH)


def _mean_of_known(fitted: np.ndarray) -> np.ndarray:
    """Return the mean `(d,)` of the known values of every column."""
    known = ~np.isnan(fitted)
    mean: np.ndarray = np.where(known, fitted, 0.0).sum(axis=0) / known.sum(axis=0)
    return mean
