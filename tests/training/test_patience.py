"""A run that has run out of patience ends where it would alone, whatever the others of its stack do."""

import itertools

import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.handle import Training
from cmixup.methods.base import Method
from cmixup.methods.erm import ERM
from cmixup.training.stack_training import Run, StackTraining
from cmixup.training.trainer import RunResult, train
from tests.helpers import assert_states_close, composed, make_run, settings

EPOCHS, PATIENCE = 40, 3
RATES = (0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003, 0.001)


def stack(name: str, **changes: object) -> list[RunResult]:
    """Runs of several rates, of which the fast ones end first."""
    return train(rated([composed(name) for _ in RATES]), settings(epochs=EPOCHS, **changes))


def rated(methods: list[Method]) -> list[Run]:
    runs = [make_run(method, seed) for seed, method in enumerate(methods)]
    for run, rate in zip(runs, RATES, strict=True):
        run.lr = rate
    return runs


def ends(values: list[float], patience: int) -> int:
    """The epoch after which a run whose scores are these ends, counted from 1."""
    best = 0
    for epoch, value in enumerate(values, start=1):
        if best == 0 or value < values[best - 1]:
            best = epoch
        if epoch - best >= patience:
            return epoch
    return len(values)


@pytest.mark.parametrize("name", ["erm", "cmixup", "regmixup"])
def test_every_run_is_the_beginning_of_the_run_with_all_epochs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, part = list[int](), StackTraining.part

    def counted(self: StackTraining, places: list[int]) -> StackTraining:
        sizes.append(len(places))
        return part(self, places)

    monkeypatch.setattr(StackTraining, "part", counted)
    short, whole = stack(name, patience=PATIENCE), stack(name)
    for ours, full in zip(short, whole, strict=True):
        values = [row["val_rmse"] for row in full.history]
        last = ends(values, PATIENCE)
        assert len(ours.history) == last
        assert [row["val_rmse"] for row in ours.history] == pytest.approx(values[:last], rel=1e-3)
        assert ours.best_epoch == 1 + min(range(last), key=values.__getitem__)
        assert ours.scores["val"]["rmse"] == pytest.approx(values[ours.best_epoch - 1], rel=1e-3)
    assert len({len(ours.history) for ours in short}) > 2  # they end one after another
    assert len(sizes) > 1  # and those that are left train as a smaller stack, and again
    assert all(later <= earlier // 2 for earlier, later in itertools.pairwise([len(RATES), *sizes]))


def test_the_weights_of_a_run_that_has_ended_are_those_of_its_best_epoch() -> None:
    for place, ours in enumerate(stack("erm", patience=PATIENCE)):
        run = make_run(composed("erm"), place)
        run.lr = RATES[place]
        (alone,) = train([run], settings(epochs=len(ours.history)))
        assert ours.best_epoch == alone.best_epoch
        assert_states_close(ours.state_dict, alone.state_dict, 1e-3)
        assert ours.scores["test"] == pytest.approx(alone.scores["test"], rel=1e-3)


class Begins(ERM):
    """Holds what it made for the whole stack."""

    def begin(self, training: Training) -> None:
        self.made = [nn.Parameter(torch.zeros(1)) for _ in range(training.stack.size)]


def test_a_method_that_holds_something_for_the_whole_stack_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StackTraining, "part", lambda *_: pytest.fail("a part was taken"))
    ended = train(rated([Begins() for _ in RATES]), settings(epochs=EPOCHS, patience=PATIENCE))
    assert len({len(result.history) for result in ended}) > 1


@pytest.mark.parametrize("patience", [0, -1, 1.5])
def test_patience_counts_epochs(patience: float) -> None:
    with pytest.raises(InputError, match="patience"):
        settings(patience=patience)
