"""A run on an own table keeps how its features were made."""

import json
from pathlib import Path

import pytest

from cmixup.tables.preprocessing import PREPROCESSING
from tests.scripts.jobs import FILES, execute_job, planned, report_of


@pytest.mark.usefixtures("no_git")
def test_a_run_keeps_how_its_features_were_made(tmp_path: Path) -> None:
    path = tmp_path / "my.csv"
    path.write_text("id;price;size;state\n" + "".join(f"{k};{k % 7},5;{k % 5},25;s{k % 9}\n" for k in range(100)))
    words = ["dataset=csv", f"dataset.path={path}", "dataset.target=price", "dataset.group=state", "method=irm"]
    job = planned(tmp_path, *words, "dataset.synthetic=false", "seeds=2", "dataset.groups=2", "train.batch_size=20")
    for seed, folder in enumerate(execute_job(job)):
        assert sorted(file.name for file in folder.iterdir()) == FILES
        kept = (folder / PREPROCESSING).read_text()
        assert kept == job.dataset.load(seed).extras[PREPROCESSING]
        assert json.loads(kept)["group"] == "state"
        report = report_of(folder)
        assert (report["notes"], report["unit"]) == (["dropped: id (numbers the rows)"], "price")
        assert "worst_rmse" in report["scores"]["test"]
        assert report["options"]["dataset.target"] == "price"
    assert (folder / PREPROCESSING).read_text() != (folder.parent / "seed=0" / PREPROCESSING).read_text()


@pytest.mark.usefixtures("no_git")
def test_a_changed_table_is_a_changed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However its path is spelt it is one table, until a byte of it is another."""
    path = tmp_path / "my.csv"
    path.write_text("price,size\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(30)))
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    words = ["dataset=csv", "dataset.target=price", "dataset.synthetic=false", "train.batch_size=10"]
    first = planned(tmp_path, *words, "dataset.path=../my.csv")
    (folder,) = execute_job(first)
    same = planned(tmp_path, *words, f"dataset.path={path}")
    assert (same.folder, same.pending) == (first.folder, [])
    before = report_of(folder)["checksums"]
    path.write_text(path.read_text() + "3,2\n")
    changed = planned(tmp_path, *words, "dataset.path=../my.csv")
    assert changed.pending == [0]
    execute_job(changed)
    assert f"the table has changed since {folder} was trained" in capsys.readouterr().err
    assert report_of(folder)["checksums"] != before
    assert planned(tmp_path, *words, "dataset.path=../my.csv").pending == []
