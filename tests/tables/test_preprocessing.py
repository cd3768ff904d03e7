"""Columns become features by what the training rows hold, and the JSON of it does the same to new rows."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.errors import InputError
from cmixup.tables.columns import Category, Constant, Number, as_numbers, read_column
from cmixup.tables.preprocessing import TablePreprocessing
from datasets.common.table.fitting import fit_category, fit_number, holds_categories
from datasets.common.table.user import Source, UserTable

NAN = float("nan")


def column(values: list, name: str = "x") -> pd.Series:
    return pd.Series(values, index=range(1, len(values) + 1), name=name)


def number(values: list, scaling: str = "standard", keep: bool = False) -> Any:
    return fit_number(column(values), scaling, keep, "t.csv")


def frame() -> pd.DataFrame:
    """Twenty rows whose features are easily computed by hand."""
    size = [NAN, *[1.0, 3.0] * 9, 5.0]
    fuel = ["gas"] * 9 + ["oil"] * 7 + ["wood", "peat", None, " gas "]
    return pd.DataFrame({"id": range(20), "size": size, "fuel": fuel, "here": 7}, index=range(1, 21))


class Rows(UserTable):
    name = "rows"

    def read(self) -> Source:
        return Source(frame().assign(price=range(1, 21)), "t.csv", {})


def fitted(**changes: Any) -> TablePreprocessing:
    data = Rows(target="price", categorical="fuel", **changes)
    return data._fit(data.table, data.table.features)


# ---- numbers


def test_unknown_numbers_get_the_training_median_and_an_indicator() -> None:
    fitted = number([1.0, 2.0, 9.0, NAN])
    filled = np.array([1.0, 2.0, 9.0, 2.0])
    assert fitted == Number("x", 2.0, filled.mean(), filled.std(), True)
    out = np.zeros((3, 2))
    fitted.encode(column([NAN, 2.0, 9.0]), out, "t.csv")
    z = (np.array([2.0, 2.0, 9.0]) - filled.mean()) / filled.std()
    np.testing.assert_allclose(out, np.column_stack([z, [1, 0, 0]]))


def test_without_unknown_training_values_there_is_no_indicator_and_later_ones_get_the_median() -> None:
    fitted = number([1.0, 2.0, 9.0], "none")
    assert fitted == Number("x", 2.0, 0.0, 1.0, False)
    out = np.zeros((2, 1))
    fitted.encode(column([NAN, 5.0]), out, "t.csv")
    assert out[:, 0].tolist() == [2.0, 5.0]


def test_columns_of_no_use_are_dropped_with_their_reason() -> None:
    assert number([3.0, 3.0, 3.0]) == Constant("x", 3.0)
    assert number([NAN, NAN]) == "nothing known in training"
    assert number([3.0, NAN, 3.0]) == Number("x", 3.0, 3.0, 1e300, True)  # whether it is known may tell something
    rng = np.random.default_rng(0)
    ids = rng.permutation(50)[:30]
    assert number(ids.tolist()) == number(sorted(1000 * ids)) == number((-np.arange(30)).tolist()) == "numbers the rows"
    assert isinstance(number(ids.tolist(), keep=True), Number)
    assert isinstance(number((1000 * ids).tolist()), Number)  # all different, but neither dense nor in order
    assert isinstance(number([*ids.tolist()[1:], int(ids[1])]), Number)  # one is there twice
    assert isinstance(number((np.arange(30) + 0.5).tolist()), Number)
    assert isinstance(number(list(range(19))), Number)  # too few rows to tell


# ---- categories


def test_rare_levels_are_merged_and_unknown_ones_have_their_own_feature() -> None:
    fitted = fit_category(column(["b"] * 6 + ["a"] * 5 + ["c"] * 4 + ["d", None]), 0.01)
    assert fitted == Category("x", ("a", "b"), True, True, ("c", "d"))
    assert fitted.features == ["x=a", "x=b", "x=(other)", "x=(missing)"]
    out = np.zeros((6, 4))
    fitted.encode(column(["b", "a ", "c", "new", None, "NA"]), out, "t.csv")
    np.testing.assert_array_equal(out, np.eye(4)[[1, 0, 2, 2, 3, 3]])


def test_levels_without_a_feature_are_zeros_everywhere() -> None:
    fitted = fit_category(column(["a", "b"] * 5), 0.0)
    assert fitted == Category("x", ("a", "b"), False, False)
    out = np.zeros((3, 2))
    fitted.encode(column(["b", "new", None]), out, "t.csv")
    assert out.tolist() == [[0, 1], [0, 0], [0, 0]]


def test_categories_of_no_use_are_dropped_with_their_reason() -> None:
    assert fit_category(column(["a"] * 9), 0.01) == Constant("x", "a")
    assert fit_category(column([chr(65 + k) for k in range(30)]), 0.01) == "30 levels, all rare"
    digits = "30 levels, all rare; 30 hold digits, such as ['about 0 m']: write numbers or dates if they are some"
    assert fit_category(column([f"about {k} m" for k in range(30)]), 0.01) == digits
    assert fit_category(column([None, None]), 0.01) == "nothing known in training"


# ---- kinds


def test_numbers_from_any_type() -> None:
    for values, expected in (
        ([True, False], [1, 0]), (["True", "false", None], [1, 0, NAN]), (["1", " 2e3", "NA"], [1, 2000, NAN]),
        (pd.array([1, None], dtype="Int64"), [1, NAN]),
    ):  # fmt: skip
        numbers, wrong = as_numbers(pd.Series(values))
        np.testing.assert_array_equal(numbers, expected)
        assert not wrong.any()


def test_half_or_more_words_are_categories_and_few_are_refused() -> None:
    assert not holds_categories(column(["1", "2", None]), "t.csv")
    assert holds_categories(column(["1", "2", "A", "B", None]), "t.csv")
    with pytest.raises(
        InputError, match=r"t.csv, row 3, column 'x': 'A' is not a number, as most .* categorical=\[x\]"
    ):
        holds_categories(column(["1", "2", "A"]), "t.csv")


def test_numbers_that_are_not_all_written_alike_are_refused() -> None:
    values = column(["1,500", "2,000,000.5", "1.000,5"])
    assert read_column(values).form == ""
    with pytest.raises(
        InputError, match=r"t.csv, row 1, column 'x': .* looks like a number, but others are written oth"
    ):
        holds_categories(values, "t.csv")


# ---- the whole


def test_the_features_of_a_table() -> None:
    made = fitted(scaling="none")
    assert made.features == ["size", "size is missing", "fuel=gas", "fuel=oil", "fuel=(other)", "fuel=(missing)"]
    assert made.dropped == {"id": "numbers the rows", "here": "constant in training"}
    x = made.apply(frame())
    assert x.dtype == np.float32
    assert x.flags.c_contiguous
    assert x[0].tolist() == [3.0, 1, 1, 0, 0, 0]  # the median of ten 1, nine 3 and a 5, less one 1
    assert x[16].tolist() == [3.0, 0, 0, 0, 1, 0]
    assert x[18].tolist() == [3.0, 0, 0, 0, 0, 1]
    assert x[19].tolist() == [5.0, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_json_gives_the_same_features_of_new_rows(scaling: str) -> None:
    made = fitted(scaling=scaling, log_target=True)
    again = TablePreprocessing.from_json(made.to_json())
    assert again == made
    rng = np.random.default_rng(0)
    new = pd.DataFrame({"fuel": rng.choice(["gas", "new", None], 50), "size": 10 * rng.normal(size=50), "more": 1})
    np.testing.assert_array_equal(again.apply(new), made.apply(new))
    assert (again.scaling, again.targets, again.log_target, again.text) == (scaling, ("price",), True, ["fuel"])
    if scaling == "minmax":
        assert made.apply(new).min() == 0
        assert made.apply(new).max() == 1


def test_new_rows_that_do_not_fit_are_refused() -> None:
    made = fitted()
    with pytest.raises(InputError, match=r"new.csv has no column 'size'; the nearest name is 'Size'"):
        made.apply(frame().rename(columns={"size": "Size"}), "new.csv")
    with pytest.raises(InputError, match=r"new.csv, row 2, column 'size': 'big' is not a number"):
        made.apply(frame().astype({"size": object}).replace({"size": {1.0: "big"}}), "new.csv")
    with pytest.raises(InputError, match=r"new.csv, row 20, column 'size': inf is too large: numbers become float32"):
        made.apply(frame().replace({"size": {5.0: np.inf}}), "new.csv")
