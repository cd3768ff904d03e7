"""`PairDataset` and `PairBatchSampler`: C-Mixup with partners from the whole training set, for a `DataLoader`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler

from cmixup.adapters.labels import LabelsGetter, Mix, check_getter, check_keep, collated, find_labels, mix_rows
from cmixup.adapters.streams import WorkerStreams, own_seed, stream
from cmixup.distributed import distributed_place
from cmixup.errors import InputError, check_count, check_flag, shown
from cmixup.mixing.lam import Beta
from cmixup.sampling.bandwidth import Bandwidth
from cmixup.sampling.inputs import Given, as_labels, to_numpy
from cmixup.sampling.sampler import PartnerSampler
from cmixup.sampling.space import LabelSpace
from cmixup.tree import map_leaves


class Pair(NamedTuple):
    """A row, its partner and the weight of the row itself, as a `PairBatchSampler` asks a `PairDataset` for them."""

    row: int
    partner: int
    lam: float


class PairDataset(Dataset[Any]):
    """Reads rows of a dataset mixed with partners from the whole of it, drawn by label distance (C-Mixup).

        pairs = PairDataset(train, labels, bandwidth="auto", alpha=2.0, seed=0)
        loader = DataLoader(pairs, batch_sampler=PairBatchSampler(pairs, batch_size=64, seed=0), num_workers=4)

    With `PairBatchSampler` everything random is drawn in the main process: the same for any number of workers. With a
    plain `DataLoader(pairs, batch_size=64, shuffle=True)` each worker draws from its own `WorkerStreams`.

    Args:
        dataset: map-style, with rows such as (x, y), or dictionaries. Rows are read through `default_collate`: arrays
            and numbers become tensors.
        labels: (N,) or (N, d) values to compare, row for row. The labels that are mixed are the rows' own.
        bandwidth: see `PartnerSampler`.
        alpha: see `Beta`; one lambda a row.
        seed: see `WorkerStreams`.
        space: how labels are compared.
        labels_getter: where the labels of a row are, see `find_labels`.
        keep: keys of dictionaries whose entries stay those of the row itself.
        return_mix: whether a row is `(row, Mix)`, with the partner's index in the dataset.

    Attributes:
        sampler: the `PartnerSampler` in use.

    Raises:
        InputError: an argument cannot be used; the message gives its name and value.
    """

    def __init__(
        self,
        dataset: Any,
        labels: Given,
        bandwidth: Bandwidth = "auto",
        alpha: float = 2.0,
        *,
        seed: int | None = None,
        space: LabelSpace | None = None,
        labels_getter: LabelsGetter = "default",
        keep: tuple[str, ...] = (),
        return_mix: bool = False,
    ) -> None:
        try:
            rows = len(dataset) if hasattr(dataset, "__getitem__") else None
        except TypeError:
            rows = None
        if rows is None:
            raise InputError(f"dataset must have __getitem__ and __len__, got {type(dataset).__name__}")
        # NumPy labels: workers cannot hold tensors of a device, and rows are drawn by number.
        self.sampler = PartnerSampler(to_numpy(as_labels("labels", labels)), bandwidth, space=space)
        if len(self.sampler) != rows:
            raise InputError(f"labels must have a row for each of the dataset's {rows}, got {len(self.sampler)}")
        self.dataset, self.lam = dataset, Beta(alpha)
        self.labels_getter, self.keep = check_getter(labels_getter), check_keep(keep)
        self.return_mix = check_flag("return_mix", return_mix)
        self._streams = WorkerStreams(seed)

    def __len__(self) -> int:
        return len(self.sampler)

    def __getitem__(self, index: int | Pair) -> Any:
        """Return a mixed row: of a `Pair`, or of an index with a partner and lambda drawn now."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int | Pair]) -> list[Any]:
        """Return the mixed rows of a batch, as `DataLoader` asks for them."""
        if all(isinstance(index, Pair) for index in indices):
            return [self._mixed(*index) for index in indices]  # type: ignore[misc]
        rows = _row_numbers(indices, len(self))
        partners = self.sampler.draw(rows, self._streams["partners"])
        lam = self.lam.sample(len(rows), self._streams["lam"]).tolist()
        return [self._mixed(*each) for each in zip(rows.tolist(), partners.tolist(), lam, strict=True)]

    def _mixed(self, index: int, partner: int, lam: float) -> Any:
        """Return row `index` mixed with row `partner`; a row is a batch of one until it is returned."""
        own = self.dataset[index]
        rows = collated([own, self.dataset[partner]])
        both = Mix(torch.tensor([1, 0]), torch.tensor([lam, 1.0]))
        mixed = mix_rows(rows, find_labels(rows, self.labels_getter), both, keep=self.keep, path="row")
        first = map_leaves(lambda _, __, leaf: leaf[0], "row", own, mixed, keep=self.keep)
        return (first, Mix(torch.tensor(partner), torch.tensor(lam))) if self.return_mix else first


