"""A run on an own table keeps how its features were made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datasets.common.table.preprocessing import PREPROCESSING
from scripts.driver.execute import execute
from tests.scripts.jobs import FILES, planned, report_of


@pytest.mark.usefixtures("no_git")
def test_a_run_keeps_how_its_features_were_made(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    path.write_text("id;price;size;state\n" + "".join(f"{k};{k % 7},5;{k % 5},25;s{k % 9}\n" for k in range(100)))
    words = ["dataset=csv", f"dataset.path={path}", "dataset.target=price", "dataset.group=state", "method=irm"]
    job = planned(tmp_path, *words, "dataset.synthetic=false", "seeds=2", "dataset.groups=2", "train.batch_size=20")
    for seed, folder in enumerate(execute(job)):
        assert sorted(each.name for each in folder.iterdir()) == FILES
        kept = (folder / PREPROCESSING).read_text()
        assert kept == job.dataset.load(seed).extras[PREPROCESSING]
        assert json.loads(kept)["group"] == "state"
        report = report_of(folder)
        assert (report["notes"], report["unit"]) == (["dropped column id: numbers the rows"], "price")
        assert "worst_rmse" in report["scores"]["test"]
        assert report["options"]["dataset.target"] == "price"
    assert (folder / PREPROCESSING).read_text() != (folder.parent / "seed=0" / PREPROCESSING).read_text()
