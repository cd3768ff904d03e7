"""What every way of mixing has to do, checked from outside: mixed inputs and labels against the closed form.

Row i of the inputs is the i-th unit vector, so a mixed row says by itself who was mixed with whom and how much, and the
labels that belong to it are `mixed_x @ Y`, whatever the adapter says of itself.
"""

from __future__ import annotations

import tracemalloc
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from cmixup import Beta, CMixup, PairBatchSampler, PairDataset, PartnerSampler, diagnose, mix, mixing_at

Batches = list[tuple[Any, Any]]
BANDWIDTH = 0.2


class Adapter(ABC):
    """A way of mixing under test.

    Attributes:
        in_order: whether rows come in the order of the dataset.
        workers: whether it reads through a DataLoader.
    """

    in_order: ClassVar[bool] = True
    workers: ClassVar[bool] = False
    evaluates: ClassVar[bool] = True

    def __init__(self, x: Tensor, y: Tensor, batch_size: int, seed: int | None = 0, **options: Any) -> None:
        self.x, self.y, self.batch_size, self.seed = x, y, batch_size, seed
        self.bandwidth = options.pop("bandwidth", BANDWIDTH)
        self.options = options
        self.training = True
        self.begin()

    @abstractmethod
    def begin(self) -> None:
        """Make what is mixed with."""

    @abstractmethod
    def epoch(self) -> Batches:
        """Return the mixed batches of one epoch."""

    def slices(self) -> list[slice]:
        return [slice(s, s + self.batch_size) for s in range(0, len(self.x), self.batch_size)]


class Call(Adapter):
    def begin(self) -> None:
        self.mixing = CMixup(self.bandwidth, 2.0, seed=self.seed)

    def epoch(self) -> Batches:
        self.mixing.train(self.training)
        return [self.mixed(self.x[part], self.y[part]) for part in self.slices()]

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        return self.mixing(x, y)


class Pair(Call):
    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        batch = self.mixing([x, y])
        assert isinstance(batch, list)
        return batch[0], batch[1]


class Dictionary(Call):
    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        batch = self.mixing({"image": x, "more": [x, (x,)], "target": y})
        assert torch.equal(batch["more"][0], batch["image"])
        assert torch.equal(batch["more"][1][0], batch["image"])
        return batch["image"], batch["target"]


class Getter(Call):
    def begin(self) -> None:
        self.mixing = CMixup(self.bandwidth, 2.0, seed=self.seed, labels_getter=lambda b: b[1]["y"], keep=("id",))

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        names = ["a"] * len(x)
        inputs, rest = self.mixing((x, {"y": y, "id": names}))
        assert rest["id"] is names
        return inputs, rest["y"]


class Collate(Adapter):
    workers = True

    def begin(self) -> None:
        self.mixing = CMixup(self.bandwidth, 2.0, seed=self.seed)
        self.loader: Any = DataLoader(
            TensorDataset(self.x, self.y), self.batch_size, collate_fn=self.mixing, **self.options
        )

    def epoch(self) -> Batches:
        self.mixing.train(self.training)
        return [(x, y) for x, y in self.loader]


class Plain(Collate):
    """PairDataset under a plain DataLoader."""

    evaluates = False

    def begin(self) -> None:
        pairs = PairDataset(TensorDataset(self.x, self.y), self.y, self.bandwidth, 2.0, seed=self.seed)
        self.loader = DataLoader(pairs, self.batch_size, **self.options)

    def epoch(self) -> Batches:
        return [(x, y) for x, y in self.loader]


class Sampled(Plain):
    """PairDataset with its batch sampler."""

    in_order = False

    def begin(self) -> None:
        pairs = PairDataset(TensorDataset(self.x, self.y), self.y, self.bandwidth, 2.0)
        batches = PairBatchSampler(pairs, self.batch_size, seed=self.seed)
        self.loader = DataLoader(pairs, batch_sampler=batches, **self.options)


class Outer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Identity()

    def forward(self, x: Tensor) -> Any:
        return self.inner(x)


class Hidden(Call):
    """The second layer of a network that hands its input on."""

    layer: ClassVar[str | None] = "1.inner"

    def begin(self) -> None:
        super().begin()
        self.net = nn.Sequential(nn.Identity(), Outer())

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        with mixing_at(self.net, self.layer, self.mixing, y) as mixed_y:
            return self.net(x), mixed_y


class ModelInput(Hidden):
    layer = None


