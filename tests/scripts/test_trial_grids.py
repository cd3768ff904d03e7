"""Which trials a tuning makes: of the grid of a method, up to its budget."""

import copy
import functools
from typing import Any

import pytest

from scripts.config.compose import CONFIG_DIR, TUNE_SEED, TUNED_DEFAULT, compose_train
from scripts.config.parts import NOT_ARGUMENTS, check_part, resolve_config
from scripts.tune import TRIALS, grid_points, make_trials, values_of
from tests.scripts.cover import EPISODIC, METHODS

TUNABLE = [name for name in METHODS if name not in EPISODIC]  # Table 2 has no preset tuned


#: Of each kind of grid one, a list of them and one with parts; the others are slow.
FEW = [
    pytest.param(name, marks=() if name in ("erm", "cmixup", "local_mixup", "mixup") else pytest.mark.slow)
    for name in TUNABLE
]


@functools.cache
def node_with(method: str, *parts: str) -> dict[str, Any]:
    """The configuration of a method with these parts chosen."""
    return resolve_config(compose_train([f"method={method}", "dataset=no2", "preset=paper", *parts]))["method"]


@pytest.mark.parametrize("method", FEW)
def test_a_grid_names_options_of_its_method_with_values_that_it_takes(method: str) -> None:
    cfg = compose_train([f"method={method}", "dataset=no2", "preset=paper"])
    options = {key: value for key, value in node_with(method).items() if key not in NOT_ARGUMENTS}
    assert ("grid" in cfg.method) == bool(options), "a method with options and no grid would be tuned less than others"
    seen: set[str] = set()
    for point in grid_points("no2", method):
        values = {f"{key}={value}" for key, value in point.items()}
        if values <= seen:  # every value is tried once; all points are too many
            continue
        seen |= values
        changed = {key.removeprefix("method."): v for key, v in point.items() if key != "train.lr"}
        parts = {key: value for key, value in changed.items() if (CONFIG_DIR / "method" / key).is_dir()}
        made = copy.deepcopy(node_with(method, *(f"method/{key}={value}" for key, value in sorted(parts.items()))))
        assert set(changed) <= set(made)
        for key, value in changed.items():
            for part in (made, *made.values()):
                if key not in parts and isinstance(part, dict) and key in part:
                    part[key] = value
        check_part("method", made).build()


def test_the_budget_is_filled_and_trial_0_is_preset_paper() -> None:
    tried = make_trials("airfoil", "k_mixup")
    assert len(tried) == TRIALS == 16
    assert tried[0].options == {}
    assert len({trial.folder for trial in tried}) == TRIALS
    assert all(trial.options == values_of(trial) != {} for trial in tried[1:])
    for trial in tried:
        assert (trial.config["preset"], trial.config["experiment"]) == ("paper", "tune")
        assert trial.seeds == [TUNE_SEED] == [1000]
        assert trial.config["method"]["k"] <= 16  # what does not fit Airfoil's batches is passed over
    assert any(point["method.k"] == 32 for point in grid_points("airfoil", "k_mixup"))


@pytest.mark.parametrize("method", [pytest.param("erm", marks=pytest.mark.slow), "cmixup"])
def test_from_preset_default_every_method_has_16_trials(method: str) -> None:
    tried = make_trials("airfoil", method, preset=TUNED_DEFAULT)
    assert len({trial.folder for trial in tried}) == TRIALS
    assert tried[0].options == {}
    assert {trial.config["preset"] for trial in tried} == {"default"}
    if method == "erm":
        lr = tried[0].settings.lr
        rates = {(round(trial.settings.lr / lr, 6), trial.settings.weight_decay) for trial in tried}
        assert rates == {(factor, decay) for factor in (0.1, 0.3, 1.0, 3.0) for decay in (0.0, 1e-5, 1e-4, 1e-3)}


def test_the_same_trials_again_and_none_twice_where_the_grid_is_small() -> None:
    assert [t.options for t in make_trials("no2", "erm")] == [{}, {"train.lr": 0.03}, {"train.lr": 0.003}]
    first, again = ([t.options for t in make_trials("no2", "cmixup", budget=3)] for _ in range(2))
    assert first == again
