"""Rows of one's own: validation rows, groups and splitters, of which none stands on both sides."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, TimeSeriesSplit, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmixup import InputError
from cmixup.sklearn import CMixupRegressor, regressor
from cmixup.sklearn.held_out import group_codes, parts_by_chance, parts_by_group
from tests.sklearn.test_regressor import X, Y, quick

GROUPS = np.random.default_rng(3).integers(0, 9, len(X))


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, Any, list[tuple[float, int]]]]:
    """Return a list that gets the rows, the parts and the networks of each training."""
    found: list[Any] = []
    original = regressor.train_networks

    def spied(rows: Any, parts: Any, nets: Any, *rest: Any, **more: Any) -> Any:
        found.append((rows, parts, nets))
        return original(rows, parts, nets, *rest, **more)

    monkeypatch.setattr(regressor, "train_networks", spied)
    return found


@pytest.mark.parametrize("bandwidth", ["auto", ("std", 0.3)])
@pytest.mark.parametrize("cv", [None, GroupKFold(3)])
def test_no_group_stands_on_both_sides(seen: list[Any], bandwidth: Any, cv: Any) -> None:
    """In early stopping, in "auto" and in the residuals of the intervals; a column says which group a row is of."""
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
    order = np.flatnonzero(held_by[group].any(axis=1))
    assert np.array_equal(model._residual_members, held_by[group][order])
    assert held_by.any(axis=0).all()


def test_equal_rows_of_two_groups_stay_two_rows(seen: list[Any]) -> None:
    quick().fit(np.tile(X, (2, 1)), np.tile(Y, 2), groups=np.repeat(["a", "b"], 60))
    ((rows, parts, _),) = seen
    assert len(rows) == 120
    assert sorted(len(part.held) for part in parts) == [60, 60]


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


def test_by_chance_every_row_is_held_out_once() -> None:
    parts = parts_by_chance(50, 10, 0.1, 0)
    assert sorted(np.concatenate([part.held for part in parts])) == list(range(50))
    assert all(np.array_equal(np.union1d(part.train, part.held), np.arange(50)) for part in parts)


def test_validation_rows_are_held_out_by_all_and_trained_on_by_none(seen: list[Any]) -> None:
    model = quick(bandwidth="auto").fit(X[:40], Y[:40], X_val=X[40:], y_val=Y[40:])
    for rows, parts, _ in seen:
        assert [(len(part.train), part.held.tolist()) for part in parts] == [(40, list(range(40, 60)))] * 2
        np.testing.assert_allclose(rows.x[40:] * model.x_scale_ + model.x_mean_, X[40:])
    np.testing.assert_allclose(model.x_mean_, X[:40].mean(axis=0))  # they do not even scale
    np.testing.assert_allclose(model.y_mean_, Y[:40].mean())
    assert model._residuals.shape == (20, 1)
    np.testing.assert_allclose(model._residuals[:, 0], np.abs(model.predict(X[40:]) - Y[40:]), rtol=1e-9)
    other = quick(bandwidth="auto").fit(X[:40], Y[:40], X_val=X[40:], y_val=Y[40:] + 100)
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
    ({}, {"X_val": X}, "y_val must be given with X_val, got None"),
    ({}, {"y_val": Y}, "X_val must be given with y_val, got None"),
    ({}, {"X_val": X, "y_val": Y, "groups": GROUPS}, "groups must be None where X_val is given, got array"),
    ({"cv": 3}, {"X_val": X, "y_val": Y}, "cv must be None where X_val is given, got 3"),
    ({}, {"X_val": X[:, :3], "y_val": Y}, "X_val must have rows, and the columns of X: X has 3 features"),
    ({}, {"X_val": X[:0], "y_val": Y[:0]}, r"X_val must have rows, and the columns of X: Found array with 0 sample"),
    ({}, {"X_val": X, "y_val": Y[:-1]}, r"y_val must have shape \(60,\) as X_val and y, got \(59,\)"),
    ({}, {"X_val": X, "y_val": Y[:, None]}, r"y_val must have shape \(60,\) as X_val and y, got \(60, 1\)"),
    ({}, {"X_val": X, "y_val": np.full(60, np.inf)}, "y_val must be labels of 60 rows: Input y_val contains inf"),
    ({}, {"groups": GROUPS[:-1]}, r"groups must have shape \(60,\) as the rows of X, got \(59,\)"),
    ({}, {"groups": [None, *GROUPS[1:]]}, "groups must have no gaps, got None in row 0"),
    ({}, {"groups": np.r_[GROUPS[:-1], np.nan]}, "groups must have no gaps, got nan in row 59"),
    ({}, {"groups": np.zeros(60)}, "groups must have two values or more, got only 0.0"),
    ({"cv": "five"}, {}, "cv must be a splitter of scikit-learn, a number of folds or splits, got 'five'"),
    ({"cv": True}, {}, "cv must be a splitter .* got True"),
    ({"cv": KFold(100)}, {}, "cv must split the 60 rows, got KFold"),
    ({"cv": GroupKFold(3)}, {}, "cv must split the 60 rows, got GroupKFold"),
    ({"cv": []}, {}, "cv must give at least one split"),
    ({"cv": [(np.arange(60), np.arange(5))]}, {}, "cv must give rows .* got 55 and 0 rows, and 5 on both sides"),
    ({"cv": [(np.arange(60), [])]}, {}, "cv must "),
    ({"cv": KFold(3)}, {"groups": GROUPS}, "cv must hold whole groups out, got the group . on both sides"),
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@pytest.mark.parametrize(("options", "given", "message"), BAD)
def test_bad_rows_are_refused(options: dict[str, Any], given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quick(**options).fit(X, Y, **given)


def test_groups_of_texts_and_numbers() -> None:
    assert group_codes(None, 3) is None
    codes = group_codes(pd.Series(["b", "a", "b"]), 3)
    assert codes is not None
    assert codes.tolist() == [1, 0, 1]


def test_metadata_is_routed(seen: list[Any]) -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        model = quick(epochs=1).set_fit_request(groups=True)
        pipe = make_pipeline(StandardScaler(), model)
        pipe.fit(X, Y, groups=GROUPS)
        for own in (pipe, model):
            found = cross_validate(own, X, Y, cv=2, params={"groups": GROUPS}, error_score="raise")
            assert np.isfinite(found["test_score"]).all()
        search = GridSearchCV(pipe, {"cmixupregressor__bandwidth": [0, np.inf]}, cv=2, error_score="raise")
        search.fit(X, Y, groups=GROUPS)
    assert len(seen) == 1 + 4 + 5
    assert all(rows.apart is not None for rows, _, _ in seen)


def test_the_encoding_sees_no_validation_rows() -> None:
    model = CMixupRegressor((8,), epochs=1, members=1, random_state=0, n_pieces=4)
    x, y = np.random.default_rng(0).normal(size=(220, 2)), np.arange(220.0)
    model.fit(x[:200], y[:200], X_val=x[200:] * 100, y_val=y[200:])
    alone = CMixupRegressor((8,), epochs=1, members=1, random_state=0, n_pieces=4).fit(x[:200], y[:200])
    assert np.array_equal(model._pieces, alone._pieces)
    assert len(model._pieces)
