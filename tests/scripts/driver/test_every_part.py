"""Every dataset and every method trains on synthetic stand-ins: from words to reports."""

import os
from pathlib import Path

import pytest
import torch

from cmixup.files import PREPROCESSING
from datasets.common.base import TabularDataset
from datasets.common.table.user import UserTable
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.records.run_tables import row_of
from tests.scripts.cover import TASKS, cases, method_kind
from tests.scripts.jobs import FILES, execute_job, report_of

# Networks of the paper's size are too slow for tests that only ask whether everything fits together.
NARROW = dict.fromkeys(
    ("exchange_rate", "electricity", "electricity_fragment"),
    ("dataset.window=53", "model.channels=2", "model.hidden=2"),
) | {
    "echo": ("dataset.frames=4", "dataset.size=16", "model.width=4", "train.batch_size=8"),
    "rcf_mnist": ("model.width=2", "train.batch_size=32"),
    "images": ("model.width=2", "train.batch_size=32"),
    "poverty_map": ("model.width=2", "dataset.groups=4", "train.batch_size=16"),
    **dict.fromkeys(
        ("dti", "dti_davis", "dti_kiba"), ("dataset.drug_length=20", "dataset.protein_length=40", "train.batch_size=16")
    ),
    **dict.fromkeys(TASKS, ("model.width=2", "method.inner_steps=1", "method.report_steps=2", "train.batch_size=2")),
}


@pytest.mark.parametrize(("dataset", "method", "preset"), cases())
def test_methods_train_on_stand_ins(dataset: str, method: str, preset: str, tmp_path: Path) -> None:
    seeds = [0, 3] if dataset not in NARROW else [3]
    given = [f"dataset={dataset}", f"method={method}", f"preset={preset}", f"seeds={seeds}", f"out={tmp_path}"]
    # What debug=tiny sets, as values: then the configuration is composed once for the plan and for the run.
    tiny = ["dataset.synthetic=true", "+dataset.search={outer: 2, n_in: 2}", "train.epochs=2", "logger=none"]
    job = plan_job(compose_train([*given, *tiny, "train.batch_size=100", *NARROW.get(dataset, ())]))
    epochs, heard = job.epochs, list[int]()
    written = execute_job(job, lambda epoch, _: heard.append(epoch))
    assert written == [job.run_folder(seed) for seed in seeds]
    assert len(heard) == epochs
    for seed, folder in zip(seeds, written, strict=True):
        kept = isinstance(job.dataset, (UserTable, TabularDataset)) or job.dataset.user_files
        absent = set() if kept else {PREPROCESSING}
        assert set(os.listdir(folder)) == set(FILES) - absent  # noqa: PTH208
        report = report_of(folder)
        assert (report["dataset"], report["method"], report["preset"]) == (dataset, method, preset)
        assert (report["seed"], report["stack"], report["epochs"]) == (
            seed, len(seeds) if method_kind(method).stackable else 1, 2,
        )  # fmt: skip
        for split in ("val", "test"):
            assert set(report["scores"][split]) >= (
                {"mse", "mse_ci95"} if dataset in TASKS else set(job.dataset.metrics)
            )
            assert torch.isfinite(torch.tensor(list(report["scores"][split].values()))).all()
        assert len(report["scores"]) == 2
        assert 1 <= report["best_epoch"] <= 2
        assert report["notes"]
        assert {"seed", "seconds", "best_epoch"} <= row_of(report).keys()
