"""What a table's columns and rows become: categories, gaps, pieces and weights, by their definitions."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingRegressor

from cmixup import InputError
from cmixup.sklearn import TabularRegressor
from cmixup.sklearn import rows as rows_module
from cmixup.sklearn.columns import categorical_columns, coded, indicators_of, levels_of, pieces_of, widened
from cmixup.sklearn.frames import as_frame
from cmixup.sklearn.network import Pieces
from cmixup.sklearn.rows import WeightedLabels, epoch_batches, merged, moments
from cmixup.training.batch import EpochBatches

FRAME = pd.DataFrame(
    {
        "size": [1.0, np.nan, 3.0, 4.0],
        "fuel": pd.Categorical(["gas", "oil", None, "gas"], categories=["sun", "oil", "gas"]),
        "zip": [7, 7, 12, 7],
        "rooms": [2, 3, 4, 5],
    }
)


def test_a_level_and_a_gap_have_a_column_each() -> None:
    levels = levels_of(FRAME, [1, 2], 4)
    assert levels == [None, ["gas", "oil"], [7.0, 12.0], None]
    x = np.asarray(coded(FRAME, levels)[0], dtype=np.float64)
    np.testing.assert_array_equal(x[:, 1], [0, 1, np.nan, 0])
    indicators = indicators_of(x, levels)
    np.testing.assert_array_equal(indicators, [[0, np.nan], [1, 0], [1, 1], [1, np.nan], [2, 0], [2, 1]])
    np.testing.assert_array_equal(
        widened(x, levels, indicators),
        [[1, 2, 0, 1, 0, 0, 1, 0], [np.nan, 3, 1, 0, 1, 0, 1, 0], [3, 4, 0, 0, 0, 1, 0, 1], [4, 5, 0, 1, 0, 0, 1, 0]],
    )
    new = FRAME.assign(fuel=["coal", "oil", "gas", None], size=1.0)  # coal has not been seen
    np.testing.assert_array_equal(coded(new, levels)[0]["fuel"], [-1, 1, 0, np.nan])
    array = as_frame(np.array([[1.0, "gas", 12, 2]], dtype=object))
    assert coded(array, levels)[0].to_numpy().tolist() == [[1.0, 0.0, 1.0, 2]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []), ("from_dtype", [1]), (["zip", "fuel"], [1, 2]), ([2], [2]), ([False, True, False, True], [1, 3]),
        (list(np.array([False, True, False, True])), [1, 3]), (list(np.array([2])), [2]),
        ([], []),
    ],
)  # fmt: skip
def test_categories_are_named_as_for_hist_gradient_boosting(given: Any, expected: list[int]) -> None:
    assert categorical_columns(given, FRAME) == expected
    plain = FRAME.assign(fuel=FRAME["fuel"].cat.codes.astype("category")) if given == "from_dtype" else FRAME.assign(
        fuel=FRAME["fuel"].cat.codes
    )  # fmt: skip
    theirs = HistGradientBoostingRegressor(categorical_features=given).fit(plain, np.arange(4.0)).is_categorical_
    assert (np.flatnonzero(theirs) if theirs is not None else np.arange(0)).tolist() == expected


@pytest.mark.parametrize("given", ["fuel", ["coal"], [4], [True, False], [True, "zip"]])
def test_other_names_of_categories_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match=r'categorical_features must be None, "from_dtype", or names, positions or a '):
        TabularRegressor(categorical_features=given).fit(FRAME, np.arange(4.0))


def table(n: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    kind, size = rng.choice(["a", "b", "c"], n), rng.normal(size=n)
    y = size + np.select([kind == "a", kind == "b"], [0.0, 4.0], -4.0)
    frame = pd.DataFrame({"size": np.where(rng.random(n) < 0.2, np.nan, size), "kind": pd.Categorical(kind)})
    return frame, y


def quick(**changes: Any) -> TabularRegressor:
    settings = {"members": 2, "epochs": 30, "lr": 0.02, "bandwidth": 0, "random_state": 0, "hidden_layer_sizes": (16,)}
    return TabularRegressor(**{**settings, **changes})


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # before it counts the columns
def test_categories_gaps_and_sparse_tables_are_learned_from() -> None:
    rng = np.random.default_rng(0)
    x, y = table()
    model = quick().fit(x[:150], y[:150])
    known = x[150:].notna().all(axis=1)
    assert model.score(x[150:][known], y[150:][known]) > 0.9
    np.testing.assert_array_equal(model.predict(x.assign(kind=x["kind"].astype(str))), model.predict(x))
    codes = np.column_stack([x["size"], x["kind"].cat.codes])
    np.testing.assert_array_equal(
        quick(categorical_features=[1]).fit(codes[:150], y[:150]).predict(codes), model.predict(x)
    )
    first = model.predict(x.assign(size=np.nan))
    assert len(set(first)) == 3  # the kind alone
    np.testing.assert_array_equal(first, model.predict(x.assign(size=pd.array([pd.NA] * 200, dtype="Float64"))))
    with pytest.warns(UserWarning, match="column kind of X: 200 of 200 rows have a level that training did not have"):
        assert np.isfinite(model.predict(x.assign(kind="unseen"))).all()
    dense = np.where(rng.random((60, 3)) < 0.7, 0.0, 1.0)
    sparse = quick(epochs=2).fit(csr_matrix(dense), dense.sum(axis=1))
    np.testing.assert_array_equal(sparse.predict(csr_matrix(dense)), sparse.predict(dense))
    for bad, message in (
        (x[["size"]], "feature names"),
        (x.to_numpy()[:, :1], "features"),
        (x.assign(size="tall"), "tall"),
        (x[:0], "0 sample"),
        (np.zeros((0, 2)), "0 sample"),
        (np.zeros(2), "Expected 2D array"),
    ):
        with pytest.raises(ValueError, match=message):
            model.predict(bad)


def test_weights_count_rows_of_categories_and_gaps_too() -> None:
    x, y = table(60)
    x["size"] = x["size"].round(1)
    weight = np.random.default_rng(0).integers(0, 4, len(x))
    x.loc[5, "kind"], weight[5] = np.nan, 0  # a gap that only a row of weight 0 has
    rows = np.random.default_rng(1).permutation(np.repeat(np.arange(60), weight))
    expected = quick(epochs=2).fit(x, y, sample_weight=weight).predict(x)
    assert np.array_equal(quick(epochs=2).fit(x.iloc[rows], y[rows]).predict(x), expected)


def test_pieces_end_at_quantiles_and_are_standardised() -> None:
    rng = np.random.default_rng(0)
    x, weight = rng.normal(size=(480, 2)), rng.integers(1, 4, 480).astype(float)
    x[:, 1] = x[:, 1] > 0  # two values have no piece
    x[:3, 0] = np.nan
    pieces = pieces_of(x, weight, 4)
    assert pieces.shape == (4, 5)
    assert (pieces[:, 0] == 0).all()
    repeated = np.repeat(x[3:, 0], weight[3:].astype(int))
    ends = np.quantile(repeated, np.linspace(0, 1, 5), method="inverted_cdf")
    np.testing.assert_array_equal(pieces[:, 1], ends[:-1])
    np.testing.assert_allclose(pieces[:, 1] + pieces[:, 2], ends[1:])
    values = Pieces(pieces, torch.device("cpu"), torch.float64)(torch.from_numpy(np.nan_to_num(x))).numpy()
    assert np.array_equal(values[:, :2], np.nan_to_num(x))
    expected = np.column_stack([np.interp(np.nan_to_num(x[:, 0]), pair, [0, 1]) for pair in pairwise(ends)])
    mean = np.average(expected, axis=0, weights=weight)
    deviation = np.sqrt(np.average((expected - mean) ** 2, axis=0, weights=weight))
    np.testing.assert_allclose(values[:, 2:], (expected - mean) / deviation)


@pytest.mark.parametrize(
    ("shape", "most", "expected"),
    [((480, 1), 32, 10), ((480, 1), 3, 3), ((95, 1), 32, 0), ((480, 60), 32, 240), ((4800, 10), 32, 320),
     ((4800, 100), 32, 500), ((480, 0), 32, 0), ((480, 2), 0, 0)],
)  # fmt: skip
def test_small_and_wide_tables_have_fewer_pieces(shape: tuple[int, int], most: int, expected: int) -> None:
    rng = np.random.default_rng(0)
    assert len(pieces_of(rng.normal(size=shape), np.ones(shape[0]), most)) == expected


def test_narrow_pieces_are_predicted_from_as_they_were_trained() -> None:
    x = 10 ** np.random.default_rng(0).uniform(-6, 6, (480, 1))
    model = quick(blend=None, hidden_layer_sizes=(), epochs=9).fit(x, np.log(x[:, 0]))
    z = torch.from_numpy(model._table.inputs(model, x).z.astype(np.float32))
    seen = Pieces(model._table.pieces, z.device, z.dtype)(z).numpy()
    trained = np.mean([seen @ w + b for w, b in zip(model.coefs_[0], model.intercepts_[0], strict=True)], axis=0)
    np.testing.assert_allclose(model.predict(x), trained[:, 0] * model.y_scale_ + model.y_mean_, rtol=1e-3, atol=1e-3)


def test_equal_rows_become_one() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(-1, 2, (50, 2)).astype(float), rng.integers(0, 2, (50, 1)).astype(float)
    weight = rng.integers(0, 3, 50).astype(float)
    x[x == 0] *= rng.choice([-1.0, 1.0], (x == 0).sum())  # zeros of both signs are equal
    rows, _ = merged(x, y, weight)
    expected: dict[tuple[float, ...], float] = {}
    for row, w in zip(np.column_stack([x, y]), weight, strict=True):
        if w:
            expected[tuple(row)] = expected.get(tuple(row), 0) + w
    assert {tuple(r): w for r, w in zip(np.column_stack([rows.x, rows.y]), rows.weight, strict=True)} == expected
    order = rng.permutation(50)
    again, _ = merged(x[order], y[order], weight[order])
    assert np.array_equal(rows.x, again.x)
    assert np.array_equal(rows.weight, again.weight)


def test_moments_are_those_of_repeated_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    values, weight = rng.normal(3, 2, (20, 2)), rng.integers(1, 5, 20)
    mean, deviation = moments(values, weight.astype(float))
    repeated = np.repeat(values, weight, axis=0)
    np.testing.assert_allclose(mean, repeated.mean(axis=0))
    np.testing.assert_allclose(deviation, repeated.std(axis=0))
    np.testing.assert_allclose(moments(values * 1e-170, weight)[1], deviation * 1e-170)
    values, weight = rng.normal(3, 2, (999, 7)), rng.random(999)
    whole = moments(values, weight)
    monkeypatch.setattr(rows_module, "AT_ONCE", 10)
    np.testing.assert_array_equal(moments(values, weight), whole)  # of halves


def test_rows_come_by_their_share() -> None:
    weight = np.array([1.0, 1.0, 2.0, 0.5, 5.5])
    share, count = weight / 2, np.zeros(5)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        epoch = epoch_batches(weight, 2, rng, 5)
        assert epoch.sizes.tolist() == [2, 2, 1]
        times = np.bincount(epoch.index, minlength=5)
        assert ((np.floor(share) <= times) & (times <= np.ceil(share))).all()
        count += times
    np.testing.assert_allclose(count / 2000, share, atol=0.05)
    assert sorted(epoch_batches(np.full(7, 0.1), 3, rng, 7).index) == list(range(7))
    first = [epoch_batches(weight, 2, rng, 5).index[0] for _ in range(500)]
    assert np.bincount(first, minlength=5).min() > 15  # in random order


@pytest.mark.parametrize("refusals", [64, 1, 0])
def test_partners_follow_weight_and_distance(monkeypatch: pytest.MonkeyPatch, refusals: int) -> None:
    """Chi-square against w_j exp(-d^2 / 2 s^2), by refusal, by exact rows and by both."""
    monkeypatch.setattr(rows_module, "REFUSALS", refusals)
    labels, weight = np.array([[0.0], [0.2], [0.3], [1.0]]), np.array([1.0, 3.0, 0.2, 10.0])
    pairing = WeightedLabels(labels, weight, 0.5)
    draws = 4000 if refusals == 64 else 1500
    drawn = pairing.draw(EpochBatches(np.full(draws, 1), np.array([draws])), np.random.default_rng(0))
    share = weight * np.exp(-((labels[:, 0] - 0.2) ** 2) / (2 * 0.5**2))
    expected = draws * share / share.sum()
    assert ((np.bincount(drawn, minlength=4) - expected) ** 2 / expected).sum() < 16.3  # 0.999, 3 degrees of freedom
