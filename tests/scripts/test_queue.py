"""The command `scripts.queue`: what it says, and that a run which it stops is the one that nobody stopped."""

import contextlib
import errno
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cmixup.errors import InputError
from datasets.common.fetch import FetchError
from scripts.config.parts import dataset_class
from scripts.driver.execute import Diverged
from scripts.plan import schedule
from scripts.plan.missing import NOWHERE, missing_runs, published_seeds, remembered_missing, state_fingerprint
from scripts.plan.time_budget import QUEUE, Missing, work_through
from scripts.queue import AGAIN, main
from scripts.records.artefacts import Artefact
from scripts.records.experiment import load_experiment
from tests.scripts.jobs import planned, report_of
from tests.scripts.plan.test_time_budget import one_after_another

WORDS = ("dataset=no2", "method=mixup", "debug=tiny", "train.epochs=3", "train.batch_size=100")


def listed(out: Path, *items: Missing) -> None:
    """Put a list of what is missing where the command looks for it, so that it need not plan every cell."""
    text = json.dumps({"state": state_fingerprint(), "items": [asdict(item) for item in items]})
    (out / QUEUE).mkdir(parents=True)
    (out / QUEUE / "missing.json").write_text(text)


@pytest.mark.usefixtures("no_git")
def test_a_run_that_was_stopped_is_one_that_was_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = planned(tmp_path / "out", *WORDS, "logger=none")
    item = Missing("a", WORDS, job.folder.relative_to(tmp_path / "out/runs").as_posix(), (0, 1), 0, ("t",), 1e-3, 3)
    ticks = iter(range(0, 10_000, 7))  # every look at the clock takes seven seconds: an epoch or two a slice
    monkeypatch.setattr(schedule, "work_off", one_after_another)
    slices = 0
    with monkeypatch.context() as patch:
        patch.setattr(schedule, "time", SimpleNamespace(time=lambda: float(next(ticks))))
        while not (job.run_folder(1) / "DONE").exists() and slices < 9:
            work_through([item], tmp_path / "out", 0.6, "cpu", say=str)
            slices += 1
    assert 1 < slices < 9
    straight = planned(tmp_path / "straight", *WORDS)
    assert work_through([item], tmp_path / "straight", math.inf, "cpu", say=str)["done"] == 2
    for seed in (0, 1):
        ours, theirs = report_of(job.run_folder(seed)), report_of(straight.run_folder(seed))
        assert ours["scores"] == theirs["scores"]
        assert len({(one.run_folder(seed) / "history.csv").read_text() for one in (job, straight)}) == 1


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data root; and the command notes no commit in this checkout."""
    monkeypatch.setattr("scripts.queue.note_commit", lambda: None)
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def put_there(dataset: str, root: Path) -> None:
    """Put files of the right sizes where a dataset looks for its own."""
    for alternatives in dataset_class(dataset).files:
        path = root / alternatives[0].path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(alternatives[0].size))


HERE = Missing("a", WORDS, "table1/no2/fcn3/mixup/paper", (7, 8), 2, ("table1",), 1.5, 10)
THERE = Missing("b", WORDS, "table1/echo/r2plus1d_18/erm/paper", (0,), 0, ("table1",), 60.0, 10)


def test_a_dry_run_says_what_and_how_long_and_trains_nothing(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    out = tmp_path / "out"
    listed(out, HERE, THERE)
    put_there("no2", data)
    main(["dry_run=1", f"out={out}", "device=cpu"])
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "table1/no2/fcn3/mixup/paper: 2 runs, 3.0 min, 0.19 a minute, in table1"
    assert said[1] == "2 runs, about 3 minutes on one core"
    assert said[2].startswith("not here: 1 runs, about 60 minutes; echo: EchoNet-Dynamic is not here: by hand, http")
    assert sorted(path.name for path in out.iterdir()) == [QUEUE]
    with pytest.raises(SystemExit):
        main(["minutes=-1", f"out={out}"])
    assert "minutes must be" in capsys.readouterr().err


def test_data_that_were_put_there_since_are_seen_and_nobody_is_asked_for_them(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list itself is planned once."""
    planned_once = iter([[HERE]])
    monkeypatch.setattr("scripts.plan.missing.missing_runs", lambda **_: next(planned_once))
    main(["dry_run=1", f"out={tmp_path}", "device=cpu"])
    said = capsys.readouterr().out
    assert "0 runs, about 0 minutes" in said
    assert "not here: 2 runs, about 3 minutes; no2: no2/no2.csv is not here, and can be fetched (" in said
    (item,) = remembered_missing(tmp_path / QUEUE / "missing.json", fetching=True)
    assert item == HERE  # a queue that trains comes to it, and fetches them then
    put_there("no2", data)
    main(["dry_run=1", f"out={tmp_path}", "device=cpu"])
    said = capsys.readouterr().out
    assert "2 runs, about 3 minutes" in said
    assert "not here" not in said


