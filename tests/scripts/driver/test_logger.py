"""What wandb is told of a run, and which of its environment variables count."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from cmixup.errors import InputError
from scripts.config.compose import CONFIG_DIR, compose_train
from scripts.driver import logger
from scripts.driver.job import plan_job
from scripts.driver.runs import RunFolder, load_reports
from tests.scripts.jobs import execute_job, killed_after, planned

pytestmark = pytest.mark.usefixtures("no_wandb_variables")


class FakeRun:
    def __init__(self, **given: Any):
        self.given, self.logged, self.media, self.summary, self.finished = given, [], {}, {}, False
        self.unsummed: list[str] = []

    def define_metric(self, name: str, summary: str) -> None:
        assert summary == "none"
        self.unsummed.append(name)

    def log(self, row: dict[str, Any], step: int | None = None) -> None:
        if step is None:
            self.media = row
        else:
            self.logged.append((step, row))

    def finish(self) -> None:
        self.finished = True


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[FakeRun]:
    import wandb

    started: list[FakeRun] = []
    monkeypatch.setattr(wandb, "init", lambda **given: started.append(FakeRun(**given)) or started[-1])
    return started


def test_wandb_gets_curves_configuration_and_the_record(tmp_path: Path, runs: list[FakeRun]) -> None:
    execute_job(planned(tmp_path, "method=cmixup", "logger=wandb", "method.bandwidth=0.5", "seeds=[0,5]"))
    assert len(runs) == 2
    group = "no2-cmixup-default,dataset.synthetic=True,bandwidth=0.5,train.batch_size=100,train.epochs=2"
    for run, report in zip(runs, load_reports(tmp_path / "runs"), strict=True):
        given = run.given
        assert (given["mode"], given["project"], Path(given["dir"])) == ("offline", "cmixup", tmp_path)
        assert (given["group"], given["name"]) == (group, f"{group}-{report['seed']}")
        assert given["tags"][:4] == ["no2", "cmixup", "default", "bandwidth=0.5"]
        assert given["config"]["seed"] == report["seed"]
        assert given["config"]["options"] == report["options"]
        assert [step for step, _ in run.logged] == [1, 2]
        assert {"epoch", "train/loss", "val/rmse", "train/lr"} <= set(run.logged[0][1])
        assert [row["train/lr"] for _, row in run.logged] == [report["config"]["train"]["lr"]] * 2
        assert run.summary["test/rmse"] == report["scores"]["test"]["rmse"]
        assert run.summary["options/method.bandwidth"] == 0.5
        for key in ("verdict", "best_epoch", "run", "status"):
            assert run.summary[key] == report[key]
        assert len(run.media["test/predictions"].data) == 100
        assert run.finished
        assert sorted(run.unsummed) == sorted(run.logged[0][1])  # the last epoch's score is not the run's
    assert runs[0].logged != runs[1].logged


def test_a_killed_run_goes_on_as_itself_and_another_training_is_another_run(
    tmp_path: Path, runs: list[FakeRun]
) -> None:
    words = ("method=erm", "logger=wandb", "train.epochs=4", "train.lr_decay=0.5", "checkpoint_every=2")
    with pytest.raises(KeyboardInterrupt):
        execute_job(planned(tmp_path, *words), killed_after(3))
    execute_job(planned(tmp_path, *words))
    execute_job(planned(tmp_path, *words, "rerun=true"))
    killed, went_on, again = runs
    assert [[step for step, _ in run.logged] for run in runs] == [[1, 2, 3], [3, 4], [1, 2, 3, 4]]
    rates = [row["train/lr"] for _, row in again.logged]
    assert rates == [rates[0] / 2**k for k in range(4)]
    assert killed.given["id"] == went_on.given["id"] != again.given["id"]
    assert killed.given["group"] == again.given["group"]
    assert {run.given["resume"] for run in runs} == {"allow"}
    assert killed.logged[2][1]["val/rmse"] == went_on.logged[0][1]["val/rmse"]  # what is logged twice is the same


def test_the_environment_is_obeyed(tmp_path: Path, runs: list[FakeRun], monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"MODE": "disabled", "PROJECT": "mine", "RUN_GROUP": "ours", "DIR": f"{tmp_path}/there", "TAGS": "a, b"}
    for name, value in given.items():
        monkeypatch.setenv(f"WANDB_{name}", value)
    execute_job(planned(tmp_path, "method=erm", "logger=wandb"))
    (run,) = runs
    assert [run.given[key] for key in ("mode", "project", "group", "dir")] == list(given.values())[:4]
    assert run.given["tags"][:4] == ["a", "b", "no2", "erm"]


def test_names_tell_every_option_apart_and_fit_the_server() -> None:
    config = {"dataset": {"name": "no2"}, "method": {"name": "cmixup", "bandwidth": 1.0}, "preset": "paper"}
    options = [{}, {"method.bandwidth": 0.1}, {"method.bandwidth": 10}, {"dataset.path": "x" * 300},
               {"dataset.path": "x" * 301}]  # fmt: skip
    groups, tags = zip(*(logger.names_of(config, changed) for changed in options), strict=True)
    assert len(set(groups)) == len(options)
    assert max(len(f"{name}-1000000") for name in groups) <= 128
    assert max(len(tag) for names in tags for tag in names) <= 64


def test_what_wandb_refuses_is_one_line_and_no_run_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    def refuse(**_: Any) -> None:
        raise wandb.errors.UsageError("No API key configured.\nUse `wandb login`.")

    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setattr(wandb, "init", refuse)
    with pytest.raises(InputError, match=r"^wandb: No API key configured. Use `wandb login` \(WANDB_MODE=offline logs"):
        execute_job(planned(tmp_path, "logger=wandb"))
    assert not (tmp_path / "runs").exists()


def test_a_sweep_of_wandb_composes_and_has_a_metric_of_the_summary() -> None:
    sweep = yaml.safe_load((CONFIG_DIR / "wandb" / "bandwidth.yaml").read_text())
    chosen = [f"{name}={grid['values'][-1]}" for name, grid in sweep["parameters"].items()]
    words = [word for word in (*sweep["command"], *chosen) if "=" in word]
    job = plan_job(compose_train(words))
    assert sweep["metric"]["name"] == f"val/{job.dataset.selection}"
    assert sweep["program"] == "scripts.train"


@pytest.mark.slow
def test_wandb_itself_keeps_the_record_and_the_predictions_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import wandb

    init, started = wandb.init, list[Any]()
    monkeypatch.setattr(wandb, "init", lambda **given: started.append(init(**given)) or started[-1])
    job = planned(tmp_path, "method=cmixup", "logger=wandb", "seeds=2")
    execute_job(job)
    wandb.teardown()  # its service may write on after a run has ended
    for run, report in zip(started, load_reports(tmp_path / "runs"), strict=True):
        folder = Path(run.dir).parent
        (file,) = folder.glob("*.wandb")
        assert all(str(score).encode() in file.read_bytes() for score in report["scores"]["test"].values())
        (table,) = folder.rglob("predictions*.table.json")
        kept = RunFolder(job.run_folder(report["seed"])).predictions()["test"]
        columns = list(zip(*json.loads(table.read_text())["data"], strict=True))
        assert columns[:2] == [tuple(kept.target[:, 0].tolist()), tuple(kept.prediction[""][:, 0].tolist())]
