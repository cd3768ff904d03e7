"""What every way of mixing has to do, checked from outside: mixed inputs and labels against the closed form.

Row i of the inputs is the i-th unit vector, so a mixed row says by itself who was mixed with whom and how much, and the
labels that belong to it are `mixed_x @ Y`, whatever the adapter says of itself.
"""

import math

import pytest
import torch
from torch import Tensor

from cmixup import diagnose
from tests.adapters.kinds import ADAPTERS, Adapter, Batches, Call, Collate, Hidden, Plain, Sampled


def data(n: int = 20, d: int = 1, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    y = torch.rand(n, d, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    return torch.eye(n, dtype=dtype), y.to(dtype)


def check_batches(batches: Batches, x: Tensor, y: Tensor, *, tolerance: float = 1e-5) -> Tensor:
    """Check form and closed form; return all mixed inputs as float64."""
    rows = []
    for batch in batches:
        assert isinstance(batch, (tuple, list))
        assert len(batch) == 2
        mixed_x, mixed_y = batch
        assert isinstance(mixed_x, Tensor)
        assert isinstance(mixed_y, Tensor), "labels are no tensor"
        assert mixed_x.shape[1:] == x.shape[1:]
        assert mixed_y.shape == (len(mixed_x), *y.shape[1:])
        assert mixed_x.dtype == x.dtype
        assert mixed_y.dtype == (y.dtype if y.is_floating_point() else torch.float32)
        weights = mixed_x.double()
        expected = (weights @ y.double().reshape(len(y), -1)).reshape(mixed_y.shape)
        assert float((mixed_y.double() - expected).abs().max()) <= tolerance * max(1.0, float(y.abs().max()))
        assert float(weights.min()) >= 0
        assert float((weights.sum(1) - 1).abs().max()) <= tolerance
        assert int((weights > 0).sum(1).max()) <= 2
        rows.append(weights)
    return torch.cat(rows)


@pytest.fixture(params=ADAPTERS, ids=lambda kind: kind.__name__)
def kind(request: pytest.FixtureRequest) -> type[Adapter]:
    """Every way of mixing."""
    return request.param


@pytest.mark.parametrize("batch_size", [1, 8, 19, 32])
def test_batches_are_the_closed_form(kind: type[Adapter], batch_size: int) -> None:
    x, y = data()
    adapter = kind(x, y, batch_size)
    batches = adapter.epoch()
    full, rest = divmod(len(x), batch_size)
    assert [len(b[0]) for b in batches] == [batch_size] * full + [rest] * (rest > 0)
    weights = check_batches(batches, x, y)
    if adapter.in_order:
        assert (weights.diagonal() > 0).all(), "a row is not mixed with its own partner"


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float16, 2e-3), (torch.bfloat16, 2e-2)]
)
def test_dtypes_stay(kind: type[Adapter], dtype: torch.dtype, tolerance: float) -> None:
    x, y = data(dtype=dtype)
    check_batches(kind(x, y, 8).epoch(), x, y, tolerance=tolerance)


@pytest.mark.parametrize("shape", [(20,), (20, 3), (20, 1, 3, 3)])
def test_labels_of_every_shape(kind: type[Adapter], shape: tuple[int, ...]) -> None:
    """Those of several axes are as depth or density maps (MONAI #2872, #7813, #8137)."""
    x, y = data(d=math.prod(shape[1:]))
    check_batches(kind(x, y.reshape(shape), 8, bandwidth=0.2 * y.shape[1]).epoch(), x, y.reshape(shape))


def test_labels_stay_exact_beside_bfloat16(kind: type[Adapter]) -> None:
    """Labels that bfloat16 would round stay exact beside inputs of it (kornia #4657)."""
    x, _ = data(dtype=torch.bfloat16)
    y = torch.tensor([257.0, 999, 2049, 4097]).repeat(5)
    for labels in (y, y.long()):
        batches = kind(x, labels, 20, bandwidth=0.0).epoch()  # partners have equal labels
        for mixed_x, mixed_y in batches:
            assert mixed_y.dtype == torch.float32
            assert torch.equal(mixed_y, y[mixed_x.float().argmax(1)])


