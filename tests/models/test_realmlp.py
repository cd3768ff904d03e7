import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.optim import Adam
from cmixup.pairing.label import LabelDistance
from cmixup.training.trainer import Run, train
from models.realmlp import Rated, RealMLP
from tests.helpers import make_run, settings


def check_bad_arguments(kind: type[nn.Module], *names: str) -> Callable[..., None]:
    """A test that a backbone of tables refuses what is no size, naming the argument and the value."""

    @pytest.mark.parametrize("name", ["width", "depth", *names])
    def test(name: str) -> None:
        with pytest.raises(InputError, match=rf"{name} must be .*, got 0"):
            kind((5,), 1, **{name: 0})
        for bad in (1.0, -0.1):
            with pytest.raises(InputError, match=f"dropout must be .*, got {bad}"):
                kind((5,), 1, dropout=bad)
        with pytest.raises(InputError, match=r"in_shape must be \(features,\) for .*, got \(3, 4\)"):
            kind((3, 4), 1)
        with pytest.raises(InputError, match=r"layer must be one of input, block1, .*, got 'block9'"):
            kind((5,), 1).encode(torch.zeros(2, 5), "block9")  # type: ignore[operator]

    return test


def made(**changes: Any) -> tuple[RealMLP, torch.Tensor]:
    torch.manual_seed(0)
    model = RealMLP((5,), 2, **{"width": 16, "depth": 2, "dropout": 0.0, **changes})
    with torch.no_grad():
        for parameter in model.parameters():  # the beginning has ones and zeros, which would hide what is left out
            parameter.add_(torch.randn_like(parameter))
    return model, torch.randn(7, 5)


def test_it_is_the_equations_of_the_paper() -> None:
    """Appendix A, a row and a feature at a time; softplus, tanh and cosine by Python's own mathematics."""
    model, x = made()
    own, rows = model.embeddings, []
    for row in x.tolist():
        state = []
        for j, value in enumerate(row):
            pairs = zip(own.weight1()[j, 0].tolist(), own.bias1()[j, 0].tolist(), strict=True)
            waves = [math.cos(2 * math.pi * w * value + b) for w, b in pairs]
            for n in range(3):
                column = own.weight2()[j, :, n].tolist()
                state.append(sum(a * b for a, b in zip(column, waves, strict=True)) + own.bias2()[j, 0, n].item())
        state = [s * c for s, c in zip([*state, *row], model.scale().tolist(), strict=True)]
        for layer, activation in zip(model.hidden, model.activations, strict=True):
            sums = linear(layer, state)
            bends = [s * math.tanh(math.log1p(math.exp(s))) for s in sums]
            state = [s + (b - s) * a for s, b, a in zip(sums, bends, activation().tolist(), strict=True)]
        rows.append(linear(model.out, state))
    torch.testing.assert_close(model(x), torch.tensor(rows), atol=1e-5, rtol=1e-5)


def linear(layer: Any, state: list[float]) -> list[float]:
    columns = layer.weight.T.tolist()
    sums = [sum(a * b for a, b in zip(column, state, strict=True)) / math.sqrt(len(state)) for column in columns]
    return [s + b for s, b in zip(sums, layer.bias().tolist(), strict=True)]


@pytest.mark.parametrize("factor", [6.0, 0.1])
def test_a_parameter_learns_at_its_multiple_of_adams_rate(factor: float) -> None:
    torch.manual_seed(0)
    start, goal = torch.randn(50), torch.randn(50)
    ours, plain = Rated(start, factor), nn.Parameter(start.clone())
    optimizers = Adam(ours.parameters(), 0.01), torch.optim.Adam([plain], 0.01 * factor)
    for _ in range(10):
        for value, optimizer in zip((ours(), plain), optimizers, strict=True):
            optimizer.zero_grad()
            (value - goal).square().sum().backward()
            optimizer.step()
    torch.testing.assert_close(ours(), plain, atol=1e-5, rtol=0)
    assert not torch.allclose(plain, start, atol=1e-3)


def test_it_begins_as_the_paper_says() -> None:
    torch.manual_seed(0)
    model = RealMLP((6,), 1)
    assert len(model.hidden) == 3
    assert model.hidden[0].weight.shape == (24, 256)
    for layer in model.hidden:
        assert layer.weight.std().item() == pytest.approx(1, abs=0.05)
        assert layer.bias().std().item() == pytest.approx(1, abs=0.2)
    assert model.embeddings.weight1().std().item() == pytest.approx(0.1, abs=0.03)
    assert bool((model(torch.randn(7, 6)) == 0).all())
    ones = torch.cat([model.scale(), *(each() for each in model.activations)])
    torch.testing.assert_close(ones, torch.ones_like(ones))


@pytest.mark.parametrize("layer", ["input", "block1", "block2"])
def test_training_mixes_at_a_mix_point_and_moves_every_parameter(layer: str) -> None:
    run = make_run(Mix(LabelDistance(0.5), Beta(2.0), layer), model=lambda d, d_y: RealMLP((d,), d_y, 16, 2))
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    (result,) = train([run], settings(epochs=3))
    assert not result.failure
    assert all(not torch.equal(value, before[name]) for name, value in result.state_dict.items())


def check_stack(model: Callable[[int, int], nn.Module]) -> None:
    """Check that a stack of two runs of a model predicts as each of them does alone."""

    def run(seed: int) -> Run:
        torch.manual_seed(seed)
        return make_run(Mix(LabelDistance(0.5), Beta(2.0), "block1"), seed, model=model)

    together = train([run(1), run(2)], settings(epochs=3))
    for seed, one in zip((1, 2), together, strict=True):
        (alone,) = train([run(seed)], settings(epochs=3))
        assert (one.stack, alone.stack) == (2, 1)
        torch.testing.assert_close(one.predictions["test"][""], alone.predictions["test"][""], atol=1e-4, rtol=1e-4)


def test_a_stack_gives_the_numbers_of_each_alone() -> None:
    check_stack(lambda d, d_y: RealMLP((d,), d_y, 16, 2, dropout=0.0))


test_bad_arguments = check_bad_arguments(RealMLP)
