"""The ideas of docs/new_method.md, entries all: a learned bandwidth, centres as partners, noise on features."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from torch import nn

from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.methods.mix import Mix
from cmixup.methods.resample import Resample
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from cmixup.training.batch import Batch
from cmixup.training.method import Method
from cmixup.training.trainer import Run, train
from scripts.study.entry import ENTRIES, load_module
from tests.helpers import (
    assert_same,
    assert_states_close,
    checkpoints,
    interrupted,
    make_run,
    settings,
    states_differ,
    train_one,
)

LearnedBandwidth: Any = load_module(ENTRIES / "learned_bandwidth.py").LearnedBandwidth
Centres: Any = load_module(ENTRIES / "centres.py").Centres
Noise: Any = load_module(ENTRIES / "feature_noise.py").Noise
IDEAS: dict[str, Callable[[], Method]] = {
    "learned bandwidth, hidden": lambda: LearnedBandwidth([0.05, 0.3, 2.0], 0.5, "hidden"),
    "centres, hidden": lambda: Mix(Centres(), Beta(0.5), "hidden"),
    "noise, hidden": lambda: ERM(Noise(0.1), "hidden"),
    "noise and C-Mixup, hidden": lambda: Mix(LabelDistance(0.3), Beta(0.5), "hidden", transform=Noise(0.1)),
}


@pytest.mark.parametrize("name", IDEAS)
def test_each_idea_trains_and_a_stack_equals_its_runs_alone(name: str) -> None:
    how = {"epochs": 4, "optimizer": "sgd"}
    together = train([make_run(IDEAS[name](), seed) for seed in range(3)], settings(**how))
    for seed, result in enumerate(together):
        alone = train_one(IDEAS[name](), seed, **how)
        assert (result.stack, result.failure) == (3, "")
        assert_states_close(alone.state_dict, result.state_dict, 1e-5)
        assert alone.diagnostics.keys() == result.diagnostics.keys()
    assert states_differ(together[0].state_dict, train_one(ERM(), 0, **how).state_dict)


@pytest.mark.parametrize("name", IDEAS)
def test_each_idea_goes_on_after_a_stop(name: str, tmp_path: Path) -> None:
    def make() -> list[Run]:
        return [make_run(IDEAS[name](), seed) for seed in (0, 1)]

    straight = train(make(), settings(epochs=5))
    assert all(min(row["val_rmse"] for row in run.history[1:]) < run.history[0]["val_rmse"] for run in straight)
    assert_same(interrupted(make, checkpoints(tmp_path), 2), straight)


def test_a_pairing_that_gives_no_partners_is_named() -> None:
    class Forgetful(Centres):  # type: ignore[misc, valid-type]
        def with_partners(self, model: nn.Module, batch: Batch) -> Batch:
            return batch

    with pytest.raises(InputError, match="method Mix needs the rows of the draw 'partner'"):
        train_one(Mix(Forgetful(), Beta(0.5)), 0)
    with pytest.raises(InputError, match="method Resample needs the rows of the draw 'partner'"):
        train_one(Resample(Forgetful(), Beta(0.5)), 0)


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_a_transformation_that_returns_another_shape_is_named(layer: str) -> None:
    class Narrow(Noise):  # type: ignore[misc, valid-type]
        def forward(self, state: Any, rows: Batch, rng: Any) -> Any:
            return state[..., :1]

    for method in (ERM(Narrow(0.1), layer), Mix(LabelDistance(0.3), Beta(0.5), layer, transform=Narrow(0.1))):
        with pytest.raises(
            InputError, match=r"transform Narrow must return a state of shape \[\(\d+, \d+\)\], got \[\(\d+, 1\)\]"
        ):
            train_one(method, 0)
