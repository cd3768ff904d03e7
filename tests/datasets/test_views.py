"""Inputs with several views: a random one in training, all of them in evaluation."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from cmixup.methods.erm import ERM
from cmixup.networks.fcn3 import FCN3
from cmixup.training.batch import Batch
from cmixup.training.loader import BatchLoader, predict
from cmixup.training.method import Method
from cmixup.training.trainer import draws_of
from tests.helpers import CPU, Lazy, SelfPairs, composed, fitted, make_data, make_run, make_split


class Random(Lazy):
    """Row i as view v is row i with a number made of v in its first column."""

    def sample(self, index: Tensor, draw: Tensor) -> Tensor:
        x = self[index].clone()
        x[:, 0] = draw.double() / 2**63
        return x


class Ragged(Lazy):
    """Row i has i + 1 views: itself times 1, 2, ..., i + 1."""

    def all_views(self, row: int, size: int) -> Iterator[Tensor]:
        yield from (self._x[row] * torch.arange(1, row + 2)[:, None]).split(size)


def first_epoch(method: Method, seed: int = 3) -> list[Batch]:
    data = make_data(seed)
    run = fitted(make_run(method, seed, replace(data, train=replace(data.train, x=Random(data.train.x)))))
    order = method.order(run.data.train, 16, run.streams, drop_last=False)
    return list(BatchLoader([run.data.train], CPU).batches([order], [draws_of(run, order)]))


def test_every_method_sees_the_same_views_of_the_same_seed() -> None:
    plain, mixed, near = (first_epoch(method) for method in (ERM(), composed("mixup"), composed("cmixup")))
    for batches in zip(plain, mixed, near, strict=True):
        assert torch.equal(batches[0].x, batches[1].x)
        assert torch.equal(batches[0].x, batches[2].x)
        assert torch.equal(batches[1].partner.x[:, 0], batches[2].partner.x[:, 0])
        assert set(batches[1].draws) == {"lam"}
    assert not torch.equal(plain[0].x, first_epoch(ERM(), 4)[0].x)


def test_views_are_spread_and_a_row_mixed_with_itself_shows_two() -> None:
    method = composed("mixup")
    method.pairing = SelfPairs()
    batches = first_epoch(method)
    rows = torch.cat([batch.x[:, 0] for batch in batches])
    others = torch.cat([batch.partner.x[:, 0] for batch in batches])
    assert torch.equal(torch.cat([b.x[:, 1:] for b in batches]), torch.cat([b.partner.x[:, 1:] for b in batches]))
    seen = torch.cat([rows, others])
    assert len(seen.unique()) == 2 * 48
    assert 0 <= seen.min() < 0.1
    assert 0.9 < seen.max() <= 1


@pytest.mark.parametrize("size", [1, 4, 100])
def test_the_mean_over_all_views_equals_a_naive_loop(size: int) -> None:
    torch.manual_seed(0)
    model, split = FCN3((3,), 2), make_split(9, d_y=2)
    lazy = replace(split, x=Ragged(split.x))
    predicted = predict(ERM().predictors()[""], model, BatchLoader([lazy], CPU), size)
    with torch.no_grad():
        expected = [sum(model(x[None] * k) for k in range(1, i + 2)) / (i + 1) for i, x in enumerate(split.x)]
    torch.testing.assert_close(predicted, torch.cat(expected))
