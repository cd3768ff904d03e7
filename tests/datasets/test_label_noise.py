"""Noise on training labels: its size, its shape, and all that it must leave alone."""

import math
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData, Split, Tasks
from cmixup.seeding import Streams
from datasets.common.label_noise import LabelNoise
from scripts.config.compose import option_names
from scripts.config.parts import dataset_class

#: Stand-ins that need other options to stay small.
SMALL: dict[str, dict[str, Any]] = {"echo": {"frames": 2, "size": 16}}


def synthetic(name: str, seed: int = 0, **noise: Any) -> RegressionData:
    return dataset_class(name)(synthetic=True, **SMALL.get(name, {})).with_options(**noise).load(seed)


def split(n: int, width: int, seed: int = 0) -> Split:
    y = torch.from_numpy(5 + 3 * np.random.default_rng(seed).standard_normal((n, width))).float()
    return Split(torch.zeros(n, 1), y, torch.zeros(n, dtype=torch.int64))


def added(n: int, width: int, ratio: float = 0.3, per: str = "output", seed: int = 0) -> tuple[np.ndarray, float]:
    """Return the noise that labels of standard deviation 3 got, and what was said of it."""
    clean = split(n, width)
    noisy, std = LabelNoise(ratio, per).add(clean, seed)
    return (noisy.y.double() - clean.y.double()).numpy(), std


def test_the_standard_deviation_is_that_of_all_labels_times_the_ratio() -> None:
    noise, std = added(20_000, 4)
    assert std == pytest.approx(0.3 * float(split(20_000, 4).y.double().std(correction=0)), rel=1e-6)
    assert noise.std() == pytest.approx(std, rel=0.02)
    assert abs(noise.mean()) < 4 * std / math.sqrt(noise.size)
    gaps = split(200, 2)
    gaps.y[3, 1] = torch.nan
    labels = gaps.y.double().numpy()
    np.testing.assert_allclose(LabelNoise(0.3, "target").add(gaps, 0)[1], 0.3 * np.nanstd(labels, axis=0), rtol=1e-6)
    assert (np.abs(noise) < std).mean() == pytest.approx(math.erf(1 / math.sqrt(2)), abs=0.01)  # normal


def test_outputs_are_independent_or_share_one_number() -> None:
    noise, _ = added(20_000, 3)
    assert np.abs(np.corrcoef(noise.T) - np.eye(3)).max() < 4 / math.sqrt(20_000)
    shared, std = added(20_000, 3, per="example")
    np.testing.assert_allclose(shared, np.repeat(shared[:, :1], 3, axis=1), atol=1e-5)
    assert shared.std() == pytest.approx(std, rel=0.02)


def test_noise_is_fixed_by_the_run_seed_and_has_a_stream_of_its_own() -> None:
    noise, _ = added(500, 1, seed=3)
    assert np.array_equal(noise, added(500, 1, seed=3)[0])
    assert not np.array_equal(noise, added(500, 1, seed=4)[0])
    streams = Streams(3)
    for name in ("order", "partners", "lam", "mixing", "views"):
        other = getattr(streams, name).standard_normal(500)
        assert abs(np.corrcoef(noise[:, 0], other)[0, 1]) < 4 / math.sqrt(500)


@pytest.mark.parametrize("name", option_names("dataset"))
def test_every_dataset_takes_it_and_only_training_labels_change(name: str) -> None:
    clean, noisy = synthetic(name), synthetic(name, label_noise=0.3)
    for part in ("val", "test"):
        assert torch.equal(getattr(clean, part).y, getattr(noisy, part).y)
    assert not torch.equal(clean.train.y, noisy.train.y)
    assert torch.equal(clean.train.domain, noisy.train.domain)
    row = torch.arange(2)
    before, after = clean.train.x[row], noisy.train.x[row]
    if isinstance(clean.train.x, Tasks):
        assert torch.equal(before.support, after.support)
        assert torch.equal(before.query, after.query)
    else:
        assert torch.equal(before, after)
    assert not np.array_equal(noisy.train.y.numpy(), synthetic(name, 1, label_noise=0.3).train.y.numpy())
    assert [note for note in noisy.notes if note not in clean.notes] == [noisy.notes[-1]]
    assert "Gaussian noise of standard deviation" in noisy.notes[-1]


@pytest.mark.parametrize("name", ["airfoil", "exchange_rate", "shapenet1d"])
def test_validation_labels_may_have_as_much_and_training_and_test_stay(name: str) -> None:
    noisy, both = synthetic(name, label_noise=0.3), synthetic(name, label_noise=0.3, label_noise_val=True)
    for part in ("train", "test"):
        assert torch.equal(getattr(noisy, part).y, getattr(both, part).y)
    added = (both.val.y - noisy.val.y).numpy().ravel()
    assert np.unique(added).size > 0.9 * added.size
    assert both.notes == (*noisy.notes, "the validation labels have as much")
    assert torch.equal(synthetic(name, label_noise_val=True).val.y, noisy.val.y)  # as much as none


def test_an_example_of_training_tasks_has_one_noisy_label_in_support_and_query() -> None:
    clean, noisy = synthetic("shapenet1d").train.x, synthetic("shapenet1d", label_noise=0.3).train.x
    assert isinstance(clean, Tasks)
    assert isinstance(noisy, Tasks)
    rows = np.arange(len(clean))
    support = noisy.support_labels(rows)
    assert (support != clean.support_labels(rows)).mean() > 0.99
    seen: dict[tuple[int, int], float] = {}
    every = np.concatenate([support, noisy.y.numpy()], axis=1)
    for obj, views, labels in zip(noisy.objects, noisy.views, every, strict=True):
        for view, label in zip(views, labels, strict=True):
            assert seen.setdefault((int(obj), int(view)), float(label)) == float(label)
    difference = noisy.labels - clean.labels
    assert difference.std() == pytest.approx(0.3 * clean.labels.std(), rel=4 / math.sqrt(2 * difference.size))
