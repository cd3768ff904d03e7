"""A run that was interrupted and went on gives the numbers of one that was not, and draws nothing twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.methods.mixrl import PolicySearch
from cmixup.training.method import Method
from cmixup.training.trainer import Run, train
from scripts.driver.checkpoints import FORMAT, RESUME_FILE
from tests.helpers import METHODS, Stopped, assert_same, checkpoints, make_run, method_kind, settings, stop_after
from tests.methods import episodes

EPOCHS = 5


def test_dropout_and_buffers_go_on_and_each_seed_has_its_file(tmp_path: Path) -> None:
    """PyTorch's generator and buffers count, and such networks do not stack."""

    def make() -> list[Run]:
        layers = lambda d, d_y: nn.Sequential(nn.Linear(d, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, d_y))  # noqa: E731
        return [make_run(ERM(), seed, model=layers) for seed in (0, 1)]

    straight = train(make(), settings(epochs=EPOCHS))
    where = checkpoints(tmp_path)

    def stop(now: int, rows: object) -> None:
        if now == 2 and (tmp_path / "seed=1" / RESUME_FILE).exists():  # in the second seed
            raise Stopped

    with pytest.raises(Stopped):
        train(make(), settings(epochs=EPOCHS), on_epoch=stop, checkpoints=where)
    assert_same(train(make(), settings(epochs=EPOCHS), checkpoints=where), straight)


@pytest.mark.parametrize(("key", "seeds"), [("other", (0, 1)), ("", (0,)), ("", (0, 2))])
def test_the_state_of_another_run_is_left_alone(key: str, seeds: tuple[int, ...], tmp_path: Path) -> None:
    train([make_run(ERM(), s) for s in (0, 1)], settings(epochs=3), checkpoints=checkpoints(tmp_path))
    heard: list[int] = []
    runs = [make_run(ERM(), s) for s in seeds]
    train(
        runs, settings(epochs=3), on_epoch=lambda now, _: heard.append(now), checkpoints=checkpoints(tmp_path, 1, key)
    )
    assert heard == [1, 2, 3]


def test_the_state_of_another_version_is_refused_in_a_line_and_stays(tmp_path: Path) -> None:
    where = checkpoints(tmp_path)
    train([make_run(ERM(), 0)], settings(epochs=2), checkpoints=where)
    state = torch.load(where.path([0]), weights_only=True)
    for old in ({**state, "format": FORMAT - 1}, {key: value for key, value in state.items() if key != "format"}):
        torch.save(old, where.path([0]))
        before = where.path([0]).read_bytes()
        with pytest.raises(
            InputError, match=r"^[^\n]*resume\.pt was saved by another version of this code: rerun=true"
        ):
            train([make_run(ERM(), 0)], settings(epochs=2), checkpoints=where)
        assert where.path([0]).read_bytes() == before


class NumpyState(ERM):
    def get_extra_state(self) -> dict[str, Any]:
        return {"learned": [1.0, np.float64(2.0)]}


def test_a_state_that_could_not_be_read_again_is_refused_when_it_is_saved(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"state of the method\['_extra_state'\]\['learned'\]\[1\] must be tensors"):
        train([make_run(NumpyState())], settings(epochs=2), checkpoints=checkpoints(tmp_path))
    assert not list(tmp_path.glob("*/*"))


ALL, BEFORE = 3, 2
MakeRuns = Callable[[], list[Run]]


def counted(runs: list[Run]) -> dict[str, list[int]]:
    """How often each run's method is asked for the rows and the draws of an epoch."""
    calls = {"order": [0] * len(runs), "draw": [0] * len(runs)}

    def count(method: Method, place: int, name: str) -> None:
        inner = getattr(method, name)

        def counting(*given: Any, **options: Any) -> Any:
            calls[name][place] += 1
            return inner(*given, **options)

        setattr(method, name, counting)

    for place, run in enumerate(runs):
        for name in calls:
            count(run.method, place, name)
    return calls


def assert_goes_on(make: MakeRuns, folder: Path, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Train straight through; train, stop after `BEFORE` epochs and go on; both must be the same."""

    def no_search(*given: object) -> None:
        raise AssertionError("a run that goes on searched again")

    how, where = settings(epochs=ALL, **changes), checkpoints(folder)
    straight = train(make(), how)
    with pytest.raises(Stopped):
        train(make(), how, on_epoch=stop_after(BEFORE), checkpoints=where)
    runs = make()
    calls = counted(runs)
    with monkeypatch.context() as patch:
        patch.setattr(PolicySearch, "run", no_search)
        resumed = train(runs, how, checkpoints=where)
    assert all(result.stack == len(runs) for result in resumed)
    assert calls == {name: [ALL - BEFORE] * len(runs) for name in ("order", "draw")}
    assert_same(resumed, straight)


@pytest.mark.parametrize(
    "seeds", [pytest.param((0,), marks=pytest.mark.slow, id="one run"), pytest.param((0, 3), id="a stack")]
)
@pytest.mark.parametrize("name", [name for name in METHODS if method_kind(METHODS[name].args[0]).stackable])
def test_every_method_goes_on(
    name: str, seeds: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert_goes_on(lambda: [make_run(METHODS[name](), seed) for seed in seeds], tmp_path, monkeypatch)


@pytest.mark.parametrize("name", episodes.METHODS)
def test_every_method_on_tasks_goes_on(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not episodes.METHODS[name]().stackable
    assert_goes_on(lambda: [episodes.make_run(episodes.METHODS[name]())], tmp_path, monkeypatch, batch_size=3)
