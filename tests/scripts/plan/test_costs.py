"""The minutes of a cell, and with them the plan of the main job, come from runs like it and from no others."""

from pathlib import Path
from unittest.mock import Mock

import pytest
import torch

from scripts.config.compose import compose_train
from scripts.driver.job import Job, plan_job
from scripts.plan import cells
from scripts.plan.cells import Choice, estimate_minutes, plan_cells, run_minutes
from scripts.records.experiment import load_experiment
from scripts.records.published import write_reports


def job_of(*words: str) -> Job:
    return plan_job(compose_train(["dataset=exchange_rate", "method=erm", "out=/nowhere", "device=cpu", *words]))


def publish(results: Path, job: Job, seconds: float, *, device: str = "cpu: any", seed: int = 0) -> None:
    """Publish a run of a job that took so many seconds, whatever is published there already."""
    dataset, method, model = (job.config[part]["name"] for part in ("dataset", "method", "model"))
    report = {"experiment": "some", "dataset": dataset, "method": method, "model": model,
              "preset": job.config["preset"], "options": job.options, "config": job.config, "device": device,
              "epochs": job.settings.epochs, "seconds": seconds, "seed": seed, "scores": {}, "facts": {},
              "run": f"some/{dataset}/{seconds}/seed={seed}"}  # fmt: skip
    write_reports(results, [report])
    cells._table_runs.cache_clear()


def test_runs_of_the_preset_decide_by_their_median_at_the_same_pace(tmp_path: Path) -> None:
    job = job_of("preset=paper")
    publish(tmp_path, job_of("preset=paper", "train.epochs=20"), 60.0)
    assert run_minutes(job, tmp_path) == pytest.approx(5)
    for seed, seconds in enumerate((120.0, 180.0)):
        publish(tmp_path, job, seconds, seed=seed)
    publish(tmp_path, job, 0.1, device="cuda: fast", seed=2)
    assert run_minutes(job, tmp_path) == pytest.approx(3)


def test_without_runs_of_the_preset_the_config_decides_and_then_other_presets(tmp_path: Path) -> None:
    airfoil = plan_job(compose_train(["dataset=airfoil", "method=erm", "preset=paper", "device=cpu", "out=/nowhere"]))
    publish(tmp_path, airfoil, 6000.0)
    other = plan_job(compose_train(["dataset=airfoil", "method=erm", "preset=released", "device=cpu", "out=/nowhere"]))
    assert run_minutes(other, tmp_path) == pytest.approx(100)
    publish(tmp_path, other, 60.0)
    assert run_minutes(other, tmp_path) == pytest.approx(1)
    publish(tmp_path, job_of("preset=released"), 1.0)  # a network without attention
    words = ["dataset=exchange_rate", "method=puzzlemix", "preset=paper"]
    composed = compose_train(words)
    minutes, job = composed.dataset.cpu_minutes, job_of("preset=paper", "seeds=0..9")
    assert run_minutes(job, tmp_path) == minutes
    assert run_minutes(job_of(*words, f"train.epochs={2 * composed.train.epochs}"), tmp_path) == pytest.approx(
        2 * minutes * composed.method.cost
    )


def test_the_main_job_is_seven_methods_on_airfoil_and_no2(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell of Exchange-Rate takes an hour: in the plan of README's first command it would turn minutes into hours."""
    monkeypatch.setattr(cells, "target_of", lambda _: Mock)  # every file is at hand
    table1 = load_experiment("table1")
    assert len(table1.methods) == 7
    some, methods = ["airfoil", "no2", "exchange_rate"], [table1.methods[0], table1.methods[-1]]
    choice = Choice(some, methods, list(range(10)), "paper", "/nowhere", "cpu", rerun=False)
    planned, left_out = plan_cells(table1, choice)
    cells_of = {(job.config["dataset"]["name"], job.config["method"]["name"]) for job in planned}
    assert cells_of == {(d, m) for d in some[:2] for m in methods}
    assert {line.split()[0] for line in left_out} == {"exchange_rate"}
    job = planned[0]
    assert estimate_minutes(job) == pytest.approx(10 * run_minutes(job))
    object.__setattr__(job, "device", torch.device("cuda"))
    assert estimate_minutes(job) == 0


@pytest.mark.parametrize(
    ("name", "dataset", "preset"),
    [("figure_overfitting", "exchange_rate", "released"), ("table3_balanced", "rcf_mnist", "cpu"),
     ("table3_last_epoch", "rcf_mnist", "cpu")],
)  # fmt: skip
def test_every_published_cell_fits_the_budget_of_its_experiment(name: str, dataset: str, preset: str) -> None:
    plan = load_experiment(name)
    choice = Choice([dataset], plan.methods, list(range(plan.seeds)), preset, "/nowhere", "cpu", rerun=False)
    planned, left_out = plan_cells(plan, choice, fetching=False)
    assert planned
    assert not left_out
