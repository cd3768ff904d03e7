"""`PairDataset` and `PairBatchSampler`: partners from everything, epochs, ranks."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from cmixup import InputError, PairBatchSampler, PairDataset, PartnerSampler
from cmixup.adapters.pairs import Pair


def pairs(n: int = 30, **options: Any) -> PairDataset:
    y = torch.rand(n, 1, generator=torch.Generator().manual_seed(0))
    return PairDataset(TensorDataset(torch.eye(n), y), y, 0.2, seed=0, **options)


def flat(batches: PairBatchSampler) -> list[Pair]:
    return [pair for batch in batches for pair in batch]


def test_rows_keep_their_form() -> None:
    """Arrays and numbers become tensors, kept entries are the row's own."""
    rows = [{"x": np.full(3, float(i)), "y": i, "name": f"row {i}"} for i in range(10)]
    data = PairDataset(rows, range(10), 100.0, seed=0, keep=("name",))
    row = data[Pair(2, 6, 0.5)]
    assert row["name"] == "row 2"
    assert row["x"].tolist() == [4.0] * 3
    assert row["x"].dtype == torch.float64
    assert row["y"].item() == 4.0
    assert row["y"].dtype == torch.float32


def test_an_epoch_has_every_row_once() -> None:
    batches = PairBatchSampler(pairs(), 8, seed=0)
    assert len(batches) == 4
    drawn = list(batches)
    assert [len(batch) for batch in drawn] == [8, 8, 8, 6]
    assert sorted(pair.row for batch in drawn for pair in batch) == list(range(30))
    assert [len(batch) for batch in PairBatchSampler(pairs(), 8, seed=0, drop_last=True)] == [8, 8, 8]
    assert [pair.row for pair in flat(PairBatchSampler(pairs(), 8, seed=0, shuffle=False))] == list(range(30))


def test_epochs_count_themselves_and_can_be_set() -> None:
    batches = PairBatchSampler(pairs(), 8, seed=0)
    first, second = flat(batches), flat(batches)
    assert batches.epoch == 2
    assert first != second
    assert [p.row for p in first] != [p.row for p in second]
    assert {p.lam for p in first}.isdisjoint(p.lam for p in second)
    in_order = PairBatchSampler(pairs(), 8, seed=0, shuffle=False)
    assert [p.partner for p in flat(in_order)] != [p.partner for p in flat(in_order)]
    batches.set_epoch(0)
    assert flat(batches) == first
    assert flat(batches) == second
    assert flat(PairBatchSampler(pairs(), 8, seed=1)) != first


@pytest.mark.parametrize(("n", "world"), [(30, 2), (30, 3), (31, 2), (5, 8)])
def test_ranks_share_an_epoch(n: int, world: int) -> None:
    """Step by step, the ranks together see the batch of one process that has world times their batch size."""
    parts = [list(PairBatchSampler(pairs(n), 2, seed=0, rank=rank, world=world)) for rank in range(world)]
    assert len({len(part) for part in parts}) == 1
    together = [sorted(pair for part in step for pair in part) for step in zip(*parts, strict=True)]
    alone = [sorted(batch) for batch in PairBatchSampler(pairs(n), 2 * world, seed=0)]
    if n % world == 0:
        assert together == alone
    assert {pair for step in together for pair in step} == {pair for batch in alone for pair in batch}


def test_rank_and_world_come_from_torch_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    assert flat(PairBatchSampler(pairs(), 4, seed=0)) == flat(PairBatchSampler(pairs(), 4, seed=0, rank=1, world=2))
    with pytest.raises(InputError, match="seed must be given, the same on every rank"):
        PairBatchSampler(pairs(), 4)
    other_rank = PairDataset(TensorDataset(torch.eye(30)), torch.rand(30), 0.2, seed=0)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 0)
    first = PairDataset(TensorDataset(torch.eye(30)), torch.rand(30), 0.2, seed=0)
    assert other_rank._streams["lam"].random() != first._streams["lam"].random()


def test_partners_follow_the_exact_row() -> None:
    """Chi-square of one row's partners over many epochs against the sampler's own probabilities, and by the formula."""
    y = np.array([0.0, 0.1, 0.3, 1.0])
    data = PairDataset([(torch.zeros(1), float(v)) for v in y], y, 0.2)
    batches = PairBatchSampler(data, 4, seed=0, shuffle=False)
    counts = np.zeros(4)
    for _ in range(500):
        counts[next(iter(batches))[1].partner] += 1
    weight = np.exp(-((y - y[1]) ** 2) / (2 * 0.2**2))
    expected = 500 * weight / weight.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 16.3  # 0.999 quantile of chi-square with 3 degrees


