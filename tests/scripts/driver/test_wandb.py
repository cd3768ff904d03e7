"""wandb itself, offline: what its files hold of a run, and what it says where it cannot start."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.driver.provenance import CODE
from scripts.driver.runs import load_reports, read_predictions
from tests.scripts.jobs import execute_job, planned
from tests.scripts.wandb_file import read_offline

pytestmark = pytest.mark.usefixtures("no_wandb_variables")


@pytest.mark.slow
def test_wandb_is_set_to_be_quiet_before_it_is_imported() -> None:
    """Its exporter of metrics starts with the import, and a run that says offline comes too late."""
    code = (
        "import os, sys\n"
        "class Watch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'wandb':\n"
        "            print(os.environ.get('WANDB_MODE'), os.environ.get('WANDB_ERROR_REPORTING'))\n"
        "            raise SystemExit(0)\n"
        "sys.meta_path.insert(0, Watch())\n"
        "from scripts.driver import logger\n"
        "logger.WandbLogger({'out': '.', 'train': {'epochs': 1, 'batch_size': 1, 'lr': 1.0}}, {}, 0)\n"
        "import wandb\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WANDB_")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=CODE, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["offline", "false"]


@pytest.mark.slow
def test_an_offline_run_reads_back_as_its_record(tmp_path: Path) -> None:
    """Every value that wandb would upload is the record's."""
    import wandb

    job = planned(tmp_path, "method=cmixup", "logger=wandb", "method.bandwidth=0.5", "seeds=2")
    execute_job(job)
    wandb.teardown()  # its service may write on after a run has ended
    offline = [read_offline(path) for path in (tmp_path / "wandb").rglob("*.wandb")]
    assert len(offline) == 2
    for report in load_reports(tmp_path / "runs"):
        (run,) = [one for one in offline if one.config["seed"] == report["seed"]]
        for key in ("dataset", "model", "method", "train", "preset"):
            assert run.config[key] == report["config"][key]
        assert run.config["options"] == report["options"]
        folder = job.run_folder(report["seed"])
        history = [line.split(",") for line in (folder / "history.csv").read_text().splitlines()]
        rows = [[row[name.replace("_", "/")] for name in history[0]] for row in run.history]
        assert all(row["train/lr"] == job.settings.lr for row in run.history)
        assert rows == [[float(value) for value in line] for line in history[1:]]
        for split, scores in report["scores"].items():
            assert {name: run.summary[f"{split}/{name}"] for name in scores} == scores
        assert {name: run.summary[name] for name in report["facts"]} == report["facts"]
        assert {name: run.summary[f"options/{name}"] for name in report["options"]} == report["options"]
        for key in ("verdict", "best_epoch", "run", "commit", "dirty", "seconds", "notes", "status", "unit"):
            assert run.summary[key] == report[key]
        kept = read_predictions(folder / "predictions.h5")
        table = run.table("test/predictions")
        assert [row["truth"] for row in table] == kept["test"].target[:, 0].tolist()
        assert [row["prediction"] for row in table] == kept["test"].prediction[""][:, 0].tolist()
        assert run.settings["run_group"].startswith("no2-cmixup-default,dataset.synthetic=True,bandwidth=0.5,")
