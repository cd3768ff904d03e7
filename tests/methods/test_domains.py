"""What the domain methods share: means over domains, limits, annealing, what they refuse."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.groups import Means
from cmixup.methods.base import Method, squared_error
from cmixup.methods.coral import coral
from cmixup.methods.domains import DomainBatchMethod
from cmixup.methods.drnn import DRNN
from cmixup.methods.fish import Fish
from cmixup.methods.group_dro import GroupDRO
from cmixup.methods.ib_irm import ib_irm
from cmixup.methods.irm import irm
from cmixup.methods.penalised import Penalised
from cmixup.methods.vrex import vrex
from cmixup.training.trainer import train
from models.lstnet import LSTNet
from tests.helpers import (
    DOMAIN_METHODS,
    METHODS,
    assert_states_close,
    epoch_batches,
    fitted,
    make_data,
    make_run,
    make_stack,
    refuses,
    settings,
    states_differ,
    train_one,
)

DOMAIN = torch.tensor([7, 3, 7, 7, -1, 3, 7, 3, 9])


def of_domains(values: Tensor, domain: Tensor) -> list[Tensor]:
    return [values[domain == d] for d in domain.unique()]


# ---- means


def test_means_are_those_of_a_loop_over_domains() -> None:
    values, weight = torch.randn(9), torch.tensor([1.0, 0, 2, 0, 0, 1, 1, 3, 0])
    means = Means(DOMAIN)
    within, weighted = means.within(values), means.within(values, weight)
    for row in range(9):
        mine = DOMAIN[row] == DOMAIN
        torch.testing.assert_close(within[row], values[mine].mean())
        total = weight[mine].sum()
        expected = (weight * values)[mine].sum() / total if total > 0 else torch.zeros(())
        torch.testing.assert_close(weighted[row], expected)
    each = torch.stack([part.mean() for part in of_domains(values, DOMAIN)])
    torch.testing.assert_close(means.across(values), each.mean())
    assert means.domain_size.tolist() == [4, 3, 4, 4, 1, 3, 4, 3, 1]
    assert means.n_domains.item() == 4
    assert means.weight.sum().item() == pytest.approx(1)


# ---- domain-balanced ERM is the limit


class Balanced(DomainBatchMethod):
    """ERM on the batches of the domain methods."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return squared_error(model(batch.x), batch.y)


LIMITS: dict[str, Callable[[], Method]] = {
    "irm": lambda: irm(2, 0.0, 0),
    "ib_irm": lambda: ib_irm(2, 0.0, 0, ib_weight=0.0),
    "vrex": lambda: vrex(2, 0.0, 0),
    "coral": lambda: coral(2, 0.0),
    "drnn": lambda: DRNN(2, 0.0),
    "no terms": lambda: Penalised(2, []),
}


@pytest.mark.parametrize("name", LIMITS)
def test_weight_0_is_domain_balanced_erm(name: str) -> None:
    data = make_data(5, (203, 20, 17))
    changes = {"optimizer": "sgd", "epochs": 2}  # Adam turns rounding into steps
    left, right = train_one(LIMITS[name](), 5, data, **changes), train_one(Balanced(2), 5, data, **changes)
    assert_states_close(left.state_dict, right.state_dict, 1e-6)
    weighted = METHODS.get(name, lambda: vrex(2, 5.0, 0))()
    assert states_differ(left.state_dict, train_one(weighted, 5, data, **changes).state_dict)


# ---- annealing


def counted(method: Penalised, steps: int) -> tuple[list[float], list[int]]:
    """The weights of the first term at each step, and the steps before which the optimiser started anew."""
    run = make_run(method, data=make_data(0, (16 * steps, 8, 8)))
    _, batches = epoch_batches(run)
    stack, _ = make_stack([run])
    resets: list[int] = []
    reset = stack.optimizer.reset

    def counting() -> None:
        resets.append(method.steps)
        reset()

    stack.optimizer.reset = counting  # type: ignore[method-assign]
    weights = []
    for batch in batches:
        weights.append(method.terms[0].at(method.steps))
        method.step(stack, batch)
    return weights, resets


@pytest.mark.parametrize(
    ("method", "weights", "resets"),
    [
        (lambda: irm(2, 100.0, 3), [1, 1, 1, 100, 100], [3]),
        (lambda: irm(2, 100.0, 0), [100] * 5, []),
        (lambda: irm(2, 1.0, 3), [1] * 5, []),
        (lambda: vrex(2, 10.0, 2), [1, 1, 10, 10, 10], [2]),
        (lambda: ib_irm(2, 100.0, 1, ib_anneal=3), [1, 100, 100, 100, 100], [1, 3]),
    ],
)
def test_weights_switch_after_the_annealing_and_the_optimiser_starts_anew(
    method: Callable[[], Penalised], weights: list[float], resets: list[int]
) -> None:
    assert counted(method(), 5) == (weights, resets)