def test_the_list_is_of_a_state_of_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan's minutes come from code, too."""
    before = state_fingerprint()
    assert before == state_fingerprint()
    monkeypatch.setattr("scripts.plan.missing.sources_digest", lambda: "edited")
    assert state_fingerprint() != before


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "{}", '{"state": "STATE"}', '{"state": "STATE", "items": [{}]}',
                                  '{"state": "STATE", "items": [3]}', "\udcff"])  # fmt: skip
def test_a_damaged_list_is_made_again(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scripts.plan.missing.missing_runs", lambda **_: [HERE])
    path = tmp_path / "missing.json"
    path.write_bytes(text.replace("STATE", state_fingerprint()).encode(errors="surrogateescape"))
    assert remembered_missing(path, fetching=True) == [HERE]
    whole = path.read_text()
    assert json.loads(whole)["state"] == state_fingerprint()
    assert remembered_missing(path, fetching=True) == [HERE]
    assert path.read_text() == whole


TROUBLE = {
    "none": (None, 0),
    "an option": (InputError("no such option"), 1),
    "divergence": (Diverged("seed 7: not finite"), 1),
    "no network": (FetchError("could not get no2.csv"), 2),
    "no permission": (PermissionError(errno.EACCES, "Permission denied", "no2.csv"), 2),
    "a full disk": (OSError(errno.ENOSPC, "No space left on device"), 2),
}


@pytest.mark.parametrize("what", TROUBLE)
@pytest.mark.usefixtures("data")
def test_the_status_tells_a_fault_of_a_run_from_passing_trouble(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NO2 meets an error and Airfoil does not; what was put off is tried again by the next call."""
    error, status = TROUBLE[what]
    listed(
        tmp_path,
        HERE,
        replace(HERE, name="c", words=("dataset=airfoil",), cell="table1/airfoil/fcn3/mixup/paper", each=2.0),
    )
    tried: list[str] = []

    def train(jobs: Sequence[Any], *_: object) -> None:
        tried.append(jobs[0].config["dataset"]["name"])
        if error and tried[-1] == "no2":
            raise error

    monkeypatch.setattr(schedule, "execute_together", train)
    monkeypatch.setattr(schedule, "work_off", one_after_another)
    call = [f"out={tmp_path}", "device=cpu", "minutes=9"]
    with pytest.raises(SystemExit, match=str(status)) if status else contextlib.nullcontext():
        main(call)
    assert tried == (["no2"] if what == "a full disk" else ["no2", "airfoil"])
    assert (str(error) in capsys.readouterr().out) == bool(error)
    tried.clear()
    with contextlib.suppress(SystemExit):
        main(call)
    assert tried == {1: ["airfoil"]}.get(status, ["no2"] if what == "a full disk" else ["no2", "airfoil"])
    assert len(list((tmp_path / QUEUE).glob("*.failed"))) == (status == 1)


def test_what_is_missing_are_the_seeds_that_are_not_published(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace(load_experiment("table_batch_id"), datasets=["no2"], methods=["cmixup", "cmixup_batch"])
    monkeypatch.setattr("scripts.plan.missing.load_experiment", lambda _: replace(whole, seeds=12))
    artefact = Artefact("mine", "Table 1", "gains", "reproduce-table1", experiment="table_batch_id", presets=["paper"])
    items = missing_runs([artefact])
    # Ten seeds are published; what is missing of each cell trains as one stack, worth 1/11 + 1/12.
    assert {item.cell.rpartition("/")[0].rpartition("/")[2] for item in items} == {"cmixup", "cmixup_batch"}
    for item in items:
        assert item.seeds == (10, 11)
        assert published_seeds(item.cell) == set(range(10))
        assert item.value == pytest.approx(1 / 11 + 1 / 12)
        assert (item.epochs, item.shown_in, item.wanting) == (100, ("mine",), "")


def test_what_is_published_is_missing_where_nothing_counts_as_published(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = replace(load_experiment("table_batch_id"), datasets=["no2"], methods=["cmixup_batch"], seeds=3)
    monkeypatch.setattr("scripts.plan.missing.load_experiment", lambda _: whole)
    artefact = Artefact("mine", "Table 1", "gains", "reproduce-table1", experiment="table_batch_id", presets=["paper"])
    assert missing_runs([artefact]) == []
    (item,) = missing_runs([artefact], Path(NOWHERE))
    assert (item.seeds, item.published) == ((0, 1, 2), 0)


@pytest.mark.usefixtures("no_git")
def test_all_is_trained_again_and_then_every_artefact_that_lacks_no_run_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    mine = replace(HERE, seeds=(0, 1, 2, 3), shown_in=("done",))
    away = replace(HERE, name="away", seeds=(0, 1), shown_in=("done", "lacks"), wanting="no files")
    artefacts = [
        Artefact("lacks", "", "", "reproduce-lacks", experiment="table1"),
        Artefact("late", "", "", "reproduce-late", experiment="table1"),
        Artefact("dear", "", "", "reproduce-dear", minutes=50),
        Artefact("cheap", "", "", "reproduce-cheap", minutes=2),
        Artefact("done", "", "", "reproduce-done", experiment="table1", arguments="PRESET=cpu"),
    ]
    monkeypatch.setattr("scripts.queue.load_artefacts", lambda: artefacts)
    monkeypatch.setattr(
        "scripts.queue.remembered_missing", lambda path, *_, **__: [mine, away] if path.name == AGAIN else []
    )
    trained: list[Missing] = []

    def pretended(items: Sequence[Missing], out: Path, *_: Any, **more: Any) -> dict[str, int]:
        trained.extend(items)
        return {"done": 2, "failed": 0, "put off": 0, "stopped": 0}

    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        commands.append(command)
        return SimpleNamespace(returncode=int("cheap" in command[1]))

    monkeypatch.setattr("scripts.queue.work_through", pretended)
    monkeypatch.setattr("scripts.queue.items_left", lambda *_: [replace(HERE, shown_in=("late",))])  # the time was up
    monkeypatch.setattr("scripts.queue.subprocess.run", run)
    with pytest.raises(SystemExit) as stop:
        main(["again=1", "seeds=2", "minutes=10", f"out={tmp_path}", "device=cpu"])
    assert stop.value.code == 1
    assert [item.seeds for item in trained if not item.wanting] == [(0, 1)]
    assert commands == [
        ["make", "reproduce-done", "PRESET=cpu", "SEEDS=2", f"OUT={tmp_path}"],
        ["make", "reproduce-cheap", "SEEDS=2", f"OUT={tmp_path}"],
    ]
    printed = capsys.readouterr()
    assert "error: 1 commands failed: reproduce-cheap" in printed.err
    for name in ("lacks", "late"):
        assert f"not made: make reproduce-{name}; runs are missing" in printed.out
    assert "not made: make reproduce-dear; it takes 50 minutes" in printed.out
