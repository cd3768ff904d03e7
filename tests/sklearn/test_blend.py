"""A regressor of the user beside the networks: the rows that it is fitted on, its weight, and bad ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor, StackingRegressor, VotingRegressor
from sklearn.feature_selection import RFE
from sklearn.linear_model import LinearRegression, LogisticRegression, MultiTaskLasso, Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from cmixup import InputError
from cmixup.sklearn.blend import fit_options
from cmixup.sklearn.held_out import parts_by_chance, parts_by_group
from tests.sklearn.test_regressor import X, Y, quick

FRAME = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 1, np.nan, X[:, 1]), "c": pd.Categorical(X[:, 0] > 0)})


class Seen(RegressorMixin, BaseEstimator):
    """Keeps what it was fitted on, and predicts the mean label."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> "Seen":
        self.given_ = X, np.asarray(y), sample_weight, groups
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.given_[1].mean())


def test_the_prediction_is_the_weighted_mean_of_networks_and_models() -> None:
    trees = HistGradientBoostingRegressor(max_iter=20, min_samples_leaf=3)
    both, nets = (quick(members=4, blend=blend, epochs=3).fit(FRAME, Y) for blend in (trees, None))
    (weight,) = both.blend_weight_
    assert 0.1 < weight < 1
    models = [model.predict(FRAME) for (model,) in both.blended_]
    assert len(models) == 3
    beside = (2 * models[0] + models[1] + models[2]) / 4  # the fourth member takes the first one's
    np.testing.assert_allclose(both.predict(FRAME), (1 - weight) * nets.predict(FRAME) + weight * beside)
    low, high = both.predict_interval(FRAME, 0.8).T
    assert (low < high).all()
    assert both.feature_importances_.sum() == pytest.approx(1)


def test_the_weight_is_that_of_least_error_on_rows_that_the_models_were_not_fitted_on() -> None:
    rows, labels = np.arange(60.0)[:, None], np.sin(np.arange(60.0))
    model = quick(members=2, blend=Ridge(), epochs=1).fit(rows, labels)
    nets = quick(members=2, blend=None, epochs=1).fit(rows, labels)
    order = np.argsort([row.tobytes() for row in np.column_stack([rows, labels])])
    gap, rest = [], []
    for member, part in enumerate(parts_by_chance(60, 2, 0.1, 0)):
        held = np.sort(order[part.held])
        of_net = nets._outputs(nets._table.inputs(nets, rows[held]), member)[:, 0] * labels.std() + labels.mean()
        beside = Ridge().fit(np.delete(rows, held, axis=0), np.delete(labels, held)).predict(rows[held])
        gap.append(beside - of_net)
        rest.append(labels[held] - of_net)
    best = np.concatenate(gap) @ np.concatenate(rest) / (np.concatenate(gap) ** 2).sum()
    assert model.blend_weight_[0] == pytest.approx(np.clip(best, 0, 1))


def test_a_model_is_fitted_on_rows_as_they_were_given() -> None:
    weight, groups = np.arange(60.0) % 4, np.arange(60) // 5
    model = quick(members=2, blend=Seen(), epochs=1).fit(FRAME, Y, weight, groups=groups)
    held = []
    for (seen,) in model.blended_:
        x, y, w, g = seen.given_
        pd.testing.assert_frame_equal(x, FRAME.loc[x.index])
        for values, given in ((y, Y), (w, weight), (g, groups)):
            assert np.array_equal(values, given[x.index])
        assert np.diff(x.index).min() > 0
        assert w.min() > 0
        held.append(np.setdiff1d(np.flatnonzero(weight), x.index))
        assert not set(groups[held[-1]]) & set(g)
    assert not set(held[0]) & set(held[1])
    plain = quick(blend=Seen(), epochs=1, cv=[(range(40), range(40, 60))]).fit(X, Y)
    (seen,), (same,) = plain.blended_
    assert seen is same
    assert np.array_equal(seen.given_[0], X[:40])
    logs = quick(blend=Seen(), epochs=1, target_transform="log").fit(X, np.exp(Y))
    assert np.isin(logs.blended_[0][0].given_[1], np.log(np.exp(Y))).all()


def test_weights_and_groups_reach_pipelines_and_searches() -> None:
    weight, groups = np.arange(1.0, 61), np.arange(60) // 5
    search = GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [1.0]}, cv=GroupKFold(3))
    model = quick(members=1, blend=search, epochs=1).fit(X, Y, weight, groups=groups)
    ((fitted,),) = model.blended_
    part = parts_by_group(groups, weight, 1, 0.1, 0)[0]
    expected = make_pipeline(StandardScaler(), Ridge())
    expected.fit(X[part.train], Y[part.train], ridge__sample_weight=weight[part.train])
    np.testing.assert_allclose(fitted.predict(X), expected.predict(X))


@pytest.mark.parametrize(
    "blend",
    [
        TransformedTargetRegressor(Ridge()),
        VotingRegressor([("a", Ridge())]),
        StackingRegressor([("a", Ridge())]),
        RFE(Ridge(), n_features_to_select=4),
    ],
)
def test_weights_reach_regressors_inside_others(blend: Any) -> None:
    side = X[:, 0] > 0
    weight, y = np.where(side, 1000.0, 1.0), np.where(side, 1, -1) * X[:, 0]
    ((fitted,),) = quick(members=1, blend=blend, epochs=1).fit(X, y, weight).blended_
    assert fitted.predict(X[[0]] + np.eye(1, X.shape[1])) - fitted.predict(X[[0]]) == pytest.approx(1.0, abs=0.05)
    assert fit_options(VotingRegressor([("a", Ridge()), ("b", KNeighborsRegressor())]), weight, None) == {}
    assert fit_options(MultiOutputRegressor(KNeighborsRegressor()), weight, None) == {}
    assert fit_options(RegressorChain(RandomForestRegressor()), weight, None) == {"sample_weight": weight}


