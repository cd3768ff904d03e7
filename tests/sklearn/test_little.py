"""Columns that do not vary, that have next to no values, or that hold times where `fit` had numbers; and few rows."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup import InputError
from tests.sklearn.test_regressor import X, Y, quick

DAYS = pd.date_range("2024-01-01", periods=len(X)).to_series(index=range(len(X)))


@pytest.mark.parametrize(
    ("stuck", "later"),
    [
        (1, 0), (0.1, 0.2), (19.99, 1e100), (True, False), ("up", "down"), (np.nan, 3.0),
        (0.1 * np.random.default_rng(0).choice([1, 1 + 2e-16], len(X)), 0.5),
    ],
)  # fmt: skip
@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_column_changes_nothing_and_is_warned_of_by_name(stuck: Any, later: Any, weighted: bool) -> None:
    frame = pd.DataFrame(X, columns=list("abcd")).assign(lift=stuck, rate=7)
    frame["lift"] = frame["lift"].astype("category") if isinstance(stuck, str) else frame["lift"]
    model = quick(blend="trees", epochs=2).fit(frame, Y, np.arange(len(Y)) + 1.0 if weighted else None)
    new = frame.assign(lift=pd.Categorical([later] * len(X)) if isinstance(stuck, str) else later)
    known = not (isinstance(stuck, float) and np.isnan(stuck))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        moved = model.predict(new)
    lines = [str(w.message) for w in seen if "constant in training" in str(w.message)]
    assert lines == ["X: column lift: constant in training, and now with another value, which changes nothing"] * known
    assert all(w.filename == __file__ for w in seen)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(moved, model.predict(frame))
        np.testing.assert_array_equal(moved, model.predict(frame.assign(lift=frame["lift"].where(frame.index < 0))))


@pytest.mark.parametrize(
    ("known", "seed", "category"), [(k, seed, (k + seed) % 2 == 0) for k in (0, 1, 3) for seed in (0, 1, 2)]
)
def test_a_column_of_next_to_no_values_is_fitted(known: int, seed: int, category: bool) -> None:
    sensor = np.full(len(X), np.nan)
    sensor[np.random.default_rng(seed).permutation(len(X))[:known]] = np.arange(known)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sensor=sensor)
    frame["sensor"] = frame["sensor"].astype("category") if category else frame["sensor"]
    model = quick(blend="trees", members=5, epochs=2, random_state=seed).fit(frame, Y)
    assert np.isfinite(model.predict(frame)).all()
    assert np.isfinite(model.predict_interval(frame, 0.8)).all()


@pytest.mark.parametrize("options", [{}, {"blend": None}, {"loss": "quantile"}, {"bandwidth": "auto"}])
def test_one_row_of_weight_is_its_label(options: dict[str, Any]) -> None:
    model = quick(**{"blend": "trees", "bandwidth": "validated", **options}).fit(X[:3], Y[:3], [0, 1, 0])
    with pytest.warns(UserWarning, match="column 0, column 1, column 2 and 1 more: constant in training"):
        np.testing.assert_array_equal(model.predict(X), np.full(len(X), Y[1]))
    assert np.isfinite(quick(**{"blend": "trees", **options}).fit(X[:3], Y[:3]).predict(X)).all()


@pytest.mark.parametrize(
    ("fitted", "new", "held", "holds"),
    [
        (DAYS, DAYS.astype("int64") // 10**9, "dates", "numbers"), (DAYS.dt.year, DAYS, "numbers", "dates"),
        (DAYS, DAYS - DAYS[0], "dates", "durations"), (DAYS.dt.date, DAYS.dt.year, "dates", "numbers"),
        (DAYS.dt.time, DAYS, "times of day", "dates"),
    ],
)  # fmt: skip
def test_times_for_numbers_and_numbers_for_times_are_refused(fitted: Any, new: Any, held: str, holds: str) -> None:
    frame = pd.DataFrame(X, columns=list("abcd")).assign(when=fitted)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", ".*when.*ID")  # dates number no rows
        model = quick(epochs=1).fit(frame, Y)
    with pytest.raises(InputError, match=f"column 'when' of X must hold {held} as in fit, got {holds}"):
        model.predict(frame.assign(when=new))
    assert np.isfinite(model.predict(frame.assign(when=np.nan))).all()
    array = np.column_stack([X.astype(object), np.asarray(fitted, dtype=object)])
    with pytest.raises(InputError, match="column '4' of X must hold"):
        quick(epochs=1).fit(array, Y).predict(np.column_stack([X.astype(object), np.asarray(new, dtype=object)]))
