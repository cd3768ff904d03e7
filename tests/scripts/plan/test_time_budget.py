"""A queue of runs under another clock: its order, its end, its restart, and two of them at once."""

import errno
import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cmixup.done import FORMAT
from cmixup.errors import InputError
from datasets.common.fetch import FetchError
from scripts.driver.locks import LOCKS, holding_locks
from scripts.driver.runs import is_done, mark_done, write_report
from scripts.plan import schedule, time_budget
from scripts.plan.schedule import RESERVE, OutOfTime, first_fitting
from scripts.plan.time_budget import QUEUE, Missing, failure_file, forecast_items, items_left, speed_of, work_through


class Clock:
    """Time that passes when it is told to; its process is killed when the clock is looked at for the `last` time."""

    def __init__(self, last: int = 0) -> None:
        self.now, self.looks, self.last = 1000.0, 0, last

    def __call__(self) -> float:
        self.looks += 1
        if self.looks == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.now


def item(cell: str, minutes: float, seeds: tuple[int, ...] = (0,), published: int = 0, shown: int = 1) -> Missing:
    words = (f"dataset={cell.split('/')[1] if '/' in cell else cell}", cell)
    return Missing(f"{cell}-{seeds[0]}", words, cell, seeds, published, ("table",) * shown, minutes, 10)


class Trainer:
    """Trains as long as an item's estimate says, epoch by epoch, and keeps checkpoints in its folder."""

    def __init__(self, out: Path, clock: Clock, slow: float = 1.0, epochs: int = 10):
        self.out, self.clock, self.slow, self.all = out, clock, slow, epochs
        self.minutes: dict[str, float] = {}
        self.began: list[str] = []
        self.every: list[int] = []
        self.epochs: list[tuple[str, int]] = []

    def plan(self, words: Sequence[str]) -> Any:
        """A job that knows its cell, seeds and checkpoints."""
        given = dict(word.split("=", 1) for word in words if "=" in word)
        cell, seeds = words[1], json.loads(given["seeds"])
        pending = [seed for seed in seeds if not is_done(self.out / "runs" / cell / f"seed={seed}")]
        return SimpleNamespace(
            cell=cell, seeds=seeds, pending=pending, settings=SimpleNamespace(epochs=self.all),
            config={"checkpoint_every": int(given["checkpoint_every"])},
        )  # fmt: skip

    def __call__(self, jobs: Sequence[Any], on_epoch: Callable[..., None], _: Any) -> None:
        (job,) = jobs
        every = job.config["checkpoint_every"]
        self.began.append(f"{job.cell}-{job.seeds[0]}")
        self.every.append(every)
        self.train(job, every, on_epoch)

    def train(self, job: Any, every: int, on_epoch: Callable[..., None]) -> None:
        folder = self.out / "runs" / job.cell
        folder.mkdir(parents=True, exist_ok=True)
        saved = folder / "saved"
        start = json.loads(saved.read_text()) if saved.is_file() else 0
        for epoch in range(start + 1, self.all + 1):
            self.clock.now += 60 * self.minutes[job.cell] * len(job.seeds) / self.all * self.slow
            self.epochs.append((self.began[-1], epoch))
            if epoch % every == 0:
                saved.write_text(json.dumps(epoch))
            on_epoch(epoch, [{}])
        for seed in job.seeds:
            run = folder / f"seed={seed}"
            run.mkdir(exist_ok=True)
            write_report(run, {"seed": seed, "scores": {}, "facts": {}, "format": FORMAT}, [{"epoch": self.all}])
            self.clock()
            mark_done(run)
            self.clock()


def one_after_another(tasks: Any, do: Any, count: int, tell: Any, choose: Any) -> None:
    """Work off tasks in this process."""
    while (name := choose()) is not None:
        tell(name, True, do(tasks[name], lambda told, name=name: tell(name, False, told)))


def run(
    items: list[Missing], out: Path, minutes: float, train: Trainer, clock: Any = None, **more: Any
) -> dict[str, int]:
    """Work through items with a trainer in the place of training, and its clock in the place of time."""
    train.minutes |= {one.cell: one.each for one in items}
    with pytest.MonkeyPatch.context() as patch:
        changed = {
            "time": SimpleNamespace(time=clock or train.clock), "compose_train": list, "plan_job": train.plan,
            "execute_together": train, "work_off": one_after_another,
        }  # fmt: skip
        for name, value in changed.items():
            patch.setattr(schedule, name, value)
        return dict(work_through(items, out, minutes, "cpu", **{"say": lambda _: None, **more}))


