import os
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import torch

from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.training import loader as loader_module
from cmixup.training.batch import Batch, EpochBatches, shuffled
from cmixup.training.loader import BatchLoader
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
    whole = list(BatchLoader(splits, CPU).batches(orders, draws))
    fetched: list[int] = []
    fetch = BatchLoader.fetch
    monkeypatch.setattr(
        BatchLoader, "fetch", lambda self, index, *view: (fetched.append(index.shape[1]), fetch(self, index, *view))[1]
    )
    monkeypatch.setattr(loader_module, "CHUNK_BYTES", limit)
    chunked = list(BatchLoader(splits, CPU).batches(orders, draws))
    assert len(fetched) > 2  # once for the rows and once for the partners would be a single chunk
    assert len(chunked) == len(whole) == 7
    for one, other in zip(chunked, whole, strict=True):
        assert len(flat(one)) == 8
        assert all(torch.equal(a, b) for a, b in zip(flat(one), flat(other), strict=True))


@pytest.mark.parametrize("n_runs", [1, 3])
def test_batches_hold_the_rows_of_each_run(n_runs: int) -> None:
    splits, orders, draws = epoch(n_runs)
    start = 0
    for batch in BatchLoader(splits, CPU).batches(orders, draws):
        size = batch.x.shape[-2]
        assert batch.partner is not None
        for e in range(n_runs):
            index = orders[e].index[start : start + size]
            partner = draws[e]["partner"][start : start + size]
            pick = (lambda t: t) if n_runs == 1 else (lambda t, e=e: t[e])
            assert torch.equal(pick(batch.x), splits[e].x[index])
            assert torch.equal(pick(batch.y), splits[e].y[index])
            assert torch.equal(pick(batch.domain), splits[e].domain[index])
            assert torch.equal(pick(batch.partner.x), splits[e].x[partner])
            assert torch.equal(pick(batch.partner.y), splits[e].y[partner])
            assert pick(batch.draws["lam"]).tolist() == draws[e]["lam"][start : start + size].tolist()
            assert pick(batch.draws["angle"]).tolist() == draws[e]["angle"][start : start + size].tolist()
        start += size
    assert start == 50


def test_lazy_inputs_are_not_read_when_the_split_is_made() -> None:
    x, whole = Lazy(torch.zeros(4, 2)), make_split(4)
    split = replace(whole, x=x)
    assert (x.read_sizes, len(split)) == ([], 4)
    assert (split.stackable, whole.stackable) == (False, True)


def test_batches_of_different_sizes_are_refused() -> None:
    splits, orders, draws = epoch(2)
    orders[1] = shuffled(50, 9, np.random.default_rng(0))
    with pytest.raises(InputError, match="batches of the same sizes"):
        next(BatchLoader(splits, CPU).batches(orders, draws))


# ---- inputs that are read by worker processes


class Slow(Lazy):
    """Inputs that ask for two worker processes, and remember in which process they were read."""

    workers = 2

    def __getitem__(self, index: torch.Tensor) -> torch.Tensor:
        x = super().__getitem__(index).clone()
        x[:, 0] = os.getpid()
        return x


class Viewed(Lazy):
    workers = 1

    def sample(self, index: torch.Tensor, draw: torch.Tensor) -> torch.Tensor:
        return self[index] + draw[:, None]


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


class Named(Lazy):
    workers = 1

    def __getitem__(self, index: torch.Tensor) -> Pair:
        return Pair(super().__getitem__(index), index)


class Broken(Lazy):
    workers = 1

    def __getitem__(self, index: torch.Tensor) -> torch.Tensor:
        raise InputError("image 3 cannot be read")


def test_workers_give_the_batches_of_this_process_in_their_order() -> None:
    (split,), orders, draws = epoch(1)
    before = torch.random.get_rng_state()
    slow = list(BatchLoader([replace(split, x=Slow(split.x))], CPU).batches(orders, draws))
    assert torch.equal(torch.random.get_rng_state(), before)  # nothing is drawn from the global stream
    whole = list(BatchLoader([split], CPU).batches(orders, draws))
    assert len(slow) == len(whole) == 7
    for one, other in zip(slow, whole, strict=True):
        assert one.partner is not None
        assert other.partner is not None
        assert torch.equal(one.x[:, 1:], other.x[:, 1:])
        assert torch.equal(one.partner.x[:, 1:], other.partner.x[:, 1:])
        assert all(torch.equal(a, b) for a, b in zip(flat(one)[1:3], flat(other)[1:3], strict=True))
        assert one.draws["lam"].tolist() == other.draws["lam"].tolist()
    readers = {float(x) for batch in slow for x in (*batch.x[:, 0], *batch.partner.x[:, 0])}
    assert len(readers) == 2
    assert os.getpid() not in readers


def test_workers_read_the_views_that_were_drawn() -> None:
    (split,), orders, draws = epoch(1)
    view = np.arange(100).reshape(2, 50)
    drawn = {"partner": draws[0]["partner"], "view": view[0], "partner_view": view[1]}
    batches = list(BatchLoader([replace(split, x=Viewed(split.x))], CPU).batches(orders, [drawn]))
    rows, other = (torch.cat(parts) for parts in zip(*((b.x, b.partner.x) for b in batches), strict=True))
    assert torch.equal(rows, split.x[orders[0].index] + torch.from_numpy(view[0])[:, None])
    assert torch.equal(other, split.x[drawn["partner"]] + torch.from_numpy(view[1])[:, None])


def test_workers_pass_named_tuples_on() -> None:
    (split,), orders, _ = epoch(1)
    batches = list(BatchLoader([replace(split, x=Named(split.x))], CPU).batches(orders, [{}]))
    assert isinstance(batches[0].x, Pair)
    assert torch.equal(torch.cat([batch.x.second for batch in batches]), torch.from_numpy(orders[0].index))


def test_what_a_worker_cannot_read_is_one_line() -> None:
    (split,), orders, _ = epoch(1)
    with pytest.raises(InputError) as caught:
        list(BatchLoader([replace(split, x=Broken(split.x))], CPU).batches(orders, [{}]))
    assert str(caught.value) == "image 3 cannot be read"


@pytest.mark.parametrize("kind", [None, Lazy, Slow])
def test_all_inputs_in_order(kind: type[Lazy] | None) -> None:
    (split,), _, _ = epoch(1)
    x = split.x if kind is None else kind(split.x)
    parts = list(BatchLoader([replace(split, x=x)], CPU).in_order(16))
    assert [len(part) for part in parts] == [16, 16, 16, 2]
    assert torch.equal(torch.cat(parts)[:, 1:], split.x[:, 1:])
