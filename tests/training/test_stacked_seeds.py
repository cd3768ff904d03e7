"""A stack of seeds is as many separate runs, and the same seed gives the same numbers."""

import numpy as np
import pytest
import torch

from cmixup.data import Split
from cmixup.methods.erm import ERM
from cmixup.mixing.lam import Beta
from cmixup.pairing.neighbours import Neighbours
from cmixup.training.trainer import train
from tests.helpers import (
    METHODS,
    assert_diagnostics_close,
    assert_states_close,
    assert_states_equal,
    composed,
    in_float64,
    make_data,
    make_run,
    settings,
    states_differ,
    train_one,
)

THREE_STEPS, ONE_EPOCH = (48, 20, 17), (203, 20, 17)
LENGTHS = pytest.mark.parametrize(
    "sizes", [pytest.param(THREE_STEPS, id="3 steps"), pytest.param(ONE_EPOCH, id="an epoch", marks=pytest.mark.slow)]
)
SEEDS = (0, 1, 5)


# ---- a stack of seeds is as many separate runs


# Adam that starts anew after the annealing moves by lr g / |g|: in float32 that makes steps of the rounding of small g.
RESTARTS = ("irm", "ib_irm", "vrex")
# Three steps of Adam leave one weight in 16384 further apart than 1e-5 in float32.
IN_FLOAT64 = (*RESTARTS, "mixrl_hidden", "coral", "cmixup_xy", "input_noise")


@LENGTHS
@pytest.mark.parametrize("name", IN_FLOAT64)
def test_a_stack_equals_separate_runs_in_float64(
    name: str, sizes: tuple[int, int, int], float64: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, fit = Beta.draw, Neighbours.fit

    def fit_in_float64(pairing: Neighbours, train_split: Split) -> None:
        fit(pairing, train_split)
        pairing.features = pairing.features.double()

    monkeypatch.setattr(Beta, "draw", lambda lam, *given: draw(lam, *given).astype(np.float64))
    monkeypatch.setattr(Neighbours, "fit", fit_in_float64)
    data = {seed: in_float64(make_data(seed, sizes)) for seed in SEEDS}
    together = train([make_run(METHODS[name](), seed, data[seed]) for seed in SEEDS], settings())
    for seed, ours in zip(SEEDS, together, strict=True):
        alone = train_one(METHODS[name](), seed, data[seed])
        assert_states_close(ours.state_dict, alone.state_dict, 1e-10)
        assert ours.diagnostics == alone.diagnostics


@LENGTHS
@pytest.mark.parametrize("name", [name for name in METHODS if name not in IN_FLOAT64])
def test_a_stack_equals_separate_runs(name: str, sizes: tuple[int, int, int]) -> None:
    data = {seed: make_data(seed, sizes) for seed in SEEDS}
    together = train([make_run(METHODS[name](), seed, data[seed]) for seed in SEEDS], settings())
    assert [result.stack for result in together] == [3 if METHODS[name]().stackable else 1] * 3
    for seed, ours in zip(SEEDS, together, strict=True):
        alone = train_one(METHODS[name](), seed, data[seed])
        assert alone.stack == 1
        assert_states_close(ours.state_dict, alone.state_dict, 1e-5)
        assert ours.best_epoch == alone.best_epoch
        assert_diagnostics_close(ours.diagnostics, alone.diagnostics, 1e-5)
        for split in ("val", "test"):
            assert ours.scores[split] == pytest.approx(alone.scores[split], rel=1e-4, abs=1e-5)
        for one, other in zip(ours.history, alone.history, strict=True):
            assert one == pytest.approx(other, rel=1e-5, abs=1e-5)


def test_runs_whose_splits_have_equal_shapes_share_a_stack() -> None:
    """Results keep the order of the runs, and every run is the one of its own stack to the last bit."""
    data = {seed: make_data(seed, (48, 20, 17) if seed % 2 else (40, 20, 17)) for seed in range(5)}
    mixed = train([make_run(composed("cmixup"), seed, data[seed]) for seed in data], settings())
    assert [result.stack for result in mixed] == [3, 2, 3, 2, 3]
    for kind in (0, 1):
        own = [seed for seed in data if seed % 2 == kind]
        apart = train([make_run(composed("cmixup"), seed, data[seed]) for seed in own], settings())
        for seed, result in zip(own, apart, strict=True):
            assert_states_equal(mixed[seed].state_dict, result.state_dict)
            assert mixed[seed].scores == result.scores


def test_runs_of_a_stack_differ() -> None:
    one, other = train([make_run(composed("mixup"), seed) for seed in (0, 1)], settings())
    assert states_differ(one.state_dict, other.state_dict)
    assert one.scores != other.scores


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_stack_equals_separate_runs_with_weight_decay(optimizer: str) -> None:
    changes = {"optimizer": optimizer, "weight_decay": 0.1, "epochs": 2}
    together = train([make_run(ERM(), seed) for seed in SEEDS], settings(**changes))
    for seed, ours in zip(SEEDS, together, strict=True):
        assert_states_close(ours.state_dict, train_one(ERM(), seed, **changes).state_dict, 1e-5)


def test_each_run_keeps_its_own_best_epoch() -> None:
    changes = {"epochs": 8, "lr": 0.05}
    together = train([make_run(ERM(), seed) for seed in range(6)], settings(**changes))
    for result in together:
        curve = [row["val_rmse"] for row in result.history]
        assert result.best_epoch == 1 + int(np.argmin(curve))
        assert result.scores["val"]["rmse"] == pytest.approx(min(curve), rel=1e-12)
    assert len({result.best_epoch for result in together}) > 1


# ---- the same seed gives the same numbers


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_numbers(name: str) -> None:
    one, other = (train_one(METHODS[name](), 3, epochs=2) for _ in range(2))
    assert_states_equal(one.state_dict, other.state_dict)
    assert one.scores == other.scores
    assert one.history == other.history
    different = train_one(METHODS[name](), 4, make_data(3), epochs=2)
    assert states_differ(one.state_dict, different.state_dict)


def test_the_global_generators_do_not_matter() -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    one = train_one(composed("cmixup"), 3)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    state = torch.get_rng_state()
    other = train_one(composed("cmixup"), 3)
    assert_states_equal(one.state_dict, other.state_dict)
    assert torch.equal(torch.get_rng_state(), state)
