"""AutoMix: masks by a network of its own, which learns from a momentum copy of the model."""

import copy
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cmixup.errors import InputError
from cmixup.methods.mix import Mix
from cmixup.mixing.automix import AutoMix, MixBlock
from cmixup.mixing.lam import Beta, Constant
from cmixup.mixing.linear import mix
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.uniform import Uniform
from cmixup.training.batch import Batch
from cmixup.training.method import squared_error
from cmixup.training.model_stack import ModelStack
from cmixup.training.trainer import Run, train
from tests.helpers import (
    assert_same,
    assert_states_equal,
    checkpoints,
    epoch_batches,
    fitted,
    interrupted,
    make_data,
    make_run,
    make_stack,
    refuses,
    settings,
)
from tests.mixing.images import ConvNet, picture_data, pictures

SIZE = (14, 17)


def auto_run(pairing: Any = None, seed: int = 0, lam: Any = None, channels: int = 3, **options: Any) -> Run:
    method = Mix(pairing or Uniform(), lam or Beta(2.0), mixing=AutoMix(**{"epochs": 2, **options}))
    return make_run(method, seed, picture_data(channels, SIZE), lambda *_: ConvNet(channels))


def ready(run: Run) -> tuple[ModelStack, Mix, Batch]:
    _, batches = epoch_batches(run)
    stack, method = make_stack([run], lr=1e-3)
    return stack, method, batches[0]


def state_of(module: torch.nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in module.state_dict().items()}


# ---- the Mix Block


