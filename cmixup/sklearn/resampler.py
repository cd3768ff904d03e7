"""`CMixupResampler`: mixed rows beside the given ones, for trees and anything else that is fitted to a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator

from cmixup.errors import InputError, check_flag, check_nonnegative
from cmixup.mixing.lam import Beta
from cmixup.mixing.linear import mix
from cmixup.sampling.bandwidth import Bandwidth
from cmixup.sampling.inputs import Floats, Ints
from cmixup.sampling.sampler import PartnerSampler
from cmixup.sampling.space import LabelSpace
from cmixup.seeding import Streams
from cmixup.sklearn.columns import categorical_columns
from cmixup.sklearn.frames import (
    as_array,
    as_frame,
    as_labels,
    check_text,
    dates_like,
    like_labels,
    take_rows,
)
from cmixup.sklearn.options import RandomState, seed_of
from cmixup.tables.days import days_of

#: From here on float64 does not hold every whole number.
EXACT = 2.0**53


class CMixupResampler(BaseEstimator):
    """Makes new rows by mixing rows with partners of near labels (C-Mixup), as samplers of imbalanced-learn do.

        X_more, y_more = CMixupResampler(bandwidth=("std", 0.1), random_state=0).fit_resample(X, y)

    A new row is `lam x_i + (1 - lam) x_j` with the label `lam y_i + (1 - lam) y_j`, where j is drawn among all rows
    with `P(j|i) ~ exp(-|y_i - y_j|^2 / 2 bandwidth^2)` and lam from Beta(alpha, alpha). Not every column can be mixed;
    the column's dtype decides:

    - Floats are mixed.
    - Whole numbers are mixed and rounded to the nearest, and keep their dtype. Those of a column that holds one of 2^53
      or more, which float64 cannot tell apart, are taken as categories.
    - Dates are mixed as days and stay dates, whole days where the column has only these.
    - Everything else (booleans, categories of pandas and polars) and the columns named in `categorical` take the value
      of row i with probability lam, else of row j: all these columns of a new row from the same one, so that no
      combination of categories arises that the data do not hold. A column of text has to be one of these.
    - So does a number that is missing or infinite in either row.

    Args:
        ratio: new rows for each given one, 0 or more: 2.5 takes each row as i twice, and a random half a third time.
        keep_original: whether the given rows come first in the result.
        bandwidth, alpha: as for `PartnerSampler` and `Beta`. Several outputs are compared each in its standard
            deviations, and a number is in these.
        categorical: columns whose numbers stand for categories: names of a frame, or positions.
        random_state: a whole number, a NumPy generator, or None for a seed from the operating system.

    Attributes:
        rows_, partners_, lam_: i and j (m,) int64 and lam (m,) float32 of the m new rows.
        bandwidth_: s in use.
    """

    def __init__(
        self,
        *,
        ratio: float = 1.0,
        keep_original: bool = True,
        bandwidth: Bandwidth = "auto",
        alpha: float = 2.0,
        categorical: Sequence[str | int] = (),
        random_state: RandomState = None,
    ) -> None:
        self.ratio = ratio
        self.keep_original = keep_original
        self.bandwidth = bandwidth
        self.alpha = alpha
        self.categorical = categorical
        self.random_state = random_state

    def fit_resample(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the given rows, if they are kept, and the new ones.

        Args:
            X: (n, d) array or frame, of pandas or of a library that narwhals reads (polars, ...).
            y: (n,) or (n, d_y) real finite labels: an array, series or frame.

        Returns:
            X and y of the kinds that came in, n (if kept) + round(ratio n) rows; frames are numbered anew, whole labels
            become float64.

        Raises:
            InputError: an argument cannot be used, a column holds text and is no category, or labels are text; a
                ValueError.
        """
        ratio, keep = check_nonnegative("ratio", self.ratio), check_flag("keep_original", self.keep_original)
        beta, streams = Beta(self.alpha), Streams(seed_of(self.random_state))
        X, y, numbers = as_array("X", X), as_array("y", y), as_labels("y", y, warn=True)
        given, X = X, as_frame(X)
        foreign = X is not given
        X = X if hasattr(X, "iloc") else _array("X", X)
        if X.ndim != 2:
            raise InputError(f"X must have shape (n, d), got {X.shape}")
        labels = _labels(numbers, len(X))
        count = round(ratio * len(X))
        if not (count or keep):
            raise InputError(f"ratio must leave rows where none are kept, got {self.ratio!r}")
        categorical = categorical_columns(self.categorical, X, "categorical")
        check_text(X, categorical)
        sampler = PartnerSampler(
            labels, self.bandwidth, space=LabelSpace(scale="std" if labels.ndim == 2 and labels.shape[1] > 1 else None)
        )
        self.rows_ = _repeated(len(X), count, streams.order)
        self.partners_ = sampler.draw(self.rows_, streams.partners)
        self.lam_ = beta.sample(count, streams.lam).numpy()
        self.bandwidth_ = sampler.bandwidth
        chosen = np.where(streams.mixing.random(count) < self.lam_, self.rows_, self.partners_)
        new, changed = X.iloc[chosen].reset_index(drop=True) if hasattr(X, "iloc") else X[chosen], list[int]()
        for place in range(X.shape[1]):
            column = X.iloc[:, place] if hasattr(X, "iloc") else X[:, place]
            if place in categorical or (mixed := self._column(column, chosen)) is None:
                continue
            changed.append(place)
            if hasattr(X, "iloc"):
                new.isetitem(place, mixed)
            else:
                new[:, place] = mixed
        more_y = self._mixed(labels, self.rows_)
        if keep:
            new, more_y = _joined(X, new), np.concatenate([labels, more_y])
        if foreign:
            rows = np.concatenate([np.arange(len(X)), chosen]) if keep else chosen
            new = take_rows(given, rows, new.iloc[:, changed])
        return new, _like(y, more_y)

    def _column(self, column: Any, chosen: Ints) -> Any | None:
        """Return a column of the new rows as its own kind; None where its values are not to be mixed."""
        if column.dtype.kind == "M":
            return dates_like(column, self._mixed(days_of(column)[0], chosen))  # type: ignore[index]
        if column.dtype.kind not in "iuf":
            return None
        values, whole = _numbers(column), column.dtype.kind in "iu"
        if whole and (np.abs(values) >= EXACT).any():
            return None
        mixed = self._mixed(values, chosen)
        mixed = np.rint(mixed) if whole else mixed
        return type(column)(mixed, dtype=column.dtype) if hasattr(column, "iloc") else mixed

    def _mixed(self, values: Floats, chosen: Ints) -> Floats:
        """Return values (n, ...) mixed for the new rows, or of the rows `chosen` where one of both is not finite."""
        first, second = (torch.from_numpy(values[rows]) for rows in (self.rows_, self.partners_))
        mixed = mix(first, second, self.lam_).numpy()
        finite = np.isfinite(values)
        return np.where(finite[self.rows_] & finite[self.partners_], mixed, values[chosen])


