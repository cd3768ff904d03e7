"""Labels in other units while they are fitted, as logarithms or by a transformer of scikit-learn, and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import skew
from sklearn.base import clone

from cmixup.errors import InputError, format_value
from cmixup.sampling.inputs import Floats


def check_transform(given: Any) -> None:
    """Raise `InputError` for what is neither None, "log", "auto" nor a transformer that can go back."""
    named = given is None or (isinstance(given, str) and given in ("log", "auto"))
    if not (named or all(hasattr(given, name) for name in ("fit", "transform", "inverse_transform"))):
        what = 'None, "log", "auto" or a transformer with inverse_transform'
        raise InputError(f"target_transform must be {what}, got {format_value(given)}")


def fit_transform(given: Any, labels: Floats) -> Any:
    """Return what `transformed` takes: None, "log", or a fitted transformer.

    "auto" is "log" where all labels are above 0 and their logarithms are less than half as skewed, in the mean over
    outputs; else None.

    Args:
        given: see `check_transform`.
        labels: (N, d_y), NaN where one is missing.
    """
    if given is None or given == "log":
        return given
    if given != "auto":
        return clone(given).fit(labels)
    if (labels <= 0).any():
        return None
    before, after = (np.mean(np.abs(skew(y, nan_policy="omit"))) for y in (labels, np.log(labels)))
    return "log" if after < before / 2 else None


def transformed(transform: Any, labels: Floats, name: str = "y") -> Floats:
    """Return labels (N, d_y) in the units in which they are fitted.

    Raises:
        InputError: they have no finite value there.
    """
    if transform is None:
        return labels
    if transform == "log" and (labels <= 0).any():
        raise InputError(f'target_transform="log" must have labels above 0, got {float(np.nanmin(labels))!r} in {name}')
    values = np.asarray(np.log(labels) if transform == "log" else transform.transform(labels), dtype=np.float64)
    if values.shape != labels.shape or not np.isfinite(values[~np.isnan(labels)]).all():
        what = f"a finite number for each label of {name}"
        raise InputError(f"target_transform must give {what}, got {format_value(values)}")
    return values


def to_label_units(transform: Any, values: Floats) -> Floats:
    """Return fitted values `(..., d_y, q)` in label units."""
    if transform is None or transform == "log":
        return values if transform is None else np.exp(values)
    rows = np.moveaxis(values, -1, 0)
    labels = np.asarray(transform.inverse_transform(rows.reshape(-1, rows.shape[-1])), dtype=np.float64)
    return np.moveaxis(labels.reshape(rows.shape), 0, -1)
