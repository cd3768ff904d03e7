"""Frames of other libraries, dates, text, and labels that are text."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.errors import InputError
from cmixup.sklearn import CMixupRegressor, CMixupResampler
from cmixup.sklearn.frames import as_frame, in_numbers

N = 60
RNG = np.random.default_rng(0)
SIZE, KIND = RNG.normal(size=N), RNG.choice(["a", "b"], N)
DAYS = np.datetime64("2024-01-01") + RNG.integers(0, 300, N)
Y = SIZE + (KIND == "a") * 3 + (DAYS - DAYS.min()).astype(float) / 100
FRAME = pd.DataFrame({"size": SIZE, "kind": pd.Categorical(KIND), "day": DAYS})


def quick() -> CMixupRegressor:
    return CMixupRegressor(members=2, epochs=2, bandwidth=0, random_state=0, hidden_layer_sizes=(8,))


def test_dates_are_days_since_1970_and_gaps_nan() -> None:
    dates = np.array(["1970-01-02", "NaT", "2024-01-01T12:00"], dtype="datetime64[ns]")
    frame = pd.DataFrame({"plain": dates, "there": pd.to_datetime(dates).tz_localize("UTC").tz_convert("Asia/Tokyo")})
    expected = np.array([1.0, np.nan, 19723.5])
    found = in_numbers(frame, [])
    for name in frame:
        np.testing.assert_array_equal(found[name], expected)
    np.testing.assert_array_equal(in_numbers(dates[:, None], [])[:, 0], expected)
    assert frame["plain"].dtype.kind == "M"  # the given one stays
    counted = FRAME.assign(day=in_numbers(FRAME, [1])["day"])
    np.testing.assert_array_equal(quick().fit(FRAME, Y).predict(FRAME), quick().fit(counted, Y).predict(counted))


def test_a_polars_frame_is_the_same_as_one_of_pandas() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"size": SIZE, "kind": pl.Series(KIND, dtype=pl.Categorical), "day": DAYS})
    frame = frame.with_columns(size=pl.when(pl.int_range(N) == 3).then(None).otherwise(pl.col("size")))
    theirs = FRAME.assign(size=np.where(np.arange(N) == 3, np.nan, SIZE))
    model, expected = quick().fit(frame, pl.Series(Y)), quick().fit(theirs, Y)
    assert list(model.feature_names_in_) == ["size", "kind", "day"]
    np.testing.assert_array_equal(model.predict(frame), expected.predict(theirs))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename({"size": "length"}))
    with pytest.raises(InputError, match=r"column 'kind' of X holds text, such as '[ab]'"):
        quick().fit(frame.with_columns(pl.col("kind").cast(pl.String)), Y)


class Interchanged:
    """A frame that says no more than that it can be interchanged."""

    def __dataframe__(self) -> Any:
        raise NotImplementedError


def test_a_frame_without_its_reader_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)
    with pytest.raises(InputError, match="needs narwhals: pip install narwhals pandas"):
        as_frame(Interchanged())


@pytest.mark.parametrize("kind", [object, "string"])
def test_text_names_the_remedy_and_where_it_works(kind: Any) -> None:
    text = FRAME.assign(kind=pd.Series(KIND, dtype=kind))
    said = r'column .kind. of X holds text, such as .[ab].: make it categories by X\[.kind.\]\.astype\("category"\)'
    with pytest.raises(InputError, match=said):
        quick().fit(text, Y)
    mended = text.assign(kind=text["kind"].astype("category"))
    np.testing.assert_array_equal(quick().fit(mended, Y).predict(mended), quick().fit(FRAME, Y).predict(FRAME))
    numbers = FRAME.assign(size=pd.Series(SIZE.astype(str), dtype=object))
    assert np.isfinite(quick().fit(numbers, Y).predict(numbers)).all()


@pytest.mark.parametrize(
    "labels", [Y.astype(str), Y.astype(str).astype(object), pd.Series(Y.astype(str)), [*"ab"] * 30]
)
def test_labels_that_are_text_are_refused(labels: Any) -> None:
    with pytest.raises(InputError, match="y must be numbers, got text such as '"):
        quick().fit(FRAME, labels)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.clone().requires_grad_(),
        lambda t: t.to_sparse(),
        lambda t: t.half(),
        lambda t: t.bfloat16(),
        lambda t: t.to(torch.float8_e4m3fn),
    ],
    ids=["grad", "sparse", "half", "bfloat16", "float8"],
)  # fmt: skip
def test_tensors_of_every_kind_are_read(change: Any) -> None:
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.integers(-4, 5, shape).astype(np.float32)) for shape in ((60, 3), (60, 2)))
    expected = quick().fit(x.numpy(), y.numpy()).predict(x.numpy())
    model = quick().fit(change(x), change(y))  # small whole numbers are the same in all of them
    assert np.array_equal(model.predict(change(x)), expected)
    assert model.score(change(x), change(y)) == quick().fit(x.numpy(), y.numpy()).score(x.numpy(), y.numpy())
    found = [CMixupResampler(random_state=0).fit_resample(a, b) for a, b in ((x, y), (change(x), change(y)))]
    for mine, theirs in zip(*found, strict=True):
        assert np.array_equal(mine, theirs)


@pytest.mark.parametrize("name", ["X", "y", "sample_weight", "X_val", "y_val", "groups"])
def test_tensors_without_real_numbers_are_refused_by_name(name: str) -> None:
    rng = np.random.default_rng(0)
    given = {"X": rng.normal(size=(60, 3)), "y": rng.normal(size=60)}
    if "val" in name:
        given |= {"X_val": given["X"][:5], "y_val": given["y"][:5]}
    for bad in (torch.zeros(60, 3, dtype=torch.complex64), torch.zeros(60, 3, device="meta")):
        with pytest.raises(InputError, match=f"^{name} must be a tensor of real numbers with values, got"):
            quick().fit(**given | {name: bad})
