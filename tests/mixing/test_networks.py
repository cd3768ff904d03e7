"""Mixings that look at gradients or own a network fit the contract: alone, in a stack and from a checkpoint."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cmixup.methods.mix import Mix
from cmixup.mixing.base import Loss, Mixing
from cmixup.mixing.lam import Beta
from cmixup.mixing.linear import mix
from cmixup.pairing.uniform import Permutation, Uniform
from cmixup.training.batch import Batch
from cmixup.training.method import squared_error
from cmixup.training.model_stack import ModelStack
from cmixup.training.optim import descend, make_optimizer
from cmixup.training.trainer import Run, train
from cmixup.training.training import Training
from tests.helpers import (
    assert_same,
    assert_states_close,
    checkpoints,
    epoch_batches,
    interrupted,
    make_run,
    make_stack,
    settings,
    states_differ,
)


class BySaliency(Mixing):
    """Keeps more of the example whose input matters more to the loss of the unmixed rows."""

    def forward(self, first: Any, second: Any, draws: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
        weight = draws["saliency"] / (draws["saliency"] + draws["partner_saliency"])
        return mix(first, second, weight), weight

    def step(self, loss: Loss, stack: ModelStack, batch: Batch) -> Tensor:
        assert batch.partner is not None
        saliencies = {"saliency": self.of(stack.model, batch), "partner_saliency": self.of(stack.model, batch.partner)}
        return super().step(loss, stack, replace(batch, draws={**batch.draws, **saliencies}))

    def of(self, model: nn.Module, rows: Batch) -> Tensor:
        x = rows.x.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(squared_error(model(x), rows.y).sum(), x)
        return gradient.abs().sum(dim=-1) + 1e-6


class Bent(Mixing):
    """Bends lambda by a parameter of its own, which descends the loss beside the model."""

    def __init__(self) -> None:
        super().__init__()
        self.bend = nn.Parameter(torch.zeros(()))

    def begin(self, training: Training) -> None:
        self.optimizer = make_optimizer("adam", [self.bend], 0.05)

    def forward(self, first: Any, second: Any, draws: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
        weight = draws["lam"] ** self.bend.exp().unsqueeze(-1)
        return mix(first, second, weight), weight

    def step(self, loss: Loss, stack: ModelStack, batch: Batch) -> Tensor:
        return descend(loss(stack.model, batch), stack.optimizer, self.optimizer)

    def get_extra_state(self) -> dict[str, Any]:
        return {"optimizer": self.optimizer.state_dict() if hasattr(self, "optimizer") else None}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        if state["optimizer"] is not None:
            self.optimizer.load_state_dict(state["optimizer"])


def bent(seed: int = 0) -> Run:
    return make_run(Mix(Uniform(), Beta(2.0), mixing=Bent()), seed)


def salient(seed: int = 0) -> Run:
    return make_run(Mix(Permutation(), Beta(2.0), mixing=BySaliency()), seed)


def test_gradients_taken_by_a_stack_are_those_of_its_runs() -> None:
    together = train([salient(seed) for seed in (0, 1)], settings())
    for seed, ours in zip((0, 1), together, strict=True):
        assert ours.stack == 2
        (alone,) = train([salient(seed)], settings())
        assert_states_close(ours.state_dict, alone.state_dict, 1e-5)


def test_a_mixing_trains_a_parameter_of_its_own() -> None:
    run = bent()
    _, batches = epoch_batches(run)
    stack, method = make_stack([run], lr=1e-3)
    (slope,) = torch.autograd.grad(method.loss(stack.model, batches[0]), [method.mixing.bend])
    assert slope != 0
    method.step(stack, batches[0])
    assert method.mixing.bend.item() == pytest.approx(-0.05 * slope.sign().item(), rel=1e-3)  # Adam's first step
    assert set(dict(method.named_parameters())) == {"mixing.bend"}
    assert not set(dict(method.named_parameters())) & set(dict(stack.model.named_parameters()))
    (plain,) = train([make_run(Mix(Uniform(), Beta(2.0)))], settings(epochs=2))
    (trained,) = train([bent()], settings(epochs=2))
    assert states_differ(plain.state_dict, trained.state_dict)


def test_networks_of_a_stack_train_as_those_of_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    bends: list[Tensor] = []
    step = Mix.step

    def watched(self: Mix, stack: ModelStack, batch: Batch) -> Tensor:
        loss = step(self, stack, batch)
        bends.append(self.mixing.bend.detach().clone())
        return loss

    monkeypatch.setattr(Mix, "step", watched)
    together = train([bent(seed) for seed in (0, 1)], settings())
    stacked = list(bends)
    for e, ours in enumerate(together):
        bends.clear()
        (alone,) = train([bent(e)], settings())
        assert (ours.stack, alone.stack) == (2, 1)
        assert_states_close(ours.state_dict, alone.state_dict, 1e-6)
        for one, other in zip(stacked, bends, strict=True):
            torch.testing.assert_close(one[e], other, atol=1e-6, rtol=0)
    assert stacked[-1][0] != stacked[-1][1]


@pytest.mark.parametrize("seeds", [(0,), (0, 1)], ids=["one run", "a stack"])
def test_its_network_is_in_the_checkpoint(seeds: tuple[int, ...], tmp_path: Path) -> None:
    def make() -> list[Run]:
        return [bent(seed) for seed in seeds]

    where = checkpoints(tmp_path)
    assert_same(interrupted(make, where, 2, epochs=4), train(make(), settings(epochs=4)))
    saved = torch.load(where.path(seeds), weights_only=True)["stacked_method"]
    assert saved["mixing.bend"].shape == ((2,) if len(seeds) == 2 else ())
    assert (saved["mixing.bend"] != 0).all()
