"""Linear mixing, and the draws of lambda."""

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.mixing.lam import Beta, Constant, TaskBeta
from cmixup.mixing.linear import mix
from cmixup.training.batch import EpochBatches, shuffled
from cmixup.training.method import squared_error
from tests.helpers import refuses

# ---- linear


@pytest.mark.parametrize("shape", [(), (3,), (3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("lead", [(6,), (2, 6)])
def test_lambda_broadcasts_over_features_of_any_rank(lead: tuple[int, ...], shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(*lead, *shape, generator=generator), torch.randn(*lead, *shape, generator=generator)
    lam = torch.rand(lead, generator=generator)
    mixed = mix(first, second, lam)
    assert mixed.shape == first.shape
    for index in torch.cartesian_prod(*(torch.arange(n) for n in lead)).reshape(-1, len(lead)).tolist():
        at = tuple(index)
        torch.testing.assert_close(mixed[at], lam[at] * first[at] + (1 - lam[at]) * second[at])


def test_lists_and_dictionaries_mix_entry_by_entry() -> None:
    first, second = {"a": [torch.zeros(2)], "b": None}, {"a": [torch.full((2,), 4.0)], "b": None}
    mixed = mix(first, second, torch.tensor([0.75, 0.5]))
    assert mixed["a"][0].tolist() == [1.0, 2.0]
    assert mixed["b"] is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["float64", "float32", "same", "numpy", "number", "numpy number"])
def test_any_dtype_of_states_and_lambda(dtype: torch.dtype, kind: str) -> None:
    """The result has the states' dtype, and is the closed form in float64 but for one rounding."""
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(6, 3, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2))
    weight = torch.rand(6, generator=generator, dtype=torch.float64)
    lam = {
        "float64": weight, "float32": weight.float(), "same": weight.to(dtype), "numpy": weight.numpy(), "number": 0.3,
        "numpy number": np.float64(0.3),
    }[kind]  # fmt: skip
    mixed = mix(first, second, lam)
    assert mixed.dtype == dtype
    exact = torch.as_tensor(lam, dtype=torch.float64).reshape(-1, 1)
    expected = exact * first.double() + (1 - exact) * second.double()
    eps = torch.finfo(dtype).eps
    rtol, atol = (0.51 * eps, 1e-6) if dtype.itemsize == 2 else (2 * eps, max(4 * eps, 1e-7 * (kind == "float32")))
    torch.testing.assert_close(mixed.double(), expected, rtol=rtol, atol=atol)


def test_one_weight_for_all_and_one_for_each_model_of_a_stack() -> None:
    first, second = torch.ones(2, 3, 4), torch.zeros(2, 3, 4)
    assert (mix(first, second, torch.tensor(0.25)) == 0.25).all()
    assert mix(first, second, torch.tensor([0.25, 0.5]))[:, 0, 0].tolist() == [0.25, 0.5]


def test_it_can_be_vectorised() -> None:
    first, second, lam = torch.randn(5, 4, 3), torch.randn(5, 4, 3), torch.rand(5, 4)
    assert torch.equal(torch.func.vmap(mix)(first, second, lam), mix(first, second, lam))


@pytest.mark.parametrize("lam", [1.0, 0.0])
def test_lambda_one_and_zero_are_exact(lam: float) -> None:
    first, second = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.full((5, 3), 1e3)
    assert torch.equal(mix(first, second, torch.full((5,), lam)), first if lam else second)


def test_a_flat_target_does_not_broadcast() -> None:
    with pytest.raises(InputError, match=r"same shape, got \(4, 1\) and \(4,\)"):
        squared_error(torch.zeros(4, 1), torch.zeros(4))


# ---- lam


def order_of(n: int, batch_size: int = 16) -> EpochBatches:
    return shuffled(n, batch_size, np.random.default_rng(0))


@pytest.mark.parametrize("alpha", [0.2, 0.5, 2.0])
def test_moments(alpha: float) -> None:
    lam = Beta(alpha).draw(order_of(200_000).sizes, np.random.default_rng(0))
    variance = 1 / (4 * (2 * alpha + 1))
    assert lam.mean() == pytest.approx(0.5, abs=5 * (variance / 200_000) ** 0.5)
    assert lam.var() == pytest.approx(variance, rel=0.02)
    assert lam.min() >= 0
    assert lam.max() <= 1


def test_one_a_batch_is_constant_in_the_batch() -> None:
    order = order_of(40)
    lam = Beta(0.5, "batch").draw(order.sizes, np.random.default_rng(0))
    assert lam.shape == (40,)
    assert lam.dtype == np.float32
    pieces = np.split(lam, np.cumsum(order.sizes)[:-1])
    assert [len(piece) for piece in pieces] == [16, 16, 8]
    assert all(len(set(piece.tolist())) == 1 for piece in pieces)
    assert len({piece[0] for piece in pieces}) == 3


test_a_bad_alpha_is_refused_by_name = refuses(
    [(alpha, "alpha must be a .*number") for alpha in (0, -1.0, float("nan"), float("inf"), "0.5x", True, None)], Beta
)


@pytest.mark.parametrize("value", [0, 0.3, 1.0])
def test_a_constant_is_the_same_for_all(value: float) -> None:
    rng = np.random.default_rng(0)
    lam = Constant(value).draw(np.array([4, 3]), rng)
    assert lam.tolist() == [np.float32(value)] * 7
    assert lam.dtype == np.float32
    assert rng.random() == np.random.default_rng(0).random()  # nothing was drawn


test_a_constant_outside_0_to_1_is_refused = refuses(
    [(value, r"value must lie in \[0, 1\]") for value in (-0.1, 1.5, float("nan"))], Constant
)


def test_tasks_draw_one_a_query_or_one_a_task() -> None:
    sizes = np.full(6, 4)
    per_query = TaskBeta(0.5).draw(sizes, np.random.default_rng(0))
    per_task = TaskBeta(0.5, "task").draw(sizes, np.random.default_rng(0)).reshape(6, 4)
    assert len(set(per_query.tolist())) == 24
    assert (per_task == per_task[:, :1]).all()
    assert len(set(per_task[:, 0].tolist())) == 6
    assert per_query.tolist() == Beta(0.5).draw(sizes, np.random.default_rng(0)).tolist()
    assert per_task.ravel().tolist() == Beta(0.5, "batch").draw(sizes, np.random.default_rng(0)).tolist()
    with pytest.raises(InputError, match="lam_per must be one of query, task, got 'batch'"):
        TaskBeta(1.0, "batch")


def test_sample_is_what_draw_gives_a_batch() -> None:
    one, other = (
        Beta(2.0).sample(7, np.random.default_rng(0)),
        Beta(2.0).draw(np.array([7]), np.random.default_rng(0)),
    )
    assert one.tolist() == other.tolist()
    assert len(Beta(2.0, "batch").sample(7, np.random.default_rng(0)).unique()) == 1
    assert Beta(2.0).sample(0).shape == (0,)


def test_sample_without_a_generator_follows_torch() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        first, second = Beta(2.0).sample(5), Beta(2.0).sample(5)
        torch.manual_seed(0)
        assert torch.equal(Beta(2.0).sample(5), first)
        assert not torch.equal(first, second)
