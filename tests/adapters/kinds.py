"""The ways of mixing under test, each as an `Adapter` that gives the mixed batches of an epoch."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from cmixup import CMixup, PairBatchSampler, PairDataset, mixing_at

Batches = list[tuple[Any, Any]]
BANDWIDTH = 0.2


class Adapter(ABC):
    """A way of mixing under test.

    Attributes:
        in_order: whether rows come in the order of the dataset.
    """

    in_order: ClassVar[bool] = True

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

    @property
    def compared(self) -> Tensor:
        """Return the labels as (N, d), or (N,) as they are."""
        return self.y if self.y.ndim == 1 else self.y.flatten(1)

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


class Collate(Adapter):
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

    def begin(self) -> None:
        pairs = PairDataset(TensorDataset(self.x, self.y), self.compared, self.bandwidth, 2.0, seed=self.seed)
        self.loader = DataLoader(pairs, self.batch_size, **self.options)

    def epoch(self) -> Batches:
        return [(x, y) for x, y in self.loader]


class Sampled(Plain):
    """PairDataset with its batch sampler."""

    in_order = False

    def begin(self) -> None:
        pairs = PairDataset(TensorDataset(self.x, self.y), self.compared, self.bandwidth, 2.0)
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

    def begin(self) -> None:
        super().begin()
        self.net = nn.Sequential(nn.Identity(), Outer())

    def mixed(self, x: Tensor, y: Tensor) -> tuple[Any, Any]:
        with mixing_at(self.net, "1.inner", self.mixing, y) as mixed_y:
            return self.net(x), mixed_y


ADAPTERS: tuple[type[Adapter], ...] = (Call, Collate, Plain, Sampled, Hidden)
