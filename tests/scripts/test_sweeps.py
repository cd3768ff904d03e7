"""Sweeps of scripts.train by Hydra's launchers and sweepers."""

import contextlib
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from cmixup.errors import InputError
from scripts import train as train_module
from scripts.config.compose import compose_train
from scripts.driver import cli
from scripts.driver.runs import load_reports
from tests.test_blocks import is_installed

REPO = Path(__file__).resolve().parents[2]
TINY = ("dataset=no2", "debug=tiny", "train.batch_size=100")


def swept(out: Path, *words: str, start: tuple[str, str] = ("-m", "scripts.train")) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CMIXUP_")} | {"OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *start, "-m", *TINY, f"out={out}", *words],
        cwd=REPO, capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip


class FakeHydra:
    """What a job of a sweep knows of it."""

    def __init__(self, folder: Path, number: int, **sweeper: str):
        self.overrides = OmegaConf.create({"task": ["method.bandwidth=-1", f"seed={number}"]})
        self.sweep, self.job = OmegaConf.create({"dir": str(folder)}), OmegaConf.create({"num": number})
        self.sweeper = OmegaConf.create(sweeper)


def test_a_job_that_fails_leaves_a_file_and_the_sweep_ends_with_status_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:

    def fails(error: Exception) -> Any:
        def job() -> float:
            raise error

        return job

    end = cli.ReportFailures().on_multirun_end
    config = OmegaConf.create({"hydra": {"sweep": {"dir": str(tmp_path)}}})
    assert cli.guarded_job(lambda: 1.5) == 1.5
    end(config)
    assert capsys.readouterr() == ("", "")
    for number, (error, sweeper, worst) in enumerate(
        [
            (InputError("bandwidth\nis bad"), {}, math.inf),
            (ZeroDivisionError("ours"), {"direction": "maximize"}, -math.inf),
        ]
    ):
        monkeypatch.setattr(cli.HydraConfig, "get", lambda n=number, s=sweeper: FakeHydra(tmp_path, n, **s))
        assert cli.guarded_job(fails(error)) == worst
    lines = ["method.bandwidth=-1 seed=0: bandwidth is bad", "method.bandwidth=-1 seed=1: ZeroDivisionError: ours"]
    assert capsys.readouterr().err.splitlines() == [f"failed: {line}" for line in lines]
    assert "Traceback" in (tmp_path / "failed" / "000001.txt").read_text()
    with pytest.raises(SystemExit) as stop:
        end(config)
    assert stop.value.code == 1
    assert capsys.readouterr().err.splitlines()[1:] == [f"- {line}" for line in lines]


def test_a_run_returns_the_validation_score_that_selects(tmp_path: Path) -> None:
    value = train_module.run_training(compose_train([*TINY, "method=erm", f"out={tmp_path}", "seeds=2"]))
    scores = [r["scores"]["val"]["rmse"] for r in load_reports(tmp_path)]
    assert value == pytest.approx(sum(scores) / 2, rel=1e-15)
    assert scores[0] != scores[1]


LAUNCHERS = {
    "basic": ("hydra", ()),
    "joblib": ("hydra_plugins.hydra_joblib_launcher", ("hydra.launcher.n_jobs=2",)),
    "submitit_local": ("hydra_plugins.hydra_submitit_launcher", ("hydra.launcher.timeout_min=5",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_sweep_of_four_goes_on_past_bad_jobs(launcher: str, tmp_path: Path) -> None:
    module, options = LAUNCHERS[launcher]
    if not is_installed(module):
        pytest.skip(f"{module} is not installed: pip install '.[sweep]'")
    words = ["method.bandwidth=-1,2", "seed=range(0,2)", f"hydra/launcher={launcher}", *options]
    done = swept(tmp_path, *words)
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    assert "2 of the sweep's jobs failed" in done.stderr
    listed = [line for line in done.stderr.splitlines() if line.startswith("- ")]
    assert [f"method.bandwidth=-1 seed={seed}: bandwidth must be 0 or more" in line
            for seed, line in enumerate(listed)] == [True, True]  # fmt: skip
    assert sorted((r["bandwidth"], r["seed"]) for r in load_reports(tmp_path / "runs")) == [(2, 0), (2, 1)]
    again = swept(tmp_path, "method.bandwidth=2", "seed=range(0,2)", f"hydra/launcher={launcher}", *options)
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("killed", ["the command", "a job"])
def test_joblibs_processes_end_with_the_command_and_a_killed_one_is_one_line(killed: str, tmp_path: Path) -> None:
    if not is_installed(LAUNCHERS["joblib"][0]):
        pytest.skip("hydra_joblib_launcher is not installed: pip install '.[sweep]'")
    words = ["seed=range(0,2)", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2", "train.epochs=100000"]
    command = [sys.executable, "-m", "scripts.train", "-m", *TINY, f"out={tmp_path}", *words]
    with subprocess.Popen(command, cwd=REPO, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        until = time.monotonic() + 120
        while len(list((tmp_path / "runs").rglob("config.yaml"))) < 2 and time.monotonic() < until:
            time.sleep(0.1)
        if killed == "a job":
            children = [pid for pid, parent, _ in process_table() if parent == process.pid]
            jobs = [pid for pid in children if b"tracker" not in Path(f"/proc/{pid}/cmdline").read_bytes()]
            os.kill(jobs[0], signal.SIGKILL)
            errors = process.communicate(timeout=200)[1]
            assert process.returncode == 2, errors
            assert "error: a process of the launcher was killed; the same command trains what is left" in errors
        process.kill()
        until = time.monotonic() + 20
        while (left := [m for m in process_table() if m[2] == process.pid]) and time.monotonic() < until:
            time.sleep(0.1)
        assert left == []


def process_table() -> list[tuple[int, int, int]]:
    """Number, parent and group of every process that lives."""
    processes = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, parent, group = stat.read_text().rpartition(")")[2].split()[:3]
            if state not in "ZX":
                processes.append((int(stat.parent.name), int(parent), int(group)))
    return processes
