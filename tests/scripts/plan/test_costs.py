"""The minutes of a cell, and with them the plan of the main job, come from runs like it and from no others."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from scripts.config.compose import compose_train
from scripts.driver.job import Job, plan_job
from scripts.driver.provenance import device_name
from scripts.plan import cells
from scripts.plan.cells import Choice, estimate_minutes, plan_cells, run_minutes
from scripts.records.experiment import load_experiment
from scripts.records.published import published_reports, write_reports

HERE = device_name(torch.device("cpu"))


def job_of(*words: str) -> Job:
    return plan_job(compose_train(["dataset=exchange_rate", "out=/nowhere", "device=cpu", *words]))


def publish(results: Path, job: Job, seconds: float, *, device: str = HERE, seed: int = 0) -> None:
    """Publish a run of a job that took so many seconds, whatever is published there already."""
    dataset, method, model = (job.config[part]["name"] for part in ("dataset", "method", "model"))
    number = len(published_reports(results))
    report = {"experiment": "some", "dataset": dataset, "method": method, "model": model,
              "preset": job.config["preset"], "options": job.options, "config": job.config, "device": device,
              "epochs": job.settings.epochs, "seconds": seconds, "seed": seed, "scores": {}, "facts": {},
              "run": f"some/{dataset}/{number}/seed={seed}"}  # fmt: skip
    write_reports(results, [report])
    cells._published_cpu.cache_clear()


def test_an_equal_cell_decides_by_its_median_on_this_processor(tmp_path: Path) -> None:
    job = job_of("method=cmixup", "preset=released", "seeds=0..9")
    for seed, seconds in enumerate((60.0, 120.0, 600.0)):
        publish(tmp_path, job, seconds, seed=seed)
    assert run_minutes(job, tmp_path) == 2
    publish(tmp_path, job, 6000.0, device="cpu: another")  # slower, and passed over while there are some of ours
    assert run_minutes(job, tmp_path) == 2
    publish(tmp_path, job, 0.1, device="cuda: fast")
    assert run_minutes(job, tmp_path) == 2


def test_another_processor_decides_where_there_is_no_run_of_this_one(tmp_path: Path) -> None:
    job = job_of("method=erm", "preset=released")
    publish(tmp_path, job, 240.0, device="cpu: another")
    assert run_minutes(job, tmp_path) == 4


def test_a_shorter_run_counts_by_its_epochs_and_only_where_no_cell_is_equal(tmp_path: Path) -> None:
    job = job_of("method=erm", "preset=paper")
    publish(tmp_path, job_of("method=erm", "preset=paper", "train.epochs=20"), 60.0)
    assert run_minutes(job, tmp_path) == 5
    publish(tmp_path, job, 180.0)
    assert run_minutes(job, tmp_path) == 3


def test_runs_of_another_model_or_of_one_epoch_say_nothing(tmp_path: Path) -> None:
    job = job_of("method=erm", "preset=paper", "seeds=0..9")
    publish(tmp_path, job_of("method=erm", "preset=released"), 1.0)  # a network without attention
    publish(tmp_path, job_of("method=erm", "preset=paper", "train.epochs=1"), 0.01)
    assert run_minutes(job, tmp_path) == compose_train(["dataset=exchange_rate", "preset=paper"]).dataset.cpu_minutes


def test_without_runs_the_config_decides_scaled_by_epochs_and_the_methods_cost(tmp_path: Path) -> None:
    words = ("dataset=rcf_mnist", "method=puzzlemix", "preset=cpu")
    composed = compose_train(words)
    whole = composed.dataset.cpu_minutes * composed.method.cost
    assert whole > 0
    assert run_minutes(job_of(*words), tmp_path) == whole
    assert run_minutes(job_of(*words, f"train.epochs={2 * composed.train.epochs}"), tmp_path) == 2 * whole


def test_all_pending_seeds_are_paid_for_and_a_gpu_is_free() -> None:
    job = job_of("method=erm", "preset=paper", "seeds=0..9")
    assert estimate_minutes(job) == pytest.approx(10 * run_minutes(job))
    assert estimate_minutes(replace(job, device=torch.device("cuda"))) == 0


def test_the_main_job_is_seven_methods_on_airfoil_and_no2_and_no_short_record_changes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cell of Exchange-Rate takes an hour: in the plan of README's first command it would turn minutes into hours."""
    monkeypatch.setattr(cells, "target_of", lambda _: Mock)  # every file is at hand
    read = cells._published_cpu
    monkeypatch.setattr(cells, "_published_cpu", lambda *key: tuple(_with_short_ones(read(*key))))
    table1 = load_experiment("table1")
    some = ["airfoil", "no2", "exchange_rate"]
    choice = Choice(some, table1.methods, list(range(10)), "paper", "/nowhere", "cpu", rerun=False)
    found, left_out = plan_cells(table1, choice)
    cells_of = {(job.config["dataset"]["name"], job.config["method"]["name"]) for _, job in found}
    assert cells_of == {(d, m) for d in some[:2] for m in table1.methods}
    assert {line.split()[0] for line in left_out} == {"exchange_rate"}


def _with_short_ones(runs: Iterable[Any]) -> Iterator[Any]:
    """Yield published runs, and each once more as a run of one epoch that took a hundredth of a second."""
    for run in runs:
        yield from (run, {**run, "epochs": 1, "seconds": 0.01})