def test_weights_and_groups_are_routed() -> None:
    weight, groups = np.arange(1.0, 61), np.arange(60) // 5
    with sklearn.config_context(enable_metadata_routing=True):
        scaler, ridge = (
            StandardScaler().set_fit_request(sample_weight=False),
            Ridge().set_fit_request(sample_weight=True),
        )
        pipe, search = make_pipeline(scaler, ridge), GridSearchCV(Ridge(), {"alpha": [1.0]}, cv=2)
        assert list(fit_options(pipe, weight, groups)) == ["sample_weight"]
        assert list(fit_options(search, None, groups)) == []
        assert fit_options(TransformedTargetRegressor(Ridge()), weight, None) == {}
        assert fit_options(MultiOutputRegressor(Ridge()), weight, None) == {}
        one_asks = VotingRegressor([("a", ridge), ("b", KNeighborsRegressor())])
        assert list(fit_options(one_asks, weight, None)) == ["sample_weight"]
        search.set_params(cv=GroupKFold(2))
        assert list(fit_options(search, None, groups)) == ["groups"]
        quick(members=1, blend=pipe, epochs=1).fit(X, Y, weight, groups=groups)


def test_importances_are_the_same_of_a_sparse_matrix() -> None:
    one, other = (quick(members=1, blend=Ridge(), epochs=1).fit(x, Y).feature_importances_ for x in (X, csr_array(X)))
    np.testing.assert_allclose(other, one)


def test_several_outputs_come_from_one_model_or_one_each() -> None:
    both = np.column_stack([Y, 2 * Y + X[:, 0]])
    together = quick(blend=LinearRegression(), epochs=1).fit(X, both)
    assert [len(models) for models in together.blended_] == [1, 1]
    alone = quick(blend=HistGradientBoostingRegressor(max_iter=2), epochs=1).fit(X, both)
    assert [len(models) for models in alone.blended_] == [2, 2]
    both[::4, 1] = np.nan
    gaps = quick(blend=LinearRegression(), epochs=1).fit(X, both)
    assert [len(models) for models in gaps.blended_] == [2, 2]
    assert together.predict(X).shape == alone.predict(X).shape == gaps.predict(X).shape == (60, 2)


@pytest.mark.parametrize(
    "blend",
    [
        MultiOutputRegressor(Ridge()), RegressorChain(Ridge()), MultiTaskLasso(), RFE(MultiTaskLasso()),
        make_pipeline(StandardScaler(), MultiOutputRegressor(Ridge())),
        GridSearchCV(MultiOutputRegressor(Ridge()), {"estimator__alpha": [1.0]}),
    ],
)  # fmt: skip
def test_models_of_several_outputs_take_one_with_gaps_too(blend: Any) -> None:
    gaps = np.column_stack([Y, np.where(X[:, 0] > 1, np.nan, Y)])
    for y in (Y, gaps[:, :1], gaps):
        assert quick(members=1, blend=blend, epochs=1).fit(X, y).predict(X).shape == y.shape


def test_of_an_output_without_labels_a_member_has_the_mean() -> None:
    both, groups = np.column_stack([Y, Y]), np.arange(60) % 3
    both[groups > 0, 1] = np.nan
    model = quick(members=3, blend=Ridge(), epochs=1).fit(X, both, groups=groups)
    assert sum(np.allclose(of_member[1].predict(X), both[::3, 1].mean()) for of_member in model.blended_) == 1
    weight = np.where(np.arange(60) % 2, 0.0, 1.0 + np.arange(60))
    model = quick(members=3, blend=Ridge(), epochs=1).fit(X, both, weight, groups=groups)
    mean = np.average(both[::3, 1], weights=weight[::3])
    assert sum(np.allclose(of_member[1].predict(X), mean) for of_member in model.blended_) == 1


@pytest.mark.parametrize(
    ("blend", "reason"),
    [
        (Ridge, 'blend must be "trees", None or a regressor of scikit-learn\'s interface, got <class'),
        (LogisticRegression(), "got LogisticRegression"),
        (GridSearchCV(Ridge(), {}, refit=False), "got GridSearchCV"),
        (3, "got 3"),
    ],
)
def test_what_is_no_regressor_is_refused(blend: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        quick(blend=blend).fit(X, Y)


def test_quantiles_and_a_file_refuse_a_model_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match='blend must be "trees" or None with loss="quantile", got Ridge'):
        quick(blend=Ridge(), loss="quantile").fit(X, Y)
    with pytest.raises(InputError, match=r"blend must be .* to be saved, got Ridge"):
        quick(blend=Ridge(), epochs=1).fit(X, Y).save(tmp_path / "model.npz")


def test_its_parameters_are_searched() -> None:
    grid = {"blend__max_depth": [1, 4]}
    search = GridSearchCV(quick(blend=RandomForestRegressor(5, random_state=0), epochs=1), grid, cv=2).fit(X, Y)
    assert search.best_estimator_.blended_[0][0].max_depth == search.best_params_["blend__max_depth"]
    assert clone(search.best_estimator_).blend.max_depth == search.best_params_["blend__max_depth"]
