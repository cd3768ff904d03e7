"""`CMixupResampler`: the closed form, column by column."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import LinearRegression

from cmixup import InputError
from cmixup.sklearn import CMixupResampler

N = 40


def frame() -> pd.DataFrame:
    """A column of each kind."""
    rng = np.random.default_rng(1)
    columns = {
        "float": rng.normal(size=N),
        "half": rng.normal(size=N).astype(np.float32),
        "count": rng.integers(0, 100, N),
        "code": rng.integers(0, 5, N),
        "text": pd.Categorical([f"text {i}" for i in range(N)]),
        "category": pd.Categorical([f"kind {i}" for i in range(N)]),
        "flag": rng.random(N) < 0.5,
        "day": pd.date_range("2020-01-01", periods=N),
        "nullable": pd.array([None, *range(1, N)], dtype="Int64"),
    }
    return pd.DataFrame(columns, index=[f"row {i}" for i in range(N)])


X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.random.default_rng(2).normal(size=N)
FRAME = frame()
DATES = np.datetime64("2024-03-01T12:00") + np.random.default_rng(3).integers(0, 3000, N).astype("m8[h]")


def closed_form(sampler: CMixupResampler, values: np.ndarray) -> np.ndarray:
    lam = sampler.lam_.astype(np.float64).reshape(-1, *[1] * (values.ndim - 1))
    return lam * values[sampler.rows_] + (1 - lam) * values[sampler.partners_]


def test_rows_and_labels_are_the_closed_form() -> None:
    sampler = CMixupResampler(bandwidth=0.5, random_state=0)
    x, y = sampler.fit_resample(X, Y)
    assert np.array_equal(x[:N], X)
    assert np.array_equal(y[:N], Y)
    np.testing.assert_allclose(x[N:], closed_form(sampler, X), rtol=1e-12)
    np.testing.assert_allclose(y[N:], closed_form(sampler, Y), rtol=1e-12)
    assert sampler.rows_.tolist() == list(range(N))
    assert (sampler.partners_ != sampler.rows_).sum() > N / 2
    assert sampler.lam_.std() > 0


@pytest.mark.parametrize(("ratio", "new"), [(0, 0), (0.5, 20), (1, 40), (2.25, 90)])
@pytest.mark.parametrize("keep", [True, False])
def test_how_many_rows(ratio: float, new: int, keep: bool) -> None:
    sampler = CMixupResampler(ratio=ratio, keep_original=keep, random_state=0)
    if not (new or keep):
        with pytest.raises(InputError, match="ratio must leave rows where none are kept, got 0"):
            sampler.fit_resample(X, Y)
        return
    x, y = sampler.fit_resample(X, Y)
    assert len(x) == len(y) == new + N * keep
    times = np.bincount(sampler.rows_, minlength=N)
    assert set(times) <= {int(ratio), int(np.ceil(ratio))}
    assert times.sum() == new


def test_columns_by_their_dtype() -> None:
    sampler = CMixupResampler(ratio=3, bandwidth=np.inf, categorical=["code"], random_state=0)
    x, y = sampler.fit_resample(FRAME, pd.Series(Y, name="label"))
    assert x.dtypes.equals(FRAME.dtypes)
    assert x.index.tolist() == list(range(4 * N))
    assert x[:N].equals(FRAME.reset_index(drop=True))
    assert y.name == "label"
    new = x[N:].reset_index(drop=True)
    for name, atol in (("float", 1e-12), ("half", 1e-6)):
        np.testing.assert_allclose(new[name], closed_form(sampler, FRAME[name].to_numpy()), atol=atol)
    assert np.array_equal(new["count"], np.rint(closed_form(sampler, FRAME["count"].to_numpy())))
    # One of the two rows gives all categories; which of them, by its weight.
    took = new["text"].astype(str).str.removeprefix("text ").astype(int).to_numpy()
    from_row = took == sampler.rows_
    assert (from_row | (took == sampler.partners_)).all()
    other = sampler.rows_ != sampler.partners_
    assert sampler.lam_[other & from_row].mean() > 0.55
    assert sampler.lam_[other & ~from_row].mean() < 0.45
    for name in ("code", "category", "flag"):
        assert np.array_equal(new[name], FRAME[name].iloc[took]), name
    days = (FRAME["day"] - pd.Timestamp(0)).dt.days.to_numpy().astype(float)
    assert np.array_equal(new["day"], pd.to_datetime(np.rint(closed_form(sampler, days)), unit="D"))
    missing = (sampler.rows_ == 0) | (sampler.partners_ == 0)
    assert missing.any()
    assert np.array_equal(new["nullable"].isna(), missing & (took == 0))
    filled = FRAME["nullable"].to_numpy(dtype=float, na_value=0)
    assert np.array_equal(new["nullable"][~missing].astype(float), np.rint(closed_form(sampler, filled))[~missing])


def test_missing_numbers_of_arrays() -> None:
    x = X.copy()
    x[::3, 1], x[1, 2] = np.nan, np.inf
    sampler = CMixupResampler(bandwidth=np.inf, keep_original=False, random_state=0)
    new, _ = sampler.fit_resample(x, Y)
    first, second = x[sampler.rows_, 1], x[sampler.partners_, 1]
    both = np.isfinite(first) & np.isfinite(second)
    np.testing.assert_allclose(new[both, 1], closed_form(sampler, x)[both, 1])
    one = ~both
    equals = lambda a, b: (a == b) | (np.isnan(a) & np.isnan(b))  # noqa: E731
    assert (equals(new[one, 1], first[one]) | equals(new[one, 1], second[one])).all()
    assert np.isfinite(new[one, 1]).any()
    assert not np.isnan(new[:, 2]).any()


def test_arrays_of_whole_numbers_stay_whole() -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 200, (N, 2)).astype(np.uint8)
    sampler = CMixupResampler(random_state=0, keep_original=False, categorical=[1])
    new, _ = sampler.fit_resample(x, rng.integers(0, 9, N))
    assert new.dtype == np.uint8
    assert np.array_equal(new[:, 0], np.rint(closed_form(sampler, x[:, 0].astype(float))))
    assert ((new[:, 1] == x[sampler.rows_, 1]) | (new[:, 1] == x[sampler.partners_, 1])).all()


@pytest.mark.parametrize("kind", ["int64", "uint64", "Int64"])
def test_numbers_that_float64_cannot_hold_are_kept(kind: str) -> None:
    """Identities and the largest number as a sign of a missing one: each value is one of the two rows'."""
    ids = np.array([2**62 + k for k in range(N - 1)] + [2**63 - 1], dtype=kind.lower())
    x = pd.DataFrame({"id": pd.array(ids, dtype=kind), "count": np.arange(N)})
    sampler = CMixupResampler(keep_original=False, bandwidth=np.inf, random_state=0)
    new, _ = sampler.fit_resample(x, Y)
    given, kept = x["id"].to_numpy(), new["id"].to_numpy()
    assert ((kept == given[sampler.rows_]) | (kept == given[sampler.partners_])).all()
    assert np.array_equal(new["count"], np.rint(closed_form(sampler, np.arange(N))))


