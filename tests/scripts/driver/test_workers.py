"""A worker that dies costs its own work, and all end with their parent."""

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.driver import workers
from scripts.driver.job import plan_job
from scripts.driver.progress import ProgressDisplay
from scripts.driver.workers import Worker
from scripts.plan import schedule
from scripts.plan.schedule import Item, train_item, train_items
from tests.scripts.test_sweeps import process_table

FORK: Any = multiprocessing.get_context("fork")


def work(name: str, tell: Callable[[Any], None]) -> None:
    """What the first word of a task says."""
    if name.startswith("dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    if name.startswith("refuses"):
        raise InputError("bad value")
    if name.startswith("fails"):
        raise ValueError("a mistake")


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers do what `work` says, without three seconds of imports."""
    monkeypatch.setattr(schedule, "train_item", lambda item, tell: work(item.name, tell))
    monkeypatch.setattr(workers.multiprocessing, "get_context", lambda _: FORK)


@pytest.mark.usefixtures("forked")
@pytest.mark.parametrize("count", [1, 2])
def test_a_worker_that_dies_is_named_and_the_others_go_on(count: int) -> None:
    items = [Item(name) for name in ("a", "dies", "b", "refuses", "fails", "c")]
    ended: dict[str, str | None] = {}

    def on_finish(item: Item, problem: str | None) -> str:
        ended[item.name] = problem
        return ""

    problems = train_items(items, "test", workers=count, on_finish=on_finish)
    assert sorted(problems) == [
        "dies: its process was killed by SIGKILL, as it is where memory runs out; the same command trains it again",
        "fails: ValueError: a mistake",
        "refuses: bad value",
    ]
    assert sorted(f"{name}: {problem}" for name, problem in ended.items() if problem) == sorted(problems)
    assert sorted(ended) == sorted(item.name for item in items)
    assert multiprocessing.active_children() == []


def sleep(folder: str, tell: Callable[[Any], None]) -> None:
    """Say who works, and do nothing for a minute."""
    (Path(folder) / "child").write_text(str(os.getpid()))
    tell(None)
    time.sleep(60)


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    parent = os.fork()
    if not parent:
        worker = Worker(FORK, sleep)
        worker.give(str(tmp_path))
        worker.receive()
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(parent, 0)
    child, until = int((tmp_path / "child").read_text()), time.monotonic() + 5
    while (alive := child in [pid for pid, *_ in process_table()]) and time.monotonic() < until:
        time.sleep(0.01)
    assert not alive


def test_a_stack_tells_what_the_display_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["dataset=no2", "method=mixrl", "debug=tiny", "train.batch_size=100", f"out={tmp_path}"]
    heard: list[tuple[Any, ...]] = []
    train_item(Item("a", (plan_job(compose_train(given)),)), heard.append)
    row = heard[-1][-1]
    searched = [(0, 2, {"search_percent": percent}) for percent in (50, 100)]
    assert heard == [*searched, (1, 2, heard[2][2]), (2, 2, row)]
    assert row["epoch"] == 2
    with ProgressDisplay(2, "test") as display:
        for values in heard:
            display.show("job", *values)
        display.say("whole")
    assert capsys.readouterr().err == "whole\n"
