"""Settings that tests of the commands share."""

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hydra.core.global_hydra import GlobalHydra

from scripts.config.words import TYPED
from scripts.driver import execute as run_module
from scripts.driver import provenance
from scripts.driver.job import Job
from tests.scripts.jobs import execute_job, planned

WANDB_VARIABLES = (
    "MODE", "PROJECT", "RUN_GROUP", "DIR", "TAGS", "ERROR_REPORTING", "INIT_TIMEOUT", "ENTITY", "DATA_DIR", "CACHE_DIR",
)  # fmt: skip
CSV_ROWS = "id;price;size;age;state\n" + "".join(
    f"{k};{k % 7 + 1},5;{'' if k % 11 == 0 else k % 5},25;{k * k % 31};s{k % 9}\n" for k in range(100)
)


def made_by(device: torch.device) -> dict[str, Any]:
    """What a run says of code and machine where nobody looks."""
    return {"device": str(device), "commit": "c0ffee", "dirty": False}


@pytest.fixture(autouse=True)
def no_hydra_left() -> Iterator[None]:
    """Hydra in a test's own process keeps its words, and gives logging handlers whose streams end with the test."""
    GlobalHydra.instance().clear()
    TYPED.clear()
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture(autouse=True, scope="session")
def made_up_commit() -> Iterator[None]:
    """Asking git and the packages for their versions is most of a tiny run's time.

    The commit of made-up runs counts as one of this checkout, so that they can be published.
    """
    has_commit = provenance.has_commit
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_module, "run_environment", made_by)
        patch.setattr(provenance, "has_commit", lambda commit, *code: commit == "c0ffee" or has_commit(commit, *code))
        yield


@pytest.fixture(scope="module")
def no2(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Path]:
    """Two seeds of NO2's stand-in, trained as one stack; the job and its folder."""
    job = planned(tmp_path_factory.mktemp("no2"), "method=cmixup", "seeds=[3,5]")
    execute_job(job)
    return job, job.folder


@pytest.fixture(scope="module")
def table_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Job, Path]:
    """A run on an own table with missing values, categories and a log target; its job and its file."""
    path = tmp_path_factory.mktemp("own") / "my.csv"
    path.write_text(CSV_ROWS)
    words = ["dataset=csv", f"dataset.path={path}", "dataset.target=price", "dataset.log_target=true"]
    job = planned(path.parent, *words, "dataset.synthetic=false", "train.batch_size=20", "dataset.missing=[unknown]")
    execute_job(job)
    return job, path


@pytest.fixture
def no_wandb_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment of a user who has set nothing."""
    for name in WANDB_VARIABLES:
        monkeypatch.setenv(f"WANDB_{name}", "")  # set first, so that what the code sets is undone
        monkeypatch.delenv(f"WANDB_{name}")
