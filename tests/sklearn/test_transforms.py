"""Labels through a transformer that falls, ends, turns or has a heavy tail; and which quantile `predict` is."""

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, PowerTransformer, QuantileTransformer

from cmixup import InputError
from cmixup.sklearn.transforms import Transform
from tests.sklearn.test_regressor import X, Y, quick, table

RECIPROCAL = FunctionTransformer(np.reciprocal, np.reciprocal)
NEGATIVE = FunctionTransformer(np.negative, np.negative)
ROOT = FunctionTransformer(np.sqrt, np.square)
LABELS = np.exp(np.random.default_rng(0).normal(size=(200, 1)))


@pytest.mark.parametrize("options", [{}, {"loss": "quantile", "quantiles": (0.1, 0.5)}])
def test_a_transform_that_falls_is_turned(options: dict[str, Any]) -> None:
    """The negative of the negative labels: the same bits as without, of each output."""
    x, y = table(outputs=2)
    one, two = (quick(members=10, target_transform=t, **options).fit(x, y) for t in (None, NEGATIVE))
    np.testing.assert_array_equal(one.predict(x), two.predict(x))
    np.testing.assert_array_equal(one.predict_interval(x, 0.8), two.predict_interval(x, 0.8))
    if options:
        np.testing.assert_array_equal(one.predict_quantiles(x), two.predict_quantiles(x))


@pytest.mark.parametrize(
    ("transform", "labels", "fitted", "expected"),
    [
        (RECIPROCAL, LABELS, [-1e-3, 0.0, 0.5], [1e3, np.inf, np.inf]),  # minus the reciprocal rises to 0
        (FunctionTransformer(np.arctan, np.tan), LABELS, [-1.6, -1.5, 1.6], [-np.inf, np.tan(-1.5), np.inf]),
        (ROOT, LABELS, [-2.0, 0.0, 9.0], [LABELS.min(), 0.0, 81.0]),
        (QuantileTransformer(n_quantiles=50), LABELS, [-0.5, 1.0, 1.5], [LABELS.min(), LABELS.max(), LABELS.max()]),
        (FunctionTransformer(np.log, np.exp), LABELS, [-700.0, 0.0, 5.0], np.exp([-700.0, 0.0, 5.0])),
    ],
)
def test_beyond_its_end_a_transform_gives_its_limit(transform: Any, labels: Any, fitted: Any, expected: Any) -> None:
    made = Transform.fit(transform, labels)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        back = made.back(np.array(fitted)[:, None, None], infinite=True)[:, 0, 0]
    np.testing.assert_allclose(back, expected, rtol=1e-6)
    endless = int(np.isinf(expected).sum())
    message = f"{endless} of 3 ends lie where target_transform reaches no label: they are infinite"
    assert [str(w.message) for w in seen] == [message] * (endless > 0)
    points = made.back(np.array(fitted)[:, None, None])[:, 0, 0]
    assert np.isfinite(points).all()
    np.testing.assert_allclose(
        points[np.isinf(back)], [labels.min() if e < 0 else labels.max() for e in back[np.isinf(back)]]
    )


@pytest.mark.filterwarnings("ignore:.*reaches no label")
@pytest.mark.parametrize("options", [{}, {"loss": "quantile"}])
@pytest.mark.parametrize(
    "transform", [PowerTransformer(), PowerTransformer("box-cox"), RECIPROCAL, QuantileTransformer(n_quantiles=50)]
)
def test_intervals_of_heavy_tails_hold_their_share(transform: Any, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(1200, 3))
    y = (1 + 0.2 * np.abs(x[:, 0])) / np.sqrt(1 - rng.random(1200))
    model = quick(members=5, epochs=4, target_transform=transform, **options).fit(x[:400], y[:400])
    low, high = model.predict_interval(x[400:], 0.9).T
    assert not np.isnan(low + high).any()
    assert 0.85 < np.mean((low <= y[400:]) & (y[400:] <= high)) < 0.95
    assert np.isfinite(model.predict(x)).all()
    if options:
        assert (np.diff(model.predict_quantiles(x), axis=1) >= 0).all()
        assert not np.isnan(model.predict_quantiles(x)).any()


@pytest.mark.parametrize("function", [np.square, np.abs, np.reciprocal, np.sin])
def test_a_transform_that_turns_is_refused(function: Any) -> None:
    y = np.column_stack([Y - Y.min() + 0.1, (Y - Y.mean()) * 3])
    with pytest.raises(
        InputError, match=f"target_transform must rise or fall over the labels, got .*{function.__name__}"
    ):
        quick(target_transform=FunctionTransformer(function)).fit(X, y)


@pytest.mark.filterwarnings("ignore:.*not strictly inverse")
@pytest.mark.parametrize(
    "transform",
    [
        FunctionTransformer(np.log),
        FunctionTransformer(lambda y: 0 * y + 1),
        KBinsDiscretizer(4, encode="ordinal"),
        FunctionTransformer(lambda y: np.minimum(y, 30), lambda y: y),
        FunctionTransformer(lambda y: y, lambda y: np.where(y > 10, y, np.nan)),
    ],
)
def test_a_transform_that_does_not_come_back_is_refused(transform: Any) -> None:
    with pytest.raises(InputError, match="target_transform must have an inverse, got "):
        quick(target_transform=transform).fit(X, Y - Y.min() + 0.1).predict_interval(X, 0.9)


def test_a_small_output_beside_a_large_one_must_come_back() -> None:
    with pytest.raises(InputError, match=r"must have an inverse, got .* as 0"):
        Transform.fit(FunctionTransformer(np.round), LABELS / LABELS.max() * [1e9, 0.4])


def test_predict_is_the_median_of_two_quantiles() -> None:
    outer = quick(loss="quantile", quantiles=(0.05, 0.95)).fit(X, Y)
    np.testing.assert_allclose(outer.predict(X), outer.predict_quantiles(X).mean(axis=1), rtol=1e-12)
    uneven = quick(loss="quantile", quantiles=(0.1, 0.3, 0.7)).fit(X, Y)
    np.testing.assert_allclose(uneven.predict(X), uneven.predict_quantiles(X)[:, 1:].mean(axis=1), rtol=1e-12)
    high = quick(loss="quantile", quantiles=(0.6, 0.9)).fit(X, Y)
    np.testing.assert_array_equal(high.predict(X), high.predict_quantiles(X)[:, 0])
