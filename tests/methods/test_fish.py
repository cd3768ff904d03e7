"""Fish."""

import pytest
import torch
from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.methods.erm import ERM
from cmixup.methods.fish import Fish
from cmixup.model_stack import ModelStack
from tests.helpers import (
    CPU,
    WithBatchNorm,
    assert_states_close,
    assert_states_equal,
    epoch_batches,
    make_data,
    make_run,
    make_stack,
)

SIZES = (203, 20, 17)


def state(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def halves(batch: Batch) -> list[Batch]:
    return [Batch(batch.x[rows], batch.y[rows], batch.domain[rows]) for rows in (slice(0, 16), slice(16, 32))]


def sequential(batches: list[Batch], optimizer: str) -> dict[str, Tensor]:
    """The weights after ordinary steps on one domain after another."""
    run = make_run(ERM(), 0, make_data(0, SIZES))
    stack = ModelStack([run.model], CPU, optimizer, lr=0.01)
    for batch in batches:
        for half in halves(batch):
            run.method.step(stack, half)
    return state(run.model)


def fish(meta_lr: float, optimizer: str = "sgd") -> tuple[Fish, ModelStack, list[Batch]]:
    method = Fish(2, meta_lr)
    run = make_run(method, 0, make_data(0, SIZES))
    _, batches = epoch_batches(run)
    return method, make_stack([run], optimizer=optimizer, lr=0.01)[0], batches


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_meta_lr_1_trains_on_one_domain_after_another(optimizer: str) -> None:
    method, stack, batches = fish(1.0, optimizer)
    for batch in batches:
        method.step(stack, batch)
    assert_states_equal(state(stack.model), sequential(batches, optimizer))


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_a_step_goes_the_share_of_the_way(optimizer: str) -> None:
    method, stack, batches = fish(0.3, optimizer)
    before = state(stack.model)
    loss = method.step(stack, batches[0])
    inner = sequential(batches[:1], optimizer)
    expected = {name: value + 0.3 * (inner[name] - value) for name, value in before.items()}
    assert_states_close(state(stack.model), expected, 1e-7)
    first, second = halves(batches[0])
    twin = make_run(ERM(), 0, make_data(0, SIZES))
    other = ModelStack([twin.model], CPU, optimizer, lr=0.01)
    losses = [twin.method.step(other, half).item() for half in (first, second)]
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
