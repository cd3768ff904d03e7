"""Tuning: which trials, which of them wins, and the preset that its file makes."""

from __future__ import annotations

import copy
import functools
import json
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from cmixup.errors import InputError
from cmixup.metrics import metric_of
from scripts import publish, tune
from scripts.config import compose
from scripts.config import parts as config
from scripts.config.compose import CONFIG_DIR, TUNE_SEED, TUNED, TUNED_DEFAULT, compose_train
from scripts.config.parts import NOT_ARGUMENTS, check_part, resolve_config
from scripts.driver import execute as run_module
from scripts.driver.execute import execute_together
from scripts.driver.job import Job, plan_job
from scripts.driver.runs import load_reports
from scripts.plan import cells
from scripts.plan.schedule import Item
from scripts.records import trials
from scripts.records.experiment import RESULTS, load_experiment
from scripts.records.published import published_records
from scripts.records.seal import broken_files, read_seal, seal_files
from scripts.records.trials import choose_trial
from scripts.train import spell_out
from scripts.tune import TRIALS, grid_points, make_trials
from tests.scripts.cover import EPISODIC, METHODS
from tests.scripts.test_render import leave_run
from tests.scripts.test_render import report as published
from tests.scripts.test_train import command

TUNABLE = [name for name in METHODS if name not in EPISODIC]  # Table 2 has no preset tuned
#: Of each kind of grid one, a list of them and one with parts; the others are slow.
FEW = [
    pytest.param(name, marks=() if name in ("erm", "cmixup", "local_mixup", "mixup") else pytest.mark.slow)
    for name in TUNABLE
]
#: The last tuning of every preset, dataset and method.
TUNINGS = {(r["preset"], r["dataset"], r["method"]): r for r in trials.read_trials(RESULTS / trials.FILE)}


def planned(*overrides: str) -> Job:
    return plan_job(compose_train(list(overrides)))


def config_of(dataset: str, method: str, preset: str, keys: Iterable[str]) -> dict[str, Any]:
    """The values of some keys of a preset; of a part its name."""
    cfg = planned(f"dataset={dataset}", f"method={method}", f"preset={preset}").config
    plain = {key: cfg[key.split(".")[0]][key.split(".")[1]] for key in keys}
    return {key: value["name"] if isinstance(value, dict) else value for key, value in plain.items()}


@pytest.fixture
def tuned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file in the place of configs/tuned/no2.yaml, with values for C-Mixup and k-Mixup, and one for the trials."""
    path = tmp_path / "tuned/no2.yaml"
    for module in (compose, tune):
        monkeypatch.setattr(module, "tuned_path", lambda *_: path)
    monkeypatch.setattr(tune, "RESULTS", tmp_path / "results")
    path.parent.mkdir()
    path.write_text("cmixup: {method.bandwidth: [std, 0.3], method.alpha: 0.2, train.lr: 0.03}\n"
                    "k_mixup: {method.k: 16, method.layer: hidden}\n")  # fmt: skip
    return path


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Train in this process, and remember how many runs were left to train each time."""
    asked: list[int] = []

    def train(items: Sequence[Item], *_: Any, **__: Any) -> list[str]:
        asked.append(sum(len(job.pending) for item in items for job in item.jobs))
        for item in items:
            execute_together(item.jobs)
        return []

    monkeypatch.setattr(tune, "train_items", train)
    monkeypatch.setattr(run_module, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False})
    return asked


# ---- grids


@functools.cache
def node_with(method: str, *parts: str) -> dict[str, Any]:
    """The configuration of a method with these parts chosen."""
    return resolve_config(compose_train([f"method={method}", "dataset=no2", "preset=paper", *parts]))["method"]


@functools.cache
def points_of(method: str) -> list[dict[str, Any]]:
    """The grid of a method on NO2."""
    return grid_points("no2", method)


@pytest.mark.parametrize("method", FEW)
def test_a_grid_names_options_of_its_method_with_values_that_it_takes(method: str) -> None:
    cfg = compose_train([f"method={method}", "dataset=no2", "preset=paper"])
    options = {key: value for key, value in node_with(method).items() if key not in NOT_ARGUMENTS}
    assert ("grid" in cfg.method) == bool(options), "a method with options and no grid would be tuned less than others"
    seen: set[str] = set()
    for point in points_of(method):
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


