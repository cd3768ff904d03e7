"""Rows that members hold out: none stands on both sides; and the intervals that they make."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.feature_selection import RFE
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, PredefinedSplit, TimeSeriesSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmixup import InputError
from cmixup.sklearn import TabularRegressor, fitting
from cmixup.sklearn.held_out import Part, held_out_means, parts_by_group
from cmixup.sklearn.intervals import residual_quantile
from tests.sklearn.test_regressor import X, Y, quick

GROUPS = np.random.default_rng(3).integers(0, 9, len(X))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, list[tuple[float, int]]]]:
    """Return a list that gets the rows, the parts and the networks of each training."""
    calls: list[Any] = []
    original = fitting.Networks

    def spied(rows: Any, parts: Any, nets: Any, *rest: Any, **more: Any) -> Any:
        calls.append((rows, parts, nets))
        return original(rows, parts, nets, *rest, **more)

    monkeypatch.setattr(fitting, "Networks", spied)
    return calls


@pytest.mark.parametrize("bandwidth", ["validated", ("std", 0.3)])
@pytest.mark.parametrize("cv", [None, GroupKFold(3)])
def test_no_group_stands_on_both_sides(seen: list[Any], bandwidth: Any, cv: Any) -> None:
    """In early stopping, in "validated" and in the residuals of intervals; a column says which group a row is of."""
    x, names = np.column_stack([X, GROUPS]), np.array([f"group {code}" for code in GROUPS], dtype=object)
    model = quick(bandwidth=bandwidth, members=4, cv=cv).fit(x, Y, groups=names)
    held_by = np.zeros((9, 4), dtype=bool)
    for rows, parts, nets in seen:
        group = (rows.x[:, 4] * model.x_scale_[4] + model.x_mean_[4]).round().astype(int)
        for _, member in nets:
            train, held = group[parts[member].train], group[parts[member].held]
            assert not set(train) & set(held)
            assert len(train) + len(held) == len(X)
            held_by[list(set(held)), member] = True
    assert len(model._intervals.residuals) == held_by[group].any(axis=1).sum()
    assert held_by.any(axis=0).all()


def test_groups_make_folds_of_about_the_share() -> None:
    group, weight = np.repeat(np.arange(30), np.arange(1, 31)), np.ones(465)
    parts = parts_by_group(group, weight, 10, 0.1, 0)
    counts = np.array([len(part.held) for part in parts])
    assert counts.sum() == 465
    assert counts.min() > 40
    assert counts.max() < 53
    for part in parts:
        assert not set(group[part.train]) & set(group[part.held])
        assert len(part.train) + len(part.held) == 465
    again = parts_by_group(group[::-1], weight, 10, 0.1, 0)
    assert np.array_equal(464 - again[3].held[::-1], parts[3].held)
    two = parts_by_group(np.array([5, 5, 5, 9]), np.ones(4), 3, 0.1, 0)
    assert [part.held.tolist() for part in two] in ([[0, 1, 2], [3], [0, 1, 2]], [[3], [0, 1, 2], [3]])


def test_validation_rows_are_held_out_by_all_and_trained_on_by_none(seen: list[Any]) -> None:
    """A splitter of one split says which they are."""
    given = {"bandwidth": "validated", "cv": PredefinedSplit(np.arange(60) // 40 - 1)}
    model = quick(**given).fit(X, Y)
    for rows, parts, _ in seen:
        assert [(len(part.train), len(part.held)) for part in parts] == [(40, 20)] * 2
        held = rows.x[parts[1].held] * model.x_scale_ + model.x_mean_
        np.testing.assert_allclose(np.sort(held, axis=0), np.sort(X[40:], axis=0))
    assert model._intervals.residuals.shape == (20, 1)
    expected = np.abs(model.predict(X[40:]) - Y[40:]) / model.y_scale_
    np.testing.assert_allclose(np.sort(model._intervals.residuals[:, 0]), np.sort(expected), rtol=1e-9)
    other = quick(**given).fit(X, Y + 100 * (np.arange(60) >= 40))
    assert other.best_epoch_ != model.best_epoch_ or other.bandwidth_ != model.bandwidth_


def test_a_splitter_says_what_a_member_trains_on(seen: list[Any]) -> None:
    quick(cv=TimeSeriesSplit(3), members=4, bandwidth=0).fit(X, Y)
    ((rows, parts, _),) = seen
    sizes = [(len(part.train), len(part.held)) for part in parts]
    assert sizes == [(15, 15), (30, 15), (45, 15), (15, 15)]
    labels = (Y - Y.mean()) / Y.std()
    np.testing.assert_allclose(np.sort(rows.y[parts[1].train, 0]), np.sort(labels[:30]))
    np.testing.assert_allclose(np.sort(rows.y[parts[1].held, 0]), np.sort(labels[30:45]))
    folds = list(KFold(5).split(X))
    assert np.array_equal(*(quick(cv=cv).fit(X, Y).predict(X) for cv in (5, folds)))


def test_a_member_of_fewer_rows_trains_as_it_would_alone() -> None:
    """Members of other sizes share a stack, and the padding counts nowhere."""
    splits = [(np.arange(20, 60), np.arange(20)), (np.arange(50), np.arange(50, 60))]
    both = quick(cv=splits, bandwidth=0).fit(X, Y)
    alone = quick(cv=[splits[1]], bandwidth=0, members=1).fit(X, Y)
    assert both.coefs_[0].shape[0] == 2
    first = quick(cv=[splits[1], splits[0]], bandwidth=0).fit(X, Y)
    np.testing.assert_allclose(first.coefs_[0][0], alone.coefs_[0][0], rtol=1e-3, atol=1e-4)
    assert first.best_epoch_[0] == alone.best_epoch_[0]


BAD: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"groups": GROUPS[:-1]}, r"groups must have shape \(60,\) as the rows of X, got \(59,\)"),
    ({}, {"groups": [None, *GROUPS[1:]]}, "groups must have no gaps, got None in row 0"),
    ({}, {"groups": np.zeros(60)}, "groups must have two values or more, got only 0.0"),
    ({}, {"groups": GROUPS > 3, "sample_weight": (GROUPS > 3).astype(float)}, "groups must have two .* weight above 0"),
    ({"cv": "five"}, {}, "cv must split the 60 rows, got 'five': Expected .?cv.? as an integer"),
    ({"cv": KFold(100)}, {}, "cv must split the 60 rows, got KFold"),
    ({"cv": []}, {}, "cv must give at least one split"),
    ({"cv": [(np.arange(60), np.arange(5))]}, {}, "cv must give rows .* got 55 and 0 rows, and 5 on both sides"),
    ({"cv": KFold(3)}, {"groups": GROUPS}, "cv must hold whole groups out, got the group . on both sides"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize(("options", "given", "message"), BAD)
def test_bad_rows_are_refused(options: dict[str, Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quick(**options).fit(X, Y, **given)


def test_metadata_is_routed(seen: list[Any]) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = quick(epochs=1).set_fit_request(groups=True)
        pipe = make_pipeline(StandardScaler(), model)
        pipe.fit(X, Y, groups=GROUPS)
        for estimator in (pipe, model):
            scores = cross_validate(estimator, X, Y, cv=2, params={"groups": GROUPS}, error_score="raise")
            assert np.isfinite(scores["test_score"]).all()
        search = GridSearchCV(pipe, {"tabularregressor__bandwidth": [0, np.inf]}, cv=2, error_score="raise")
        search.fit(X, Y, groups=GROUPS)
    assert len(seen) == 1 + 4 + 5
    assert all(rows.apart is not None for rows, _, _ in seen)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.9])
def test_ends_are_those_of_the_definition(share: float) -> None:
    """The ceil((1 - a)(k + 1))-th smallest residual on both sides of the prediction."""
    size = np.random.default_rng(0).exponential(size=(23, 2))
    expected = np.sort(size, axis=0)[math.ceil(share * 24 - 1e-9) - 1]
    np.testing.assert_array_equal(residual_quantile(size, np.ones(23), share), expected)
    model = quick(members=10).fit(X, Y)
    low, high = model.predict_interval(X, share).T
    half = model.y_scale_ * residual_quantile(model._intervals.residuals, model._intervals.weights, share)
    np.testing.assert_allclose(low, model.predict(X) - half)
    np.testing.assert_allclose(high, model.predict(X) + half)


def test_a_weight_counts_rows_and_a_missing_label_counts_for_nothing() -> None:
    size = np.random.default_rng(1).exponential(size=(12, 1))
    expected = residual_quantile(size, np.ones(12), 0.7)
    gaps = np.concatenate([size, np.full((5, 1), np.nan)])
    assert residual_quantile(gaps, np.ones(17), 0.7) == expected
    assert residual_quantile(size, np.full(12, 3.0), 0.7) == expected
    assert residual_quantile(size, np.where(size[:, 0] == size.max(), 1e9, 1.0), 0.7) == size.max()


def test_a_row_that_several_members_hold_out_is_predicted_by_their_mean() -> None:
    parts = [Part(np.array([2, 3]), np.array([0, 1])), Part(np.array([0, 3]), np.array([1, 2]))]
    index, means = held_out_means(parts, [np.array([[1.5], [3.0]]), np.array([[5.0], [7.0]])])
    assert index.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(means, [[1.5], [4.0], [7.0]])


def test_too_few_rows_and_none() -> None:
    model = quick(epochs=1, members=3).fit(X, Y)  # 18 rows are held out
    assert np.isfinite(model.predict_interval(X, 0.94)).all()
    with pytest.raises(InputError, match=r"coverage must go with 19 rows held out or more, got 0.95 and 18 rows"):
        model.predict_interval(X, 0.95)
    with pytest.raises(InputError, match=r"coverage=0.9 needs a fit that held rows out, got one without"):
        quick(epochs=1, early_stopping=False).fit(X, Y).predict_interval(X)
    for coverage, what in ((0, "lie between 0 and 1, got"), (1.5, "lie"), (np.nan, "lie"), ("0.9", "be a number")):
        with pytest.raises(InputError, match=f"coverage must {what}"):
            model.predict_interval(X, coverage)


def test_importances_are_the_loss_that_permuting_a_column_adds(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200), "c": rng.normal(size=200)})
    y = 3 * frame["a"] + np.abs(frame["b"])
    model = quick(members=3, bandwidth=0, epochs=30).fit(frame, y)
    shares = model.feature_importances_
    assert shares.sum() == pytest.approx(1)
    assert shares[0] > 5 * shares[1] > 5 * shares[2]
    permuted = permutation_importance(
        model, frame, y, scoring="neg_mean_squared_error", random_state=0
    ).importances_mean
    np.testing.assert_allclose(shares, permuted / permuted.sum(), atol=0.06)
    assert RFE(quick(members=2, bandwidth=0, epochs=20), n_features_to_select=2).fit(frame, y).support_.tolist() == [
        True, True, False]  # fmt: skip
    model.save(tmp_path / "model")
    assert np.array_equal(TabularRegressor.load(tmp_path / "model").feature_importances_, shares)


def test_importances_need_held_out_rows(tmp_path: Path) -> None:
    model = quick(epochs=1).fit(X, Y)
    model.save(tmp_path / "model")
    others = [TabularRegressor.load(tmp_path / "model"), quick(epochs=1, early_stopping=False).fit(X, Y)]
    for other in others:
        with pytest.raises(AttributeError, match="feature_importances_ needs rows that fit held out"):
            _ = other.feature_importances_
    assert not hasattr(quick(), "feature_importances_")


def test_widths_follow_noise_that_is_ten_times_larger_in_half_of_the_rows() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 4))
    noisy = x[:, 0] > 0
    y = x[:, 1] + np.where(noisy, 3.0, 0.3) * rng.normal(size=6000)
    model = quick(members=5, blend="trees", validation_fraction=0.2, bandwidth=0).fit(x[:2000], y[:2000])
    low, high = model.predict_interval(x[2000:], 0.9).T
    inside, noisy = (low <= y[2000:]) & (y[2000:] <= high), noisy[2000:]
    assert 0.85 < inside[noisy].mean() < 0.95
    assert 0.85 < inside[~noisy].mean() < 0.98  # members err less together than the one that held a row out
    assert (high - low)[noisy].mean() > 5 * (high - low)[~noisy].mean()
    even = x[:800, 1] + 0.5 * rng.normal(size=800)
    ends = quick(members=10, bandwidth=0, epochs=12).fit(x[:800], even).predict_interval(x[:800])
    assert np.ptp(np.ptp(ends, axis=1)) < 1e-9  # one width
    one = quick(members=1, bandwidth=0, epochs=2).fit(x[:800], y[:800], groups=np.arange(800) % 4)  # a group held out
    assert np.ptp(np.ptp(one.predict_interval(x[:800]), axis=1)) > 1
