"""A queue of runs under a clock that is passed in: its order, its end, its restart, and two of them at once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cmixup.errors import InputError
from scripts.driver import slices, taken
from scripts.driver.slices import QUEUE, RESERVE, Item, OnEpoch, OutOfTime, choose, forecast, left, speed_of, work


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def item(cell: str, minutes: float, seeds: tuple[int, ...] = (0,), published: int = 0, shown: int = 1) -> Item:
    return Item(f"{cell}-{seeds[0]}", (), cell, seeds, published, ("table",) * shown, minutes, 10)


class Trainer:
    """Trains as long as an item's estimate says, epoch by epoch, and keeps checkpoints in its folder."""

    def __init__(self, out: Path, clock: Clock, slow: float = 1.0):
        self.out, self.clock, self.slow = out, clock, slow
        self.began: list[str] = []
        self.epochs: list[tuple[str, int]] = []

    def __call__(self, item: Item, every: int, on_epoch: OnEpoch) -> None:
        self.began.append(item.name)
        folder = self.out / "runs" / item.cell
        folder.mkdir(parents=True, exist_ok=True)
        saved = folder / "saved"
        start = json.loads(saved.read_text()) if saved.is_file() else 0
        for epoch in range(start + 1, item.epochs + 1):
            self.clock.now += 60 * item.cost / item.epochs * self.slow
            self.epochs.append((item.name, epoch))
            if epoch % every == 0:
                saved.write_text(json.dumps(epoch))
            on_epoch(epoch, [])
        for seed in item.seeds:
            (folder / f"seed={seed}").mkdir()
            (folder / f"seed={seed}" / "DONE").touch()


def run(items: list[Item], out: Path, minutes: float, train: Trainer) -> dict[str, int]:
    return dict(work(items, out, minutes, train.clock, train, say=lambda _: None))


def test_the_most_valuable_minute_comes_first(tmp_path: Path) -> None:
    items = [
        item("first seed, long", 4.0),  # 1 / 4
        item("fifth seed, short", 0.5, published=4),  # 1/5 / 0.5
        item("two seeds, in two tables", 2.0, (0, 1), shown=2),  # 2 (1 + 1/2) / 4
        replace(item("no files", 0.1), wanting="no files"),
    ]
    values = [one.value / one.cost for one in items[:3]]
    assert values == pytest.approx([0.25, 0.4, 0.75])
    order = left(items, tmp_path)
    assert [one.cell for one in order] == ["two seeds, in two tables", "fifth seed, short", "first seed, long"]
    # What fits goes before what does not; a GPU that is twice as fast fits more.
    assert choose(order, 3.0, 1.0) == order[1]
    assert choose(order, 3.0, 2.0) == order[0]
    assert choose(order, 0.1, 1.0) == order[0]
    assert choose([], 1.0, 1.0) is None
    assert forecast(order, 4.6, 1.0) == [(order[0], 4.0), (order[1], 0.5), (order[2], 4.0)]


def test_it_stops_in_time_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    train = Trainer(tmp_path, clock := Clock())
    items = [item("short", 1.0), item("long", 20.0)]
    assert run(items, tmp_path, 9.0, train) == {"done": 1, "failed": 0, "stopped": 1}
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
    assert run(items, tmp_path, 9.0, train) == {"done": 0, "failed": 0, "stopped": 0}


def test_epochs_that_take_longer_than_estimated_end_in_time(tmp_path: Path) -> None:
    train = Trainer(tmp_path, clock := Clock(), slow=3.0)
    assert run([item("slow", 5.0)], tmp_path, 9.0, train)["stopped"] == 1
    assert clock.now == 1000 + 60 * 7.5  # five epochs of 1.5 minutes; a sixth would leave no reserve


