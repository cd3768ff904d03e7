"""Methods for several domains: what they share, DRNN, Fish and GroupDRO."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.methods.coral import coral
from cmixup.methods.domains import DomainBatchMethod, Penalised
from cmixup.methods.drnn import DRNN
from cmixup.methods.erm import ERM
from cmixup.methods.fish import Fish
from cmixup.methods.group_dro import GroupDRO
from cmixup.methods.ib_irm import ib_irm
from cmixup.methods.irm import irm
from cmixup.methods.vrex import vrex
from cmixup.networks.fcn3 import FCN3
from cmixup.training.batch import Batch
from cmixup.training.method import Method, squared_error
from cmixup.training.model_stack import ModelStack
from cmixup.training.trainer import train
from models.lstnet import LSTNet
from tests.helpers import (
    CPU,
    DOMAIN_METHODS,
    METHODS,
    WithBatchNorm,
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

# ---- domain-balanced ERM is the limit


class Balanced(DomainBatchMethod):
    """ERM on the batches of the domain methods."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return squared_error(model(batch.x), batch.y)


LIMITS: dict[str, Callable[[], Method]] = {
    "irm": lambda: irm(2, 0.0, 0), "ib_irm": lambda: ib_irm(2, 0.0, 0, ib_weight=0.0), "vrex": lambda: vrex(2, 0.0, 0),
    "coral": lambda: coral(2, 0.0), "drnn": lambda: DRNN(2, 0.0), "no terms": lambda: Penalised(2, []),
}  # fmt: skip


@pytest.mark.parametrize("name", LIMITS)
def test_weight_0_is_domain_balanced_erm(name: str) -> None:
    data = make_data(5, (203, 20, 17))
    changes = {"optimizer": "sgd", "epochs": 2}  # Adam turns rounding into steps
    left, right = train_one(LIMITS[name](), 5, data, **changes), train_one(Balanced(2), 5, data, **changes)
    assert_states_close(left.state_dict, right.state_dict, 1e-6)
    weighted = METHODS.get(name, lambda: vrex(2, 5.0, 0))()
    assert states_differ(left.state_dict, train_one(weighted, 5, data, **changes).state_dict)


# ---- annealing


@pytest.mark.parametrize(
    ("make", "weights", "resets"),  # of the first term at each of five steps, and before which steps
    [
        (lambda: irm(2, 100.0, 3), [1, 1, 1, 100, 100], [3]), (lambda: irm(2, 100.0, 0), [100] * 5, []),
        (lambda: irm(2, 1.0, 3), [1] * 5, []), (lambda: vrex(2, 10.0, 2), [1, 1, 10, 10, 10], [2]),
        (lambda: ib_irm(2, 100.0, 1, ib_anneal=3), [1, 100, 100, 100, 100], [1, 3]),
    ],
)  # fmt: skip
def test_weights_switch_after_the_annealing_and_the_optimiser_starts_anew(
    make: Callable[[], Penalised], weights: list[float], resets: list[int]
) -> None:
    method, counted = make(), list[int]()
    run = make_run(method, data=make_data(0, (16 * 5, 8, 8)))
    _, batches = epoch_batches(run)
    stack, _ = make_stack([run])
    reset = stack.optimizer.reset

    def counting() -> None:
        counted.append(method.steps)
        reset()

    stack.optimizer.reset = counting  # type: ignore[method-assign]
    for batch, weight in zip(batches, weights, strict=True):
        assert method.terms[0].at(method.steps) == weight
        method.step(stack, batch)
    assert counted == resets


@pytest.mark.parametrize(("weight", "ratio"), [(100.0, 100.0), (1.0, 1.0), (0.1, 1.0)])
def test_the_loss_is_divided_by_the_first_weight_where_it_is_above_1(weight: float, ratio: float) -> None:
    for method in (vrex(2, weight, 0), ib_irm(2, weight, 0, ib_weight=50, ib_anneal=0)):
        run = make_run(method)
        _, batches = epoch_batches(run)
        divided = run.method.loss(run.model, batches[0]).item()
        method.divide = False
        assert run.method.loss(run.model, batches[0]).item() == pytest.approx(ratio * divided, rel=1e-6)


# ---- batches


def with_domains(domain: np.ndarray) -> RegressionData:
    data = make_data(0, (len(domain), 8, 8))
    return replace(data, train=replace(data.train, domain=torch.from_numpy(domain)))


@pytest.mark.parametrize("name", DOMAIN_METHODS)
def test_domains_of_a_single_row_train(name: str) -> None:
    result = train_one(METHODS[name](), data=with_domains(np.r_[np.zeros(30, int), 5, np.ones(30, int), 2, 3]))
    assert not result.failure


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
    assert [result.stack for result in results] == [1, 1]


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: irm(4), "groups must be at most the number of training domains, got 4 for 2"),
        (lambda: irm(0), "groups must be a whole number, 1 or more, got 0"),
        (lambda: irm(2, -1.0), "weight must be a finite number, 0 or more, got -1.0"),
        (lambda: irm(2, anneal=-1), "anneal must be a whole number of optimiser steps, 0 or more, got -1"),
        (lambda: DRNN(2, width=0), "width must be a whole number, 1 or more, got 0"),
        (lambda: DRNN(2, classifier_lr=0.0), "classifier_lr must be a finite number above 0, got 0.0"),
        (lambda: Fish(2, 1.5), r"meta_lr must lie in \[0, 1\], got 1.5"),
    ],
    lambda make: train_one(make()),
)


