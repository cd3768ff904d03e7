"""What a crash, a damaged file or another start may do to runs: nothing is lost, and everything is said."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from filelock import FileLock

from cmixup.errors import InputError
from cmixup.files import DONE
from scripts.driver import execute as job_module
from scripts.driver import runs
from scripts.driver.checkpoints import RESUME_FILE
from scripts.driver.job import Job
from scripts.driver.runs import RunFolder, load_reports
from tests.scripts.driver.test_locks import held_by_another
from tests.scripts.jobs import execute_job, planned, report_of


class Crash(BaseException):
    """The process is gone."""


def crash(*_: object, **__: object) -> None:
    raise Crash


# ---- nothing lost


def test_a_folder_that_is_removed_while_it_trains_is_made_again(tmp_path: Path) -> None:
    job = planned(tmp_path, "train.epochs=2")
    execute_job(job, lambda epoch, _: shutil.rmtree(tmp_path) if epoch == 1 else None)
    folder = job.run_folder(0)
    assert RunFolder(folder).is_done()
    assert yaml.safe_load((folder / "config.yaml").read_text())["seed"] == 0


def test_a_seed_is_written_before_the_next_one_trains(tmp_path: Path) -> None:
    job = planned(tmp_path, "method=rc_mixup", "train.epochs=1", "seeds=0..1")  # which trains one after the other
    heard: list[list[bool]] = []
    execute_job(job, lambda *_: heard.append([RunFolder(job.run_folder(seed)).is_done() for seed in (0, 1)]))
    assert heard == [[False, False], [True, False]]


@pytest.mark.parametrize("at", [0, 2])
def test_a_stack_is_done_all_or_none(at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while `DONE` files are written leaves runs that are whole: they are marked, and not trained again."""
    calls, mark = 0, runs.RunFolder.finish

    def stop(folder: runs.RunFolder) -> None:
        nonlocal calls
        calls += 1
        (crash if calls > at else mark)(folder)

    given = ("seeds=0..2", "checkpoint_every=1", "method=cmixup")
    with monkeypatch.context() as patch:
        patch.setattr(runs.RunFolder, "finish", stop)
        with pytest.raises(Crash):
            execute_job(planned(tmp_path, *given))
    job = planned(tmp_path, *given)
    assert len(job.pending) == 3 - at
    monkeypatch.setattr(job_module, "stacks", crash)
    assert execute_job(job) == []
    assert [(r["seed"], r["stack"]) for r in load_reports(tmp_path)] == [(0, 3), (1, 3), (2, 3)]
    assert list(tmp_path.rglob(RESUME_FILE)) == list(tmp_path.rglob(runs.ENDING)) == []


def test_a_crash_before_the_first_is_done_trains_the_same_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("seeds=0..2", "method=cmixup", "checkpoint_every=1")
    straight = execute_job(planned(tmp_path / "straight", *given))
    with monkeypatch.context() as patch:
        patch.setattr(job_module, "finish_stack", lambda _, folders=(): crash() if folders else None)
        with pytest.raises(Crash):
            execute_job(planned(tmp_path / "crashed", *given))
    job = planned(tmp_path / "crashed", *given)
    assert job.pending == [0, 1, 2]
    heard: list[int] = []
    for one, other in zip(execute_job(job, lambda epoch, _: heard.append(epoch)), straight, strict=True):
        assert report_of(one)["scores"] == report_of(other)["scores"]
        assert (one / "checkpoint.pt").read_bytes() == (other / "checkpoint.pt").read_bytes()
    assert heard == []  # the last epoch had been saved


def interrupted(job: Job) -> Path:
    """Train one epoch of a job and stop; returns what was saved."""
    with pytest.raises(Crash):
        execute_job(job, crash)
    return job.run_folder(0) / RESUME_FILE