def test_rows_really_mix(kind: type[Adapter]) -> None:
    x, y = data()
    weights = check_batches(kind(x, y, 20).epoch(), x, y)
    assert float(((weights > 0).sum(1) == 2).double().mean()) > 0.6


@pytest.mark.parametrize("kind", [Call])
def test_pairs_follow_the_kernel(kind: type[Adapter]) -> None:
    """The mean label gap of pairs is that of the exact P, where a batch is everything; lambda has Beta's moments."""
    x, y = data(40)
    adapter = kind(x, y, 40, bandwidth=0.1)
    weights = torch.cat([check_batches(adapter.epoch(), x, y) for _ in range(25)])
    paired = (weights > 0).sum(1) == 2
    first, second = weights[paired].topk(2, dim=1).indices.T
    gap = float((y[first] - y[second]).abs().sum()) / len(weights)  # a row that drew itself has no gap
    report = diagnose(y, 0.1)
    assert abs(gap - report.pair_gap) < 0.12 * report.pair_gap
    assert report.pair_gap < 0.5 * report.uniform_gap
    square = float(weights[paired].square().sum(1).mean())  # E[lam^2 + (1 - lam)^2] = 1 - 2 E[lam (1 - lam)]
    assert abs(square - (1 - 2 * 0.2)) < 0.02


def test_nothing_changes_in_place(kind: type[Adapter]) -> None:
    x, y = data()
    kept_x, kept_y = x.clone(), y.clone()
    kind(x, y, 8).epoch()
    assert torch.equal(x, kept_x)
    assert torch.equal(y, kept_y)


def test_seeds_repeat_and_epochs_differ(kind: type[Adapter]) -> None:
    x, y = data()

    def run(seed: int) -> list[Tensor]:
        adapter = kind(x, y, 8, seed)
        return [check_batches(adapter.epoch(), x, y) for _ in range(2)]

    first, again, other = run(0), run(0), run(1)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), "a seed does not repeat itself"
    assert not torch.equal(first[0], other[0]), "two seeds are the same"
    assert not torch.equal(_sorted(first[0]), _sorted(first[1])), "two epochs are the same"


def test_autocast_changes_nothing(kind: type[Adapter]) -> None:
    x, y = data()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        check_batches(kind(x, y, 8).epoch(), x, y)


@pytest.mark.parametrize("kind", [Call, Collate, Hidden])
def test_nothing_is_mixed_in_evaluation(kind: type[Adapter]) -> None:
    x, y = data()
    adapter = kind(x, y, 8)
    adapter.training = False
    batches = adapter.epoch()
    assert torch.equal(torch.cat([b[0] for b in batches]), x)
    assert torch.equal(torch.cat([b[1] for b in batches]), y)
    adapter.training = True
    assert not torch.equal(torch.cat([b[0] for b in adapter.epoch()]), x)


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("kind", [Collate, Plain, Sampled])
def test_workers_and_epochs_differ_and_a_run_repeats(kind: type[Adapter], persistent: bool) -> None:
    x, y = data(48)

    def run(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        adapter = kind(x, y, 12, 0, num_workers=2, persistent_workers=persistent)
        return [check_batches(adapter.epoch(), x, y) for _ in range(2)]

    first = run(5)
    assert not torch.equal(_sorted(first[0]), _sorted(first[1])), "two epochs are the same"
    lam = first[0].max(1).values.reshape(4, 12)  # batches 0 and 1 come from different workers
    assert not torch.equal(lam[0].sort().values, lam[1].sort().values), "two workers are the same"
    assert all(torch.equal(a, b) for a, b in zip(first, run(5), strict=True)), "a run does not repeat itself"


def _sorted(weights: Tensor) -> Tensor:
    """Return rows in an order of their own, so that a shuffled epoch of the same pairs is the same."""
    return weights[(weights * torch.arange(1.0, weights.shape[1] + 1, dtype=weights.dtype)).sum(1).argsort()]
