import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.mixing.lam import Beta, Constant, TaskBeta
from cmixup.order import EpochBatches, shuffled
from tests.helpers import refuses


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


@pytest.mark.parametrize("alpha", [1e-6, 1e-300])
def test_small_alpha_gives_zero_or_one(alpha: float) -> None:
    lam = Beta(alpha).draw(order_of(2000).sizes, np.random.default_rng(0))
    assert set(np.round(lam, 6).tolist()) == {0.0, 1.0}
    assert 0.4 < lam.mean() < 0.6


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


def test_an_unknown_granularity_is_refused() -> None:
    with pytest.raises(InputError, match="lam_per must be one of example, batch, got 'epoch'"):
        Beta(1.0, "epoch")


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
