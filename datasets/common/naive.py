"""Forecasts of a series that need no training, which a network has to beat."""

from collections.abc import Mapping

import numpy as np
import torch

from cmixup.tables.steps import periods_of


def naive_forecasts(
    values: np.ndarray, begins: np.ndarray, after: Mapping[str, np.ndarray], ahead: np.ndarray, step: str
) -> dict[str, dict[str, torch.Tensor]]:
    """Return forecasts that need no training, by name and part: the last value, and that at the same time before.

    The latter is of the last period that ends before the forecast is made; it is left out where a series has none. The
    series follow each other in the targets `(n, m)`, from the rows `begins` on, with a `step` between two rows; `ahead`
    are the rows that are forecast, counted from the row `after` each window, by part.
    """
    naive, periods = {}, {"last_value": 1} | {f"{name}_before": rows for name, rows in periods_of(step).items()}
    firsts = {part: begins[np.searchsorted(begins, ends, side="right") - 1] for part, ends in after.items()}
    for name, period in periods.items():
        back = ahead - (ahead // period + 1) * period  # as many periods as the forecast needs; of 1, the last row
        rows = {part: ends[:, None] + back for part, ends in after.items()}
        if all((rows[part].min(axis=1) >= firsts[part]).all() for part in after):
            naive[name] = {
                part: torch.from_numpy(values[at].reshape(len(at), -1).astype(np.float32)) for part, at in rows.items()
            }
    return naive
