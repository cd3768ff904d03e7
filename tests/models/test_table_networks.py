"""The networks of tables: FCN3, RealMLP and TabM."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.networks.fcn3 import FCN3
from cmixup.pairing.label import LabelDistance
from cmixup.training.method import squared_error, squared_errors
from cmixup.training.optim import Adam
from cmixup.training.trainer import Run, train
from models.realmlp import Rated, RealMLP
from models.tabm import TabM
from tests.helpers import METHODS, make_run, settings

# ---- fcn3


@pytest.mark.parametrize(("width", "depth"), [(512, 2), (64, 1), (32, 4)])
def test_width_and_depth_are_options(width: int, depth: int) -> None:
    torch.manual_seed(0)
    model, x = FCN3((5,), 2, width=width, depth=depth), torch.randn(7, 5)
    blocks = [getattr(model, f"linear{k}") for k in range(1, depth + 1)]
    assert [tuple(part.weight.shape) for part in blocks] == [(width, 5), *[(width, width)] * (depth - 1)]
    expected = x
    for part in blocks:
        expected = nn.functional.leaky_relu(nn.functional.linear(expected, part.weight, part.bias), 0.1)
    torch.testing.assert_close(model(x), nn.functional.linear(expected, model.out.weight, model.out.bias))
    assert model.layers == ("input", *(f"block{k}" for k in range(1, depth + 1)))


def test_initialisation_is_pytorchs_default() -> None:
    torch.manual_seed(3)
    ours = FCN3((5,), 1)
    torch.manual_seed(3)
    theirs = [nn.Linear(5, 128), nn.Linear(128, 128), nn.Linear(128, 1)]
    for one, other in zip((ours.linear1, ours.linear2, ours.out), theirs, strict=True):
        assert torch.equal(one.weight, other.weight)
        assert torch.equal(one.bias, other.bias)


# ---- realmlp


def test_it_is_the_equations_of_the_paper() -> None:
    """Appendix A, a row and a feature at a time; softplus, tanh and cosine by Python's own mathematics."""
    torch.manual_seed(0)
    model = RealMLP((5,), 2, width=16, depth=2, dropout=0.0)
    randomised(model)
    x = torch.randn(7, 5)
    embed, rows = model.embeddings, []
    for row in x.tolist():
        state = []
        for j, value in enumerate(row):
            pairs = zip(embed.weight1()[j, 0].tolist(), embed.bias1()[j, 0].tolist(), strict=True)
            waves = [math.cos(2 * math.pi * w * value + b) for w, b in pairs]
            for n in range(3):
                column = embed.weight2()[j, :, n].tolist()
                state.append(sum(a * b for a, b in zip(column, waves, strict=True)) + embed.bias2()[j, 0, n].item())
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
    ones = torch.cat([model.scale(), *(part() for part in model.activations)])
    torch.testing.assert_close(ones, torch.ones_like(ones))


# ---- tabm


def made_tabm(**changes: int | float) -> tuple[TabM, torch.Tensor]:
    torch.manual_seed(0)
    return TabM((5,), 2, **{"k": 4, "width": 16, "depth": 2, "dropout": 0.0, **changes}), torch.randn(7, 5)  # type: ignore[arg-type]


def randomised(model: nn.Module) -> None:
    """Give every parameter a value that the beginning does not have, so that none can be left out."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))


def test_it_is_the_equation_of_the_paper() -> None:
    model, x = made_tabm()
    randomised(model)
    members = []
    for i in range(4):
        state = x
        for block in model.blocks:
            weight = torch.diag(block.s[i]) @ block.weight @ torch.diag(block.r[i])  # rank-one: W times s r^T
            state = torch.relu(state @ weight.T + block.bias[i])
        members.append(state @ model.weight[i] + model.bias[i])
    expected = torch.stack(members)
    torch.testing.assert_close(model.train()(x), expected)
    torch.testing.assert_close(model.eval()(x), expected.mean(dim=0))


def test_only_the_first_adapter_begins_at_random_signs() -> None:
    model, _ = made_tabm(k=8)
    first, second = model.blocks
    assert set(first.r.flatten().tolist()) == {-1.0, 1.0}
    assert all(bool((part == 1).all()) for part in (first.s, second.r, second.s))
    for block in model.blocks:
        assert bool((block.bias == block.bias[0]).all())
        assert block.weight.abs().max().item() <= block.weight.shape[1] ** -0.5


def test_every_member_is_fitted_by_its_own_error() -> None:
    model, x = made_tabm()
    y = torch.randn(7, 2)
    part = model.train()(x)
    expected = torch.stack([squared_error(member, y) for member in part]).mean()
    torch.testing.assert_close(squared_error(part, y), expected)
    weight = torch.rand(7)
    torch.testing.assert_close(squared_error(part, y, weight), (weight * squared_errors(part, y)).sum() / weight.sum())
    with pytest.raises(InputError, match="same shape"):
        squared_error(part[..., :1], y)


@pytest.mark.parametrize("name", ["irm", "coral", "drnn", "cmixup_h"])
def test_methods_read_the_features_of_all_members_and_their_mean_prediction(name: str) -> None:
    run = make_run(METHODS[name](), model=lambda d, d_y: TabM((d,), d_y, 4, 16, depth=2))
    x = run.data.train.x
    assert run.model.features(x).shape == (48, 64)
    torch.testing.assert_close(run.model.eval().head(run.model.features(x)), run.model(x))
    (result,) = train([run], settings(epochs=2))
    assert not result.failure


# ---- both

NETWORKS: dict[str, Callable[..., Any]] = {
    "realmlp": lambda d, d_y, **given: RealMLP((d,), d_y, 16, 2, **given),
    "tabm": lambda d, d_y, **given: TabM((d,), d_y, 4, 16, depth=2, **given),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_stack_gives_the_numbers_of_each_alone(name: str) -> None:
    def run(seed: int) -> Run:
        torch.manual_seed(seed)
        return make_run(Mix(LabelDistance(0.5), Beta(2.0), "block1"), seed, model=partial(NETWORKS[name], dropout=0.0))

    together = train([run(1), run(2)], settings(epochs=3))
    for seed, one in zip((1, 2), together, strict=True):
        (alone,) = train([run(seed)], settings(epochs=3))
        assert (one.stack, alone.stack) == (2, 1)
        torch.testing.assert_close(one.predictions["test"][""], alone.predictions["test"][""], atol=1e-4, rtol=1e-4)