class ByHand(Adapter):
    """README's loop with PartnerSampler, Beta and mix."""

    evaluates = False

    def begin(self) -> None:
        self.rng = torch.Generator().manual_seed(self.seed or 0)
        self.sampler, self.lam = PartnerSampler(self.y, self.bandwidth), Beta(2.0)

    def epoch(self) -> Batches:
        partners = self.sampler.epoch(self.rng)
        y = self.y if self.y.is_floating_point() else self.y.float()
        found = []
        for part in self.slices():
            j, own = partners[part], self.x[part]
            lam = self.lam.sample(len(own), self.rng)
            found.append((mix(own, self.x[j], lam), mix(y[part], y[j], lam)))
        return found


ADAPTERS: dict[str, type[Adapter]] = {
    kind.__name__: kind
    for kind in (Call, Pair, Dictionary, Getter, Collate, Plain, Sampled, Hidden, ModelInput, ByHand)
}


def data(n: int = 50, d: int = 1, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
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
        check_batches(kind(x, y, 16).epoch(), x, y, tolerance=tolerance)

    return check


def several_outputs(kind: type[Adapter]) -> None:
    x, y = data(d=3)
    check_batches(kind(x, y, 16).epoch(), x, y)


def flat_labels(kind: type[Adapter]) -> None:
    x, y = data()
    check_batches(kind(x, y[:, 0], 16).epoch(), x, y[:, 0])


def whole_number_labels(kind: type[Adapter]) -> None:
    x, y = data()
    years = (y * 60).long()
    check_batches(kind(x, years, 16, bandwidth=10.0).epoch(), x, years)


def really_mixes(kind: type[Adapter]) -> None:
    x, y = data()
    weights = check_batches(kind(x, y, 50).epoch(), x, y)
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
    kind(x, y, 16).epoch()
    assert torch.equal(x, kept_x)
    assert torch.equal(y, kept_y)


def seeds_and_epochs(kind: type[Adapter]) -> None:
    x, y = data()

    def run(seed: int) -> list[Tensor]:
        adapter = kind(x, y, 16, seed)
        return [check_batches(adapter.epoch(), x, y) for _ in range(2)]

    first, again, other = run(0), run(0), run(1)
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), "a seed does not repeat itself"
    assert not torch.equal(first[0], other[0]), "two seeds are the same"
    assert not torch.equal(_sorted(first[0]), _sorted(first[1])), "two epochs are the same"


def under_autocast(kind: type[Adapter]) -> None:
    x, y = data()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        check_batches(kind(x, y, 16).epoch(), x, y)


def identity_in_evaluation(kind: type[Adapter]) -> None:
    x, y = data()
    adapter = kind(x, y, 16)
    adapter.training = False
    batches = adapter.epoch()
    assert torch.equal(torch.cat([b[0] for b in batches]), x)
    assert torch.equal(torch.cat([b[1] for b in batches]), y)
    adapter.training = True
    assert not torch.equal(torch.cat([b[0] for b in adapter.epoch()]), x)


def takes_memory_of_a_batch(kind: type[Adapter]) -> None:
    """No N x N table: 1,500 labels would make one of 9 MB in float32."""
    n = 1500
    y = torch.rand(n, 1, generator=torch.Generator().manual_seed(0))
    tracemalloc.start()
    try:
        kind(y.clone(), y, 64).epoch()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6e6, f"{peak / 1e6:.0f} MB"


def of_workers(*, persistent: bool) -> Check:
    def check(kind: type[Adapter]) -> None:
        x, y = data(48)

        def run(seed: int) -> list[Tensor]:
            torch.manual_seed(seed)
            adapter = kind(x, y, 12, 0, num_workers=2, persistent_workers=persistent)
            return [check_batches(adapter.epoch(), x, y) for _ in range(2)]

        first, again = run(5), run(5)
        assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True)), "a run does not repeat itself"
        assert not torch.equal(_sorted(first[0]), _sorted(first[1])), "two epochs are the same"
        lam = first[0].max(1).values.reshape(4, 12)  # batches 0 and 1 come from different workers
        assert not torch.equal(lam[0].sort().values, lam[1].sort().values), "two workers are the same"

    return check


def _sorted(weights: Tensor) -> Tensor:
    """Return rows in an order of their own, so that a shuffled epoch of the same pairs is the same."""
    return weights[(weights * torch.arange(1.0, weights.shape[1] + 1, dtype=weights.dtype)).sum(1).argsort()]


CHECKS: dict[str, Check] = {
    **{f"batches of {n}": of_batch_size(n) for n in (1, 2, 16, 49, 50, 64)},
    "float64": of_dtype(torch.float64, 1e-12),
    "half": of_dtype(torch.float16, 2e-3),
    "bfloat16": of_dtype(torch.bfloat16, 2e-2),
    "several outputs": several_outputs,
    "flat labels": flat_labels,
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
