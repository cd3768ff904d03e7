"""Trees beside networks: the same bits as scikit-learn's, on the members' rows, weighed by held-out rows."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor

from cmixup import InputError
from cmixup.sklearn import TabularRegressor, persistence, regressor, trees
from cmixup.sklearn.held_out import Part, parts_by_chance
from cmixup.sklearn.rows import Rows
from cmixup.sklearn.trees import check_trees, fit_trees, predict_trees
from tests.sklearn.test_regressor import X, Y, quick

N = 200
LEVELS: list[Any] = [None, list("uvwxyz"), None, list("ab")]
PARTS = parts_by_chance(N, 3, 0.1, 0)
NO_EFFECTS = np.empty((3, N, 0))


def columns() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers and levels with gaps, two outputs, and labels in steps, which trees learn faster than networks."""
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=N), rng.integers(0, 5, N), rng.normal(size=N), rng.integers(0, 2, N)])
    x[::7, 0], x[::11, 1] = np.nan, np.nan
    y = np.column_stack([np.nan_to_num(x[:, 1]) % 3 + x[:, 2], x[:, 3] * np.nan_to_num(x[:, 0])])
    return x, y, np.floor(2 * x[:, 2]) + 0.3 * rng.normal(size=N)


COLUMNS, LABELS, STEPS = columns()


@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_those_of_scikit_learn_to_the_last_bit(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2, N) if weighted else np.ones(N)
    trees = fit_trees(Rows(COLUMNS, LABELS, weight), LEVELS, PARTS, 1, NO_EFFECTS, options=[{}, {}])
    check_trees(trees, LEVELS, 3, 2)
    predicted = predict_trees(trees, COLUMNS, LEVELS, range(3), 1)
    for member, part in enumerate(PARTS):
        for output in range(2):
            model = HistGradientBoostingRegressor(categorical_features=[1, 3], early_stopping=False)
            share = weight[part.train] / weight[part.train].mean() if weighted else None
            model.fit(COLUMNS[part.train], LABELS[part.train, output], sample_weight=share)
            np.testing.assert_array_equal(predicted[member, :, output], model.predict(COLUMNS))
    np.testing.assert_array_equal(predict_trees(trees, COLUMNS[:5], LEVELS, [2], 1)[0], predicted[2, :5])
    new = COLUMNS.copy()
    missing = COLUMNS.copy()
    new[:, 1], missing[:, 1] = 5.0, np.nan  # a level of the table that no row has
    np.testing.assert_array_equal(*(predict_trees(trees, x, LEVELS, [0], 1) for x in (new, missing)))
    new[:, 1] = -1.0  # a level that is not of the table
    np.testing.assert_array_equal(*(predict_trees(trees, x, LEVELS, [0], 1) for x in (new, missing)))


def test_equal_parts_are_trained_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[int] = []
    original = trees.HistGradientBoostingRegressor.fit
    monkeypatch.setattr(
        trees.HistGradientBoostingRegressor, "fit", lambda self, *a, **k: fits.append(1) or original(self, *a, **k)
    )
    part = Part(np.arange(50), np.arange(50, 60))
    fitted = fit_trees(
        Rows(COLUMNS, LABELS[:, :1], np.ones(N)), LEVELS, [part, part, PARTS[0]], 1, NO_EFFECTS, options=[{}]
    )
    assert len(fits) == 2
    first, second, third = predict_trees(fitted, COLUMNS, LEVELS, range(3), 1)
    np.testing.assert_array_equal(first, second)
    assert not np.allclose(first, third)


def test_a_prediction_is_the_weighed_mean_of_networks_and_trees() -> None:
    x = COLUMNS
    both, alone = (quick(blend=blend).fit(x, STEPS) for blend in ("trees", None))
    (weight,) = both.blend_weight_
    assert 0 < weight < 1
    assert alone.blend_weight_.tolist() == [0.0]
    grown = predict_trees(both._trees, x, [None] * 4, range(2), 1).mean(axis=0)[:, 0] * both.y_scale_ + both.y_mean_
    np.testing.assert_allclose(both.predict(x), (1 - weight) * alone.predict(x) + weight * grown, rtol=1e-12)


def test_no_held_out_row_is_trained_on_by_its_members_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """With groups, too; a column says which row it is."""
    seen: list[Any] = []
    monkeypatch.setattr(regressor, "fit_trees", lambda *a, **k: seen.append(a) or fit_trees(*a, **k))
    groups = np.arange(60) % 6
    quick(blend="trees", epochs=1, members=4).fit(np.column_stack([X, groups]), Y, groups=groups)
    ((rows, _, parts, _, _),) = seen
    assert len(parts) == 4
    for part in parts:
        assert not set(rows.x[part.train, 4]) & set(rows.x[part.held, 4])
        assert len(part.train) + len(part.held) == 60


def spoilt(name: str, place: Any, value: float) -> Callable[[dict[str, Any]], None]:
    """Return what changes one number; a place in records of nodes is a field."""

    def change(arrays: dict[str, Any]) -> None:
        arrays[name] = arrays[name].copy()
        (arrays[name][place][:1] if isinstance(place, str) else arrays[name][place])[...] = value

    return change


@pytest.fixture(scope="module")
def saved_trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("trees") / "model.npz"
    quick(blend="trees", epochs=1).fit(COLUMNS, STEPS).save(path)
    return path


@pytest.mark.parametrize(
    "change",
    [
        spoilt("_trees.nodes", "left", 0), spoilt("_trees.nodes", "right", 10**6),
        spoilt("_trees.nodes", "feature_idx", 4), spoilt("_trees.nodes", "feature_idx", -1),
        spoilt("_trees.nodes", "is_categorical", 1), spoilt("_trees.sizes", (0, slice(1)), 7),
        spoilt("_trees.sizes", (0, slice(2, 3)), 1),
        lambda arrays: arrays.update({"_trees.codes": np.zeros((2, 3))}),
        lambda arrays: arrays.update({"_trees.nodes": arrays["_trees.nodes"]["value"]}),
        lambda arrays: arrays.pop("_trees.sets"),
    ],
)  # fmt: skip
def test_trees_that_fit_never_leaves_are_refused(
    saved_trees: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    """A walk through the trees never leaves them, and always ends."""
    with np.load(saved_trees) as file:
        arrays = dict(file)
    assert TabularRegressor.load(saved_trees).blend_weight_ > 0
    change(arrays)
    del arrays["digest"]
    np.savez(tmp_path / "spoilt.npz", digest=np.array(persistence._digest(arrays)), **arrays)
    with pytest.raises(InputError, match="path must be a file that TabularRegressor"):
        TabularRegressor.load(tmp_path / "spoilt.npz")
