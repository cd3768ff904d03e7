"""Every seed trains with its own random numbers, those of its stream `training`."""

import torch
from torch import Tensor, nn

from cmixup.methods.erm import ERM
from cmixup.seeding import Streams, torch_seed
from cmixup.training.trainer import Run, train
from tests.helpers import make_data, settings, states_differ


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


def test_the_same_seed_draws_the_same() -> None:
    assert trained(3)[0] == trained(3)[0]
