"""A level is the same level however it is spelled: in estimators, in saved runs, in predict and for groups."""

import datetime
import warnings
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.sklearn import TabularRegressor
from cmixup.tables.columns import Category
from cmixup.tables.levels import places_of
from datasets.common.table.fitting import fit_category

N = 60
#: What training holds, and other spellings of it in new rows.
SPELLINGS: dict[str, tuple[list[Any], list[Any]]] = {
    "numbers for text": (["1", "2", "3"], [1, 2, 3]), "floats for text": (["1", "2", "3"], [1.0, 2.0, 3.0]),
    "text for numbers": ([1, 2, 3], ["1", "2.0", "3.00"]),
    "decimals": ([1.5, 2.0, 3.0], [Decimal("1.50"), Decimal(2), "3"]),
    "zeros before": (["1", "2", "3"], ["01", "002", "3"]), "zeros gone": (["01", "02", "10"], [1, 2, 10]),
    "floats with zeros": (["1.0", "2.0", "3.0"], ["1", "2", "3"]),
    "text for booleans": ([True, False, True], ["True", "FALSE", "true"]),
    "booleans for text": (["TRUE", "FALSE", "TRUE"], [True, False, np.True_]),
    "blanks": (["gas", "oil", "wood"], ["gas ", " oil", "wood\u00a0"]),
    "accents": (["caf\u00e9", "oil", "wood"], ["cafe\u0301", "oil", "wood"]),
    "days": ([datetime.date(2020, 1, day) for day in (1, 2, 3)], list(pd.date_range("2020-01-01", periods=3))),
    "long numbers": ([2**54 + k for k in (1, 2, 3)], [str(2**54 + k) for k in (1, 2, 3)]),
    "gaps": ([None, "b", "c"], [np.nan, "b", "c"]), "gaps of pandas": (["", "b", "c"], [pd.NA, "b", "c"]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["category", object])
@pytest.mark.parametrize(("trained", "new"), SPELLINGS.values(), ids=SPELLINGS)
def test_an_estimator_knows_a_level_by_any_spelling(trained: list[Any], new: list[Any], dtype: str) -> None:
    code, a = np.arange(N) % 3, np.random.default_rng(0).normal(size=N)
    first, other = (
        pd.DataFrame({"a": a, "k": pd.Series([values[k] for k in code], dtype=object).astype(dtype)})
        for values in (trained, new)
    )
    model = TabularRegressor((8,), members=1, epochs=2, bandwidth=0, categorical_features=["k"], random_state=0)
    model.fit(first, a + 5 * code)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(other), model.predict(first))
    array = other.to_numpy(dtype=object)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it has no names
        np.testing.assert_array_equal(model.predict(array), model.predict(first))


@pytest.mark.parametrize(("trained", "new"), SPELLINGS.values(), ids=SPELLINGS)
def test_a_saved_column_knows_a_level_by_any_spelling(trained: list[Any], new: list[Any]) -> None:
    column = fit_category(pd.Series(trained * 5, dtype=object, name="k"), 0.0)
    assert isinstance(column, Category)
    first, other = np.zeros((2, 3, len(column.features)))
    column.encode(pd.Series(trained, dtype=object), first, "t.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        column.encode(pd.Series(new, dtype=object), other, "t.csv")
    np.testing.assert_array_equal(other, first)
    assert (first.sum(axis=1) == 1).all()


def test_spellings_stay_apart_where_training_had_both() -> None:
    find = places_of(("01", "1", "2", "7.0", "7.00"))
    assert [find(level) for level in ("01", "1", 1.0, "1.0", "02", "7", "7.0", "8")] == [0, 1, 1, 1, 2, -1, 3, -1]
    assert places_of(("12345678901234567890",))("12345678901234567891") == -1  # an ID that float64 does not hold
    rare = fit_category(pd.Series(["1"] * 20 + ["01"] * 2 + ["b"] * 20, name="k"), 0.1)
    out = np.zeros((3, 3))
    rare.encode(pd.Series(["1", "01", "b"]), out, "t.csv")  # type: ignore[union-attr]
    np.testing.assert_array_equal(out, np.eye(3)[[0, 2, 1]])  # 01 was a rare level of its own
    table = pd.DataFrame({"a": np.arange(6.0), "k": pd.Series([1, "1", 1.0, "2 ", "2", "02"], dtype=object)})
    model = TabularRegressor(members=1, epochs=1, bandwidth=0, categorical_features=["k"]).fit(table, range(6))
    assert model._table.levels == [None, [1.0, "02", "2"]]


@pytest.mark.parametrize("unknown", [0, 30, 31, 60])
def test_levels_that_training_did_not_have_are_warned_of(unknown: int) -> None:
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(size=N), "zone": pd.Categorical(list("1234") * 15)})
    model = TabularRegressor((8,), members=1, epochs=1, bandwidth=0, random_state=0).fit(table, np.arange(N) % 7)
    column = fit_category(table["zone"], 0.0)
    zone = pd.Series([f"z{k % 5}" if k < unknown else "1" for k in range(N)], name="zone")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.predict(table.assign(zone=zone.astype("category")))
        column.encode(zone, np.zeros((N, 4)), "new.csv")  # type: ignore[union-attr]
    what = (
        f": {unknown} of 60 rows have a level that training did not have, such as 'z0', 'z1', 'z2' and 2 more; it had "
    )
    lines = [f"{name}{what}'1', '2', '3' and 1 more" for name in ("column zone of X", "new.csv, column zone")]
    assert [str(warning.message) for warning in caught] == (lines if unknown > 30 else [])
    assert all(warning.filename == __file__ for warning in caught[:1])  # of the line that predicts


def test_a_group_is_one_however_it_is_spelled() -> None:
    x, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60.0)
    first, other = (np.array(values * 20, dtype=object) for values in ([1, 2, "x"], ["1", 2.0, "x "]))
    both = np.where(np.arange(60) < 30, first, other)
    predicted = [
        TabularRegressor((4,), members=2, epochs=1, random_state=0).fit(x, y, groups=groups).predict(x)
        for groups in (first, both)
    ]
    np.testing.assert_array_equal(*predicted)