def test_partners_are_near() -> None:
    labels = np.repeat([0.0, 1.0], N // 2)
    near = CMixupResampler(bandwidth=0.05, random_state=0)
    _, y = near.fit_resample(X, labels)
    assert set(y) == {0.0, 1.0}
    far = CMixupResampler(bandwidth=np.inf, random_state=0)
    far.fit_resample(X, labels)
    assert 0.25 < (labels[far.rows_] != labels[far.partners_]).mean() < 0.75
    assert CMixupResampler(bandwidth=("std", 2), random_state=0).fit_resample(X, labels)[0].shape == (2 * N, 3)


def test_several_outputs_are_compared_in_their_own_units() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=(N, 2))
    drawn = []
    for unit in (1.0, 1024.0):
        sampler = CMixupResampler(bandwidth=0.3, random_state=0)
        _, mixed = sampler.fit_resample(X, pd.DataFrame(y * [1.0, unit], columns=["a", "b"]))
        assert mixed.columns.tolist() == ["a", "b"]
        np.testing.assert_allclose(mixed.to_numpy()[N:], closed_form(sampler, y * [1.0, unit]), rtol=1e-9)
        drawn.append(sampler.partners_)
    assert np.array_equal(*drawn)


def test_pipeline_of_imbalanced_learn() -> None:
    pipeline = pytest.importorskip("imblearn.pipeline")
    steps = pipeline.make_pipeline(CMixupResampler(random_state=0), LinearRegression())
    assert steps.fit(X, X @ [1.0, 2.0, 3.0]).predict(X[:1]) == pytest.approx(X[:1] @ [1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("options", "x", "y", "message"),
    [
        ({"ratio": -1}, X, Y, "ratio must be a finite number, 0 or more, got -1"),
        ({"bandwidth": "wide"}, X, Y, "bandwidth must be a number, .*, got 'wide'"),
        (
            {"categorical": "code"},
            FRAME,
            Y,
            "categorical must be None, .* names, positions or a mask of the 9 columns, got 'code'",
        ),
        ({}, X[:, 0], Y, r"X must have shape \(n, d\), got \(40,\)"),
        ({}, csr_array(X), Y, "X must be dense, got csr_array: sparse data are not supported"),
        ({"categorical": ["cod"]}, FRAME, Y, "categorical must be None, .*, got .'cod'."),
        ({}, X, Y[:-1], r"y must have shape \(n,\) or \(n, d_y\) with the 40 rows of X, got \(39,\)"),
        ({}, X, pd.Series(Y.astype(str)), "y must be numbers, got text such as '.*': y.astype"),
        ({}, X, np.where(np.arange(N) == 3, np.nan, Y), "labels must be finite .*, got nan in row 3"),
    ],
)
def test_bad_input(options: dict[str, Any], x: Any, y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CMixupResampler(**options).fit_resample(x, y)


def test_dates_are_mixed_as_days_and_stay_dates() -> None:
    gone = np.where(np.arange(N) == 3, np.datetime64("NaT"), DATES).astype("M8[us]")
    frame = pd.DataFrame({"plain": gone, "there": pd.Series(gone).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo")})
    sampler = CMixupResampler(keep_original=False, bandwidth=np.inf, random_state=0)
    new, _ = sampler.fit_resample(frame, Y)
    assert new.dtypes.equals(frame.dtypes)
    seconds = closed_form(sampler, gone.astype("M8[us]").astype(np.int64) / 1e6)
    both = (sampler.rows_ != 3) & (sampler.partners_ != 3)
    days = new["plain"].to_numpy("M8[us]").astype(np.int64) / 1e6
    np.testing.assert_allclose(days[both], seconds[both], atol=1e-3)
    assert (days[both] % 3600 != 0).any()  # not one of the two
    assert new["there"].dt.tz_convert("UTC").dt.tz_localize(None).equals(new["plain"])
    array, _ = sampler.fit_resample(gone[:, None], Y)
    assert array.dtype == gone.dtype
    np.testing.assert_array_equal(array[:, 0], new["plain"].to_numpy())


def test_a_polars_frame_gives_the_rows_of_a_pandas_frame_in_its_own_types() -> None:
    pl = pytest.importorskip("polars")
    small = FRAME.drop(columns=["text"]).reset_index(drop=True)
    day = pl.Series(small["day"].to_numpy()).cast(pl.Date)
    kind = pl.Series(small["category"].astype(str).tolist(), dtype=pl.Categorical)
    given = pl.DataFrame({name: small[name].to_numpy() for name in ("float", "half", "count", "code", "flag")})
    nullable = pl.Series([None, *range(1, N)], dtype=pl.Int16)
    frame = given.with_columns(category=kind, day=day, nullable=nullable).select(small.columns)
    for keep in (True, False):
        sampler = CMixupResampler(categorical=["code"], keep_original=keep, bandwidth=np.inf, random_state=0)
        expected, expected_y = sampler.fit_resample(small, pd.Series(Y, name="label"))
        resampled, mixed_y = sampler.fit_resample(frame, pl.Series("label", Y))
        assert resampled.schema == frame.schema
        assert (mixed_y.name, mixed_y.dtype) == ("label", pl.Float64)
        np.testing.assert_array_equal(mixed_y.to_numpy(), expected_y)
        for name in ("float", "half", "count", "code", "flag", "day"):
            np.testing.assert_array_equal(resampled[name].to_numpy(), expected[name].to_numpy())
        assert resampled["category"].cast(pl.String).to_list() == expected["category"].tolist()
        assert resampled["nullable"].to_list() == [None if v is pd.NA else v for v in expected["nullable"]]
    two = pl.DataFrame({"a": Y, "b": Y**2})
    _, mixed = CMixupResampler(random_state=0).fit_resample(frame, two)
    assert mixed.schema == two.schema
    assert mixed.shape == (2 * N, 2)
    with pytest.raises(InputError, match=r"column 'category' of X holds text, such as 'kind 0'.*pl.Categorical"):
        sampler.fit_resample(frame.with_columns(pl.col("category").cast(pl.String)), Y)


@pytest.mark.parametrize("values", [["a", "b"], ["1.5", "2"]])
def test_text_says_how_to_encode_it_and_both_ways_work(values: list[str]) -> None:
    text = pd.DataFrame({"x": X[:, 0], "kind": pd.Series(values * (N // 2), dtype=object)})
    message = (
        rf"column 'kind' of X holds text, such as '{values[0]}': .*X\['kind'\]\.astype\(\"category\"\).*in categorical$"
    )
    for given in (text, text.to_numpy()):
        with pytest.raises(InputError, match=message if given is text else "column '1' of X holds text"):
            CMixupResampler().fit_resample(given, Y)
    named, _ = CMixupResampler(categorical=["kind"], random_state=0).fit_resample(text, Y)
    coded, _ = CMixupResampler(random_state=0).fit_resample(text.assign(kind=text["kind"].astype("category")), Y)
    assert named["kind"].tolist() == coded["kind"].tolist()
    assert set(named["kind"]) == set(values)
