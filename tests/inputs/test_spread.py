"""What does not vary in training changes nothing, whatever it is and wherever it stands; what varies little does."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from cmixup.data import Split
from cmixup.inputs.arrays import ArrayPreprocessing
from cmixup.inputs.images import ImagePreprocessing
from cmixup.inputs.spread import VANISH, is_new, moments, varies
from cmixup.pairing.flat import Standardised
from cmixup.sklearn.rows import moments as weighted_moments
from cmixup.tables.preprocessing import TablePreprocessing
from cmixup.tables.series import SeriesPreprocessing
from cmixup.training.losses import LabelScaling
from datasets.arrays import Arrays
from datasets.common.scaling import Scaling
from datasets.csv import Csv
from datasets.images import Images
from datasets.series import Series

ROWS = (2, 3, 7, 99, 442, 1000, 20_000, 1_000_000)
SIZES = (1e-30, 1e-12, 1.0, 1e9, 1e30)
STUCK = (0.1, 0.7, 1 / 3, 1.0, 2.4, 4.35, 19.99)


@pytest.mark.parametrize("n", ROWS)
def test_a_constant_of_any_size_does_not_vary_and_what_varies_little_is_scaled_to_1(n: int) -> None:
    values = np.array([sign * size * stuck for size in SIZES for stuck in STUCK for sign in (1, -1)])
    weight = np.random.default_rng(0).random(n) + 0.1
    for some in [values] if n < 1e6 else values[::9, None]:  # a million rows of all would take 0.5 GB
        column = np.tile(some, (n, 1))
        jitter = column.copy()
        jitter[-1] = np.nextafter(some, np.inf)  # as sums in another order give it
        for given in (column, jitter, np.tile(some.astype(np.float32), (n, 1)).astype(np.float64)):
            mean, scale = moments(given)
            assert (mean == given[0]).all()
            assert (scale == VANISH).all()
            mean, scale = weighted_moments(given, weight)  # the estimator's
            assert (mean == given[0]).all()
            assert (scale == 0).all()
        for share in (1e-11, 1e-7, 0.5):
            little = column * (1 + share * (np.arange(n) % 2)[:, None])
            for (mean, scale), weights in ((moments(little), None), (weighted_moments(little, weight), weight)):
                z = (little - mean) / scale
                assert np.average(z, axis=0, weights=weights) == pytest.approx(0, abs=1e-3)
                assert np.average(z**2, axis=0, weights=weights) == pytest.approx(1, abs=1e-3)


def test_ordinary_columns_have_the_bits_of_numpy() -> None:
    x = np.random.default_rng(0).normal(3, 2, (5000, 4)) * [1, 1e-9, 1e12, 1]
    mean, scale = moments(x)
    assert (mean == x.mean(axis=0)).all()
    assert (scale == x.std(axis=0)).all()
    assert varies(0.0, 1e-300, 10)
    assert not varies(0.0, 0.0, 10)
    assert not varies(np.nan, np.nan, 3)


def test_a_new_value_is_one_that_float32_can_tell() -> None:
    constant = np.array([0.1, 5.0])
    assert is_new(np.array([[np.float32(0.1), 5.0], [np.nan, 6.0]], float), constant).tolist() == [False, True]


# ---- where it is used: `stuck` is constant in training


def frame(n: int = 60, **more: Any) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"a": rng.normal(size=n), "stuck": 19.99, **more, "y": rng.normal(size=n)})


@pytest.mark.parametrize("scaling", ["standard", "minmax", "none"])
def test_a_table_ignores_it_and_warns_once_by_name(scaling: str, tmp_path: Path) -> None:
    given = frame(word="on", gaps=np.where(np.arange(60) % 2, 0.1, np.nan))
    given.to_csv(tmp_path / "t.csv", index=False)
    data = Csv(str(tmp_path / "t.csv"), target="y", scaling=scaling).load(0)
    made = TablePreprocessing.from_json(data.extras["preprocessing.json"])
    assert made.dropped == {"stuck": "constant in training", "word": "constant in training"}
    was = made.apply(given)
    with pytest.warns(UserWarning, match="stuck, word, gaps: constant in training, and now with another value") as one:
        now = made.apply(given.assign(stuck=0, word="off", gaps=given.gaps * 2))
    assert len(one) == 1
    assert (now == was).all()
    assert (made.apply(given.assign(stuck=np.float32(19.99), word=" on ")) == was).all()  # the same, without a warning
    assert (made.apply(given.drop(columns=["stuck", "word"])) == was).all()  # nor is it needed


@pytest.mark.parametrize("form", ["standard", "minmax"])
def test_domain_tables_ignore_it_and_their_runs_warn(form: str) -> None:
    x = frame().to_numpy()
    scaling = Scaling.fit(x, form)
    assert (scaling.apply(x + np.array([0, 1, 0]))[:, 1].astype(np.float32) == 0).all()
    made = TablePreprocessing.from_json(scaling.to_json(["a", "stuck", "b"], ["y"]))
    new = pd.DataFrame(x, columns=["a", "stuck", "b"])
    with pytest.warns(UserWarning, match=r"table: stuck: constant in training"):
        assert (made.apply(new.assign(stuck=5)) == made.apply(new)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays_ignore_it_and_scale_what_varies_little(dtype: type, tmp_path: Path) -> None:
    x = frame(tiny=1e9 + np.arange(60) % 2).to_numpy()[:, :3].astype(dtype)
    x[:, 2] += x[0, 2]
    np.savez(tmp_path / "a.npz", x=x, y=np.arange(60.0))
    for seed in range(3):  # the first row is in training or not
        first = x.copy()
        first[0] = 0
        np.savez(tmp_path / "b.npz", x=first, y=np.arange(60.0))
        for file in ("a", "b"):
            made = ArrayPreprocessing.from_json(
                Arrays(str(tmp_path / f"{file}.npz")).load(seed).extras["preprocessing.json"]
            )
            if made.std[1] < VANISH:  # row 0 of b trains
                continue
            new = x + np.array([0, 1, 0], dtype)
            with pytest.warns(UserWarning, match="arrays: column 2 of x: constant in training"):
                inputs = made.apply(new)[torch.arange(60)]
            assert (inputs[:, 1] == 0).all()
            assert torch.equal(inputs, made.apply(x)[torch.arange(60)])
            if dtype is np.float64:
                assert inputs[1:, 2].std().item() == pytest.approx(1, abs=0.1)


def test_series_ignore_it_note_it_and_warn(tmp_path: Path) -> None:
    rows = pd.DataFrame({"time": pd.date_range("2024", periods=200, freq="h"), "load": np.sin(np.arange(200))})
    rows["rate"] = np.where(np.arange(200) < 150, 0.1, 0.2)
    rows["tiny"] = 1e9 + 1e-3 * (np.arange(200) % 2)
    rows.to_csv(tmp_path / "s.csv", index=False)
    data = Series(str(tmp_path / "s.csv"), target="load", window=4, horizon=1).load(0)
    inputs = data.test.x[torch.arange(len(data.test.y))]
    assert (inputs[:, :, 1] == 0).all()
    assert inputs[:, :, 2].std().item() == pytest.approx(1, abs=0.1)
    assert "constant in training, so that later values change nothing: rate" in data.notes
    made = SeriesPreprocessing.from_json(data.extras["preprocessing.json"])
    with pytest.warns(UserWarning, match="series: rate: constant in training") as one:
        made.apply(rows)
    assert len(one) == 1


def test_images_of_few_photons_are_scaled_and_constant_ones_are_zero(tmp_path: Path) -> None:
    rng, folder = np.random.default_rng(0), tmp_path / "photos"
    folder.mkdir()
    for k in range(12):
        Image.fromarray(rng.poisson(2, (8, 8)).astype(np.uint16)).save(folder / f"{k}.png")
    pd.DataFrame({"file": [f"{k}.png" for k in range(12)], "y": range(12)}).to_csv(tmp_path / "l.csv", index=False)
    images = Images(str(folder), labels=str(tmp_path / "l.csv"), target="y", size=8)
    x = images.load(0).train.x[torch.arange(7)]
    assert x.std().item() == pytest.approx(1, abs=0.05)
    assert x.mean().item() == pytest.approx(0, abs=0.05)
    for path in folder.glob("*.png"):
        Image.fromarray(np.full((8, 8), 4321, np.uint16)).save(path)
    same = Images(str(folder), labels=str(tmp_path / "l.csv"), target="y", size=8)
    data = same.load(0)
    assert (data.train.x[torch.arange(7)] == 0).all()
    made = ImagePreprocessing.from_json(data.extras["preprocessing.json"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made.apply(folder)
    Image.fromarray(np.full((8, 8), 4322, np.uint16)).save(folder / "3.png")
    with pytest.warns(UserWarning, match="photos: blue, green, red: constant in training, and now with another value"):
        changed = made.apply(folder, "photos")
    assert (changed[torch.arange(12)] == 0).all()


def test_labels_and_distances_take_rounding_for_no_spread() -> None:
    y = torch.full((999, 2), 0.1)
    y[::2, 1] = float("nan")
    for form in ("standard", "loss"):
        assert (LabelScaling.fit(form, [Split(torch.zeros(999, 1), y, torch.zeros(999))]).std == 1).all()
    x = torch.full((50, 2), 4.35)
    x[::2, 1] += 1e-6
    assert Standardised(x).scale[0] == 0
    assert (Standardised(x).read(np.arange(50))[:, 1].std() - 1).abs() < 0.05