@pytest.mark.parametrize("changed", ["commit", "data", "before there were origins"])
def test_a_checkpoint_of_other_code_or_data_is_refused_or_requested(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("dataset=diabetes", "dataset.synthetic=false", "checkpoint_every=1")
    saved = interrupted(planned(tmp_path, *given))
    state = torch.load(saved, weights_only=True)
    assert [name for name in state["origin"] if not name.startswith("data ")] == ["commit", "torch"]
    name = next((name for name in state["origin"] if name.startswith(changed)), "")
    state["origin"] = {**state["origin"], name: "other"} if name else {}
    torch.save(state, saved)
    with pytest.raises(
        InputError, match=rf"resume.pt was saved after epoch 1 .*{name or 'commit not recorded'}.*resume=any"
    ):
        execute_job(planned(tmp_path, *given))
    assert saved.is_file()
    heard: list[int] = []
    execute_job(planned(tmp_path, *given, "resume=any"), lambda epoch, _: heard.append(epoch))
    assert heard == [2]


def test_a_rerun_begins_at_the_first_epoch(tmp_path: Path) -> None:
    interrupted(planned(tmp_path, "checkpoint_every=1"))
    heard: list[int] = []
    execute_job(planned(tmp_path, "checkpoint_every=1", "rerun=true"), lambda epoch, _: heard.append(epoch))
    assert heard == [1, 2]


# ---- damage


@pytest.mark.parametrize("text", [b"", b"PK\x03\x04 half"])
def test_a_damaged_checkpoint_is_set_aside(text: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved = interrupted(planned(tmp_path, "checkpoint_every=1"))
    saved.write_bytes(text)
    heard: list[int] = []
    execute_job(planned(tmp_path, "checkpoint_every=1"), lambda epoch, _: heard.append(epoch))
    assert heard == [1, 2]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{saved} cannot be read")
    assert line.endswith("set aside as resume.pt.damaged")
    assert saved.with_name("resume.pt.damaged").read_bytes() == text


@pytest.mark.parametrize(
    ("name", "how"),
    [("report.json", "cut"), ("history.csv", "empty"), ("config.yaml", "cut"), (DONE, "empty"), (DONE, "cut")],
)
def test_a_damaged_run_is_made_again(name: str, how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder,) = execute_job(planned(tmp_path))
    scores, path = report_of(folder)["scores"], folder / name
    path.write_bytes(path.read_bytes()[:-2] if how == "cut" else b"")
    assert load_reports(tmp_path) == []
    assert f"{path} " in capsys.readouterr().err
    job = planned(tmp_path)
    assert job.pending == [0]
    execute_job(job)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path} ")
    assert line.endswith(": it is trained again")
    assert report_of(folder)["scores"] == scores
    assert RunFolder(folder).is_done()


def test_a_rerun_repairs_a_report_with_another_sign(tmp_path: Path) -> None:
    (folder,) = execute_job(planned(tmp_path))
    path = folder / "report.json"
    path.write_bytes(path.read_bytes().replace(b"rmse", b"rnse", 1))
    with pytest.raises(InputError, match="rerun=true trains the run again"):
        execute_job(planned(tmp_path))
    assert execute_job(planned(tmp_path, "rerun=true")) == [folder]
    assert RunFolder(folder).is_done()


def test_a_file_that_somebody_removed_is_no_damage(tmp_path: Path) -> None:
    (folder,) = execute_job(planned(tmp_path))
    (folder / "checkpoint.pt").unlink()
    assert RunFolder(folder).is_done()
    (folder / "report.json").unlink()
    assert not RunFolder(folder).is_done()


# ---- the same work twice


def test_a_seed_that_another_process_trains_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of seeds 0 to 2 another process has 1: 0 and 2 train here, and then 1, since that process ends without it."""
    job = planned(tmp_path, "seeds=0..2")
    trained: list[list[int]] = []
    stacks: Callable[..., Any] = job_module.stacks
    acquire: Callable[..., Any] = FileLock.acquire

    with held_by_another(tmp_path, job.run_folder(1).relative_to(tmp_path).as_posix()) as process:

        def training(members: Sequence[Any], *given: Any, **named: Any) -> Any:
            trained.append([run.streams.seed for run in members])
            return stacks(members, *given, **named)

        def waiting(lock: FileLock, **named: Any) -> Any:
            if not named:  # which waits
                process.kill()
            return acquire(lock, **named)

        monkeypatch.setattr(FileLock, "acquire", waiting)
        monkeypatch.setattr(job_module, "stacks", training)
        execute_job(job)
    assert trained == [[0, 2], [1]]
    assert [r["stack_seeds"] for r in load_reports(tmp_path)] == [[0, 2], [1], [0, 2]]
    assert "seed=1 is being made by another process: waiting for it" in capsys.readouterr().err


def test_what_was_done_meanwhile_is_not_trained_again(tmp_path: Path) -> None:
    late = planned(tmp_path, "seeds=0..1")
    execute_job(planned(tmp_path, "seed=1"))
    assert late.pending == [0, 1]
    assert [folder.name for folder in execute_job(late)] == ["seed=0"]
    assert late.pending == [0]
    assert [report_of(late.run_folder(seed))["stack_seeds"] for seed in (0, 1)] == [[0], [1]]


# ---- runs that learn nothing


def test_a_run_that_learned_nothing_says_so(tmp_path: Path) -> None:
    """So large a weight decay that every prediction is that of no weights; and a run that learns."""
    (folder,) = execute_job(planned(tmp_path, "method=erm", "train.weight_decay=1e30", "train.epochs=1"))
    report = report_of(folder)
    assert report["facts"]["learned_nothing"] == 1
    assert report["learned_nothing"].startswith("learned nothing: val rmse ")
    (folder,) = execute_job(
        planned(
            tmp_path, "method=erm", "train.epochs=60", "train.lr=0.01", "dataset=diabetes", "dataset.synthetic=false"
        )
    )
    assert report_of(folder)["learned_nothing"] == ""
    assert "learned_nothing" not in report_of(folder)["facts"]
