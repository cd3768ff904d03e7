"""Models and inputs of other kinds: those that do not stack, dropout, plain modules, inputs read on demand."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.methods.erm import ERM
from cmixup.seeding import Streams, torch_seed
from cmixup.training.trainer import Run, train
from tests.helpers import (
    METHODS,
    Lazy,
    WithBatchNorm,
    assert_states_equal,
    make_data,
    make_run,
    settings,
    states_differ,
    train_one,
)


@pytest.mark.parametrize("name", ["erm", "mixup", "cmixup"])
def test_models_that_do_not_stack_train_one_after_another(name: str) -> None:
    def runs(seeds: tuple[int, ...]) -> list:
        return [make_run(METHODS[name](), seed, model=WithBatchNorm) for seed in seeds]

    together = train(runs((0, 1)), settings(epochs=2))
    assert [result.stack for result in together] == [1, 1]
    for seed, ours in zip((0, 1), together, strict=True):
        (alone,) = train(runs((seed,)), settings(epochs=2))
        assert_states_equal(ours.state_dict, alone.state_dict)
        assert ours.scores == alone.scores
        WithBatchNorm(3, 1).load_state_dict(ours.state_dict)


class WithLayerList(nn.Module):
    """An ordinary model whose attributes happen to carry the names that backbones use."""

    def __init__(self, width: int, d_y: int):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, 8), nn.Linear(8, d_y)])
        self.hidden = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.layers[1](self.hidden(self.layers[0](x)).relu())


@pytest.mark.parametrize("model", [nn.Linear, WithBatchNorm, WithLayerList])
@pytest.mark.parametrize("name", ["erm", "mixup", "mixup_permutation", "cmixup"])
def test_a_plain_module_trains_with_input_level_methods(name: str, model: Callable[[int, int], nn.Module]) -> None:
    run = make_run(METHODS[name](), model=model)
    (result,) = train([run], settings(epochs=2))
    assert np.isfinite(list(result.scores["test"].values())).all()
    assert result.best_epoch > 0


@pytest.mark.parametrize("name", ["erm", "cmixup", "cmixup_batch_both", "k_mixup", "mixrl", "fish", "cmixup_x"])
def test_lazily_read_inputs_give_the_same_numbers(name: str) -> None:
    data = make_data(6, (50, 20, 17))
    lazies = {part: Lazy(getattr(data, part).x) for part in ("train", "val", "test")}
    lazy = replace(data, **{part: replace(getattr(data, part), x=x) for part, x in lazies.items()})
    changes = {"epochs": 2, "eval_batch_size": 9}
    ours, theirs = train_one(METHODS[name](), 6, lazy, **changes), train_one(METHODS[name](), 6, data, **changes)
    assert_states_equal(ours.state_dict, theirs.state_dict)
    assert ours.scores == theirs.scores
    assert ours.history == theirs.history
    looking = ("k_mixup", "local_mixup", "mixrl", "cmixup_x", "cmixup_h")  # in pieces of `flat.INPUT_BYTES_PER_CHUNK`
    looks_at_inputs = name.startswith(looking) and name != "cmixup_hidden"
    assert max(lazies["train"].read_sizes) == (32 if name == "fish" else 16) or looks_at_inputs
    assert max(lazies["test"].read_sizes) == 9
    assert max(lazies["val"].read_sizes) == 9 or name.startswith("mixrl")  # its search reads in batches of its own


class Noisy(nn.Module):
    """A linear model with dropout, which tells what it drew first in training."""

    def __init__(self, drawn: list[float]):
        super().__init__()
        self.linear, self.drawn = nn.Linear(3, 1), drawn

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.drawn.append(torch.rand(1).item())
            x = nn.functional.dropout(x, 0.5)
        return self.linear(x)


def trained(seed: int) -> tuple[list[float], dict[str, Tensor]]:
    """What a model drew and learned that has the same rows, order and initial weights for every seed."""
    drawn: list[float] = []
    with torch_seed(0):
        model = Noisy(drawn)
    (result,) = train([Run(make_data(0), ERM(), model, Streams(seed))], settings(shuffle=False, epochs=2))
    return drawn, result.state_dict


def test_dropout_draws_from_the_stream_of_its_seed() -> None:
    (one, first), (other, second) = trained(0), trained(1)
    assert states_differ(first, second)
    for seed, drawn in ((0, one), (1, other)):
        with torch_seed(Streams(seed).training):
            assert drawn[0] == torch.rand(1).item()
    assert len({*one, *other}) == len(one) + len(other) == 12  # and every batch of every epoch draws anew
