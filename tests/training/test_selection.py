"""Which epoch's weights count, when a run ends, and batches with as many rows of each domain."""

import itertools

import numpy as np
import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.training.batch import EpochBatches
from cmixup.training.method import Method
from cmixup.training.trainer import RunResult, draw_epoch, train
from cmixup.training.training import Run, Training
from tests.helpers import (
    assert_diagnostics_close,
    assert_states_close,
    assert_states_equal,
    composed,
    fitted,
    make_data,
    make_run,
    settings,
    states_differ,
)


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_the_last_epoch_counts_where_it_is_selected(n_seeds: int) -> None:
    """A rate so high that the best epoch is an early one: "last" gives the weights of a run that ends nowhere else."""

    def runs() -> list:
        return [make_run(composed("mixup"), seed) for seed in range(n_seeds)]

    best, last = (train(runs(), settings(epochs=12, lr=0.9, select=rule)) for rule in ("best", "last"))
    assert any(one.best_epoch < 12 for one in best)
    for one, other in zip(best, last, strict=True):
        assert other.best_epoch == 12
        assert one.history == other.history  # selection changes no step
        assert other.history[-1]["val_rmse"] == pytest.approx(other.scores["val"]["rmse"], rel=1e-6)
        assert states_differ(one.state_dict, other.state_dict) == (one.best_epoch < 12)


@pytest.mark.parametrize("name", ["erm", "cmixup", "cmixup_batch"])
def test_batches_have_as_many_rows_of_each_domain(name: str) -> None:
    data = make_data(0, (60, 20, 20))
    rare = (torch.arange(60) % 5 == 0).long()  # 12 rows of domain 1
    data.train.domain[:] = rare
    run = fitted(make_run(composed(name), 0, data))
    order, _ = draw_epoch(run, settings(batch_size=16, domains_per_batch=2))
    assert order.sizes.tolist() == [16, 16, 16]
    for rows in order.batches():
        assert rare[rows].sum() == 8
    plain, _ = draw_epoch(fitted(make_run(composed(name), 0, data)), settings(batch_size=16))
    assert sorted(plain.index.tolist()) == list(range(60))


def test_a_method_for_several_domains_keeps_its_own_batches() -> None:
    data = make_data(0, (60, 20, 20))
    data.train.domain[:] = torch.arange(60) % 3
    same = [
        train([make_run(composed("coral", groups=2), 0, data)], settings(batch_size=12, label_scaling="loss", **more))
        for more in ({}, {"domains_per_batch": 3})
    ]
    assert_states_equal(same[0][0].state_dict, same[1][0].state_dict)


class OwnBatches(ERM):
    def order(self, *args: object, **options: object) -> EpochBatches:
        return EpochBatches(np.arange(16), np.array([16]))


def test_what_cannot_have_such_batches_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size must be a multiple of domains_per_batch = 3, got 16"):
        settings(batch_size=16, domains_per_batch=3)
    with pytest.raises(InputError, match="domains_per_batch must be 0 for OwnBatches"):
        draw_epoch(fitted(make_run(OwnBatches(), 0)), settings(batch_size=16, domains_per_batch=2))
    with pytest.raises(InputError, match="groups must be at most the number of training domains, got 8 for 2"):
        draw_epoch(fitted(make_run(ERM(), 0)), settings(batch_size=16, domains_per_batch=8))


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


@pytest.mark.parametrize("name", ["erm", "cmixup"])
def test_every_run_is_the_beginning_of_the_run_with_all_epochs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, part = list[int](), Training.part

    def counted(self: Training, places: list[int]) -> Training:
        sizes.append(len(places))
        return part(self, places)

    monkeypatch.setattr(Training, "part", counted)
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


def test_the_weights_of_a_finished_run_are_those_of_its_best_epoch() -> None:
    for place, ours in enumerate(stack("erm", patience=PATIENCE)):
        run = make_run(composed("erm"), place)
        run.lr = RATES[place]
        (alone,) = train([run], settings(epochs=len(ours.history)))
        assert ours.best_epoch == alone.best_epoch
        assert_states_close(ours.state_dict, alone.state_dict, 1e-3)
        assert ours.scores["test"] == pytest.approx(alone.scores["test"], rel=1e-3)


def test_what_a_method_says_of_a_finished_run_is_of_its_end() -> None:
    results = stack("k_mixup", patience=PATIENCE)
    place = min(range(len(RATES)), key=lambda place: len(results[place].history))
    alone = train([rated([composed("k_mixup") for _ in RATES])[place]], settings(epochs=len(results[place].history)))
    assert_diagnostics_close(results[place].diagnostics, alone[0].diagnostics, 1e-9)


class Begins(ERM):
    """Holds what it made for the whole stack."""

    def begin(self, training: Training) -> None:
        self.made = [nn.Parameter(torch.zeros(1)) for _ in range(training.stack.size)]


def test_a_method_that_holds_something_for_the_whole_stack_keeps_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Training, "part", lambda *_: pytest.fail("a part was taken"))
    results = train(rated([Begins() for _ in RATES]), settings(epochs=EPOCHS, patience=PATIENCE))
    assert len({len(result.history) for result in results}) > 1
