"""What every way of mixing has to do, checked from outside: mixed inputs and labels against the closed form.

Row i of the inputs is the i-th unit vector, so a mixed row says by itself who was mixed with whom and how much, and the
labels that belong to it are `mixed_x @ Y`, whatever the adapter says of itself.
"""

import tracemalloc
from collections.abc import Callable

import torch
from torch import Tensor

from cmixup import diagnose
from tests.adapters.kinds import Adapter, Batches


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


Check = Callable[[type[Adapter]], None]


def of_batch_size(batch_size: int) -> Check:
    def check(kind: type[Adapter]) -> None:
        x, y = data()
        adapter = kind(x, y, batch_size)
        batches = adapter.epoch()
        full, rest = divmod(len(x), batch_size)
        assert [len(b[0]) for b in batches] == [batch_size] * full + [rest] * (rest > 0)
        weights = check_batches(batches, x, y)
        if adapter.in_order:
            assert (weights.diagonal() > 0).all(), "a row is not mixed with its own partner"

    return check


def of_dtype(dtype: torch.dtype, tolerance: float) -> Check:
    def check(kind: type[Adapter]) -> None:
        x, y = data(dtype=dtype)
        check_batches(kind(x, y, 8).epoch(), x, y, tolerance=tolerance)

    return check


def several_outputs(kind: type[Adapter]) -> None:
    x, y = data(d=3)
    check_batches(kind(x, y, 8).epoch(), x, y)


def flat_labels(kind: type[Adapter]) -> None:
    x, y = data()
    check_batches(kind(x, y[:, 0], 8).epoch(), x, y[:, 0])


def label_maps(kind: type[Adapter]) -> None:
    """Labels of several axes, as depth or density maps are (MONAI #2872, #7813, #8137)."""
    x, y = data(d=9)
    maps = y.reshape(20, 1, 3, 3)
    check_batches(kind(x, maps, 8, bandwidth=2.0).epoch(), x, maps)


def labels_beside_bfloat16(kind: type[Adapter]) -> None:
    """Labels that bfloat16 would round stay exact beside inputs of it (kornia #4657)."""
    x, _ = data(dtype=torch.bfloat16)
    y = torch.tensor([257.0, 999, 2049, 4097]).repeat(5)
    for labels in (y, y.long()):
        batches = kind(x, labels, 20, bandwidth=0.0).epoch()  # partners have equal labels
        for mixed_x, mixed_y in batches:
            assert mixed_y.dtype == torch.float32
            assert torch.equal(mixed_y, y[mixed_x.float().argmax(1)])


def whole_number_labels(kind: type[Adapter]) -> None:
    x, y = data()
    years = (y * 60).long()
    check_batches(kind(x, years, 8, bandwidth=10.0).epoch(), x, years)


def really_mixes(kind: type[Adapter]) -> None:
    x, y = data()
    weights = check_batches(kind(x, y, 20).epoch(), x, y)
    assert float(((weights > 0).sum(1) == 2).double().mean()) > 0.6


def follows_the_kernel(kind: type[Adapter]) -> None:
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


def weighs_the_row_itself(kind: type[Adapter]) -> None:
    """Labels belong to the inputs they come with even where lambda is far from 1/2 and one output tells rows apart."""
    x, y = data(20, d=20)
    y = torch.eye(20, dtype=y.dtype)
    batches = kind(x, y, 20, bandwidth=10.0).epoch()
    for mixed_x, mixed_y in batches:
        assert float((mixed_x - mixed_y).abs().max()) < 1e-6


def nothing_in_place(kind: type[Adapter]) -> None:
    x, y = data()
    kept_x, kept_y = x.clone(), y.clone()
    kind(x, y, 8).epoch()
    assert torch.equal(x, kept_x)
    assert torch.equal(y, kept_y)


def seeds_and_epochs(kind: type[Adapter]) -> None:
    x, y = data()

    def run(seed: int) -> list[Tensor]:
        adapter = kind(x, y, 8, seed)
        return [check_batches(adapter.epoch(), x, y) for _ in range(2)]

    first, again, other = run(0), run(0), run(1)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), "a seed does not repeat itself"
    assert not torch.equal(first[0], other[0]), "two seeds are the same"
    assert not torch.equal(_sorted(first[0]), _sorted(first[1])), "two epochs are the same"


def under_autocast(kind: type[Adapter]) -> None:
    x, y = data()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        check_batches(kind(x, y, 8).epoch(), x, y)


def identity_in_evaluation(kind: type[Adapter]) -> None:
    x, y = data()
    adapter = kind(x, y, 8)
    adapter.training = False
    batches = adapter.epoch()
    assert torch.equal(torch.cat([b[0] for b in batches]), x)
    assert torch.equal(torch.cat([b[1] for b in batches]), y)
    adapter.training = True
    assert not torch.equal(torch.cat([b[0] for b in adapter.epoch()]), x)


def takes_memory_of_a_batch(kind: type[Adapter]) -> None:
    """No N x N table: 1,200 labels would make one of 5.8 MB in float32."""
    n = 1200
    y = torch.rand(n, 1, generator=torch.Generator().manual_seed(0))
    tracemalloc.start()
    try:
        kind(y.clone(), y, 64).epoch()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 3e6, f"{peak / 1e6:.1f} MB"


def of_workers(*, persistent: bool) -> Check:
    def check(kind: type[Adapter]) -> None:
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

    return check


def _sorted(weights: Tensor) -> Tensor:
    """Return rows in an order of their own, so that a shuffled epoch of the same pairs is the same."""
    return weights[(weights * torch.arange(1.0, weights.shape[1] + 1, dtype=weights.dtype)).sum(1).argsort()]


#: Checks of many epochs or rows, and the adapters that the default suite makes them of.
COSTLY = {"follows the kernel": ("Call", "ByHand"), "memory": ("Call", "ByHand")}
CHECKS: dict[str, Check] = {
    **{f"batches of {n}": of_batch_size(n) for n in (1, 8, 19, 32)},
    "float64": of_dtype(torch.float64, 1e-12),
    "half": of_dtype(torch.float16, 2e-3),
    "bfloat16": of_dtype(torch.bfloat16, 2e-2),
    "several outputs": several_outputs,
    "flat labels": flat_labels,
    "label maps": label_maps,
    "labels beside bfloat16": labels_beside_bfloat16,
    "whole-number labels": whole_number_labels,
    "really mixes": really_mixes,
    "follows the kernel": follows_the_kernel,
    "weighs the row itself": weighs_the_row_itself,
    "nothing in place": nothing_in_place,
    "seeds and epochs": seeds_and_epochs,
    "autocast": under_autocast,
    "evaluation": identity_in_evaluation,
    "memory": takes_memory_of_a_batch,
}
WORKER_CHECKS: dict[str, Check] = {
    "workers": of_workers(persistent=False),
    "persistent workers": of_workers(persistent=True),
}
