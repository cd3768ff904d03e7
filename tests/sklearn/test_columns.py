"""What a table's columns become: categories, gaps and pieces, by their definitions and as the regressor takes them."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.ensemble import HistGradientBoostingRegressor

from cmixup import InputError
from cmixup.sklearn import CMixupRegressor
from cmixup.sklearn.columns import categorical_columns, coded, indicators_of, levels_of, pieces_of, widened
from cmixup.sklearn.network import MLP, Pieces

RNG = np.random.default_rng(0)
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
    x = np.asarray(coded(FRAME, levels), dtype=np.float64)
    np.testing.assert_array_equal(x[:, 1], [0, 1, np.nan, 0])
    indicators = indicators_of(x, levels)
    np.testing.assert_array_equal(indicators, [[0, np.nan], [1, 0], [1, 1], [1, np.nan], [2, 0], [2, 1]])
    np.testing.assert_array_equal(
        widened(x, levels, indicators),
        [[1, 2, 0, 1, 0, 0, 1, 0], [np.nan, 3, 1, 0, 1, 0, 1, 0], [3, 4, 0, 0, 0, 1, 0, 1], [4, 5, 0, 1, 0, 0, 1, 0]],
    )
    new = FRAME.assign(fuel=["coal", "oil", "gas", None], size=1.0)  # coal has not been seen
    np.testing.assert_array_equal(coded(new, levels)["fuel"], [-1, 1, 0, np.nan])
    assert coded(np.array([[1.0, "gas", 12, 2]], dtype=object), levels).tolist() == [[1.0, 0.0, 1.0, 2]]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, []),
        ("from_dtype", [1]),
        (["zip", "fuel"], [1, 2]),
        ([2], [2]),
        ([False, True, False, True], [1, 3]),
        ([], []),
    ],
)
def test_categories_are_named_as_for_hist_gradient_boosting(given: Any, expected: list[int]) -> None:
    assert categorical_columns(given, FRAME) == expected
    plain = FRAME.assign(fuel=FRAME["fuel"].cat.codes.astype("category")) if given == "from_dtype" else FRAME.assign(
        fuel=FRAME["fuel"].cat.codes
    )  # fmt: skip
    theirs = HistGradientBoostingRegressor(categorical_features=given).fit(plain, np.arange(4.0)).is_categorical_
    assert (np.flatnonzero(theirs) if theirs is not None else np.arange(0)).tolist() == expected


@pytest.mark.parametrize("given", ["fuel", ["coal"], [4], [-1], [True, False], 3, [1.0], {"a": 1}])
def test_other_names_of_categories_are_refused(given: Any) -> None:
    with pytest.raises(InputError, match=r'categorical_features must be None, "from_dtype", or names, positions or a '):
        CMixupRegressor(categorical_features=given).fit(FRAME, np.arange(4.0))


def table(n: int = 200) -> tuple[pd.DataFrame, np.ndarray]:
    kind, size = RNG.choice(["a", "b", "c"], n), RNG.normal(size=n)
    y = size + np.select([kind == "a", kind == "b"], [0.0, 4.0], -4.0)
    frame = pd.DataFrame({"size": np.where(RNG.random(n) < 0.2, np.nan, size), "kind": pd.Categorical(kind)})
    return frame, y


def quick(**changes: Any) -> CMixupRegressor:
    settings = {"members": 2, "epochs": 30, "lr": 0.02, "bandwidth": 0, "random_state": 0, "hidden_layer_sizes": (16,)}
    return CMixupRegressor(**{**settings, **changes})


@pytest.mark.filterwarnings("ignore:X does not have valid feature names")  # before it counts the columns
def test_categories_gaps_and_sparse_tables_are_learned_from() -> None:
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
    assert np.isfinite(model.predict(x.assign(kind="unseen"))).all()
    dense = np.where(RNG.random((60, 3)) < 0.7, 0.0, 1.0)
    sparse = quick(epochs=2).fit(csr_matrix(dense), dense.sum(axis=1))
    np.testing.assert_array_equal(sparse.predict(csr_matrix(dense)), sparse.predict(dense))
    for bad, said in (
        (x[["size"]], "feature names"),
        (x.to_numpy()[:, :1], "features"),
        (x.assign(size="tall"), "tall"),
    ):
        with pytest.raises(ValueError, match=said):
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
    x, weight = RNG.normal(size=(480, 2)), RNG.integers(1, 4, 480).astype(float)
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
    network, z = MLP([2, 5, 1], Pieces(pieces, torch.device("cpu"), torch.float32)), torch.randn(7, 2)
    for layer in ("input", "block1"):
        assert torch.equal(network.decode(network.encode(z, layer), layer), network(z))


@pytest.mark.parametrize(
    ("shape", "most", "expected"),
    [((480, 1), 32, 10), ((480, 1), 3, 3), ((95, 1), 32, 0), ((480, 60), 32, 240), ((4800, 10), 32, 320),
     ((4800, 100), 32, 500), ((480, 0), 32, 0), ((480, 2), 0, 0)],
)  # fmt: skip
def test_small_and_wide_tables_have_fewer_pieces(shape: tuple[int, int], most: int, expected: int) -> None:
    assert len(pieces_of(RNG.normal(size=shape), np.ones(shape[0]), most)) == expected
