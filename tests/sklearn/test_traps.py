"""Warnings of `CMixupRegressor` on planted traps, and silence on tables without any."""

import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.sklearn.columns import Levels
from cmixup.sklearn.table import MOST_LOOKS, warn_of_traps
from tests.sklearn.test_regressor import X, Y, quick

RNG = np.random.default_rng(7)


def said(frame: Any, y: Any, weight: Any = None) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quick(epochs=1).fit(frame, y, sample_weight=weight)
    return [str(one.message) for one in caught]


def test_a_table_without_traps_is_fitted_in_silence() -> None:
    assert said(X, Y) == []
    assert said(pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.arange(60) % 3)}), Y) == []
    assert said(Y[:, None], Y) == []  # of one column it is the task


def test_a_column_that_gives_the_label_away_is_named() -> None:
    """By its order, or by its levels; whichever output it gives away."""
    frame = pd.DataFrame({"a": X[:, 0], "later": np.exp(Y / 50) + RNG.normal(size=60) / 1e3})
    (line,) = said(frame, Y)
    assert line.startswith("column later of X alone predicts y nearly (rank correlation 1.000)")
    many = pd.DataFrame({"a": RNG.normal(size=400), "kind": pd.Categorical([f"k{k % 8}" for k in range(400)])})
    label = (np.arange(400) % 8 * 5 % 8).astype(float)
    (line,) = said(many, np.column_stack([RNG.normal(size=400), label]))
    assert line.startswith("column kind of X alone predicts y nearly")


def test_a_column_that_numbers_the_rows_is_named_and_stays() -> None:
    x = np.column_stack([X, RNG.permutation(60) + 1000])
    (line,) = said(x, Y)
    assert line.startswith("column 4 of X looks like an ID")
    with pytest.warns(UserWarning, match="looks like an ID"):
        assert quick(epochs=1).fit(x, Y).n_features_in_ == 5


def test_labels_far_outside_are_named_by_row_unless_they_weigh_nothing() -> None:
    y = Y.copy()
    y[7] = 9999.0
    (line,) = said(X, y)
    assert line.startswith("y lies far outside in rows 7 (9999): mend them")
    assert said(X, y, np.where(y == 9999.0, 0.0, 1.0)) == []


def test_it_is_cheap_and_wide_tables_are_left_alone() -> None:
    """A hundred columns of 4,000 rows take a fraction of a second; leaks in more columns are not looked for."""
    x, levels = RNG.normal(size=(4000, MOST_LOOKS + 1)), list[Levels]([None] * (MOST_LOOKS + 1))
    y = x[:, :1].copy()
    start = time.process_time()
    with pytest.warns(UserWarning, match="column 0 of X alone"):
        warn_of_traps(x[:, :100], y, levels[:100], range(100))
    assert time.process_time() - start < 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_traps(x, y, levels, range(len(levels)))
