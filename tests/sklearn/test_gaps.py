"""`TabularRegressor` on labels with gaps: moments, loss, partners, trees and scores leave them out."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import r2_score

from cmixup import InputError
from cmixup.sklearn.table import fit_table
from tests.sklearn.test_regressor import X, Y, quick

PAIR = np.column_stack([Y, Y[::-1] ** 2])
GAPS = PAIR.copy()
GAPS[::3, 1] = np.nan
GAPS[1::4, 0] = np.nan
GAPS[np.isnan(GAPS).all(axis=1), 0] = 100.0


@pytest.mark.parametrize("bandwidth", [0, 0.5, np.inf, "validated", ("fraction", 0.3)])
def test_every_bandwidth_trains_and_says_finite_numbers(bandwidth: Any) -> None:
    model = quick(bandwidth=bandwidth, blend="trees").fit(X, GAPS)
    for numbers in (model.predict(X), model.predict_interval(X, 0.8), model.validation_scores_, model.loss_curve_):
        assert np.isfinite(numbers).all()
    np.testing.assert_allclose(model.y_mean_, np.nanmean(GAPS, axis=0))
    np.testing.assert_allclose(model.y_scale_, np.nanstd(GAPS, axis=0))


@pytest.mark.parametrize("options", [{}, {"loss": "quantile"}])
def test_an_output_with_one_label_has_predictions_and_no_interval(options: dict[str, Any]) -> None:
    y = PAIR.copy()
    y[1:, 1] = np.nan
    model = quick(blend="trees", **options).fit(X, y)
    np.testing.assert_array_equal(model.predict(X)[:, 1], np.full(len(X), y[0, 1]))
    with pytest.raises(InputError, match=r"coverage=0\.8 needs a fit that held rows out"):
        model.predict_interval(X, 0.8)


def test_an_output_learns_from_its_own_labels_alone() -> None:
    """Of a linear model without mixing the two outputs share nothing, so the other one's gaps change nothing."""
    line = X @ [1.0, -2.0, 3.0, 0.0]
    y = np.column_stack([line, line])
    y[:30, 1] = np.nan
    model = quick(hidden_layer_sizes=(), bandwidth=0, epochs=300, batch_size=64, lr=0.05, early_stopping=False)
    np.testing.assert_allclose(model.fit(X, y).predict(X), np.column_stack([line, line]), atol=0.02)


def test_what_stands_for_a_gap_does_not_matter() -> None:
    """Frames of pandas with their own missing values, and lists."""
    frame = pd.DataFrame(GAPS, columns=["a", "b"])
    expected = quick().fit(X, GAPS).predict(X)
    for y in (frame, frame.convert_dtypes(), GAPS.tolist(), np.asfortranarray(GAPS)):
        assert np.array_equal(quick().fit(X, y).predict(X), expected)


@pytest.mark.filterwarnings("ignore:column .* alone predicts y")
def test_trees_learn_each_output_from_its_own_rows() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(150, 2)), rng.normal(size=(150, 2))
    y[:, 0] = np.floor(2 * x[:, 0])
    y[::3, 1] = np.nan
    model = quick(blend="trees", epochs=1, members=1).fit(x, y)
    held = np.flatnonzero(np.isin(x[:, 0], x[:, 0]))  # all rows
    assert model.blend_weight_.shape == (2,)
    assert model.blend_weight_[0] > 0.5
    alone = HistGradientBoostingRegressor(early_stopping=False).fit(x[held], y[held, 0])
    np.testing.assert_allclose(model.predict(x)[:, 0], alone.predict(x), atol=1.0)


def test_residuals_and_scores_leave_gaps_out() -> None:
    model = quick(members=10, validation_fraction=0.1).fit(X, GAPS)
    assert np.array_equal(np.isnan(model._intervals.residuals).sum(axis=0), np.isnan(GAPS).sum(axis=0))
    predicted, known = model.predict(X), ~np.isnan(GAPS)
    weight = np.random.default_rng(2).uniform(1, 2, len(X))
    scores = [r2_score(GAPS[k, c], predicted[k, c], sample_weight=weight[k]) for c, k in enumerate(known.T)]
    assert model.score(X, GAPS, weight) == pytest.approx(np.mean(scores))
    assert model.score(X, PAIR) == pytest.approx(r2_score(PAIR, predicted))


NAN = np.nan


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1, 2], [NAN, NAN], [1, 3]], "y must have an output in each row, got only NaN in row 1"),
        ([[1, NAN], [2, NAN], [3, NAN]], "y must have a label of each output, got none of output 1"),
        ([[1, NAN, NAN], [NAN, 2, NAN], [NAN, NAN, 3]], "y must have an output that two rows have, got none among 3"),
        ([1, NAN, 2], "Input y contains NaN"),
    ],
)  # fmt: skip
def test_labels_that_say_too_little_are_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick().fit(X[:3], y)


def test_a_row_of_weight_0_may_be_empty() -> None:
    y = GAPS.copy()
    y[7] = np.nan
    weight = np.ones(len(X))
    weight[7] = 0
    expected = quick().fit(np.delete(X, 7, axis=0), np.delete(y, 7, axis=0)).predict(X)
    assert np.array_equal(quick().fit(X, y, sample_weight=weight).predict(X), expected)


@pytest.mark.parametrize("alone", ["a", "z"])  # before and after the other levels
@pytest.mark.filterwarnings("ignore:.*has levels")
def test_a_row_of_weight_0_adds_no_level(alone: str) -> None:
    frame = pd.DataFrame({"x": X[:, 0], "level": np.where(X[:, 1] > 0, "c", "d")})
    more, y = pd.concat([frame, pd.DataFrame({"x": [9.0], "level": [alone]})]), np.append(Y, 5.0)
    plain, model = (quick(categorical_features=["level"]) for _ in range(2))
    expected = plain.fit(frame, y[:-1]).predict(more)
    assert np.array_equal(model.fit(more, y, sample_weight=np.append(np.ones(len(X)), 0.0)).predict(more), expected)


@pytest.mark.filterwarnings("ignore:.*has levels")
def test_a_level_and_a_gap_of_hardly_any_weight_are_as_of_weight_0() -> None:
    frame = pd.DataFrame({"x": X[:, 0], "level": np.where(X[:, 1] > 0, "c", "d")})
    more, y = pd.concat([frame, pd.DataFrame({"x": [np.nan], "level": ["z"]})]), np.append(Y, 100.0)
    model = quick(categorical_features=["level"]).fit(more, y, sample_weight=np.append(np.ones(len(X)), 1e-12))
    assert np.ptp(model.predict(more)) < 2 * np.ptp(Y)


def test_a_rare_level_counts_by_the_rows_given_not_by_the_different_ones() -> None:
    level = np.repeat(["a", "b", "c"], [9990, 10_000, 10])
    table, rows, _ = fit_table(quick(categorical_features=[0]), pd.DataFrame({"level": level}), level == "c", None)
    assert len(rows) == 3
    assert (table.x_scale > 0).all()
