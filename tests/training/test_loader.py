from __future__ import annotations

import numpy as np
import pytest
import torch

from cmixup.batch import Batch
from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.order import EpochBatches, shuffled
from cmixup.training import loader as rows_module
from cmixup.training.loader import Rows
from tests.helpers import CPU, Lazy, make_split


def flat(batch: Batch) -> list[torch.Tensor]:
    partner = [] if batch.partner is None else flat(batch.partner)
    return [batch.x, batch.y, batch.domain, *partner, *batch.draws.values()]


def epoch(n_runs: int, n: int = 50, d: int = 3) -> tuple[list[Split], list[EpochBatches], list[dict[str, np.ndarray]]]:
    rng = np.random.default_rng(0)
    splits = [make_split(n, d, d_y=2, seed=seed) for seed in range(n_runs)]
    orders = [shuffled(n, 8, rng) for _ in range(n_runs)]
    draws = [{"partner": rng.integers(0, n, n), "lam": rng.random(n), "angle": rng.random(n)} for _ in range(n_runs)]
    return splits, orders, draws


@pytest.mark.parametrize("limit", [1, 500, 1000])
@pytest.mark.parametrize("n_runs", [1, 3])
def test_gathering_in_chunks_gives_the_same_batches(n_runs: int, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    splits, orders, draws = epoch(n_runs)
    whole = list(Rows(splits, CPU).batches(orders, draws))
    fetched: list[int] = []
    fetch = Rows.fetch
    monkeypatch.setattr(
        Rows, "fetch", lambda self, index, *view: (fetched.append(index.shape[1]), fetch(self, index, *view))[1]
    )
    monkeypatch.setattr(rows_module, "CHUNK_BYTES", limit)
    chunked = list(Rows(splits, CPU).batches(orders, draws))
    assert len(fetched) > 2  # once for the rows and once for the partners would be a single chunk
    assert len(chunked) == len(whole) == 7
    for one, other in zip(chunked, whole, strict=True):
        assert len(flat(one)) == 8
        assert all(torch.equal(a, b) for a, b in zip(flat(one), flat(other), strict=True))


def test_everything_is_gathered_at_once_where_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    splits, orders, draws = epoch(2)
    fetched: list[int] = []
    fetch = Rows.fetch
    monkeypatch.setattr(
        Rows, "fetch", lambda self, index, *view: (fetched.append(index.shape[1]), fetch(self, index, *view))[1]
    )
    list(Rows(splits, CPU).batches(orders, draws))
    assert fetched == [50, 50]


@pytest.mark.parametrize("n_runs", [1, 3])
def test_batches_hold_the_rows_of_each_run(n_runs: int) -> None:
    splits, orders, draws = epoch(n_runs)
    start = 0
    for batch in Rows(splits, CPU).batches(orders, draws):
        size = batch.x.shape[-2]
        assert batch.partner is not None
        for e in range(n_runs):
            own = orders[e].index[start : start + size]
            partner = draws[e]["partner"][start : start + size]
            pick = (lambda t: t) if n_runs == 1 else (lambda t, e=e: t[e])
            assert torch.equal(pick(batch.x), splits[e].x[own])
            assert torch.equal(pick(batch.y), splits[e].y[own])
            assert torch.equal(pick(batch.domain), splits[e].domain[own])
            assert torch.equal(pick(batch.partner.x), splits[e].x[partner])
            assert torch.equal(pick(batch.partner.y), splits[e].y[partner])
            assert pick(batch.draws["lam"]).tolist() == draws[e]["lam"][start : start + size].tolist()
            assert pick(batch.draws["angle"]).tolist() == draws[e]["angle"][start : start + size].tolist()
        start += size
    assert start == 50


def test_without_partners_there_are_none() -> None:
    splits, orders, _ = epoch(1)
    batches = list(Rows(splits, CPU).batches(orders, [{}]))
    assert all(batch.partner is None and batch.draws == {} for batch in batches)


@pytest.mark.parametrize("n_runs", [1, 2])
def test_labels_of_all_runs(n_runs: int) -> None:
    splits, _, _ = epoch(n_runs)
    y = Rows(splits, CPU).y
    assert torch.equal(y, splits[0].y if n_runs == 1 else torch.stack([s.y for s in splits]))


def test_inputs_of_higher_rank_keep_their_shape() -> None:
    n = 6
    x = torch.arange(n * 2 * 3 * 4, dtype=torch.float32).reshape(n, 2, 3, 4)
    split = Split(x, torch.zeros(n, 1), torch.zeros(n, dtype=torch.int64))
    index = torch.tensor([[4, 1, 4]])
    assert torch.equal(Rows([split], CPU).fetch(index).x, x[[4, 1, 4]])
    both = Rows([split, split], CPU).fetch(torch.tensor([[4, 1], [0, 5]])).x
    assert torch.equal(both, torch.stack([x[[4, 1]], x[[0, 5]]]))


def test_lazy_inputs_are_read_a_batch_at_a_time() -> None:
    (split,), orders, draws = epoch(1)
    assert isinstance(split.x, torch.Tensor)
    x = Lazy(split.x)
    lazy = Split(x, split.y, split.domain)
    batches = list(Rows([lazy], CPU).batches(orders, draws))
    whole = list(Rows([split], CPU).batches(orders, draws))
    assert max(x.asked) == 8
    for one, other in zip(batches, whole, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(flat(one), flat(other), strict=True))


def test_splits_of_different_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="all runs of a stack need splits of one shape"):
        Rows([make_split(8), make_split(9)], CPU)
    with pytest.raises(InputError, match="all runs of a stack need splits of one shape"):
        Rows([make_split(8, d=3), make_split(8, d=4)], CPU)


def test_batches_of_different_sizes_are_refused() -> None:
    splits, orders, draws = epoch(2)
    orders[1] = shuffled(50, 9, np.random.default_rng(0))
    with pytest.raises(InputError, match="batches of the same sizes"):
        next(Rows(splits, CPU).batches(orders, draws))
