import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from cmixup.methods.erm import ERM
from cmixup.networks.fcn3 import FCN3
from cmixup.seeding import Streams, dropout, generator_for, may_draw, torch_seed
from cmixup.sklearn import TabularRegressor
from cmixup.training.trainer import train
from models.tabm import TabM
from tests.helpers import make_data, make_run, settings

GENERATORS = ("order", "partners", "lam", "mixing", "views")


def first(streams: Streams) -> dict[str, float]:
    return {name: getattr(streams, name).random() for name in GENERATORS}


def test_every_stream_and_every_seed_differ_and_repeat() -> None:
    values = [
        v for seed in range(5) for v in (*first(Streams(seed)).values(), Streams(seed).init, Streams(seed).training)
    ]
    assert len(set(values)) == len(values)
    assert first(Streams(3)) == first(Streams(3))


@pytest.mark.parametrize("drawn", GENERATORS)
def test_drawing_from_one_stream_leaves_the_others(drawn: str) -> None:
    untouched, streams = first(Streams(1)), Streams(1)
    getattr(streams, drawn).random(1000)
    for name, value in first(streams).items():
        assert (value == untouched[name]) is (name != drawn)


#: Code that draws and takes no generator.
DRAWING: dict[str, Callable[[Tensor], Tensor]] = {
    "uniform numbers": lambda _: torch.rand(3), "normal numbers": lambda _: torch.randn(2, 3, dtype=torch.float64),
    "those of a shape": lambda x: torch.rand_like(x) + torch.randn_like(x) + torch.randint_like(x, 2, 9),
    "whole numbers": lambda _: torch.randint(9, (5,)) + torch.randint(3, 9, (5,)) + torch.randperm(5),
    "in place": lambda x: x.clone().uniform_().normal_().random_(5).bernoulli_(0.5).exponential_(),
    "by parameters": lambda x: torch.normal(x, 1.0) + torch.bernoulli(x) + torch.poisson(x),
    "a choice": lambda x: torch.multinomial(x[0], 2),
    "dropout": lambda x: functional.dropout(functional.dropout1d(x[:, :, None], 0.5)[:, :, 0], 0.3),
    "dropout of this library": lambda x: dropout(x, 0.3, training=True),
    "weights": lambda _: torch.cat([p.flatten() for p in nn.TransformerEncoderLayer(4, 2, 8).parameters()]),
    "a recurrent network": lambda x: nn.LSTM(4, 4, 2, dropout=0.5)(x[None])[0],
    "attention without dropout": lambda x: nn.MultiheadAttention(4, 2)(x, x, x)[0],
    "attention": lambda x: nn.MultiheadAttention(4, 2, 0.5)(x, x, x)[0],
    "a gradient": lambda x: torch.autograd.grad(functional.rrelu(x - 0.5, training=True).sum(), x)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWING)
def test_code_without_a_generator_draws_what_a_seeded_pytorch_gives_and_leaves_its_generator(name: str) -> None:
    x = torch.linspace(0.1, 0.9, 12).reshape(3, 4).requires_grad_()
    torch.manual_seed(7)
    expected = [DRAWING[name](x) for _ in range(2)]
    before = torch.get_rng_state()
    with torch_seed(7):
        drawn = [DRAWING[name](x), DRAWING[name](x)]
    assert all(torch.equal(one, other) for one, other in zip(drawn, expected, strict=True))
    assert not torch.equal(*drawn)
    assert torch.equal(torch.get_rng_state(), before)


def test_inner_blocks_and_generators_that_are_given_have_their_way() -> None:
    with torch_seed(1), torch_seed(2):
        inner, given = torch.rand(2), torch.rand(2, generator=torch.Generator().manual_seed(3))
    for drawn, seed in ((inner, 2), (given, 3)):
        assert torch.equal(drawn, torch.rand(2, generator=torch.Generator().manual_seed(seed)))
    assert generator_for(torch.device("cpu")) is None
    with torch_seed(0):
        assert torch.rand(2, device="meta").is_meta


class Foreign(nn.Module):
    pass


class Declared(Foreign):
    draws = False


@pytest.mark.parametrize(
    ("model", "draws"),
    [
        (nn.Sequential(nn.Linear(2, 2), nn.ReLU()), False),
        (nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.1))), True), (nn.LSTM(2, 2, 2), False),
        (nn.LSTM(2, 2, 2, dropout=0.1), True), (nn.TransformerEncoderLayer(4, 2), True), (FCN3((2,), 1), False),
        (TabM((2,), 1), False), (Foreign(), True), (Declared(), False), (type("Heir", (Declared,), {})(), True),
    ],
)  # fmt: skip
def test_which_models_may_draw(model: nn.Module, draws: bool) -> None:
    assert may_draw(model) is draws


def test_threads_give_what_one_gives_and_disturb_nobody() -> None:
    """Fits with one seed, and trainings of networks with dropout, beside each other and beside a thread that draws."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    nets: list[Callable[[int, int], nn.Module]] = [
        lambda n, m: TabM((n,), m, width=8, k=2),
        lambda n, m: nn.Sequential(nn.Linear(n, 8), nn.Dropout(0.5), nn.Linear(8, m)),
    ]

    def fit(_: int) -> np.ndarray:
        regressor = TabularRegressor(members=2, epochs=1, bandwidth=0, blend=None, hidden_layer_sizes=(8,))
        return regressor.set_params(random_state=0).fit(x, y).predict(x)

    def run(k: int) -> np.ndarray:
        (result,) = train([make_run(ERM(), 0, make_data(sizes=(32, 8, 8)), nets[k % 2])], settings())
        return result.predictions["test"][""].numpy()

    def draw(_: int) -> np.ndarray:
        torch.manual_seed(3)
        return torch.stack([torch.rand(9) for _ in range(200)]).numpy()

    work = [fit, run, fit, run, fit, run, draw, fit]
    alone = [task(k) for k, task in enumerate(work)]
    with warnings.catch_warnings(), ThreadPoolExecutor(len(work)) as pool:
        warnings.simplefilter("ignore")
        for _ in range(10):
            drawn = pool.map(lambda k: work[k](k), range(len(work)))
            assert all(np.array_equal(one, other) for one, other in zip(drawn, alone, strict=True))
