import numpy as np
import pytest

from cmixup.training.batch import EpochBatches, domain_balanced, domain_batches, shuffled, without_replacement


@pytest.mark.parametrize(
    ("n", "batch", "drop_last", "sizes"),
    [(10, 4, False, [4, 4, 2]), (8, 4, False, [4, 4]), (3, 4, False, [3]), (10, 4, True, [4, 4]), (4, 4, True, [4])],
)
def test_every_row_once_and_a_smaller_last_batch(n: int, batch: int, drop_last: bool, sizes: list[int]) -> None:
    order = shuffled(n, batch, np.random.default_rng(0), drop_last=drop_last)
    in_turn = shuffled(n, batch, None, drop_last=drop_last)
    assert order.sizes.tolist() == in_turn.sizes.tolist() == sizes
    assert order.sizes.dtype == order.index.dtype == np.int64
    assert len(set(order.index.tolist())) == sum(sizes)
    assert in_turn.index.tolist() == list(range(sum(sizes)))


# ---- batches of domains

# 40 domains of 1 to 40 rows, in shuffled order and with ids that are not 0, 1, ...
DOMAIN = np.random.default_rng(0).permutation(np.repeat(np.arange(40) * 3 + 5, np.arange(1, 41)))


def parts(order: EpochBatches, groups: int) -> np.ndarray:
    """The rows of an order as (batches, groups, rows)."""
    return order.index.reshape(len(order.sizes), groups, -1)


@pytest.mark.parametrize(
    ("groups", "rows", "n_batches"), [(4, 4, 51), (4, 8, 25), (8, 1, 102), (1, 16, 51), (40, 20, 1)]
)
def test_batches_hold_distinct_domains_and_as_many_rows_of_each(groups: int, rows: int, n_batches: int) -> None:
    order = domain_batches(DOMAIN, groups, rows, np.random.default_rng(1))
    assert order.index.dtype == order.sizes.dtype == np.int64
    assert order.sizes.tolist() == [groups * rows] * n_batches  # floor(820 / (groups * rows))
    for batch in DOMAIN[parts(order, groups)]:
        assert (batch == batch[:, :1]).all()
        assert len(np.unique(batch[:, 0])) == groups


def test_rows_of_a_domain_repeat_only_where_it_has_too_few() -> None:
    rng = np.random.default_rng(2)
    sizes: dict[int, set[int]] = {}
    for _ in range(40):
        for part in parts(domain_batches(DOMAIN, 4, 8, rng), 4).reshape(-1, 8):
            sizes.setdefault(int((DOMAIN[part[0]] == DOMAIN).sum()), set()).add(len(np.unique(part)))
    assert sorted(sizes) == list(range(1, 41))
    assert sizes[1] == {1}  # a single row, eight times
    assert all(counts == {8} for size, counts in sizes.items() if size > 8)
    assert min(sizes[8]) < 8  # WILDS: with replacement from 8 rows, too


def test_domains_are_uniform_whatever_their_size() -> None:
    rng = np.random.default_rng(3)
    first = np.concatenate([DOMAIN[parts(domain_batches(DOMAIN, 4, 4, rng), 4)[:, :, 0]] for _ in range(200)])
    for place in range(4):
        counts = np.unique(first[:, place], return_counts=True)[1]
        expected = len(first) / 40
        assert len(counts) == 40
        assert abs(((counts - expected) ** 2 / expected).sum() - 39) < 4 * (2 * 39) ** 0.5


def test_rows_of_a_domain_are_uniform_at_every_place() -> None:
    """IRM splits a domain's rows by their places."""
    drawn = without_replacement(np.full(24000, 4), 2, np.random.default_rng(4))
    pairs, counts = np.unique(drawn, axis=0, return_counts=True)
    assert len(pairs) == 12  # ordered, without 0 0, 1 1, ...
    assert abs(((counts - 2000) ** 2 / 2000).sum() - 11) < 4 * (2 * 11) ** 0.5
    all_rows = without_replacement(np.array([5, 5]), 5, np.random.default_rng(0))
    assert np.sort(all_rows, axis=1).tolist() == [[0, 1, 2, 3, 4]] * 2


def test_balanced_rows_weigh_one_over_the_size_of_their_domain() -> None:
    rng = np.random.default_rng(5)
    rows = np.concatenate([domain_balanced(DOMAIN, 16, rng).index for _ in range(400)])
    counts = np.bincount(rows, minlength=len(DOMAIN))
    sizes = np.array([(d == DOMAIN).sum() for d in DOMAIN])
    expected = len(rows) / 40 / sizes
    assert abs(((counts - expected) ** 2 / expected).sum() - 819) < 4 * (2 * 819) ** 0.5