@pytest.mark.parametrize("method", FEW)
def test_every_learning_rate_is_tried_with_every_point(method: str) -> None:
    found = copy.deepcopy(points_of(method))
    rates = [point.pop("train.lr") for point in found]
    assert {rates.count(rate) for rate in (0.003, 0.01, 0.03)} == {len(found) / 3}
    assert len({json.dumps(point) for point in found}) == len(found) / 3
    small = {"erm", "coral", "drnn", "group_dro"}  # the spec has an option or two to search: all of it is tried
    assert (len(found) > TRIALS) == (method not in small)


def test_a_list_of_grids_is_their_union() -> None:
    found = grid_points("no2", "local_mixup")
    assert len(found) == (6 + 3 + 3) * 5 * 2 * 3
    assert all(("method.quantile" in p) == (p["method.form"] == "threshold") for p in found)


# ---- trials


def test_the_budget_is_filled_and_trial_0_is_preset_paper() -> None:
    tried = make_trials("airfoil", "k_mixup")
    assert len(tried) == TRIALS == 16
    assert str(tried[0]) == "preset paper"
    assert tried[0].job.options == {}
    assert len({trial.job.folder for trial in tried}) == TRIALS
    assert all(trial.job.options == trial.values != {} for trial in tried[1:])
    for trial in tried:
        assert (trial.job.config["preset"], trial.job.config["experiment"]) == ("paper", "tune")
        assert trial.job.seeds == [TUNE_SEED] == [1000]
        assert trial.job.config["method"]["k"] <= 16  # what does not fit Airfoil's batches is passed over
    assert any(point["method.k"] == 32 for point in grid_points("airfoil", "k_mixup"))


@pytest.mark.parametrize("method", [pytest.param("erm", marks=pytest.mark.slow), "cmixup"])
def test_from_preset_default_every_method_has_16_trials(method: str) -> None:
    tried = make_trials("airfoil", method, preset=TUNED_DEFAULT)
    start = tried[0].job
    assert len({trial.job.folder for trial in tried}) == TRIALS
    assert str(tried[0]) == "preset default"
    assert start.options == {}
    assert {trial.job.config["preset"] for trial in tried} == {"default"}
    if method == "erm":
        lr = start.settings.lr
        found = {(round(trial.job.settings.lr / lr, 6), trial.job.settings.weight_decay) for trial in tried}
        assert found == {(factor, decay) for factor in (0.1, 0.3, 1.0, 3.0) for decay in (0.0, 1e-5, 1e-4, 1e-3)}


