"""Partners by assignment between blocks of k rows."""

from itertools import permutations

import numpy as np
import pytest

from cmixup.data import Split
from cmixup.order import EpochBatches, shuffled
from cmixup.pairing import flat
from cmixup.pairing.blocks import Blocks
from cmixup.pairing.uniform import Permutation
from tests.helpers import Lazy, make_split, refuses

N, B = 43, 16  # batches of 16, 16 and 11


def drawn(pairing: Blocks | Permutation, train: Split, seed: int = 1) -> tuple[EpochBatches, np.ndarray]:
    pairing.fit(train)
    order = shuffled(len(train), B, np.random.default_rng(0))
    return order, pairing.draw(order, np.random.default_rng(seed))


def block_slices(k: int) -> list[slice]:
    return [slice(s, min(s + k, stop)) for start, stop in ((0, 16), (16, 32), (32, 43)) for s in range(start, stop, k)]


def cost(train: Split, first: np.ndarray, second: np.ndarray, metric: str = "sqeuclidean") -> float:
    distance = np.linalg.norm(train.x.double().numpy()[first] - train.x.double().numpy()[second], axis=1)
    return float((distance**2 if metric == "sqeuclidean" else distance).sum())


def test_one_row_a_block_is_a_permutation_bit_for_bit() -> None:
    train = make_split(N)
    assert drawn(Blocks(1), train)[1].tolist() == drawn(Permutation(), train)[1].tolist()


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean"])
@pytest.mark.parametrize("k", [2, 4, 5])
def test_each_block_gets_its_own_second_block_at_least_cost(k: int, metric: str) -> None:
    train = make_split(N)
    order, partner = drawn(Blocks(k, metric), train)
    unmatched = drawn(Permutation(), train)[1]
    better = 0
    for rows in block_slices(k):
        mine, theirs, before = order.index[rows], partner[rows], unmatched[rows]
        assert sorted(theirs) == sorted(before)  # a bijection onto the second block
        found = cost(train, mine, theirs, metric)
        least = min(cost(train, mine, np.array(p), metric) for p in permutations(before))
        assert found == pytest.approx(least, abs=1e-5)
        better += found < cost(train, mine, before, metric) - 1e-4
    assert better > len(block_slices(k)) / 3


def test_a_whole_permuted_batch_pairs_every_row_with_itself() -> None:
    train = make_split(N)
    pairing = Blocks(B)
    order, partner = drawn(pairing, train)
    assert partner.tolist() == order.index.tolist()
    assert pairing.diagnostics() == {"self_probability": 1.0, "cost_ratio": 0.0}


def test_an_independent_batch_reaches_beyond_the_batch() -> None:
    train = make_split(N)
    pairing = Blocks(B, second="independent")
    order, partner = drawn(pairing, train)
    first, theirs = order.index[:B], partner[:B]
    assert len(set(theirs.tolist())) == B
    assert not set(theirs.tolist()) <= set(first.tolist())
    assert pairing.diagnostics()["self_probability"] < 0.3
    assert 0 < pairing.diagnostics()["cost_ratio"] < 0.7


@pytest.mark.parametrize("room", [1, 7, 30])
def test_inputs_read_on_demand_give_the_same_pairs(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    train = make_split(N)
    lazy = Lazy(train.x.reshape(N, 3, 1))
    expected = drawn(Blocks(4), train)[1]
    monkeypatch.setattr(flat, "INPUT_BYTES_PER_CHUNK", 12 * room)
    got = drawn(Blocks(4), Split(lazy, train.y, train.domain))[1]
    assert got.tolist() == expected.tolist()
    assert max(lazy.asked) <= max(room, 8)  # at least one block of the batch and its second


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: Blocks(0), "k must be a whole number, 1 or more, got 0"),
        (lambda: Blocks(4, "cosine"), "metric must be one of sqeuclidean, euclidean, got 'cosine'"),
        (lambda: drawn(Blocks(17), make_split(N)), "k must be at most the batch size, got k 17 for batches of 16 rows"),
    ]
)
