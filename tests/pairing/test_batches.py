"""Pairings inside batches: a second batch, blocks of k rows, and the distances of flat inputs."""

from itertools import permutations

import numpy as np
import pytest
import torch

from cmixup.data import Split
from cmixup.pairing import flat
from cmixup.pairing.blocks import Blocks
from cmixup.pairing.flat import Standardised
from cmixup.pairing.second_batch import SecondBatch
from cmixup.pairing.uniform import Permutation
from cmixup.training.batch import EpochBatches, shuffled
from tests.helpers import Lazy, make_split, refuses
from tests.sampling.goodness import exact_row, p_value

# ---- Partners by label distance inside a second batch


INF = float("inf")


def fitted(n: int, *given: object, **options: object) -> SecondBatch:
    pairing = SecondBatch(*given, **options)  # type: ignore[arg-type]
    pairing.fit(make_split(n))
    return pairing


def drawn(pairing: SecondBatch, n: int, seed: int = 1) -> tuple[EpochBatches, np.ndarray]:
    order = shuffled(n, 16, np.random.default_rng(seed))
    return order, pairing.draw(order, np.random.default_rng([seed, 1]))


@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("bandwidth", [0.0, 0.2, INF])
def test_partners_never_come_from_the_first_batch(bandwidth: float, factor: float) -> None:
    pairing = fitted(60, bandwidth, factor=factor)
    for seed in range(20):
        order, partner = drawn(pairing, 60, seed)
        assert partner.shape == (60,)
        assert partner.dtype == np.int64
        starts = np.cumsum(order.sizes) - order.sizes
        for start, first in zip(starts, order.batches(), strict=True):
            assert not set(partner[start : start + len(first)].tolist()) & set(first.tolist())


@pytest.mark.parametrize(
    ("size", "expected"), [(16, 16), (23.5, 24), (40, 40), (50, 44), (59, 44), (60, 60), (INF, 60)]
)
def test_the_second_batch_has_distinct_rows_outside_the_first_until_it_is_everything(
    size: float, expected: int
) -> None:
    pairing, first = fitted(60, 0.3), np.arange(10, 26)
    second = pairing.second(first, size, np.random.default_rng(0))
    assert len(set(second.tolist())) == len(second) == expected
    assert bool(np.isin(second, first).any()) is (expected == 60)


@pytest.mark.parametrize("row", [0, 5, 11])
def test_all_data_as_second_batch_gives_the_full_rows(row: int) -> None:
    labels = make_split(24).y.numpy()[:, 0]
    order = EpochBatches(np.full(8000, row), np.array([8000]))
    partner = fitted(24, 0.4, factor=INF).draw(order, np.random.default_rng(0))
    p = p_value(partner, exact_row(labels, 0.4, row))
    assert p is not None
    assert p > 1e-3
    other = p_value(partner, exact_row(labels, 0.5, row))
    assert other is not None
    assert other < 1e-3


def test_candidates_of_both_batches_hold_the_row_itself() -> None:
    """At bandwidth 0 and distinct labels the row itself is the only candidate with weight."""
    order, partner = drawn(fitted(60, 0.0, candidates="b1+b2"), 60)
    assert partner.tolist() == order.index.tolist()
    order, partner = drawn(fitted(60, INF, candidates="b1+b2"), 60)
    inside = [
        np.isin(p, b) for b, p in zip(order.batches(), np.split(partner, np.cumsum(order.sizes)[:-1]), strict=True)
    ]
    assert 0.25 < np.concatenate(inside).mean() < 0.75


def test_the_released_second_batch_is_drawn_with_replacement_from_all_rows() -> None:
    """`np.random.choice(arange(N))` for each row of B1 (src/algorithm.py): repeated rows and those of B1 occur."""
    pairing, first, rng = fitted(20, 0.3, candidates="b1+b2"), np.arange(16), np.random.default_rng(0)
    seconds = [pairing.second(first, 16, rng) for _ in range(500)]
    assert {len(second) for second in seconds} == {16}
    different = np.mean([len(set(second.tolist())) for second in seconds])
    assert different == pytest.approx(20 * (1 - (19 / 20) ** 16), rel=0.03)
    p = p_value(np.concatenate(seconds), np.full(20, 1 / 20))
    assert p is not None
    assert p > 1e-3


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: SecondBatch(-1.0), "bandwidth must be 0 or more .*got -1.0"),
        (lambda: SecondBatch(1.0, "b1"), r"candidates must be one of b2, b1\+b2, got 'b1'"),
        (lambda: SecondBatch(1.0, factor=0.5), "factor must be 1 or more .*got 0.5"),
        (lambda: SecondBatch(1.0, factor="two"), "factor must be a number, got 'two'"),
        (lambda: Blocks(0), "k must be a whole number, 1 or more, got 0"),
    ]
)


# ---- Partners by assignment between blocks of k rows


N, B = 43, 16  # batches of 16, 16 and 11


def drawn_blocks(pairing: Blocks | Permutation, train: Split, seed: int = 1) -> tuple[EpochBatches, np.ndarray]:
    pairing.fit(train)
    order = shuffled(len(train), B, np.random.default_rng(0))
    return order, pairing.draw(order, np.random.default_rng(seed))


