"""Losses of `TabularRegressor`: one for networks, trees, early stopping and blend; quantiles; transformed labels."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss
from sklearn.preprocessing import FunctionTransformer

from cmixup import InputError
from cmixup.sklearn.losses import LOSSES, Loss
from cmixup.sklearn.transforms import Transform
from cmixup.sklearn.trees import fit_trees, predict_trees, weigh_trees
from tests.sklearn.test_regressor import X, Y, quick, table
from tests.sklearn.test_trees import COLUMNS, LABELS, LEVELS, PARTS, N, Rows

QUANTILES = (0.1, 0.5, 0.9)
KINDS = [Loss("absolute"), Loss("quantile", QUANTILES)]


def test_errors_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    y, predicted = rng.normal(size=(50, 2)), rng.normal(size=(50, 6))
    pinball = KINDS[1].of_outputs(torch.from_numpy(predicted), torch.from_numpy(y)).numpy()
    for label in range(2):
        for place, level in enumerate(QUANTILES):
            expected = mean_pinball_loss(y[:, label], predicted[:, 3 * label + place], alpha=level)
            assert pinball[:, label, place].mean() == pytest.approx(expected)


def test_a_label_that_is_missing_has_no_part_in_a_step() -> None:
    y, predicted = torch.randn(2, 8, 2), torch.randn(2, 8, 2, requires_grad=True)
    y[:, ::3, 1] = torch.nan
    error = Loss("absolute").of_batch(gaps=True)(predicted, y)
    known = ~y.isnan()
    np.testing.assert_allclose(error[0].item(), (predicted - y)[0][known[0]].abs().mean().item(), rtol=1e-6)
    error.sum().backward()
    assert (predicted.grad[~known] == 0).all()
    assert (predicted.grad[known] != 0).all()


@pytest.mark.parametrize("loss", KINDS, ids=lambda loss: loss.name)
def test_trees_are_those_of_scikit_learn(loss: Loss) -> None:
    options = [{**further, "max_iter": 20} for further in loss.tree_options(2)]
    trees = fit_trees(Rows(COLUMNS, LABELS, np.ones(N)), LEVELS, PARTS[:1], 1, np.empty((1, N, 0)), options=options)
    predicted = predict_trees(trees, COLUMNS, LEVELS, range(1), 1)
    assert predicted.shape == (1, N, 2 * loss.outputs)
    model = HistGradientBoostingRegressor(categorical_features=[1, 3], early_stopping=False, **options[-1])
    train = PARTS[0].train
    np.testing.assert_array_equal(predicted[0, :, -1], model.fit(COLUMNS[train], LABELS[train, 1]).predict(COLUMNS))


@pytest.mark.parametrize("slopes", [(0.3, 1.7), (-0.4, 0.8)])
@pytest.mark.parametrize("loss", [Loss(), *KINDS], ids=lambda loss: loss.name)
def test_the_weight_of_trees_has_the_least_loss(loss: Loss, slopes: tuple[float, float]) -> None:
    rng = np.random.default_rng(0)
    nets, grown, weight = (rng.normal(size=(200, 2 * loss.outputs)) for _ in range(3))
    weight = np.abs(weight[:, 0])
    y = (nets + (grown - nets) * np.repeat(slopes, loss.outputs))[:, [0, -1]] + 0.1 * rng.normal(size=(200, 2))
    y[:9, 1] = np.nan
    shares = weigh_trees([nets[:90], nets[90:]], [grown[:90], grown[90:]], [y[:90], y[90:]], weight, loss)
    for output, share in enumerate(shares):

        def error(w: float, place: int = output) -> float:
            errors = loss.of_outputs(*map(torch.from_numpy, (nets + w * (grown - nets), y))).numpy()
            return float(weight @ np.nan_to_num(errors.reshape(200, -1)[:, place]))

        best = minimize_scalar(error, bounds=(0, 1), method="bounded", options={"xatol": 1e-8}).x
        assert share == pytest.approx(best, abs=1e-6 if loss.name == "squared" else 0.02)
    np.testing.assert_array_equal(weigh_trees([nets], [nets], [y], weight, loss), 0)


def test_weighing_holds_the_errors_of_one_blend_at_a_time() -> None:
    nets, grown, y = np.random.default_rng(0).normal(size=(3, 20_000, 1))
    tracemalloc.start()
    weigh_trees([nets], [grown], [y], np.ones(len(y)), KINDS[0])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 20 * y.nbytes  # of 101 blends


def test_each_loss_has_its_own_centre() -> None:
    """Skewed labels that no column explains: the mean, the median and the quantiles."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (900, 1)).astype(float), rng.exponential(size=900)
    options = {"hidden_layer_sizes": (), "bandwidth": 0, "epochs": 40, "batch_size": 256, "early_stopping": False}
    centre = {loss: quick(loss=loss, **options).fit(x, y).predict(x).mean() for loss in LOSSES}
    assert centre["squared"] == pytest.approx(y.mean(), abs=0.06)
    assert centre["absolute"] == pytest.approx(np.median(y), abs=0.06)
    assert centre["quantile"] == pytest.approx(np.median(y), abs=0.06)
    levels = quick(loss="quantile", quantiles=QUANTILES, **options).fit(x, y).predict_quantiles(x).mean(axis=0)
    np.testing.assert_allclose(levels, np.quantile(y, QUANTILES), atol=0.12)