test_bad_batch_sizes_are_refused = refuses(
    [
        ((vrex(2), 15), "batch_size must be a multiple of groups = 2, 2 or more, got 15"),
        ((irm(2), 2), "batch_size must be a multiple of groups = 2, 4 or more, got 2"),
        ((Fish(2), 25), "a batch of 2 domains x 25 rows is larger than the 48 training rows"),
    ],
    lambda given: train_one(given[0], batch_size=given[1]),
)


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


# ---- DRNN


def test_the_loss_is_the_risk_plus_the_weighted_cross_entropy() -> None:
    method = DRNN(2, 0.3, reversal=0.5)
    run = make_run(method)
    _, batches = epoch_batches(run)
    stack, _ = make_stack([run])
    model, batch = run.model, batches[0]
    assert isinstance(model, FCN3)
    logits = method.classifier(model.features(batch.x))
    entropy = torch.nn.functional.cross_entropy(logits, batch.domain)
    risk = torch.nn.functional.mse_loss(model(batch.x), batch.y)
    loss = method.loss(stack.model, batch)
    torch.testing.assert_close(loss, risk + 0.3 * entropy)

    encoder = list(model.linear1.parameters())
    towards, away = torch.autograd.grad(risk, encoder), torch.autograd.grad(entropy, encoder, retain_graph=True)
    for ours, a, b in zip(torch.autograd.grad(loss, encoder, retain_graph=True), towards, away, strict=True):
        torch.testing.assert_close(ours, a - 0.5 * 0.3 * b)
    theirs = list(method.classifier.parameters())
    plain = torch.autograd.grad(entropy, theirs)
    for ours, b in zip(torch.autograd.grad(loss, theirs), plain, strict=True):
        torch.testing.assert_close(ours, 0.3 * b)


# ---- Fish


SIZES = (203, 20, 17)


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def halves(batch: Batch) -> list[Batch]:
    return [Batch(batch.x[rows], batch.y[rows], batch.domain[rows]) for rows in (slice(0, 16), slice(16, 32))]


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_step_goes_the_share_of_the_way(optimizer: str) -> None:
    run, same = (make_run(method, 0, make_data(0, SIZES)) for method in (Fish(2, 0.3), ERM()))
    _, (batch, *_) = epoch_batches(run)
    stack, _ = make_stack([run], optimizer=optimizer, lr=0.01)
    before = state(stack.model)
    loss = run.method.step(stack, batch)
    other = ModelStack([same.model], CPU, optimizer, lr=0.01)
    losses = [same.method.step(other, half).item() for half in halves(batch)]  # on one domain after another
    inner = state(same.model)
    expected = {name: value + 0.3 * (inner[name] - value) for name, value in before.items()}
    assert_states_close(state(stack.model), expected, 1e-7)
    assert loss.item() == pytest.approx(sum(losses) / 2)


def test_floating_buffers_are_interpolated_and_counters_copied() -> None:
    ends = {}
    for meta_lr in (0.25, 1.0):
        run = make_run(Fish(2, meta_lr), 0, make_data(0, SIZES), WithBatchNorm)
        before = state(run.model)
        _, batches = epoch_batches(run)
        run.method.step(make_stack([run])[0], batches[0])
        ends[meta_lr] = state(run.model)
    assert ends[0.25]["net.1.num_batches_tracked"] == 2
    for name in ("net.1.running_mean", "net.1.running_var", "net.0.weight"):
        assert not torch.equal(ends[1.0][name], before[name])
        torch.testing.assert_close(ends[0.25][name], before[name].lerp(ends[1.0][name], 0.25))


def test_an_outer_step_uses_a_full_minibatch_of_each_domain() -> None:
    data = make_data(0, SIZES)
    run = make_run(Fish(2), 0, data)
    order, batches = epoch_batches(run)
    assert order.sizes.tolist() == [32] * 6  # 12 inner steps of 16 rows, as ERM has full batches
    firsts = set()
    for batch in batches:
        one, other = halves(batch)
        assert len(one.domain.unique()) == len(other.domain.unique()) == 1
        assert one.domain[0] != other.domain[0]
        firsts.add(one.domain[0].item())
    assert firsts == {0, 1}  # in random order


# ---- GroupDRO


def test_risks_are_of_32_bits_beside_steps_in_bfloat16() -> None:
    run, f = fitted(make_run(GroupDRO(), 0, with_domains(np.arange(48) % 3))), torch.arange(48.0)[:, None].bfloat16()
    batch = Batch(f, f + run.data.train.y, run.data.train.domain)
    expected = run.method.loss(nn.Identity(), batch)
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(run.method.loss(nn.Identity(), batch), expected)


@pytest.mark.parametrize("index", [torch.arange(48), torch.tensor([0, 3, 6, 1, 4])], ids=["all", "one absent"])
def test_weights_and_loss_of_a_step(index: Tensor) -> None:
    method, data = GroupDRO(0.7), with_domains(np.arange(48) % 3 * 4 + 1)  # 1, 5, 9
    run, split = make_run(method, 0, data), data.train
    stack, _ = make_stack([run])
    batch = Batch(split.x[index], split.y[index], split.domain[index])
    masks = [batch.domain == d for d in (1, 5, 9)]
    q = torch.full((3,), 1 / 3)
    for _ in range(3):
        f, y = run.model(batch.x), batch.y
        r = torch.tensor([squared_error(f[m], y[m]).item() if m.any() else 0.0 for m in masks])  # 0 where it is absent
        q = q * torch.exp(0.7 * r)
        q = q / q.sum()
        expected = (q * r).sum().item()
        assert method.loss(run.model, batch).item() == pytest.approx(expected, rel=1e-5)
        assert method.step(stack, batch).item() == pytest.approx(expected, rel=1e-5)
        torch.testing.assert_close(method.log_q.exp(), q)
