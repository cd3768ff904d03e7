"""How the features of the tables that ship with the project are scaled, and which numbers of it a run keeps.

A run keeps them in the JSON that `TablePreprocessing` reads, and predicts new rows as a run on an own table does. This
file writes it without pandas, whose import would delay every run.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from cmixup.errors import InputError
from cmixup.files import TABLE_FORMAT
from cmixup.inputs.spread import VANISH, moments, varies


@dataclass(frozen=True)
class Scaling:
    """How features are made of d columns: unknown values (NaN) get the mean, then `(x - shift) / scale`.

    The form is "minmax", to [0, 1], with values outside clipped; or "standard", to mean 0 and standard deviation 1. A
    constant column becomes 0. Mean (of the known values), shift and scale are `(d,)`.
    """

    form: str
    mean: np.ndarray
    shift: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, x: np.ndarray, form: str) -> Self:
        """Fit on the rows `x: (n, d)`; each column has a known value."""
        known = ~np.isnan(x)
        if not known.any(axis=0).all():
            column = int(np.argmin(known.any(axis=0)))
            raise InputError(f"column {column} of x has no known value in the rows that scaling is fitted on")
        mean = np.where(known, x, 0.0).sum(axis=0) / known.sum(axis=0)
        x = np.where(known, x, mean)
        if form == "standard":
            return cls(form, mean, *moments(x))
        low, high = x.min(axis=0), x.max(axis=0)
        return cls(form, mean, low, np.where(varies(low, high, len(x)), high - low, VANISH))

    def apply(self, x: np.ndarray) -> np.ndarray:
        """Return the features of the rows `x: (N, d)`."""
        scaled = (np.where(np.isnan(x), self.mean, x) - self.shift) / self.scale
        return np.clip(scaled, 0.0, 1.0) if self.form == "minmax" else scaled

    def to_json(self, names: Sequence[str], labels: Sequence[str]) -> str:
        """Return it as JSON, for features and labels of these names."""
        fitted = zip(names, self.mean.tolist(), self.shift.tolist(), self.scale.tolist(), strict=True)
        columns = [
            {"kind": "number", "name": name, "median": mean, "shift": shift, "scale": scale, "missing": False}
            for name, mean, shift, scale in fitted
        ]
        content = {"targets": list(labels), "group": "", "log_target": False, "scaling": self.form, "columns": columns}
        return json.dumps({"format": TABLE_FORMAT, **content, "dropped": {}}, indent=1, allow_nan=False) + "\n"