def test_it_can_be_iterated_over() -> None:
    assert len(list(pairs(5))) == 5  # type: ignore[arg-type]
    with pytest.raises(IndexError):
        pairs(5)[5]
    assert pairs(5)[-1][0][4] > 0


@pytest.mark.parametrize("kind", ["tensor", "array"])
@pytest.mark.parametrize("bandwidth", [0.1, 0.0])
def test_labels_are_read_once_whatever_becomes_of_the_tensor(kind: str, bandwidth: float) -> None:
    """PyTorch moves the memory of tensors that go to spawned workers; an array that shares it reads freed memory."""
    y = torch.rand(500)
    x = torch.utils.data.TensorDataset(torch.zeros(500, 1), y)
    data = PairDataset(x, y if kind == "tensor" else y.numpy(), bandwidth)
    sampler = PartnerSampler(y, bandwidth)
    before = [drawer.draw(np.arange(500), np.random.default_rng(0)).tolist() for drawer in (data.sampler, sampler)]
    y.zero_()
    after = [drawer.draw(np.arange(500), np.random.default_rng(0)).tolist() for drawer in (data.sampler, sampler)]
    assert after == before


@pytest.mark.parametrize("start", ["fork", pytest.param("spawn", marks=pytest.mark.slow)])  # imports PyTorch anew
def test_workers_that_stay_read_what_none_reads(start: str) -> None:
    """Everything is drawn in the main process."""
    data = pairs(24)

    def run(**options: Any) -> list[list[float]]:
        loader = DataLoader(data, batch_sampler=PairBatchSampler(data, 8, seed=0), **options)
        return [torch.cat([y for _, y in loader]).flatten().tolist() for _ in range(2)]

    alone, read = run(), run(num_workers=1, multiprocessing_context=start, persistent_workers=True)
    assert alone == read
    assert alone[0] != alone[1]


def batches_of(*, drop_last: bool = False, seed: int = 3) -> PairBatchSampler:
    return PairBatchSampler(pairs(), 7, drop_last=drop_last, seed=seed)


@pytest.mark.parametrize("done", [0, 2, 5])
@pytest.mark.parametrize("drop_last", [False, True])
def test_the_rest_of_an_epoch_is_handed_out_after_its_state(done: int, drop_last: bool) -> None:
    straight = batches_of(drop_last=drop_last)
    done = min(done, len(straight))
    list(straight)
    running = iter(straight)
    [next(running) for _ in range(done)]
    resumed = batches_of(drop_last=drop_last, seed=4)
    resumed.load_state_dict(straight.state_dict())
    assert list(resumed) == list(running)
    assert straight.state_dict() == resumed.state_dict() == {**straight.state_dict(), "epoch": 2, "batch": 0}
    assert list(resumed) == list(straight)
    assert len(list(resumed)) == len(resumed)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch": 6}, r"at most 5 batches, got .*batch=6"), ({"batch_size": 8}, r"batch_size=7.*got batch_size=8"),
        ({"world": 2}, r"world=1.*got .*world=2"), ({"epoch": -1}, r"epoch .*-1"),
    ],
)  # fmt: skip
def test_a_state_of_other_batches_is_refused(change: dict[str, int], message: str) -> None:
    batches = batches_of()
    before = batches.state_dict()
    with pytest.raises(InputError, match=message):
        batches.load_state_dict({**before, **change})
    with pytest.raises(InputError, match="state must be that of a PairBatchSampler, got"):
        batches.load_state_dict({"epoch": 1})
    assert batches.state_dict() == before


@pytest.mark.parametrize("workers", [0, 2])
def test_torchdata_resumes_in_the_middle_of_an_epoch(workers: int) -> None:
    loaders = pytest.importorskip("torchdata.stateful_dataloader")

    def loader() -> Any:
        data = pairs()
        batches = PairBatchSampler(data, 7, seed=3)
        return loaders.StatefulDataLoader(data, batch_sampler=batches, num_workers=workers)

    straight = loader()
    list(straight)
    running = iter(straight)
    next(running), next(running)
    state = straight.state_dict()
    wanted = [*running, *straight]
    resumed = loader()
    resumed.load_state_dict(state)
    read = [*resumed, *resumed]
    assert len(read) == len(wanted) == 3 + 5
    assert all(
        torch.equal(a, b) for one, other in zip(read, wanted, strict=True) for a, b in zip(one, other, strict=True)
    )
