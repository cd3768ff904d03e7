"""Predictions that need no network, which a network has to beat."""

from collections.abc import Mapping

import numpy as np
import torch

from cmixup.data import Split

RIDGE_WORK = 2 * 10**10  # multiplications at most, so that a fit takes seconds and memory for copies


def simple_predictions(train: Split, val: Split, test: Split) -> dict[str, dict[str, torch.Tensor]]:
    """Return the mean of the training labels, and of tables `(N, d)` in memory ridge regression, by name and part.

    The ridge penalty is 1 on columns with mean 0 and standard deviation 1. Labels that are missing (NaN) are left out.
    """
    parts, y = {"val": val, "test": test}, train.y.double()
    mean = y.nanmean(dim=0)
    naive = {"training_mean": {part: mean.float().expand(len(split.y), -1) for part, split in parts.items()}}
    x = train.x
    if isinstance(x, torch.Tensor) and x.ndim == 2 and x.numel() * max(x.shape[1], 1000) * len(mean) <= RIDGE_WORK:
        x = x.double()
        std = x.std(dim=0, correction=0)
        std, columns = torch.where(std > 0, std, 1.0), list[list[torch.Tensor]]()
        for k, known in enumerate((~y.isnan()).T):
            x_mean = x[known].mean(dim=0)
            z = (x[known] - x_mean) / std
            weights = torch.linalg.solve(z.T @ z + torch.eye(z.shape[1]), z.T @ (y[known, k] - mean[k]))
            columns.append([mean[k] + ((torch.as_tensor(s.x) - x_mean) / std) @ weights for s in parts.values()])
        naive["ridge"] = {
            part: torch.stack(of, dim=1).float() for part, of in zip(parts, zip(*columns, strict=True), strict=True)
        }
    return naive


def naive_forecasts(
    values: np.ndarray, begins: np.ndarray, after: Mapping[str, np.ndarray], ahead: np.ndarray, step: str
) -> dict[str, dict[str, torch.Tensor]]:
    """Return forecasts that need no training, by name and part: the last value, and that at the same time before.

    The latter is of the last period that ends before the forecast is made; it is left out where a series has none. The
    series follow each other in the targets `(n, m)`, from the rows `begins` on, with a `step` between two rows; `ahead`
    are the rows that are forecast, counted from the row `after` each window, by part.
    """
    from cmixup.tables.steps import periods_of  # here: pandas, which it needs, takes a second

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