def block_slices(k: int) -> list[slice]:
    return [slice(s, min(s + k, stop)) for start, stop in ((0, 16), (16, 32), (32, 43)) for s in range(start, stop, k)]


def cost(train: Split, first: np.ndarray, second: np.ndarray) -> float:
    return float(np.square(train.x.double().numpy()[first] - train.x.double().numpy()[second]).sum())


@pytest.mark.parametrize("k", [2, 4, 5])
def test_each_block_gets_its_own_second_block_at_least_cost(k: int) -> None:
    train = make_split(N)
    order, partner = drawn_blocks(Blocks(k), train)
    unmatched = drawn_blocks(Permutation(), train)[1]
    better = 0
    for rows in block_slices(k):
        mine, theirs, before = order.index[rows], partner[rows], unmatched[rows]
        assert sorted(theirs) == sorted(before)  # a bijection onto the second block
        actual = cost(train, mine, theirs)
        least = min(cost(train, mine, np.array(p)) for p in permutations(before))
        assert actual == pytest.approx(least, abs=1e-5)
        better += actual < cost(train, mine, before) - 1e-4
    assert better > len(block_slices(k)) / 3


def test_an_independent_batch_reaches_beyond_the_batch() -> None:
    train = make_split(N)
    pairing = Blocks(B, second="independent")
    order, partner = drawn_blocks(pairing, train)
    first, theirs = order.index[:B], partner[:B]
    assert len(set(theirs.tolist())) == B
    assert not set(theirs.tolist()) <= set(first.tolist())
    assert pairing.diagnostics()["self_probability"] < 0.3


@pytest.mark.parametrize("room", [1, 7, 30])
def test_inputs_read_on_demand_give_the_same_pairs(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    train = make_split(N)
    lazy = Lazy(train.x.reshape(N, 3, 1))
    expected = drawn_blocks(Blocks(4), train)[1]
    monkeypatch.setattr(flat, "INPUT_BYTES_PER_CHUNK", 12 * room)
    got = drawn_blocks(Blocks(4), Split(lazy, train.y, train.domain))[1]
    assert got.tolist() == expected.tolist()
    assert max(lazy.read_sizes) <= max(room, 8)  # at least one block of the batch and its second


# ---- Distances between standardised inputs


def test_distances_are_those_of_the_definition() -> None:
    x = make_split(40).x * torch.tensor([1.0, 100.0, 0.01]) + torch.tensor([0.0, 1e3, 5.0])
    x = torch.cat([x, torch.full((40, 1), 0.1)], dim=1)  # a constant column counts nothing
    inputs, rows = Standardised(x), x.double().numpy()
    deviation = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(deviation > 0, deviation, np.inf)
    expected = np.linalg.norm(rows[:, None] - rows, axis=2)
    first, second = (a.ravel() for a in np.indices((40, 40)))
    np.testing.assert_allclose(inputs.between(first, second).reshape(40, 40), expected, atol=2e-3)
    assert (inputs.between(np.arange(40), np.arange(40)) == 0).all()
    np.testing.assert_allclose(np.sort(inputs.pair_distances()), np.sort(expected.ravel()), atol=2e-3)
    for k in (0, 1, 5, 39):
        np.testing.assert_allclose(inputs.kth_distance(k), np.sort(expected, axis=1)[:, k], atol=2e-3)


def test_the_kth_distance_counts_other_rows_where_inputs_repeat() -> None:
    inputs = Standardised(torch.tensor([[0.0], [0.0], [0.0], [1.0]]))
    assert inputs.kth_distance(1).tolist() == pytest.approx([0, 0, 0, 1 / 0.75**0.5 / 0.5])
    assert (inputs.kth_distance(3)[:3] > 0).all()


@pytest.mark.parametrize("room", [1, 7, 100])
def test_inputs_read_on_demand_in_pieces(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    x = make_split(40).x.reshape(40, 3, 1)
    whole = Standardised(x)
    pairs = np.arange(39), np.arange(1, 40)
    monkeypatch.setattr(flat, "INPUT_BYTES_PER_CHUNK", 12 * room)
    lazy = Lazy(x)
    pieces = Standardised(lazy)
    assert len(pieces.sample) == min(40, max(2, room))
    if room == 100:
        np.testing.assert_allclose(pieces.between(*pairs), whole.between(*pairs), rtol=1e-6)
        np.testing.assert_allclose(pieces.kth_distance(4), whole.kth_distance(4), rtol=1e-6)
    pieces.between(*pairs)
    pieces.kth_distance(4)
    assert max(lazy.read_sizes) <= max(2, room)


def test_large_data_is_sampled_the_same_way_every_time() -> None:
    x = torch.rand(flat.SAMPLED_ROWS + 500, 2, generator=torch.Generator().manual_seed(0))
    one, other = Standardised(x), Standardised(x)
    assert len(one.sample) == flat.SAMPLED_ROWS
    assert one.sample.tolist() == other.sample.tolist()
    assert len(set(one.sample.tolist())) == flat.SAMPLED_ROWS
    torch.testing.assert_close(one.read(np.arange(len(x))).std(dim=0, correction=0), torch.ones(2))
