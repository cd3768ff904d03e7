"""Frames of other libraries, dates, text, tensors; and warnings of what a table may hide."""

import datetime
import re
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.errors import InputError
from cmixup.sklearn import TabularRegressor
from cmixup.sklearn.table import MOST_LOOKS
from tests.sklearn.test_regressor import X, Y, quick

N = 60
SIZE = np.random.default_rng(0).normal(size=N)
KIND = np.random.default_rng(1).choice(["a", "b"], N)
DAYS = np.datetime64("2024-01-01") + np.random.default_rng(2).integers(0, 300, N)
LABELS = SIZE + (KIND == "a") * 3 + (DAYS - DAYS.min()).astype(float) / 100
FRAME = pd.DataFrame({"size": SIZE, "kind": pd.Categorical(KIND), "day": DAYS})


def plain() -> TabularRegressor:
    return TabularRegressor(members=2, epochs=2, bandwidth=0, random_state=0, hidden_layer_sizes=(8,))


def test_text_with_gaps_is_numbers_in_types_of_pandas_too() -> None:
    words = [None if k % 7 == 0 else f"{size:.2f}" for k, size in enumerate(SIZE)]
    one, other = (FRAME.assign(size=pd.Series(words, dtype=dtype)) for dtype in (object, "string"))
    np.testing.assert_array_equal(plain().fit(other, LABELS).predict(other), plain().fit(one, LABELS).predict(one))


def test_a_frame_of_sparse_columns_is_made_dense() -> None:
    dense = pd.DataFrame({"a": SIZE.clip(min=0), "b": KIND == "a"})
    sparse = dense.astype({"a": pd.SparseDtype(float, 0.0), "b": pd.SparseDtype(bool, False)})
    expected = plain().fit(dense, LABELS).predict(dense)
    np.testing.assert_array_equal(plain().fit(sparse, LABELS).predict(sparse), expected)


def test_a_polars_frame_is_the_same_as_one_of_pandas() -> None:
    """With gaps, levels and times of every kind, and where it is not computed yet."""
    pl = pytest.importorskip("polars")
    hours, clock = pd.to_timedelta(np.arange(N) % 7, unit="h"), [datetime.time(k % 24, 30) for k in range(N)]
    frame = pl.DataFrame({"size": SIZE, "kind": pl.Series(KIND, dtype=pl.Categorical), "day": DAYS})
    frame = frame.with_columns(
        pl.Series("hours", hours.to_pytimedelta()), pl.Series("clock", clock), pl.col("day").cast(pl.Date)
    )
    frame = frame.with_columns(size=pl.when(pl.int_range(N) == 3).then(None).otherwise(pl.col("size")))
    theirs = FRAME.assign(size=np.where(np.arange(N) == 3, np.nan, SIZE), hours=hours, clock=clock)
    expected = plain().fit(theirs, LABELS, groups=KIND).predict(theirs)
    for x in (frame, frame.lazy()):
        model = plain().fit(x, pl.Series(LABELS), groups=pl.Series(KIND))
        assert list(model.feature_names_in_) == list(theirs)
        np.testing.assert_array_equal(model.predict(x), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename({"size": "length"}))
    with pytest.raises(InputError, match=r"column 'kind' of X holds text, such as '[ab]'"):
        plain().fit(frame.with_columns(pl.col("kind").cast(pl.String)), LABELS)
    with pytest.raises(InputError, match="X must be a table"):
        plain().fit(frame["size"], LABELS)


@pytest.mark.parametrize("kind", [object, "string"])
def test_text_says_how_to_encode_it_and_where_that_works(kind: Any) -> None:
    text = FRAME.assign(kind=pd.Series(KIND, dtype=kind))
    message = r'column .kind. of X holds text, such as .[ab].: make it categories by X\[.kind.\]\.astype\("category"\)'
    with pytest.raises(InputError, match=message):
        plain().fit(text, LABELS)
    mended = text.assign(kind=text["kind"].astype("category"))
    np.testing.assert_array_equal(
        plain().fit(mended, LABELS).predict(mended), plain().fit(FRAME, LABELS).predict(FRAME)
    )
    with pytest.raises(InputError, match=r"column '1' of X holds text, such as '[ab]'"):
        plain().fit(text.to_numpy(dtype=object), LABELS)
    numbers = FRAME.assign(size=pd.Series(SIZE.astype(str), dtype=object))
    assert np.isfinite(plain().fit(numbers, LABELS).predict(numbers)).all()