class PairBatchSampler(Sampler[list[Pair]]):
    """Batches of rows with partners from everything, drawn in the main process, for `DataLoader(batch_sampler=...)`.

    An epoch is a permutation of the rows, a partner for each and a lambda for each, all seeded by the seed and the
    number of the epoch. The number goes up by itself; `set_epoch` sets it, as a run does that goes on. In distributed
    training each rank takes every world-th row of the same epoch, so that k ranks with batches of b see in each step
    what one process with batches of k b does; where the rows do not divide, the first ones are taken again with their
    partners, as `DistributedSampler` takes them again.

    Args:
        pairs: the dataset to read.
        batch_size: rows a batch, 1 or more, on this rank.
        shuffle: whether the order of rows changes from epoch to epoch.
        drop_last: leave out a smaller last batch.
        seed: a whole number; None draws one from torch's own generator, which several ranks would not share: refused.
        rank: of this process; by default that of torch.distributed.
        world: number of processes; by default that of torch.distributed.

    Raises:
        InputError: an argument cannot be used; the message gives its name and value.
    """

    def __init__(
        self,
        pairs: PairDataset,
        batch_size: int,
        *,
        shuffle: bool = True,
        drop_last: bool = False,
        seed: int | None = None,
        rank: int | None = None,
        world: int | None = None,
    ) -> None:
        if not isinstance(pairs, PairDataset):
            raise InputError(f"pairs must be a PairDataset, got {type(pairs).__name__}")
        here, all_of_them = distributed_place()
        self.world = check_count("world", all_of_them if world is None else world, 1)
        self.rank = check_count("rank", here if rank is None else rank)
        if self.rank >= self.world:
            raise InputError(f"rank must be below world={self.world}, got {self.rank}")
        if self.world > 1 and seed is None:
            raise InputError("seed must be given, the same on every rank, got None")
        self.pairs, self.shuffle = pairs, check_flag("shuffle", shuffle)
        self.drop_last = check_flag("drop_last", drop_last)
        self.batch_size = check_count("batch_size", batch_size, 1)
        self.seed, self.epoch = own_seed(seed), 0
        if len(self) == 0:
            raise InputError(f"batch_size must leave a whole batch with drop_last, got {shown(batch_size)}")

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch, 0 or more."""
        self.epoch = check_count("epoch", epoch)

    def __len__(self) -> int:
        full, rest = divmod(self._rows_a_rank(), self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[list[Pair]]:
        """Yield the batches of the next epoch, and count it."""
        epoch, n = self.epoch, len(self.pairs)
        self.epoch += 1
        order = stream("order", self.seed, epoch).permutation(n) if self.shuffle else np.arange(n)
        partners = self.pairs.sampler.draw(order, stream("partners", self.seed, epoch))
        lam = self.pairs.lam.draw(np.array([len(order)]), stream("lam", self.seed, epoch))
        mine = np.resize(np.arange(n), self._rows_a_rank() * self.world)[self.rank :: self.world]
        order, partners, lam = order[mine], partners[mine], lam[mine]
        for number in range(len(self)):
            part = slice(number * self.batch_size, (number + 1) * self.batch_size)
            columns = (order[part].tolist(), partners[part].tolist(), lam[part].tolist())
            yield [Pair(*each) for each in zip(*columns, strict=True)]

    def _rows_a_rank(self) -> int:
        return -(-len(self.pairs) // self.world)


def _row_numbers(indices: Sequence[Any], n: int) -> np.ndarray:
    """Return indices as (B,) int64 in 0..n-1; negative ones count from the end.

    Raises:
        InputError: an index is no whole number in -n..n-1.
    """
    for index in indices:
        single = isinstance(index, np.generic) or (isinstance(index, torch.Tensor) and index.numel() == 1)
        number = index.item() if single else index
        if isinstance(number, bool) or not isinstance(number, int) or not -n <= number < n:
            error = IndexError if isinstance(number, int) and not isinstance(number, bool) else InputError
            raise error(f"index must be a whole number in {-n}..{n - 1}, got {shown(index)}")
    return np.array([int(index) % n for index in indices], dtype=np.int64)