def test_a_table_of_ones_own_is_tuned_below_out_and_the_command_that_trains_it_is_printed(
    tmp_path: Path, here: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "my table.csv"
    table.write_text("a,price\n" + "".join(f"{k},{3 * k + 200}\n" for k in range(30)))
    own = [f'dataset.path="{table}"', "dataset.target=price"]
    given = [*own, "train.epochs=1", f"out={tmp_path}"]
    tune.tune_cells([("csv", "erm")], given, tmp_path, budget=2)
    assert here == [2]
    (record,) = trials.read_trials(tmp_path / trials.FILE)
    assert record["command"] == f"python -m scripts.tune dataset=csv method=erm {' '.join(own)} epochs=1"
    last = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert last[:7] == ["python", "-m", "scripts.train", "dataset=csv", "method=erm", *own]
    (file,) = tmp_path.glob("tuned/csv-my_table-*.yaml")
    values = yaml.safe_load(file.read_text())["erm"]
    assert values.items() <= planned(*last[3:]).options.items()


def test_each_table_of_ones_own_has_a_preset_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The preset trains the very run that the printed command trains, however the table is spelt."""
    monkeypatch.chdir(tmp_path)
    for name, rate in (("a", 0.1), ("b", 0.2)):
        Path(f"{name}.csv").write_text("x,y\n" + "".join(f"{k},{k}\n" for k in range(30)))
        file = compose.tuned_path("csv", "tuned_default", {
            "dataset": {"name": "csv", "path": f"{name}.csv", "target": "y"}, "out": "outputs"})  # fmt: skip
        trials.write_values(file, "erm", {"train.lr": rate})
    assert len(list(tmp_path.glob("outputs/tuned_default/csv-*.yaml"))) == 2
    for path, rate in (("a.csv", 0.1), (f"{tmp_path}/a.csv", 0.1), ("./b.csv", 0.2)):
        words = ["dataset=csv", "method=erm", f"dataset.path={path}", "dataset.target=y", "out=outputs"]
        job, printed = (
            plan_job(compose_train([*words, word])) for word in ("preset=tuned_default", f"train.lr={rate}")
        )
        assert (job.settings.lr, job.folder, job.config) == (rate, printed.folder, printed.config)
    with pytest.raises(InputError, match=r"has not been tuned on csv; python -m scripts.tune dataset=csv method=cmixup "
                                         r"preset=default dataset.path=.*/a.csv dataset.target=y does it"):  # fmt: skip
        compose_train([*words, "method=cmixup", "dataset.path=a.csv", "preset=tuned_default"])


def test_the_same_trials_again_and_none_twice_where_the_grid_is_small() -> None:
    assert [str(t) for t in make_trials("no2", "erm")] == ["preset paper", "train.lr=0.03", "train.lr=0.003"]
    first, again = ([t.values for t in make_trials("no2", "cmixup", budget=3)] for _ in range(2))
    assert first == again


# ---- the winner


def scored(val: float, test: float, metric: str = "rmse") -> dict[str, Any]:
    return {"selection": metric, "scores": {"val": {metric: val, "mape": -val}, "test": {metric: test}}}


def test_the_winner_is_best_on_validation_not_on_test() -> None:
    assert choose_trial([scored(2.0, 1.0), scored(1.0, 3.0), scored(1.5, 0.5)]) == 1


def test_higher_wins_where_higher_is_better() -> None:
    assert choose_trial([scored(0.2, 0.1, "r"), scored(0.1, 0.3, "r"), scored(0.9, 0.0, "r")]) == 2


def test_ties_go_to_the_earlier_and_what_diverged_never_wins() -> None:
    assert choose_trial([scored(1.0, 9.0), scored(1.0, 1.0)]) == 0
    assert choose_trial([None, scored(2.0, 2.0), scored(3.0, 1.0)]) == 1
    with pytest.raises(InputError, match="every trial diverged"):
        choose_trial([None, None])


# ---- the whole command, and its file


def test_the_file_holds_the_winner_and_makes_a_preset(
    tmp_path: Path, tuned: Path, here: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["debug=tiny", "train.batch_size=100", f"out={tmp_path / 'out'}"]
    others = yaml.safe_load(tuned.read_text())
    tune.tune_cells([("no2", "cmixup")], given, budget=3)
    reports = load_reports(tmp_path / "out")
    assert {(report["experiment"], report["seed"]) for report in reports} == {("debug", TUNE_SEED)}
    best = min(reports, key=lambda r: r["scores"]["val"]["rmse"])
    wanted = {k: v for k, v in best["options"].items() if k.startswith("method.") or k == "train.lr"}
    assert yaml.safe_load(tuned.read_text()) == {**others, "cmixup": wanted}
    assert planned("dataset=no2", "preset=tuned").config["method"] == best["config"]["method"]
    said = capsys.readouterr().out
    assert said.startswith(f"no2 cmixup: best validation rmse {best['scores']['val']['rmse']:.5g}, preset paper ")
    (record,) = trials.read_trials(tmp_path / "results" / trials.FILE)
    assert [one["val"] for one in record["trials"]].index(best["scores"]["val"]["rmse"]) == record["best"]
    assert record["trials"][record["best"]]["options"] == wanted
    assert (record["command"], record["commit"]) == ("python -m scripts.tune dataset=no2 method=cmixup", "c0ffee")

    text = tuned.read_text()  # a second call trains nothing and adds nothing; a rerun does
    tune.tune_cells([("no2", "cmixup")], given, budget=3)
    assert tuned.read_text() == text
    assert trials.read_trials(tmp_path / "results" / trials.FILE) == [record]
    tune.tune_cells([("no2", "cmixup")], [*given, "rerun=true"], budget=2)
    assert here == [3, 0, 2]
    first, second = trials.read_trials(tmp_path / "results" / trials.FILE)
    assert (first, len(second["trials"])) == (record, 2)


def test_preset_cpu_tries_the_grid_alone_and_leaves_its_record(
    tmp_path: Path, here: list[int], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every bandwidth once, at the preset's rate; nothing but the record is written."""
    monkeypatch.setattr(tune, "RESULTS", tmp_path)
    monkeypatch.setattr(tune, "write_values", lambda *_: pytest.fail("a preset was written"))
    given = ["debug=tiny", "train.epochs=1", "method.inner_steps=1", "dataset.val_objects=1", f"out={tmp_path / 'out'}"]
    tune.tune_cells([("pascal1d_rendered", "cmixup_meta")], given, preset="cpu")
    assert here == [5]
    (record,) = trials.read_trials(tmp_path / trials.FILE)
    assert record["command"] == (
        "python -m scripts.tune dataset=pascal1d_rendered method=cmixup_meta preset=cpu dataset.val_objects=1 epochs=1"
    )
    tried = [one["options"] for one in record["trials"]]
    assert tried[0] == {}
    assert sorted(one["method.bandwidth"] for one in tried[1:]) == [0.1, 0.3, 1.0, 5.0]
    assert "configs/dataset/pascal1d_rendered.yaml" in capsys.readouterr().out


def test_preset_paper_wins_as_no_values(tmp_path: Path, tuned: Path, here: list[int]) -> None:
    tune.tune_cells([("no2", "erm")], ["debug=tiny", f"out={tmp_path}"], budget=1)
    assert yaml.safe_load(tuned.read_text())["erm"] == {}
    paper, ours = (planned("dataset=no2", "method=erm", f"preset={preset}").config for preset in ("paper", "tuned"))
    assert {**ours, "preset": "paper"} == paper


@pytest.mark.parametrize(
    ("words", "named"),
    [(["dataset=no2", "method=cmix"], "method must be among .*'cmix'"), (["method=erm"], "dataset must be among"),
     (["dataset=no2", "jobs=x"], "jobs must be a whole number, got 'x'"), (["seed=3"], "got 'seed=3'"),
     (["dataset=no2", "preset=gpu"], "preset must be one of paper, default, cpu, got 'gpu'"),
     (["dataset=no2,csv", "dataset.path=a"], "are for one of them, got dataset.path=a for no2,csv")],
)  # fmt: skip
def test_bad_words_are_one_line(words: list[str], named: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        tune.main(words)
    assert re.fullmatch(f"error: .*{named}.*\n", capsys.readouterr().err)


# ---- the preset


@pytest.mark.usefixtures("tuned")
def test_preset_tuned_is_paper_under_the_files_values() -> None:
    job = planned("dataset=no2", "preset=tuned", "out=o")
    paper = planned("dataset=no2", "preset=paper")
    changed = {"method.bandwidth": ["std", 0.3], "method.alpha": 0.2, "train.lr": 0.03}
    assert config.changed_options(job.config, "paper") == changed
    assert job.make_method().pairing.bandwidth == ["std", 0.3]
    assert job.config["train"] == paper.config["train"] | {"lr": 0.03}
    assert job.config["dataset"] == paper.config["dataset"]
    assert (job.config["preset"], job.options) == ("tuned", {})


@pytest.mark.usefixtures("tuned")
def test_the_command_line_has_the_last_word_over_tuned_values() -> None:
    job = planned("method.k=4", "preset=tuned", "dataset=no2", "method=k_mixup", "train.lr=0.5")
    assert (job.config["method"]["k"], job.config["method"]["layer"], job.settings.lr) == (4, "hidden", 0.5)
    assert job.options == {"method.k": 4, "train.lr": 0.5}


def test_runs_of_other_tuned_values_are_other_runs(tuned: Path) -> None:
    given = ("dataset=no2", "preset=tuned", "method=k_mixup")
    before = planned(*given)
    assert before.folder.name == "tuned,k=16,layer=hidden"
    trials.write_values(tuned, "k_mixup", {"method.k": 8})
    after = planned(*given)
    assert after.folder.name == "tuned,k=8"
    assert before.options == after.options == {}


@pytest.mark.usefixtures("tuned")
def test_what_is_not_tuned_says_how_to_tune_it() -> None:
    message = r"mixup has not been tuned on no2; python -m scripts\.tune dataset=no2 method=mixup does it"
    with pytest.raises(InputError, match=message):
        planned("dataset=no2", "method=mixup", "preset=tuned")


@pytest.mark.usefixtures("tuned")
def test_showing_a_configuration_spells_the_values_out() -> None:
    words = ["--cfg", "job", "dataset=no2", "preset=tuned", "method=k_mixup", "--resolve"]
    shown = spell_out(words)
    assert [word for word in shown if word in words] == words
    assert {"method.k=16", 'method.layer="hidden"'} <= set(shown[2:5])
    plain = ["dataset=no2", "preset=tuned"]
    assert spell_out(plain) == plain


@pytest.mark.slow
def test_the_command_trains_and_shows_preset_tuned(tmp_path: Path) -> None:
    values = compose.tuned_values("no2", "k_mixup")
    assert values
    given = ["dataset=no2", "method=k_mixup", "preset=tuned"]
    shown = command("--cfg", "job", "--resolve", *given)
    flat = yaml.safe_load(shown.stdout)
    assert {key: flat[key.split(".")[0]][key.split(".")[1]] for key in values} == values
    done = command(*given, "debug=tiny", f"out={tmp_path}")
    assert done.returncode == 0, done.stderr
    (report,) = load_reports(tmp_path)
    assert {key: report["config"][key.split(".")[0]][key.split(".")[1]] for key in values} == values


# ---- tables


@pytest.mark.usefixtures("tuned")
def test_the_table_lists_what_is_not_tuned_and_tries_no_other_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config.dataset_class("no2"), "fetch", lambda _: [])
    choice = cells.Choice(["no2"], ["mixup", "k_mixup", "cmixup"], [0, 1], "tuned", str(tmp_path), "cpu", False)
    found, missing = cells.plan_cells(load_experiment("table1"), choice)
    assert {job.config["method"]["name"] for _, job in found} == {"k_mixup", "cmixup"}
    assert missing == ["NO2, mixup: not tuned yet; python -m scripts.tune dataset=no2 method=mixup"]


def test_the_seed_of_tuning_enters_no_table(tmp_path: Path) -> None:
    assert str(TUNE_SEED) not in set(published_records()["seed"].map(str))
    leave_run(tmp_path, published(TUNE_SEED))
    with pytest.raises(InputError, match="seed 1000 is what methods are tuned with"):
        publish.publish_runs(tmp_path, tmp_path / "results")


def test_trials_are_not_published(tmp_path: Path) -> None:
    leave_run(tmp_path, published(TUNE_SEED, experiment="tune"))
    with pytest.raises(InputError, match="no finished run"):
        publish.publish_runs(tmp_path, tmp_path / "results")


# ---- the files in this repository


@pytest.mark.parametrize("key", TUNINGS, ids="-".join)
def test_committed_values_are_those_of_the_best_trial(key: tuple[str, str, str]) -> None:
    preset, dataset, method = key
    record = TUNINGS[key]
    scores = [one["val"] for one in record["trials"]]
    assert (
        len(scores) == record["budget"] == TRIALS or len(grid_points(dataset, method, preset)) <= len(scores) < TRIALS
    )
    assert (record["trials"][0]["options"], record["dirty"], record["seed"]) == ({}, False, TUNE_SEED)
    pick = min if metric_of(record["metric"]).lower_is_better else max
    assert scores[record["best"]] == pick(score for score in scores if score is not None)
    values = record["trials"][record["best"]]["options"]
    if compose.is_tuned(preset):
        assert compose.tuned_values(dataset, method, preset) == values
    else:  # they stand in the dataset's own preset
        assert config_of(dataset, method, preset, values) == values


def test_every_committed_value_has_a_record() -> None:
    paths = [path for preset in (TUNED, TUNED_DEFAULT) for path in (CONFIG_DIR / preset).iterdir()]
    found = {(path.parent.name, path.stem, method) for path in paths for method in compose.read_part(path)}
    assert found == {key for key in TUNINGS if compose.is_tuned(key[0])}


@pytest.mark.parametrize("key", list(TUNINGS)[::10], ids="-".join)  # slow
def test_committed_values_are_what_preset_tuned_trains_with(key: tuple[str, str, str]) -> None:
    preset, dataset, method = key
    values = compose.tuned_values(dataset, method, preset) or {}
    assert planned(f"dataset={dataset}", f"method={method}", f"preset={preset}").options == {}
    assert config_of(dataset, method, preset, values) == values


@pytest.mark.parametrize("value", [1e-05, 0.001, 0.0, 3, True, "independent", "b1+b2", ["std", 0.03], ["std", 1e-05]])
def test_a_tuned_value_reads_back_as_it_was(value: object, tmp_path: Path) -> None:
    trials.write_values(tmp_path / "no2.yaml", "erm", {"train.weight_decay": value})
    trials.write_values(tmp_path / "no2.yaml", "mixup", {})
    found = compose.read_part(tmp_path / "no2.yaml")
    assert found == {"erm": {"train.weight_decay": value}, "mixup": {}}
    assert type(found["erm"]["train.weight_decay"]) is type(value)


def test_a_record_of_trials_is_sealed(tmp_path: Path) -> None:
    seal_files(tmp_path, first=True)
    trials.add_trial(tmp_path / trials.FILE, {"dataset": "no2"})
    assert set(read_seal(tmp_path)) == {trials.FILE}
    assert broken_files(tmp_path) == []
