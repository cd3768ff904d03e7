from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from cmixup.errors import InputError
from cmixup.training.optim import Optimizer, make_optimizer

THEIRS: dict[str, Callable[..., torch.optim.Optimizer]] = {
    "adam": lambda p, lr, wd: torch.optim.Adam(p, lr=lr, weight_decay=wd, fused=True),
    "sgd": lambda p, lr, wd: torch.optim.SGD(p, lr=lr, weight_decay=wd, momentum=0.9, fused=True),
}


def parameters() -> list[nn.Parameter]:
    generator = torch.Generator().manual_seed(0)
    return [nn.Parameter(torch.randn(shape, generator=generator)) for shape in ((4, 3), (3,), (2, 2, 2))]


def take_steps(params: list[nn.Parameter], optimizer: Optimizer | torch.optim.Optimizer, sparse: bool) -> None:
    generator = torch.Generator().manual_seed(1)
    for step in range(20):
        optimizer.zero_grad()
        for k, parameter in enumerate(params):
            grad = torch.randn(parameter.shape, generator=generator)
            # PyTorch's fused SGD cannot begin with a parameter after its first step, so the second one begins at 0.
            if not sparse or k == 0 or (k == 1 and step % 3 == 0):
                parameter.grad = grad
        optimizer.step()


@pytest.mark.parametrize("sparse", [False, True], ids=["all gradients", "some without gradient"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_twenty_steps_equal_pytorchs(name: str, weight_decay: float, sparse: bool) -> None:
    ours, theirs, start = parameters(), parameters(), parameters()
    take_steps(ours, make_optimizer(name, ours, 0.05, weight_decay), sparse)
    take_steps(theirs, THEIRS[name](theirs, 0.05, weight_decay), sparse)
    for one, other in zip(ours, theirs, strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(ours[0], start[0])
    assert torch.equal(ours[2], start[2]) is sparse


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_models_of_a_stack_have_rates_of_their_own(name: str) -> None:
    """Each model of a stack moves as it does where all have its rates, to the last bit where vectors are full."""
    rng = torch.Generator().manual_seed(0)
    start = [torch.randn(4, 8, 16, generator=rng), torch.randn(4, 16, generator=rng)]
    steps = [[torch.randn(p.shape, generator=rng) for p in start] for _ in range(3)]

    def moved(lr: float | list[float], weight_decay: float | list[float]) -> list[Tensor]:
        given = [nn.Parameter(p.clone()) for p in start]
        optimizer = make_optimizer(name, given, lr, weight_decay)
        for gradients in steps:
            for parameter, gradient in zip(given, gradients, strict=True):
                parameter.grad = gradient.clone()
            optimizer.step()
        return [p.detach() for p in given]

    rates, decays = [0.1, 0.1, 0.01, 0.1], [0.0, 0.0, 0.0, 0.5]
    moves = moved(rates, decays)
    for k, (lr, weight_decay) in enumerate(zip(rates, decays, strict=True)):
        for mine, theirs in zip(moves, moved(lr, weight_decay), strict=True):
            assert torch.equal(mine[k], theirs[k])
    assert all(torch.equal(a, b) for a, b in zip(moved([0.1] * 4, 0.5), moved(0.1, 0.5), strict=True))
    with pytest.raises(InputError, match=r"of as many models, got \[2, 4\]"):
        moved([0.1] * 4, [0.0, 0.0])
    with pytest.raises(InputError, match="lr must be"):
        moved([0.1, 0.1, 0.1, -1.0], 0.0)


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_reset_makes_it_as_new_and_keeps_the_learning_rate(name: str) -> None:
    ours = parameters()
    used = make_optimizer(name, ours, 0.05, 0.1)
    take_steps(ours, used, False)
    theirs = [nn.Parameter(p.detach().clone()) for p in ours]
    used.lr = 0.02
    used.reset()
    take_steps(ours, used, False)
    take_steps(theirs, make_optimizer(name, theirs, 0.02, 0.1), False)
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


@pytest.mark.parametrize("name", ["adam", "sgd"])
def test_frozen_parameters_stay(name: str) -> None:
    params = parameters()
    params[1].requires_grad_(False)
    optimizer = make_optimizer(name, params, 0.1, 0.5)
    (params[0].sum() + params[1].sum()).backward()
    optimizer.step()
    assert not torch.equal(params[0], parameters()[0])
    assert torch.equal(params[1], parameters()[1])