def test_the_most_valuable_minute_comes_first(tmp_path: Path) -> None:
    items = [
        item("first seed, long", 4.0),  # 1 / 4
        item("fifth seed, short", 0.5, published=4),  # 1/5 / 0.5
        item("two seeds, in two tables", 2.0, (0, 1), shown=2),  # 2 (1 + 1/2) / 4
        replace(item("no files", 0.1), wanting="no files"),
    ]
    values = [one.value / one.minutes for one in items[:3]]
    assert values == pytest.approx([0.25, 0.4, 0.75])
    order = items_left(items, tmp_path)
    assert [one.cell for one in order] == ["two seeds, in two tables", "fifth seed, short", "first seed, long"]
    # What fits goes before what does not.
    assert [first_fitting([one.minutes for one in order], minutes) for minutes in (3.0, 6.0, 0.1)] == [1, 0, 0]
    assert forecast_items(order, 4.6) == order
    assert forecast_items(order, 4.4) == order[:2]


def test_it_stops_in_time_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    train = Trainer(tmp_path, clock := Clock())
    items = [item("short", 1.0), item("long", 20.0)]
    assert run(items, tmp_path, 9.0, train) == {"done": 1, "failed": 0, "put off": 0, "stopped": 1}
    # The long one takes 2 minutes an epoch: another would end after 9 minutes, with the half that is kept in hand.
    assert clock.now == 1000 + 60 * 7
    assert train.epochs[-1] == ("long-0", 3)
    starts = []
    while not (tmp_path / "runs/long/seed=0/DONE").exists():
        starts.append(len(train.epochs))
        begin = clock.now
        run(items, tmp_path, 9.0, train)
        assert clock.now <= begin + 60 * 9 - RESERVE
    # No epoch is trained twice, and what is done is not begun again.
    assert train.epochs == [("short-0", k) for k in range(1, 11)] + [("long-0", k) for k in range(1, 11)]
    assert len(starts) == 3  # of three epochs, three and one
    assert run(items, tmp_path, 9.0, train) == {"done": 0, "failed": 0, "put off": 0, "stopped": 0}


def test_epochs_that_take_longer_than_estimated_end_in_time(tmp_path: Path) -> None:
    train = Trainer(tmp_path, clock := Clock(), slow=3.0)
    assert run([item("slow", 5.0)], tmp_path, 9.0, train)["stopped"] == 1
    assert clock.now == 1000 + 60 * 7.5  # five epochs of 1.5 minutes; a sixth would leave no reserve


@pytest.mark.parametrize("at", [*range(1, 20, 4), *range(30, 47, 2)])
def test_a_queue_killed_anywhere_loses_no_finished_run(at: int, tmp_path: Path) -> None:
    items = [item("a", 1.0), item("b", 1.5), item("c", 2.0, (0, 1))]
    if not (child := os.fork()):
        try:
            run(items, tmp_path, 20.0, Trainer(tmp_path, Clock(last=at)))
        finally:
            os._exit(0)  # whatever happens: a child that went on would run the tests after this one, too
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("DONE")}
    train = Trainer(tmp_path, Clock())
    left_over = items_left(items, tmp_path)
    assert run(items, tmp_path, 20.0, train)["done"] == sum(len(one.seeds) for one in left_over) == 4 - len(done)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert all(is_done(tmp_path / f"runs/{one.cell}/seed={seed}") for one in items for seed in one.seeds)
    assert train.began == [f"{one.cell}-{one.seeds[0]}" for one in left_over]


def test_two_queues_in_one_folder_train_nothing_twice(tmp_path: Path) -> None:
    clock = Clock()
    items = [item(name, 1.0) for name in "abcd"]
    second = Trainer(tmp_path, clock)

    class First(Trainer):
        """While it trains, another queue runs in the same folder."""

        def train(self, *given: Any) -> None:
            if len(self.began) == 2:
                run(items, tmp_path, 2.5, second)
            super().train(*given)

    first = First(tmp_path, clock)
    run(items, tmp_path, 20.0, first)
    assert sorted([*first.began, *second.began]) == ["a-0", "b-0", "c-0", "d-0"]
    assert len(second.began) == 2


def test_what_another_process_trains_is_left_to_it(tmp_path: Path) -> None:
    train, items = Trainer(tmp_path, Clock()), [item("a", 1.0), item("b", 1.5), item("c", 2.0)]
    with holding_locks(tmp_path / LOCKS, ["queue/a-0", "queue/c-0"]):
        assert run(items, tmp_path, 20.0, train) == {"done": 1, "failed": 0, "put off": 0, "stopped": 0}
    assert train.began == ["b-0"]


def test_what_another_queue_finished_while_this_one_chose_is_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [item("a", 1.0), item("b", 1.5)]
    first, second = (Trainer(tmp_path, Clock()) for _ in range(2))

    def fitting_late(*given: Any) -> int:
        if not first.began:
            monkeypatch.undo()
            run(items[:1], tmp_path, 20.0, first)
        return first_fitting(*given)

    monkeypatch.setattr(schedule, "first_fitting", fitting_late)
    assert run(items, tmp_path, 20.0, second)["done"] == 1
    assert second.began == ["b-0"]


ROUNDS = 4


