"""Small jobs for the tests of runs, and what they leave."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts.config.compose import compose_train
from scripts.driver.execute import execute_together
from scripts.driver.job import Job, plan_job

FILES = ["DONE", "checkpoint.pt", "config.yaml", "history.csv", "model.json", "predictions.h5",
         "preprocessing.json", "report.json"]  # fmt: skip


def job_of(*words: str) -> Job:
    """The job that words of a command line plan."""
    return plan_job(compose_train(list(words)))


def planned(out: Path, *words: str) -> Job:
    """A job of a fraction of a second: NO2's stand-in, two epochs of two steps."""
    return job_of("dataset=no2", "method=mixup", "debug=tiny", "train.batch_size=100", f"out={out}", *words)


def execute_job(job: Job, *callbacks: Any) -> list[Path]:
    """Train one job, see `execute_together`."""
    return execute_together([job], *callbacks)


def killed_after(epoch: int) -> Callable[[int, object], None]:
    """What is called after every epoch, and ends a training as Ctrl-C does."""

    def hear(now: int, _: object) -> None:
        if now == epoch:
            raise KeyboardInterrupt

    return hear


def report_of(folder: Path) -> dict[str, Any]:
    """The report in the folder of a run."""
    return json.loads((folder / "report.json").read_text())