def test_quantiles_never_cross_and_the_middle_one_is_predicted() -> None:
    x, y = table(outputs=2)
    y[::5, 1] = np.nan
    many = (0.05, 0.45, 0.5, 0.55, 0.95)
    model = quick(loss="quantile", quantiles=many, blend="trees").fit(x, y)
    new = 3 * np.random.default_rng(1).normal(size=(200, 4))
    quantiles = model.predict_quantiles(new)
    assert quantiles.shape == (200, 2, 5)
    assert (np.diff(quantiles) >= 0).all()
    np.testing.assert_array_equal(model.predict(new), quantiles[..., 2])
    assert model.blend_weight_.shape == (10,)
    assert quick(loss="quantile", quantiles=[0.9], epochs=1).fit(X, Y).predict_quantiles(X).shape == (60, 1)
    with pytest.raises(InputError, match="loss must be \"quantile\" for predict_quantiles, got 'squared'"):
        quick(epochs=1).fit(X, Y).predict_quantiles(X)


def test_intervals_of_quantiles_are_conformalised() -> None:
    """Lowest and highest are moved by one number, up or down, until they hold their share of held-out rows."""
    model = quick(loss="quantile", members=10).fit(X, Y)
    low, high = model.predict_interval(X, 0.8).T
    quantiles = model.predict_quantiles(X)
    moved = (quantiles[:, 0] - low) / model.y_scale_
    np.testing.assert_allclose(moved, np.sort(model._intervals.residuals[:, 0])[48])  # of 60 the ceil(0.8 * 61)-th
    np.testing.assert_allclose(high - quantiles[:, -1], quantiles[:, 0] - low)


def test_logarithms_are_fitted_and_everything_is_in_label_units() -> None:
    direct, inside = quick(members=10).fit(X, np.log(Y)), quick(members=10, target_transform="log").fit(X, Y)
    np.testing.assert_array_equal(inside.predict(X), np.exp(direct.predict(X)))
    np.testing.assert_array_equal(inside.predict_interval(X), np.exp(direct.predict_interval(X)))


def test_auto_takes_logarithms_of_skewed_labels_above_0() -> None:
    normal = np.random.default_rng(0).normal(size=(300, 1))
    assert Transform.fit("auto", np.exp(normal)).given == "log"
    assert Transform.fit("auto", np.where(np.arange(300)[:, None] == 7, np.nan, np.exp(normal))).given == "log"
    assert Transform.fit("auto", np.exp(normal) - 1).given is None
    assert Transform.fit("auto", normal + 10).given is None
    exponential = np.random.default_rng(0).exponential(size=(2000, 1))  # logarithms are skewed 0.57 times as much
    assert Transform.fit("auto", exponential).given is None
    model = quick(target_transform="auto", epochs=1).fit(X, np.exp(Y / 20))
    assert model.target_transform_ == "log"


@pytest.mark.parametrize(
    ("options", "y", "message"),
    [
        ({"loss": "mse"}, None, "loss must be one of squared, absolute, quantile, got 'mse'"),
        ({"loss": "quantile", "quantiles": (0.5, 0.5)}, None,
         "quantiles must be numbers that rise between 0 and 1, got"),
        ({"loss": "quantile", "quantiles": (0, 0.5)}, None, r"quantiles must be numbers that rise .* got \(0, 0.5\)"),
        ({"loss": "quantile", "quantiles": 0.5}, None, "quantiles must be numbers that rise between 0 and 1, got 0.5"),
        ({"loss": "quantile", "quantiles": ["a"]}, None, "quantiles must be a number, got 'a'"),
        ({"target_transform": "sqrt"}, None, 'target_transform must be None, "log", "auto" or a transformer .* got'),
        ({"target_transform": "log"}, Y - 100, 'target_transform="log" must have labels above 0, got -.* in y'),
        ({"target_transform": FunctionTransformer(np.sqrt)}, Y - 100, "target_transform must give a finite number for"),
    ],
)  # fmt: skip
def test_bad_arguments(options: dict[str, Any], y: Any, message: str) -> None:
    with pytest.raises(InputError, match=message), np.errstate(invalid="ignore"):
        quick(**options).fit(X if y is not None else None, y)
