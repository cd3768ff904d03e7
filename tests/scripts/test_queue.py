"""The command `scripts.queue`: what it says, and that a run which it stops is the one that nobody stopped."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from scripts.driver.slices import QUEUE, Item, trainer, work
from scripts.queue import main
from scripts.report.artefacts import Artefact
from scripts.report.experiment import load_experiment
from scripts.report.missing import fingerprint, missing, published_seeds
from tests.scripts.jobs import planned, report_of

WORDS = ("dataset=no2", "method=mixup", "debug=tiny", "train.epochs=3", "train.batch_size=100")


def listed(out: Path, *items: Item) -> None:
    """Put a list of what is missing where the command looks for it, so that it need not plan every cell."""
    text = json.dumps({"state": fingerprint(), "items": [asdict(item) for item in items]})
    (out / QUEUE).mkdir(parents=True)
    (out / QUEUE / "missing.json").write_text(text)


@pytest.mark.usefixtures("no_git")
def test_a_run_that_was_stopped_is_one_that_was_not(tmp_path: Path) -> None:
    job = planned(tmp_path / "out", *WORDS, "logger=none")
    item = Item("a", WORDS, job.folder.relative_to(tmp_path / "out/runs").as_posix(), (0, 1), 0, ("t",), 1e-3, 3)
    ticks = iter(range(0, 10_000, 7))  # every look at the clock takes seven seconds: one epoch a slice
    slices = 0
    while not (job.run_folder(1) / "DONE").exists() and slices < 9:
        work([item], tmp_path / "out", 0.6, lambda: float(next(ticks)), trainer(tmp_path / "out", "cpu"), say=str)
        slices += 1
    assert 1 < slices < 9
    straight = planned(tmp_path / "straight", *WORDS)
    trainer(tmp_path / "straight", "cpu")(item, 1, lambda *_: None)
    for seed in (0, 1):
        ours, theirs = report_of(job.run_folder(seed)), report_of(straight.run_folder(seed))
        assert ours["scores"] == theirs["scores"]
        assert len({(one.run_folder(seed) / "history.csv").read_text() for one in (job, straight)}) == 1


def test_a_dry_run_says_what_and_how_long_and_trains_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.queue.note_commit", lambda: None)
    here = Item("a", WORDS, "table1/no2/fcn3/mixup/paper", (7, 8), 2, ("table1",), 1.5, 10)
    there = Item("b", WORDS, "table1/echo/r2plus1d_18/erm/paper", (0,), 0, ("table1",), 60.0, 10, "echo: no files")
    listed(tmp_path, here, there)
    for flag in ("dry_run=1", "--dry-run"):
        main([flag, f"out={tmp_path}", "device=cpu"])
        said = capsys.readouterr().out
        assert "2 runs, about 3 minutes on one core" in said
        assert "1 runs of data that are not here:\n- echo: no files" in said
    assert sorted(path.name for path in tmp_path.iterdir()) == [QUEUE]
    with pytest.raises(SystemExit):
        main(["minutes=-1", f"out={tmp_path}"])
    assert "minutes must be" in capsys.readouterr().err


def test_what_is_missing_are_the_seeds_that_are_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace(load_experiment("table_batch_id"), datasets=["no2"], methods=["cmixup", "cmixup_batch"])
    monkeypatch.setattr("scripts.report.missing.load_experiment", lambda _: replace(whole, seeds=12))
    monkeypatch.setattr("scripts.report.missing._wanting", lambda _: "")  # as where NO2's file is
    artefact = Artefact("mine", "Table 1", "gains", "reproduce-table1", experiment="table_batch_id", presets=["paper"])
    items = missing([artefact])
    # Ten seeds are published; what is missing of each cell trains as one stack, worth 1/11 + 1/12.
    assert {item.cell.rpartition("/")[0].rpartition("/")[2] for item in items} == {"cmixup", "cmixup_batch"}
    for item in items:
        assert item.seeds == (10, 11)
        assert published_seeds(item.cell) == set(range(10))
        assert item.value == pytest.approx(1 / 11 + 1 / 12)
        assert (item.epochs, item.shown_in, item.wanting) == (100, ("mine",), "")