def queue_process(folder: Path, start: Any) -> None:
    """Work through short items of two seeds by the real clock, in a folder a round; write down which were begun."""

    class Short(Trainer):
        def train(self, *given: Any) -> None:
            (self.out / f"{self.began[-1]}.{os.getpid()}").touch(exist_ok=False)
            time.sleep(0.02)
            super().train(*given)

    items = [item(f"cell{k}", 0.1, (0, 1)) for k in range(12)]
    for number in range(ROUNDS):
        start.wait()
        out = folder / str(number)
        run(items, out, 5.0, Short(out, Clock()), time.time)


@pytest.mark.slow
def test_two_processes_train_nothing_twice(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    start = context.Barrier(2)
    both = [context.Process(target=queue_process, args=(tmp_path, start)) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join(120)
    assert [one.exitcode for one in both] == [0, 0]
    for number in range(ROUNDS):
        begun = [path.name.rpartition(".") for path in (tmp_path / str(number)).glob("cell*")]
        assert sorted(name for name, *_ in begun) == sorted(f"cell{k}-0" for k in range(12))
        assert {pid for *_, pid in begun} == {str(one.pid) for one in both}
        assert len(list((tmp_path / str(number) / "runs").rglob("DONE"))) == 24


class Meeting(Trainer):
    """Trains nothing; some cells meet an error."""

    def __init__(self, out: Path, errors: dict[str, Exception], epochs: int = 10):
        super().__init__(out, Clock(), epochs=epochs)
        self.errors = errors

    def train(self, job: Any, every: int, on_epoch: Callable[..., None]) -> None:
        if job.cell in self.errors:
            raise self.errors[job.cell]


def test_what_failed_is_not_tried_again_until_its_file_is_removed(tmp_path: Path) -> None:
    items = [item("a", 1.0), item("b", 2.0)]
    train = Meeting(tmp_path, {"a": InputError("no such device"), "b": OutOfTime()})
    for _ in range(2):
        run(items, tmp_path, 9.0, train)
    assert train.began == ["a-0", "b-0", "b-0"]
    assert failure_file(items[0], tmp_path).read_text() == "no such device\n"
    failure_file(items[0], tmp_path).unlink()
    run(items, tmp_path, 9.0, train)
    assert train.began[3:] == ["a-0", "b-0"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_a_full_disk_ends_the_slice_and_is_no_fault_of_a_run(number: int, tmp_path: Path) -> None:
    items, said = [item("a", 1.0, (0, 1)), item("b", 2.0), item("c", 3.0)], list[str]()
    full = Meeting(tmp_path, {"b": OSError(number, "no room")})
    counts = run(items, tmp_path, 9.0, full, say=said.append)
    assert counts == {"done": 2, "failed": 0, "put off": 1, "stopped": 0}
    assert said[-1] == f"put off: [Errno {number}] no room"
    assert full.began == ["a-0", "b-0"]
    assert not (tmp_path / QUEUE).exists()
    assert run(items, tmp_path, 9.0, again := Meeting(tmp_path, {}))["put off"] == 0
    assert again.began == ["a-0", "b-0", "c-0"]


def test_data_that_cannot_be_fetched_now_are_asked_for_once_a_slice(tmp_path: Path) -> None:
    cells = {"t/no2/erm": 1.0, "t/airfoil/erm": 1.5, "t/no2/mixup": 2.0, "t/crime/erm": 2.5}
    items = [replace(item(cell, minutes), name=str(k)) for k, (cell, minutes) in enumerate(cells.items())]
    errors = {"t/no2/erm": FetchError("out of reach"), "t/airfoil/erm": PermissionError(errno.EACCES, "not yours")}
    train = Meeting(tmp_path, errors)
    for _ in range(2):
        counts = run(items, tmp_path, 9.0, train)
        assert counts == {"done": 1, "failed": 0, "put off": 2, "stopped": 0}
    assert train.began == ["t/no2/erm-0", "t/airfoil/erm-0", "t/crime/erm-0"] * 2
    assert not (tmp_path / QUEUE).exists()


def test_checkpoints_come_every_quarter_of_a_minute(tmp_path: Path) -> None:
    train = Meeting(tmp_path, {"a": OutOfTime()}, epochs=200)
    for minutes, speed in ((100.0, 1.0), (10.0, 1.0), (10.0, 1.6), (1.0, 1.0)):
        run([replace(item("a", minutes), epochs=200)], tmp_path, 9.0, train, speed=speed)
    assert train.every == [1, 5, 8, 10]


def test_a_device_s_speed_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [
        {"run": "a/seed=0", "seconds": 6.0, "device": "cuda: H100"},
        {"run": "a/seed=1", "seconds": 600.0, "device": "cpu: Xeon"},
        {"run": "b/seed=0", "seconds": 1.0, "device": "cuda: H100"},
    ]
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(time_budget, "load_reports", lambda _: reports)
    assert speed_of("cuda", tmp_path, [item("a", 2.0)]) == 20.0
    assert speed_of("cpu", tmp_path, [item("a", 2.0)]) == 1.0
    assert speed_of("cuda", tmp_path, []) == time_budget.ASSUMED
    assert QUEUE == "queue"
