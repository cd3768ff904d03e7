"""Intervals against the definition of CV+, their coverage, and what is refused."""

import math
from pathlib import Path

import numpy as np
import pytest

from cmixup import InputError
from cmixup.sklearn.held_out import Part
from cmixup.sklearn.intervals import Residuals, interval, residuals_of
from cmixup.sklearn.regressor import CMixupRegressor
from tests.sklearn.test_regressor import X, Y, quick, table


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_ends_are_those_of_the_definition(share: float) -> None:
    """Barber et al. 2021: the ceil((1 - a)(k + 1))-th smallest mu_i(x) + R_i, and its mirror image."""
    rng = np.random.default_rng(0)
    size, members = rng.exponential(size=(23, 2)), np.eye(3)[rng.integers(0, 3, 23)]
    predicted = rng.normal(size=(3, 7, 2))
    low, high = interval(Residuals(size, np.ones(23), members), predicted, share)
    rank = math.ceil(share * 24 - 1e-9)
    of = predicted[members.argmax(axis=1)]
    np.testing.assert_array_equal(high, np.sort(of + size[:, None], axis=0)[rank - 1])
    np.testing.assert_array_equal(low, np.sort(of - size[:, None], axis=0)[23 - rank])


def test_a_weight_counts_rows_and_a_missing_label_counts_for_nothing() -> None:
    rng = np.random.default_rng(1)
    size, members, predicted = rng.exponential(size=(12, 1)), np.ones((12, 1)), rng.normal(size=(1, 4, 1))
    expected = interval(Residuals(size, np.ones(12), members), predicted, 0.7)
    gaps = np.concatenate([size, np.full((5, 1), np.nan)])
    found = interval(Residuals(gaps, np.ones(17), np.ones((17, 1))), predicted, 0.7)
    np.testing.assert_array_equal(found, expected)
    found = interval(Residuals(size, np.full(12, 3.0), members), predicted, 0.7)
    np.testing.assert_array_equal(found, expected)
    heavy = np.where(size[:, 0] == size.max(), 1e9, 1.0)
    _, high = interval(Residuals(size, heavy, members), predicted, 0.7)
    np.testing.assert_allclose(high, predicted[0] + size.max())


def test_a_row_that_several_members_hold_out_is_predicted_by_their_mean() -> None:
    parts = [Part(np.array([2, 3]), np.array([0, 1])), Part(np.array([0, 3]), np.array([1, 2]))]
    labels = np.array([[1.0], [2.0], [np.nan], [4.0]])
    found = residuals_of(np.arange(1.0, 5), parts, [np.array([[1.5], [3.0]]), np.array([[5.0], [7.0]])], labels)
    np.testing.assert_array_equal(found.size, [[0.5], [2.0], [np.nan]])
    np.testing.assert_array_equal(found.weight, [1, 2, 3])
    np.testing.assert_array_equal(found.members, [[1, 0], [1, 1], [0, 1]])


@pytest.mark.slow
def test_new_labels_lie_in_the_intervals_as_often_as_asked() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3000, 3))
    y = np.column_stack([x[:, 0] ** 2 + rng.normal(size=3000), x[:, 1] + rng.standard_t(3, size=3000)])
    model = CMixupRegressor((32,), bandwidth=0, members=10, random_state=0, patience=5).fit(x[:1000], y[:1000])
    for coverage in (0.5, 0.9):
        ends = model.predict_interval(x[1000:], coverage)
        assert ends.shape == (2000, 2, 2)
        inside = ((ends[:, 0] <= y[1000:]) & (y[1000:] <= ends[:, 1])).mean(axis=0)
        np.testing.assert_allclose(inside, coverage, atol=0.04)


def test_the_spread_of_members() -> None:
    model = quick(members=3).fit(X, Y)
    predicted, deviation = model.predict(X, return_std=True)
    assert np.array_equal(predicted, model.predict(X))
    each = np.stack([model._of_members(model._inputs(X), member)[:, 0] for member in range(3)])
    np.testing.assert_allclose(predicted, each.mean(axis=0))
    np.testing.assert_allclose(deviation, each.std(axis=0))
    x, y = table(outputs=2)
    predicted, deviation = quick(bandwidth=0).fit(x, y).predict(x, return_std=True)
    assert predicted.shape == deviation.shape == (60, 2)


def test_an_interval_holds_the_prediction_and_grows_with_coverage() -> None:
    model = quick(members=10).fit(X, Y)
    narrow, wide = (model.predict_interval(X, coverage) for coverage in (0.5, 0.9))
    assert narrow.shape == (60, 2)
    assert (narrow[:, 0] <= model.predict(X)).all()
    assert (narrow[:, 1] >= model.predict(X)).all()
    assert (wide[:, 0] <= narrow[:, 0]).all()
    assert (wide[:, 1] >= narrow[:, 1]).all()
    assert model._residuals.shape == (60, 1)


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, np.nan])
def test_a_coverage_outside_0_and_1_is_refused(coverage: float) -> None:
    with pytest.raises(InputError, match="coverage must lie between 0 and 1, got"):
        quick(epochs=1).fit(X, Y).predict_interval(X, coverage)


def test_too_few_rows_and_none() -> None:
    model = quick(epochs=1, members=3).fit(X, Y)  # 18 rows are held out
    assert np.isfinite(model.predict_interval(X, 0.94)).all()
    with pytest.raises(InputError, match=r"coverage must go with 19 rows held out or more, got 0.95 and 18 rows"):
        model.predict_interval(X, 0.95)
    with pytest.raises(InputError, match=r"coverage=0.9 needs a fit that held rows out, got one without"):
        quick(epochs=1, early_stopping=False).fit(X, Y).predict_interval(X)
    with pytest.raises(InputError, match=r"coverage must be a number, got '0\.9'"):
        model.predict_interval(X, "0.9")
    with pytest.raises(InputError, match="return_std must be True or False, got 1"):
        model.predict(X, return_std=1)


def test_intervals_come_back_from_a_file(tmp_path: Path) -> None:
    model = quick(members=3, cv=3).fit(X, Y)
    model.save(tmp_path / "model")
    again = CMixupRegressor.load(tmp_path / "model")
    assert again.cv == 3
    assert np.array_equal(again.predict_interval(X, 0.8), model.predict_interval(X, 0.8))