@pytest.mark.parametrize("labels", [LABELS.astype(str), pd.Series(LABELS.astype(str))])
def test_labels_that_are_text_are_refused(labels: Any) -> None:
    with pytest.raises(InputError, match="y must be numbers, got text such as '"):
        plain().fit(FRAME, labels)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.clone().requires_grad_(), lambda t: t.to_sparse(), lambda t: t.bfloat16(),
    ],
    ids=["grad", "sparse", "bfloat16"],
)  # fmt: skip
def test_tensors_of_every_kind_are_read(change: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.integers(-4, 5, shape).astype(np.float32)) for shape in ((60, 3), (60, 2)))
    expected = plain().fit(x.numpy(), y.numpy()).predict(x.numpy())
    model = plain().fit(change(x), change(y))  # small whole numbers are the same in all of them
    assert np.array_equal(model.predict(change(x)), expected)
    assert model.score(change(x), change(y)) == plain().fit(x.numpy(), y.numpy()).score(x.numpy(), y.numpy())


@pytest.mark.parametrize("name", ["X", "y", "groups"])
def test_tensors_without_real_numbers_are_refused_by_name(name: str) -> None:
    rng = np.random.default_rng(0)
    given = {"X": rng.normal(size=(60, 3)), "y": rng.normal(size=60)}
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    for bad in (torch.zeros(60, 3, dtype=torch.complex64), torch.zeros(60, 3, device="meta"), nested):
        with pytest.raises(InputError, match=f"^{name} must be a tensor of real numbers with values, got"):
            plain().fit(**given | {name: bad})


def warnings_of(frame: Any, y: Any, weight: Any = None) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quick(epochs=1).fit(frame, y, sample_weight=weight)
    return [str(one.message) for one in caught]


RNG = np.random.default_rng(0)
FAR = np.where(np.arange(60) == 7, 9999.0, Y)
MANY = np.arange(400) % 8
WIDE = RNG.normal(size=(40, MOST_LOOKS + 1))


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (X, Y, None),
        (pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.arange(60) % 3)}), Y, None),
        (Y[:, None], Y, None),  # of one column it is the task
        (WIDE, WIDE[:, 0], None),  # leaks in so many columns are not looked for
        (WIDE[:, :-1], WIDE[:, 0], "column 0 of X alone predicts y nearly"),
        (pd.DataFrame({"a": X[:, 0], "later": np.exp(Y / 50) + RNG.normal(size=60) / 1e3}), Y,
         "column later of X alone predicts y nearly (rank correlation 1.000)"),
        (pd.DataFrame({"a": RNG.normal(size=400), "kind": pd.Categorical([f"k{k}" for k in MANY])}),
         np.column_stack([RNG.normal(size=400), MANY * 5 % 8]), "column kind of X alone predicts y nearly"),
        (np.column_stack([X, RNG.permutation(60) + 1000]), Y, "column 4 of X looks like an ID"),
        (X, FAR, "y lies far outside in rows 7 (9999): fix them"),
    ],
)  # fmt: skip
def test_what_a_table_may_hide_is_named_in_a_line(x: Any, y: Any, message: str | None) -> None:
    lines = warnings_of(x, y)
    assert [line[: len(message or "")] for line in lines] == [message] * bool(message)
    assert warnings_of(X, FAR, np.where(FAR == 9999, 0.0, 1.0)) == []


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([[1]] * len(X), "column 'odd' of X must hold numbers, got [1]"),
        (pd.interval_range(0, len(X)), "column 'odd' of X must hold numbers, got Interval(0, 1, closed='right')"),
        ([pd.DateOffset(days=1)] * len(X), "column 'odd' of X must hold numbers, got <DateOffset: days=1>"),
    ],
)
def test_a_column_of_what_is_no_number_is_refused_by_name(column: Any, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        quick().fit(pd.DataFrame(X, columns=list("abcd")).assign(odd=column), Y)


def test_rows_by_name_alone_are_refused_and_what_is_masked_is_missing() -> None:
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = quick().fit(X, Y)
    for given in (frame.to_dict("list"), frame.to_dict("records"), frame.to_records(index=False)):
        for call in (model.predict, lambda rows: quick().fit(rows, Y)):
            with pytest.raises(InputError, match=r"X must be an array or a frame, got a .*: pd.DataFrame\(X\) is a"):
                call(given)
    masked, gaps = np.ma.masked_greater(X, 1), np.where(X > 1, np.nan, X)
    assert np.array_equal(quick().fit(masked, Y).predict(masked), quick().fit(gaps, Y).predict(gaps))
    with pytest.raises(ValueError, match="Input y contains NaN"):
        quick().fit(X, np.ma.masked_greater(Y, Y.mean()))
