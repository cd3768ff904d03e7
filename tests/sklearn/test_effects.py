"""Columns of many levels: shrunken means of the labels, of other folds and groups in training."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import GroupKFold

from cmixup.sklearn import TabularRegressor, effects
from cmixup.sklearn.columns import many_levels
from cmixup.sklearn.effects import fit_effects, looked_up, places_of_levels
from cmixup.sklearn.held_out import Part, parts_by_chance
from cmixup.sklearn.rows import Rows, merged
from tests.sklearn.test_regressor import quick

N, COUNT = 900, 300
LEVELS: list[Any] = [None, [float(k) for k in range(COUNT)]]
RNG = np.random.default_rng(0)
CODES = np.arange(N) % COUNT
Z = RNG.normal(size=(N, 1))
LABELS = Z + RNG.normal(size=(COUNT, 2))[CODES]
RAW = Rows(np.column_stack([Z, CODES]), LABELS, np.ones(N))


def test_means_are_shrunken_by_the_variances_within_and_between_levels() -> None:
    """Within they are 2 and between (2 * 4 + 2 * 4 - 2 * 2) / 4 = 3, so that 2 rows keep 2 / (2 + 2 / 3) of 2."""
    values = np.array([1.0, 3.0, -1.0, -3.0])
    shrunken = effects._shrunken_means(np.array([0, 0, 2, 2]), values, np.ones(4), 4)
    np.testing.assert_allclose(shrunken, [1.5, 0, -1.5, 0])
    for places in ([0, 2, 0, 2], [0, 1, 2, 3]):  # nothing between the levels, and nothing known within them
        assert not effects._shrunken_means(np.array(places), values, np.ones(4), 4).any()


def test_the_rest_leaves_out_other_columns_and_other_levels() -> None:
    """Of labels without noise the effects of the levels are what remains."""
    other = RNG.permutation(N) % COUNT
    a, b = RNG.normal(size=(2, COUNT))
    raw = Rows(np.column_stack([Z, CODES, other]), (2 * Z[:, 0] + a[CODES] + b[other])[:, None], np.ones(N))
    levels = [*LEVELS, LEVELS[1]]
    part = Part(np.arange(N), np.arange(0))
    (table,), _ = fit_effects(raw, Rows(Z, raw.y, raw.weight), levels, [part], 0)
    for first, effect in ((0, a), (COUNT + 2, b)):
        mean, rest = (np.corrcoef(table[first : first + COUNT, k], effect)[0, 1] for k in range(2))
        assert mean < 0.75
        assert rest > 0.9


@pytest.mark.parametrize("grouped", [False, True])
def test_training_sees_other_folds_and_groups_and_held_out_rows_see_the_table(grouped: bool) -> None:
    """Where all rows of a level are of one group, no label of another group says anything about it."""
    raw = Rows(RAW.x, LABELS, RAW.weight, group=CODES if grouped else None)
    rows, parts = Rows(Z, LABELS, RAW.weight), parts_by_chance(N, 3, 0.1, 0)
    tables, inputs = fit_effects(raw, rows, LEVELS, parts, 0)
    assert tables.shape == (3, COUNT + 2, 4)
    changed = LABELS.copy()
    changed[parts[1].held] += 9
    (_, again, _), _ = fit_effects(Rows(raw.x, changed, raw.weight), Rows(Z, changed, raw.weight), LEVELS, parts, 0)
    for member, part in enumerate(parts):
        from_table = looked_up(tables, places_of_levels(RAW.x, LEVELS)[0])[member]
        np.testing.assert_array_equal(inputs[member, part.held], from_table[part.held])
        assert (tables[member, :COUNT] != 0).mean() > 0.9
        assert not tables[member, COUNT:].any()  # a gap, and levels that training did not have
        assert bool(inputs[member, part.train].any()) != grouped
        if not grouped:
            np.testing.assert_allclose((inputs[member, part.train] ** 2).mean(axis=0), 1)
    if not grouped:
        np.testing.assert_array_equal(again, tables[1])  # labels held out say nothing
        single = Rows(RAW.x, LABELS, RAW.weight, group=np.full(N, 7))  # leaves no other group
        np.testing.assert_array_equal(fit_effects(single, rows, LEVELS, parts, 0)[1], inputs)


def many(n: int, count: int, outputs: int | None = None) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(0)
    code, effect = np.arange(n) % count, rng.normal(size=(count, outputs or 1))
    X = pd.DataFrame({"a": rng.normal(size=n), "k": pd.Categorical([f"level {k}" for k in code])})
    y = X[["a"]].to_numpy() + 2 * effect[code]
    return X, y if outputs else y[:, 0]


@pytest.mark.parametrize(("count", "outputs", "columns"), [(255, 1, 256), (256, 1, 3), (256, 2, 5)])
def test_more_than_255_levels_are_two_columns_for_each_output(count: int, outputs: int, columns: int) -> None:
    X, y = many(600, count, outputs)
    assert quick(epochs=1, n_pieces=0).fit(X, y).coefs_[0].shape[1] == columns


@pytest.mark.parametrize(("counts", "many"), [([250, 50, 250, 250, 250], []), ([250, 50, 251, 250, 250], [0, 2, 3, 4])])
def test_columns_of_many_levels_together_have_effects(counts: list[int], many: list[int]) -> None:
    assert many_levels([None, *(list(map(str, range(count))) for count in counts)]) == [place + 1 for place in many]


@pytest.mark.parametrize("options", [{"blend": "trees"}, {}, {"cv": GroupKFold(4)}])
def test_levels_of_four_rows_are_learned(tmp_path: Path, options: dict[str, Any]) -> None:
    X, y = many(2000, 400)
    groups = np.arange(1600) // 40 if "cv" in options else None
    model = quick(**{"epochs": 20, **options}).fit(X[:1600], y[:1600], groups=groups)
    assert model.score(X[1600:], y[1600:]) > 0.8
    strange = X[:3].assign(k=pd.Categorical(["level 7", None, "new"]))
    model.save(tmp_path / "model")
    again = TabularRegressor.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(strange), model.predict(strange))
    np.testing.assert_allclose(*model.predict(strange.assign(a=0.0))[1:])  # a gap is as unknown as a new level
    assert np.isfinite(model.predict_interval(strange, 0.5)).all()


def test_a_row_of_weight_two_is_the_row_given_twice() -> None:
    X, y = many(600, 300)
    twice = np.r_[np.arange(600), np.arange(9)]
    first = quick(epochs=2).fit(X, y, sample_weight=np.bincount(twice))
    second = quick(epochs=2).fit(X.iloc[twice], y[twice])
    np.testing.assert_array_equal(first.predict(X), second.predict(X))
    rows, _ = merged(
        np.array([[1.0], [2.0], [2.0]]), np.zeros((3, 1)), np.array([0.0, 1.0, 1.0]), None, np.array([7, 8, 9])
    )
    assert rows.group is not None
    assert rows.group.tolist() == [8]  # of the first of equal rows, those of weight 0 left out