def _array(name: str, values: Any) -> np.ndarray:
    if hasattr(values, "toarray"):
        raise InputError(f"{name} must be dense, got {type(values).__name__}: sparse data are not supported")
    try:
        return np.asarray(values)
    except ValueError:
        raise InputError(f"{name} must have rows of one length, got {values!r:.80}") from None


def _labels(y: Any, n: int) -> Floats:
    """Return labels as float64 (n,) or (n, d_y), checked but for being finite, which the sampler asks for."""
    values = _array("y", y)
    if values.dtype.kind not in "iuf" and not (hasattr(y, "iloc") and values.dtype.kind in "Ob"):
        raise InputError(f"y must be real numbers, got dtype {values.dtype}")
    try:
        labels = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"y must be real numbers, got {type(y).__name__}") from None
    if labels.ndim not in (1, 2) or len(labels) != n:
        raise InputError(f"y must have shape (n,) or (n, d_y) with the {n} rows of X, got {labels.shape}")
    return labels


def _numbers(column: Any) -> Floats:
    """Return a column of numbers as float64, NaN where one is missing."""
    if hasattr(column, "iloc"):
        return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))
    return column.astype(np.float64)


def _repeated(n: int, count: int, rng: np.random.Generator) -> Ints:
    """Return `count` of n rows: each equally often, and a random part of them once more."""
    times, rest = divmod(count, n)
    return np.concatenate([np.tile(np.arange(n), times), np.sort(rng.permutation(n)[:rest])])


def _like(y: Any, values: Floats) -> Any:
    """Return labels as the kind and floating dtype of `y`."""
    if (labels := like_labels(y, values)) is not None:
        return labels
    if hasattr(y, "columns"):
        return type(y)(values, columns=y.columns)
    if hasattr(y, "iloc"):
        return type(y)(values, name=y.name)
    given = np.asarray(y)
    return values.astype(given.dtype if given.dtype.kind == "f" else np.float64)


def _joined(first: Any, second: Any) -> Any:
    if not hasattr(first, "iloc"):
        return np.concatenate([first, second])
    import pandas as pd

    return pd.concat([first, second], ignore_index=True)
