"""Tuning: which trials, which of them wins, and the preset that its file makes."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from cmixup.errors import InputError
from scripts import publish, tune
from scripts.config import compose
from scripts.config import parts as config
from scripts.config.compose import TUNE_SEED
from scripts.driver.execute import execute_together
from scripts.driver.runs import load_reports
from scripts.plan.schedule import Item
from scripts.tune import choose_trial
from tests.scripts.jobs import job_of
from tests.scripts.test_render import leave_run
from tests.scripts.test_render import report as published


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
    requests: list[int] = []

    def train(items: Sequence[Item], *_: Any, **__: Any) -> list[str]:
        requests.append(sum(len(job.pending) for item in items for job in item.jobs))
        for item in items:
            execute_together(item.jobs)
        return []

    monkeypatch.setattr(tune, "train_items", train)
    return requests


def read_trials(path: Path) -> list[dict[str, Any]]:
    """The records of a file, a line each."""
    return [json.loads(line) for line in path.read_text().splitlines()]


# ---- trials


def test_a_table_of_ones_own_is_tuned_below_out_and_the_command_that_trains_it_is_printed(
    tmp_path: Path, here: list[int], capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "my table.csv"
    table.write_text("a,price\n" + "".join(f"{k},{3 * k + 200}\n" for k in range(30)))
    words = [f'dataset.path="{table}"', "dataset.target=price"]
    given = [*words, "train.epochs=1", f"out={tmp_path}"]
    tune.tune_cells([("csv", "maml"), ("csv", "erm")], given, budget=2)
    assert here == [2]
    (record,) = read_trials(tmp_path / tune.FILE)
    assert record["command"] == f"python -m scripts.tune dataset=csv method=erm {' '.join(words)} epochs=1"
    last = shlex.split(capsys.readouterr().out.splitlines()[-1])
    assert last[:8] == ["python", "-m", "scripts.train", "dataset=csv", "method=erm", "preset=default", *words]
    values = record["trials"][record["best"]]["options"]
    assert values.items() <= job_of(*last[3:]).options.items()
    assert not (tmp_path / "tuned").exists()
    with pytest.raises(InputError, match="preset tuned: data and parts of your own have none"):
        job_of(*last[3:], "preset=tuned")


# ---- the winner


def test_the_winner_is_best_on_validation_the_first_of_ties_and_never_one_that_diverged() -> None:
    assert choose_trial([2.0, 1.0, 1.5], "rmse") == choose_trial([0.5, 0.9, 0.9], "r") == 1
    assert choose_trial([1.0, 1.0], "rmse") == 0
    assert choose_trial([None, 2.0, 3.0], "rmse") == 1
    with pytest.raises(InputError, match="every trial diverged"):
        choose_trial([None, None], "")


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
    assert job_of("dataset=no2", "preset=tuned").config["method"] == best["config"]["method"]
    output = capsys.readouterr().out
    assert output.startswith(f"no2 cmixup: best validation rmse {best['scores']['val']['rmse']:.5g}, preset paper ")
    (record,) = read_trials(tmp_path / "results" / tune.FILE)
    assert [one["val"] for one in record["trials"]].index(best["scores"]["val"]["rmse"]) == record["best"]
    assert record["trials"][record["best"]]["options"] == wanted
    assert (record["command"], record["commit"]) == ("python -m scripts.tune dataset=no2 method=cmixup", "c0ffee")

    text = tuned.read_text()  # a second call trains nothing and adds nothing; a rerun does
    tune.tune_cells([("no2", "cmixup")], given, budget=3)
    assert tuned.read_text() == text
    assert read_trials(tmp_path / "results" / tune.FILE) == [record]
    tune.tune_cells([("no2", "cmixup")], [*given, "rerun=true"], budget=2)
    assert here == [3, 0, 2]
    first, second = read_trials(tmp_path / "results" / tune.FILE)
    assert (first, len(second["trials"])) == (record, 2)
    text = tuned.read_text()
    tune.tune_cells([("no2", "cmixup")], [*given, "dataset.label_noise=0.1"], budget=1)  # other data than the tables'
    assert tuned.read_text() == text
    assert len(read_trials(tmp_path / "out" / tune.FILE)) == 1


# ---- the preset


@pytest.mark.usefixtures("tuned")
def test_preset_tuned_is_paper_under_the_files_values() -> None:
    job = job_of("dataset=no2", "preset=tuned", "out=o")
    paper = job_of("dataset=no2", "preset=paper")
    changed = {"method.bandwidth": ["std", 0.3], "method.alpha": 0.2, "train.lr": 0.03}
    assert config.changed_options(job.config, "paper") == changed
    assert job.make_method().pairing.bandwidth == ["std", 0.3]
    assert job.config["train"] == paper.config["train"] | {"lr": 0.03}
    assert job.config["dataset"] == paper.config["dataset"]
    assert (job.config["preset"], job.options) == ("tuned", {})


@pytest.mark.usefixtures("tuned")
def test_the_command_line_has_the_last_word_over_tuned_values() -> None:
    job = job_of("method.k=4", "preset=tuned", "dataset=no2", "method=k_mixup", "train.lr=0.5")
    assert (job.config["method"]["k"], job.config["method"]["layer"], job.settings.lr) == (4, "hidden", 0.5)
    assert job.options == {"method.k": 4, "train.lr": 0.5}


def test_runs_of_other_tuned_values_are_other_runs(tuned: Path) -> None:
    given = ("dataset=no2", "preset=tuned", "method=k_mixup")
    before = job_of(*given)
    assert before.folder.name == "tuned,k=16,layer=hidden"
    tune.write_values(tuned, "k_mixup", {"method.k": 8})
    after = job_of(*given)
    assert after.folder.name == "tuned,k=8"
    assert before.options == after.options == {}


# ---- tables


def test_the_seed_of_tuning_enters_no_table(tmp_path: Path) -> None:
    leave_run(tmp_path, published(TUNE_SEED))
    with pytest.raises(InputError, match="seed 1000 is what methods are tuned with"):
        publish.publish_runs(tmp_path, tmp_path / "results")


# ---- the files in this repository


@pytest.mark.parametrize("value", [1e-05, 3, True, "b1+b2", ["std", 1e-05]])
def test_a_tuned_value_reads_back_as_it_was(value: object, tmp_path: Path) -> None:
    tune.write_values(tmp_path / "no2.yaml", "erm", {"train.weight_decay": value})
    tune.write_values(tmp_path / "no2.yaml", "mixup", {})
    read = compose.read_part(tmp_path / "no2.yaml")
    assert read == {"erm": {"train.weight_decay": value}, "mixup": {}}
    assert type(read["erm"]["train.weight_decay"]) is type(value)
