from __future__ import annotations

import numpy as np
import pytest

from cmixup.errors import InputError
from cmixup.order import Order, shuffled


@pytest.mark.parametrize(("n", "batch", "sizes"), [(10, 4, [4, 4, 2]), (8, 4, [4, 4]), (3, 4, [3]), (4, 1, [1] * 4)])
def test_every_row_once_and_a_smaller_last_batch(n: int, batch: int, sizes: list[int]) -> None:
    order = shuffled(n, batch, np.random.default_rng(0))
    assert order.sizes.tolist() == sizes
    assert order.sizes.dtype == order.index.dtype == np.int64
    assert sorted(order.index.tolist()) == list(range(n))


@pytest.mark.parametrize(("n", "batch", "sizes"), [(10, 4, [4, 4]), (8, 4, [4, 4]), (4, 4, [4])])
def test_drop_last_leaves_out_the_rest(n: int, batch: int, sizes: list[int]) -> None:
    order = shuffled(n, batch, np.random.default_rng(0), drop_last=True)
    assert order.sizes.tolist() == sizes
    assert len(set(order.index.tolist())) == sum(sizes)


def test_drop_last_keeps_the_rows_that_come_first() -> None:
    kept = shuffled(10, 4, np.random.default_rng(3), drop_last=True)
    whole = shuffled(10, 4, np.random.default_rng(3))
    assert kept.index.tolist() == whole.index[:8].tolist()


def test_epochs_differ_and_seeds_repeat() -> None:
    rng = np.random.default_rng(0)
    first, second = shuffled(50, 8, rng), shuffled(50, 8, rng)
    assert first.index.tolist() != second.index.tolist()
    assert first.index.tolist() == shuffled(50, 8, np.random.default_rng(0)).index.tolist()


def test_batches_cut_the_index() -> None:
    order = Order(np.array([5, 3, 1, 0, 2]), np.array([2, 2, 1]))
    assert [batch.tolist() for batch in order.batches()] == [[5, 3], [1, 0], [2]]


@pytest.mark.parametrize("batch_size", [0, -4])
def test_a_batch_size_below_one_is_refused(batch_size: int) -> None:
    with pytest.raises(InputError, match=f"batch_size must be 1 or more, got {batch_size}"):
        shuffled(10, batch_size, np.random.default_rng(0))


def test_dropping_the_only_batch_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size 16 is larger than the 10 training rows"):
        shuffled(10, 16, np.random.default_rng(0), drop_last=True)