@pytest.mark.parametrize(("weight", "ratio"), [(100.0, 100.0), (1.0, 1.0), (0.1, 1.0)])
def test_the_loss_is_divided_by_the_first_weight_where_it_is_above_1(weight: float, ratio: float) -> None:
    losses = []
    for divide in (False, True):
        for method in (
            vrex(2, weight, 0, divide=divide),
            ib_irm(2, weight, 0, ib_weight=50, ib_anneal=0, divide=divide),
        ):
            run = make_run(method)
            _, batches = epoch_batches(run)
            losses.append(run.method.loss(run.model, batches[0]).item())
    assert losses[:2] == pytest.approx([ratio * loss for loss in losses[2:]], rel=1e-6)


# ---- batches


@pytest.mark.parametrize("name", [name for name in DOMAIN_METHODS if name not in ("group_dro", "fish")])
def test_batches_hold_the_domains(name: str) -> None:
    order, batches = epoch_batches(make_run(METHODS[name](), data=make_data(0, (53, 8, 8))))
    assert order.sizes.tolist() == [16] * 3  # floor(53 / 16)
    for batch in batches:
        assert sorted(batch.domain[[0, 8]].tolist()) == [0, 1]
        assert (batch.domain[:8] == batch.domain[0]).all()
        assert (batch.domain[8:] == batch.domain[8]).all()


def with_domains(domain: np.ndarray) -> RegressionData:
    data = make_data(0, (len(domain), 8, 8))
    return replace(data, train=replace(data.train, domain=torch.from_numpy(domain)))


@pytest.mark.parametrize("name", DOMAIN_METHODS)
def test_domains_of_a_single_row_train(name: str) -> None:
    result = train_one(METHODS[name](), data=with_domains(np.r_[np.zeros(30, int), 5, np.ones(30, int), 2, 3]))
    assert result.failure is None
    assert result.diagnostics["n_domains"] == 5


def test_domains_need_not_be_the_same_in_a_stack() -> None:
    data = [with_domains(np.arange(48) % 3 + shift) for shift in (0, 20)]
    for name in DOMAIN_METHODS:
        together = train([make_run(METHODS[name](), 0, some) for some in data], settings())
        for some, ours in zip(data, together, strict=True):
            assert_states_close(ours.state_dict, train_one(METHODS[name](), 0, some).state_dict, 1e-4)


# ---- what is refused


@pytest.mark.parametrize("name", DOMAIN_METHODS)
def test_a_single_domain_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="needs training rows of two or more domains, data/train has 1"):
        train_one(METHODS[name](), data=with_domains(np.zeros(48, int)))


def test_runs_with_other_numbers_of_domains_train_one_after_another() -> None:
    runs = [make_run(GroupDRO(), seed, with_domains(np.arange(48) % n)) for seed, n in enumerate((2, 3))]
    results = train(runs, settings())
    assert [(result.stack, result.diagnostics["n_domains"]) for result in results] == [(1, 2), (1, 3)]


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: irm(4), "groups must be at most the number of training domains, got 4 for 2"),
        (lambda: irm(0), "groups must be a whole number, 1 or more, got 0"),
        (lambda: irm(2, -1.0), "weight must be a finite number, 0 or more, got -1.0"),
        (lambda: irm(2, anneal=-1), "anneal must be a whole number of optimiser steps, 0 or more, got -1"),
        (lambda: irm(2, form="square"), "form must be one of auto, plain, product, got 'square'"),
        (lambda: DRNN(2, width=0), "width must be a whole number, 1 or more, got 0"),
        (lambda: DRNN(2, classifier_lr=0.0), "classifier_lr must be a finite number above 0, got 0.0"),
        (lambda: Fish(2, 1.5), r"meta_lr must lie in \[0, 1\], got 1.5"),
    ],
    lambda make: train_one(make()),
)


@pytest.mark.parametrize(
    ("make", "batch_size", "message"),
    [
        (lambda: vrex(2), 15, "batch_size must be a multiple of groups = 2, 2 or more, got 15"),
        (lambda: irm(2), 2, "batch_size must be a multiple of groups = 2, 4 or more, got 2"),
        (lambda: Fish(2), 25, "a batch of 2 domains x 25 rows is larger than the 48 training rows"),
    ],
)
def test_bad_batch_sizes_are_refused(make: Callable[[], Method], batch_size: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        train_one(make(), batch_size=batch_size)


@pytest.mark.parametrize("name", ["ib_irm", "coral", "drnn"])
def test_models_without_features_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="model must be a Backbone with features for this method, got Linear"):
        fitted(make_run(METHODS[name](), model=nn.Linear))


def test_models_that_predict_past_their_features_are_refused() -> None:
    """LSTNet's highway does not pass through its features: training `head(features)` would leave it out."""
    data = make_data()
    split = Split(torch.randn(8, 53, 2), torch.randn(8, 2), torch.arange(8) % 2, "series/train")
    series = replace(data, train=split, val=split, test=split)
    with pytest.raises(InputError, match=r"must predict head\(features\(x\)\) .*; a part of LSTNet goes another way"):
        fitted(make_run(coral(2), data=series, model=lambda *_: LSTNet((53, 2), 2, 3, 3)))
    run = fitted(make_run(vrex(2), data=series, model=lambda *_: LSTNet((53, 2), 2, 3, 3)))
    assert run.model.training