@pytest.mark.parametrize("at", range(1, 25, 3))
def test_a_queue_killed_anywhere_loses_no_finished_run(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    clock = Clock()
    train = Trainer(tmp_path, clock)
    items = [item("a", 1.0), item("b", 1.5), item("c", 2.0, (0, 1))]
    steps = itertools.count(1)

    def killed_clock() -> float:
        if next(steps) == at:
            raise Killed
        return clock()

    monkeypatch.setattr(taken.Taken, "give_back", lambda _: None)  # a killed process gives nothing back
    with pytest.raises(Killed):
        work(items, tmp_path, 20.0, killed_clock, train, say=lambda _: None)
    monkeypatch.undo()
    done = {path: path.stat().st_mtime_ns for path in (tmp_path / "runs").rglob("DONE")}
    monkeypatch.setattr(taken, "_is_alive", lambda _: False)
    before = len(train.began)
    run(items, tmp_path, 20.0, train)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert len(list((tmp_path / "runs").rglob("DONE"))) == 4
    finished = {f"{path.parent.parent.name}-0" for path in done}
    assert not finished & set(train.began[before:])


def test_two_queues_in_one_folder_train_nothing_twice(tmp_path: Path) -> None:
    clock = Clock()
    items = [item(name, 1.0) for name in "abcd"]
    second = Trainer(tmp_path, clock)

    class First(Trainer):
        """While it trains, another queue runs in the same folder."""

        def __call__(self, item: Item, every: int, on_epoch: OnEpoch) -> None:
            if len(self.began) == 1:
                work(items, tmp_path, 2.5, clock, second, say=lambda _: None)
            super().__call__(item, every, on_epoch)

    first = First(tmp_path, clock)
    run(items, tmp_path, 20.0, first)
    assert sorted([*first.began, *second.began]) == ["a-0", "b-0", "c-0", "d-0"]
    assert len(second.began) == 2


def test_what_failed_is_not_tried_again(tmp_path: Path) -> None:
    clock, tried = Clock(), []

    def train(item: Item, every: int, on_epoch: OnEpoch) -> None:
        tried.append(item.name)
        raise InputError("no such device")

    for _ in range(2):
        work([item("a", 1.0)], tmp_path, 9.0, clock, train, say=lambda _: None)
    assert tried == ["a-0"]


def test_checkpoints_come_every_quarter_of_a_minute(tmp_path: Path) -> None:
    asked: list[int] = []

    def train(item: Item, every: int, on_epoch: OnEpoch) -> None:
        asked.append(every)
        raise OutOfTime

    for minutes, speed in ((100.0, 1.0), (10.0, 1.0), (10.0, 1.6), (1.0, 1.0)):
        work([replace(item("a", minutes), epochs=200)], tmp_path, 9.0, Clock(), train, speed=speed, say=lambda _: None)
    assert asked == [1, 5, 8, 10]


def claims() -> list[tuple[str, Callable[[Path], None], bool]]:
    def edit(**changes: object) -> Callable[[Path], None]:
        return lambda path: path.write_text(json.dumps(json.loads(path.read_text()) | changes)) and None

    return [
        ("taken by a process that lives", edit(), False),
        ("by one of this machine that is no more", edit(process=2**22 + 1), True),
        ("by one of another machine", edit(host="another", process=2**22 + 1), False),
        ("whose time is over", edit(host="another", until=999.0), True),
        ("that failed", edit(failed="diverged", until=999.0), False),
        ("half written", lambda path: path.write_text("{") and None, False),
    ]


@pytest.mark.parametrize(("name", "change", "free"), claims(), ids=[name for name, *_ in claims()])
def test_work_is_taken_by_one(name: str, change: Callable[[Path], None], free: bool, tmp_path: Path) -> None:
    clock = Clock()
    assert taken.is_free(tmp_path, "a", clock)
    mine = taken.take(tmp_path, "a", clock() + 60, clock)
    assert mine is not None
    change(mine.path)
    assert taken.is_free(tmp_path, "a", clock) is free
    assert (taken.take(tmp_path, "a", clock() + 60, clock) is not None) is free
    mine.give_back()
    assert taken.take(tmp_path, "a", clock() + 60, clock) is not None
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json"]


def test_who_is_late_leaves_the_new_owner_s_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two see work that is free again; the one that comes second must not take what the first has just taken."""
    clock = Clock()
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"host": "gone", "process": 1, "until": 0.0}))
    right, looks = taken._read, itertools.count()

    def read(where: Path) -> dict | None:
        found = right(where)
        if where == path and next(looks) == 0:
            path.write_text(json.dumps({"host": "first", "process": 1, "until": 2000.0}))
        return found

    monkeypatch.setattr(taken, "_read", read)
    assert taken.take(tmp_path, "a", 2000.0, clock) is None
    assert json.loads(path.read_text())["host"] == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_a_device_s_speed_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = [
        {"run": "a/seed=0", "seconds": 6.0, "device": "cuda: H100"},
        {"run": "a/seed=1", "seconds": 600.0, "device": "cpu: Xeon"},
        {"run": "b/seed=0", "seconds": 1.0, "device": "cuda: H100"},
    ]
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(slices, "load_reports", lambda _: reports)
    assert speed_of("cuda", tmp_path, [item("a", 2.0)]) == 20.0
    assert speed_of("cpu", tmp_path, [item("a", 2.0)]) == 1.0
    assert speed_of("cuda", tmp_path, []) == slices.ASSUMED
    assert QUEUE == "queue"
