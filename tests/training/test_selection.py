"""Which epoch's weights count, and batches with as many rows of each domain for any method."""

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.order import EpochBatches
from cmixup.training.share import draw_epoch
from cmixup.training.trainer import train
from tests.helpers import assert_states_equal, composed, fitted, make_data, make_run, settings, states_differ


@pytest.mark.parametrize("n_seeds", [1, 3])
def test_the_last_epoch_counts_where_it_is_asked_for(n_seeds: int) -> None:
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


def test_a_last_epoch_knows_no_patience() -> None:
    with pytest.raises(InputError, match="patience must be null where select is 'last', got 3"):
        settings(select="last", patience=3)
    with pytest.raises(InputError, match="select must be one of best, last, got 'first'"):
        settings(select="first")


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