def test_masks_are_attention_upsampled_to_any_size() -> None:
    rng = torch.Generator().manual_seed(0)
    block = MixBlock(5)
    first, second = torch.randn(2, 4, 5, 2, 3, generator=rng)
    lam = torch.tensor([0.2, 0.5, 0.9, 0.0])
    mask = block(first, second, lam, (5, 7))
    assert mask.shape == (4, 5, 7)
    assert ((mask > 0) & (mask < 1)).all()
    with torch.autocast("cpu", torch.bfloat16):
        assert block(first, second, lam, (5, 7)).dtype == torch.float32  # inputs are mixed in 32 bits
    for k in range(4):
        one, two = first[k].flatten(1), second[k].flatten(1)  # (5, 6)
        one, two = (torch.cat([m, v.expand(1, 6)]) for m, v in ((one, lam[k]), (two, 1 - lam[k])))
        weight, bias = block.key.weight.flatten(1), block.key.bias[:, None]
        query, key = weight @ one + bias, weight @ two + bias
        value = block.value.weight.flatten(1) @ two + block.value.bias[:, None]
        attention = (query.T @ key / math.sqrt(2)).softmax(dim=1)
        other = torch.sigmoid(attention @ value[0]).reshape(2, 3)
        for row in range(5):
            for column in range(7):
                torch.testing.assert_close(mask[k, row, column], 1 - other[row * 2 // 5, column * 3 // 7])


def test_a_gap_inside_the_margin_costs_nothing() -> None:
    mixing = AutoMix(1, margin=0.1)
    mask = torch.tensor([0.5, 0.3])[:, None, None].expand(2, *SIZE)
    assert mixing.mask_loss(mask, torch.tensor([0.59, 0.21])).item() == 0
    assert mixing.mask_loss(mask, torch.tensor([0.75, 0.21])).item() == pytest.approx(0.15 / 2)
    assert mixing.mask_loss(mask, torch.tensor([0.5, 0.0])).item() == pytest.approx(0.2 / 2)


# ---- a step


def by_hand(run: Run, method: Mix, batch: Batch) -> tuple[Tensor, Tensor, Sequence[Tensor]]:
    """The model's loss, the Mix Block's, and the model's gradient, of a step that has not been taken."""
    mixing, model = method.mixing, copy.deepcopy(run.model)
    lam, other_lam = batch.draws["lam"], batch.draws["other_lam"]
    maps = [mixing.copy.encode(rows.x, "first") for rows in (batch, batch.partner, batch.other)]
    mask = mixing.block(maps[0], maps[1], lam, SIZE).detach()
    for k in range(len(lam)):
        if min(lam[k], 1 - lam[k]) <= 0.08:
            mask[k] = lam[k]
    student = squared_error(model(batch.x), batch.y)
    student = student + squared_error(
        model(mask[:, None] * batch.x + (1 - mask[:, None]) * batch.partner.x), mix(batch.y, batch.partner.y, lam)
    )
    block_mask = mixing.block(maps[0], maps[2], other_lam, SIZE)
    mixed = block_mask[:, None] * batch.x + (1 - block_mask[:, None]) * batch.other.x
    learned = squared_error(mixing.copy(mixed), mix(batch.y, batch.other.y, other_lam))
    slopes = torch.autograd.grad(student, list(model.parameters()))
    return student, learned + 0.1 * mixing.mask_loss(block_mask, other_lam), slopes


@pytest.mark.parametrize("channels", [3, 8])
def test_a_step_adds_the_losses_and_gives_each_network_its_own(channels: int) -> None:
    run = auto_run(channels=channels, lam=Beta(0.3))  # lambdas near 0 and 1, too
    stack, method, batch = ready(run)
    method.mixing.margin = 0.0
    assert method.mixing.layer == "first"  # 7 x 9 pixels
    assert (torch.minimum(batch.draws["lam"], 1 - batch.draws["lam"]) <= 0.08).any()
    student, learned, slopes = by_hand(run, method, batch)
    block = list(method.mixing.block.parameters())
    expected = torch.autograd.grad(learned, block)
    frozen = [p for p in method.mixing.copy.parameters() if p.requires_grad]
    before = state_of(method.mixing.copy)
    method.mixing.momentum = method.mixing.last_momentum = 1.0  # the copy keeps still
    loss = method.step(stack, batch)
    assert loss.item() == pytest.approx((student + learned).item(), rel=1e-5)
    assert frozen == []
    assert all(p.grad is None for p in method.mixing.copy.parameters())
    after = state_of(method.mixing.copy)
    assert all(torch.equal(after[name], value) for name, value in before.items() if value.is_floating_point())
    networks = [*block, *run.model.parameters()]
    for parameter, gradient in zip(networks, [*expected, *slopes], strict=True):
        torch.testing.assert_close(parameter.grad, gradient, atol=1e-6, rtol=1e-4)
    assert max(float(g.abs().max()) for g in expected) > 1e-5


def test_the_copy_follows_with_its_batchnorm_statistics_along_a_cosine() -> None:
    run = auto_run(momentum=0.9, last_momentum=0.99)
    stack, method, batch = ready(run)
    mixing = method.mixing
    assert not mixing.copy.training
    for step in range(7):  # 2 epochs of 3 batches, and one more
        share = 0.99 - 0.09 * (1 + math.cos(math.pi * min(step / 6, 1))) / 2
        before = state_of(mixing.copy)
        method.step(stack, batch)
        after, model = mixing.copy.state_dict(), stack.model.state_dict()
        for name, value in before.items():
            if not value.is_floating_point():
                assert after[name] == model[name] == 2 * (step + 1)
                continue
            torch.testing.assert_close(after[name], share * value + (1 - share) * model[name])
    assert not torch.equal(after["norm1.running_mean"], torch.zeros(6))


@pytest.mark.filterwarnings("ignore:bandwidth 1e-06 leaves every row its own partner")
def test_both_draws_come_from_the_pairing_and_are_independent() -> None:
    run = fitted(auto_run())
    order = run.method.order(run.data.train, 16, run.streams, drop_last=False)
    drawn = run.method.draw(order, run.streams)
    assert drawn["partner"].tolist() != drawn["other_partner"].tolist()
    assert drawn["lam"].tolist() != drawn["other_lam"].tolist()
    alone = fitted(make_run(Mix(Uniform(), Beta(2.0)), 0, run.data, lambda *_: ConvNet()))
    plain = alone.method.draw(alone.method.order(run.data.train, 16, alone.streams, drop_last=False), alone.streams)
    assert drawn["partner"].tolist() == plain["partner"].tolist()
    assert drawn["lam"].tolist() == plain["lam"].tolist()
    near = fitted(auto_run(LabelDistance(1e-6)))
    drawn = near.method.draw(near.method.order(near.data.train, 16, near.streams, drop_last=False), near.streams)
    assert drawn["partner"].tolist() == drawn["other_partner"].tolist()  # both are the rows themselves
    _, batches = epoch_batches(auto_run())
    assert batches[0].other is not None
    assert not torch.equal(batches[0].other.x, batches[0].partner.x)


# ---- runs


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    runs = [auto_run() for _ in range(3)]
    made = iter(runs)
    straight = train([next(made)], settings(epochs=2))
    assert_same(interrupted(lambda: [next(made)], checkpoints(tmp_path), 1, epochs=2), straight)
    theirs, _, mine = (run.method.state_dict() for run in runs)
    assert mine.pop("mixing._extra_state")["steps"] == theirs.pop("mixing._extra_state")["steps"] == 6
    assert {name.split(".")[1] for name in mine} == {"block", "copy"}
    assert_states_equal(mine, theirs)


def test_seeds_train_one_after_another() -> None:
    method = auto_run().method
    assert not method.stackable
    assert Mix(Uniform(), Beta(1.0)).stackable
    together = train([auto_run(seed=seed) for seed in (0, 1)], settings())
    assert [result.stack for result in together] == [1, 1]


def test_the_layer_is_the_deepest_with_enough_pixels_or_the_one_named() -> None:
    assert fitted(auto_run()).method.mixing.layer == "first"
    named = fitted(auto_run(features="second")).method.mixing
    assert (named.layer, named.block.key.in_channels) == ("second", 9)
    small = make_run(Mix(Uniform(), Beta(1.0), mixing=AutoMix(1)), 0, picture_data(size=(6, 8)), lambda *_: ConvNet())
    assert fitted(small).method.mixing.layer == "first"  # 3 x 4 pixels, the largest there are
    small.model.layers = ("input", "second")
    with pytest.raises(InputError, match="ConvNet has none at a mix point between the input and the last"):
        fitted(small)


def refused_run(layer: str, data: Any, *model: Any) -> Run:
    return fitted(make_run(Mix(Uniform(), Constant(0.5), layer, AutoMix(1)), 0, data, *model))


test_what_does_not_suit_is_refused_in_a_line = refuses(
    [
        (lambda: refused_run("input", make_data()), r"AutoMix needs images \(B, C, H, W\) .*'input', got \(2, 3\)"),
        (lambda: refused_run("first", picture_data(), lambda *_: ConvNet()), "layer must be input, got 'first'"),
        (lambda: fitted(auto_run(features="third")), r"a mix point of ConvNet \(input, first, second\), got 'third'"),
        (lambda: AutoMix(0), "epochs must be a whole number, 1 or more, got 0"),
        (lambda: AutoMix(1, momentum=1.5), r"momentum must lie in \[0, 1\], got 1.5"),
        (lambda: AutoMix(1)(pictures(2), pictures(2), {"lam": torch.ones(2)}), "makes masks before it mixes"),
    ]
)
