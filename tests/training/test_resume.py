"""A method interrupted after two of three epochs ends where an uninterrupted run ends, and draws nothing twice."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cmixup.methods.base import Method
from cmixup.methods.mixrl_search import PolicySearch
from cmixup.training.checkpoint import Checkpoints
from cmixup.training.trainer import Run, train
from tests.helpers import METHODS, Stopped, assert_states_equal, make_run, method_kind, settings
from tests.methods import episodes

EPOCHS, BEFORE = 3, 2
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

    def stop(now: int, rows: object) -> None:
        if now == BEFORE:
            raise Stopped

    def no_search(*given: object) -> None:
        raise AssertionError("a run that goes on searched again")

    how = settings(epochs=EPOCHS, **changes)
    where = Checkpoints(lambda seed: folder / f"seed={seed}", 1, "key")
    straight = train(make(), how)
    with pytest.raises(Stopped):
        train(make(), how, on_epoch=stop, checkpoints=where)
    runs = make()
    calls = counted(runs)
    with monkeypatch.context() as patch:
        patch.setattr(PolicySearch, "run", no_search)
        resumed = train(runs, how, checkpoints=where)
    assert all(result.stack == len(runs) for result in resumed)
    assert calls == {name: [EPOCHS - BEFORE] * len(runs) for name in ("order", "draw")}
    for one, other in zip(resumed, straight, strict=True):
        assert_states_equal(one.state_dict, other.state_dict)
        assert (one.scores, one.history, one.best_epoch) == (other.scores, other.history, other.best_epoch)
        assert one.diagnostics == other.diagnostics


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
