"""Any regressor beside the networks of `TabularRegressor`: a clone for each member, fitted on X as it was given."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import StackingRegressor, VotingRegressor
from sklearn.feature_selection import RFE
from sklearn.model_selection._search import BaseSearchCV
from sklearn.multioutput import MultiOutputRegressor, RegressorChain
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, get_tags
from sklearn.utils.metadata_routing import _routing_enabled, get_routing_for_object
from sklearn.utils.validation import has_fit_parameter

from cmixup.sampling.inputs import Floats, Ints

#: So many members have regressors of their own, and weigh them; the others take these in turn. On the tables that the
#: default was chosen on three are within 0.1 % of five, beside CatBoost, LightGBM and ridge; one is 0.3 % above.
FITTED_BY = 3
#: Regressors that pass weights on.
AROUND_OTHERS = (BaseSearchCV, MultiOutputRegressor, Pipeline, RegressorChain, RFE, StackingRegressor,
                 TransformedTargetRegressor, VotingRegressor)  # fmt: skip


def fit_options(blend: Any, sample_weight: Any, groups: Any) -> dict[str, Any]:
    """Return the further arguments of `fit` that a regressor takes: weights and groups, under its names."""
    options, name, requested = {}, _weight_name(blend), {"sample_weight", "groups"}
    if isinstance(blend, AROUND_OTHERS) and _routing_enabled():  # it refuses what no part of it asks for
        requested, name = get_routing_for_object(blend).consumes("fit", requested), "sample_weight"
    if np.ndim(sample_weight) and name and "sample_weight" in requested:
        options[name] = sample_weight
    takes_groups = isinstance(blend, BaseSearchCV) or has_fit_parameter(blend, "groups")
    if groups is not None and takes_groups and "groups" in requested:
        options["groups"] = groups
    return options


def fit_models(
    blend: Any, X: Any, labels: Floats, rows: Sequence[Ints], options: Mapping[str, Any], *, means: Floats
) -> list[list[Any]]:
    """Return each member's models, one of all outputs or one of each, which members of the same rows share.

    X are rows as they were given, `labels` (n, d_y) theirs in fitted units, NaN where one is missing; `rows` are those
    that each member is trained on, `options` further arguments of `fit`, by row, and `means` (d_y,) those of labels.
    """
    joint = get_tags(blend).target_tags.multi_output and labels.shape[1] > 1 and not np.isnan(labels).any()
    flat = _takes_flat_labels(blend)
    fitted: dict[bytes, list[Any]] = {}
    for key, index in {index.tobytes(): index for index in rows}.items():
        fitted[key] = []
        for y, mean in [(labels, means)] if joint else zip(labels.T, means, strict=True):
            known = index if joint else index[~np.isnan(y[index])]
            row_options = {name: _safe_indexing(values, known) for name, values in options.items()}
            if len(known):
                target = y[known] if flat else y[known].reshape(len(known), -1)
                fitted[key].append(clone(blend).fit(_safe_indexing(X, known), target, **row_options))
            else:  # it tells nothing of the output, and gives its mean
                fitted[key].append(DummyRegressor().fit(np.zeros((1, 1)), [mean]))
    return [fitted[index.tobytes()] for index in rows]


def predict_models(models: Sequence[Sequence[Any]], X: Any) -> Floats:
    """Return the predictions of each member's models for rows as they were given: `(M, n, d_y)` in fitted units."""
    predictions: dict[int, Floats] = {}
    for key, member_models in {id(member_models): member_models for member_models in models}.items():
        predictions[key] = np.column_stack([np.asarray(model.predict(X), dtype=np.float64) for model in member_models])
    return np.stack([predictions[id(member_models)] for member_models in models])


def _takes_flat_labels(blend: Any) -> bool:
    """Return whether a regressor takes labels (n,): a search, an RFE and a pipeline as what they pass them on to."""
    inner = blend.estimator if isinstance(blend, BaseSearchCV | RFE) else None
    inner = blend.steps[-1][1] if isinstance(blend, Pipeline) else inner
    if hasattr(inner, "__sklearn_tags__"):
        return _takes_flat_labels(inner)
    return bool(get_tags(blend).target_tags.single_output)


def _weight_name(blend: Any) -> str | None:
    """Return the argument of `fit` that weighs rows, of a regressor around others theirs."""
    if isinstance(blend, BaseSearchCV | MultiOutputRegressor) or type(blend) is RFE:  # RFECV takes none
        return _weight_name(blend.estimator)
    if isinstance(blend, RegressorChain):  # scikit-learn 1.6 has `base_estimator`
        return _weight_name(blend.estimator if hasattr(blend, "estimator") else blend.base_estimator)
    if isinstance(blend, TransformedTargetRegressor):
        return "sample_weight" if blend.regressor is None else _weight_name(blend.regressor)
    if isinstance(blend, VotingRegressor | StackingRegressor):  # which pass weights on to all of these
        estimators = [*blend.estimators, ("", getattr(blend, "final_estimator", None))]
        names = {_weight_name(estimator) for _, estimator in estimators if hasattr(estimator, "fit")}
        return "sample_weight" if names == {"sample_weight"} else None
    if isinstance(blend, Pipeline):
        step, last = blend.steps[-1]
        return (name := _weight_name(last)) and f"{step}__{name}"
    return "sample_weight" if has_fit_parameter(blend, "sample_weight") else None
