"""Committed values of tuning: each is the best of its record's trials, and what its preset trains with."""

import pytest

from cmixup.metrics import metric_of
from scripts.config import compose
from scripts.config.compose import CONFIG_DIR, TUNE_SEED, TUNED, TUNED_DEFAULT
from scripts.records.experiment import RESULTS
from scripts.tune import FILE, TRIALS, grid_points
from tests.scripts.jobs import job_of
from tests.scripts.test_tune import read_trials

#: The last tuning of every preset, dataset and method.
TUNINGS = {(r["preset"], r["dataset"], r["method"]): r for r in read_trials(RESULTS / FILE)}


@pytest.mark.parametrize("key", TUNINGS, ids="-".join)
def test_committed_values_are_those_of_the_best_trial(key: tuple[str, str, str]) -> None:
    preset, dataset, method = key
    record = TUNINGS[key]
    scores = [one["val"] for one in record["trials"]]
    if preset in compose.TUNED_PRESETS:
        points = len(grid_points(dataset, method, preset))
        assert len(scores) == record["budget"] == TRIALS or points <= len(scores) < TRIALS
    assert (record["trials"][0]["options"], record["dirty"], record["seed"]) == ({}, False, TUNE_SEED)
    pick = min if metric_of(record["metric"]).lower_is_better else max
    assert scores[record["best"]] == pick(score for score in scores if score is not None)
    values = record["trials"][record["best"]]["options"]
    if preset in compose.TUNED_PRESETS:
        assert compose.tuned_values(dataset, method, preset) == values
    else:  # they stand in the dataset's own preset
        config = job_of(f"dataset={dataset}", f"method={method}", f"preset={preset}").config
        for (group, name), value in ((key.split("."), value) for key, value in values.items()):
            assert config[group][name] == value


def test_every_committed_value_has_a_record() -> None:
    paths = [path for preset in (TUNED, TUNED_DEFAULT) for path in (CONFIG_DIR / preset).iterdir()]
    committed = {(path.parent.name, path.stem, method) for path in paths for method in compose.read_part(path)}
    assert committed == {key for key in TUNINGS if key[0] in compose.TUNED_PRESETS}
