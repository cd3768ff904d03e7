"""`PairDataset` and `PairBatchSampler`: C-Mixup with partners from the whole training set, for a `DataLoader`."""

import operator
from collections.abc import Iterator, Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, Sampler, TensorDataset

from cmixup.adapters.labels import LabelsGetter, Mix, check_entries, collated, find_labels, mix_rows
from cmixup.errors import InputError, check_count, check_flag, format_value
from cmixup.mixing.lam import Beta
from cmixup.sampling.bandwidth import Bandwidth
from cmixup.sampling.inputs import Given, as_labels, copied_numpy
from cmixup.sampling.sampler import PartnerSampler
from cmixup.seeding import WorkerStreams, distributed_place, seed_or_random, stream
from cmixup.tree import Entry, unbind


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
        labels: (N,) or (N, d) values to compare, row for row; NaN is a missing output, see `PartnerSampler`. The labels
            that are mixed are the rows' own, and NaN where either is missing.
        bandwidth: see `PartnerSampler`.
        alpha: see `Beta`; one lambda a row.
        seed: see `WorkerStreams`.
        labels_getter: where the labels of a row are, see `find_labels`.
        keep: entries that stay those of the row itself: keys of dictionaries, or places from the top of a row.

    Attributes:
        sampler: the `PartnerSampler` in use.
    """

    def __init__(
        self, dataset: Any, labels: Given, bandwidth: Bandwidth = "auto", alpha: float = 2.0, *,
        seed: int | None = None, labels_getter: LabelsGetter = "default",
        keep: tuple[Entry, ...] = (),
    ) -> None:  # fmt: skip
        if not (isinstance(dataset, Sized) and hasattr(dataset, "__getitem__")):
            raise InputError(f"dataset must have __getitem__ and __len__, got {type(dataset).__name__}")
        # NumPy labels: workers cannot hold tensors of a device, and rows are drawn by number.
        self.sampler = PartnerSampler(copied_numpy(as_labels("labels", labels, gaps=True)), bandwidth)
        if len(self.sampler) != (rows := len(dataset)):
            raise InputError(f"labels must have a row for each of the dataset's {rows}, got {len(self.sampler)}")
        self.dataset: Any = dataset
        self.lam = Beta(alpha)
        self.labels_getter, self.keep = check_entries(labels_getter, keep)
        self._streams = WorkerStreams(seed)

    def __len__(self) -> int:
        return len(self.sampler)

    def __getitem__(self, index: int | Pair) -> Any:
        """Return a mixed row: of a `Pair`, or of an index with a partner and lambda drawn now."""
        return self.__getitems__([index])[0]

    def __getitems__(self, indices: Sequence[int | Pair]) -> list[Any]:
        """Return the mixed rows of a batch, as `DataLoader` asks for them."""
        if not indices:
            return []
        rows, partners, lam = self._draw_pairs(indices)
        n, (stacked, samples) = len(rows), self._read(rows, partners)
        second_half = Mix(torch.arange(n) + n, torch.tensor(lam))
        labels = find_labels(stacked, self.labels_getter, self.keep)
        mixed = mix_rows(stacked, labels, second_half, keep=self.keep, path="row", rows=2 * n)
        return unbind(mixed, samples[:n], keep=self.keep)

    def _draw_pairs(self, indices: Sequence[int | Pair]) -> tuple[list[int], list[int], list[float]]:
        """Return rows, partners and lambdas of a batch: those of its `Pair`s, or drawn now."""
        if set(map(type, indices)) == {Pair}:
            return tuple(map(list, zip(*indices, strict=True)))  # type: ignore[return-value]
        rows = _row_numbers(indices, len(self))
        partners = self.sampler.draw(rows, self._streams["partners"])
        return rows.tolist(), partners.tolist(), self.lam.sample(len(rows), self._streams["lam"]).tolist()

    def _read(self, rows: list[int], partners: list[int]) -> tuple[Any, list[Any]]:
        """Return rows and then partners put together, and each as it was read."""
        if type(self.dataset).__getitem__ is TensorDataset.__getitem__:  # tensors give a batch without reading rows
            index = torch.tensor([*rows, *partners])
            batch = [tensor[index] for tensor in self.dataset.tensors]
            return batch, list(zip(*batch, strict=True)) if self.keep else [tuple(batch)]
        order = [*rows, *partners]
        order[::2], order[1::2] = rows, partners  # a dataset that draws reads its rows pair by pair
        samples = getattr(self.dataset, "__getitems__", lambda indices: [self.dataset[k] for k in indices])(order)
        samples = [*samples[::2], *samples[1::2]]
        return collated(samples), samples


class PairBatchSampler(Sampler[list[Pair]]):
    """Batches of rows with partners from everything, drawn in the main process, for `DataLoader(batch_sampler=...)`.

    An epoch is a permutation of the rows, a partner for each and a lambda for each, all seeded by the seed and the
    number of the epoch. The number goes up by itself; `set_epoch` sets it, as a run does that goes on. `state_dict`
    holds the place within an epoch, too: torchdata's `StatefulDataLoader` saves and loads it by itself. In distributed
    training each rank takes every world-th row of the same epoch: k ranks with batches of b see in each step the rows
    of one process with batches of k b. Where the rows do not divide, the first ones are taken again with their
    partners, as `DistributedSampler` takes them again.

    Args:
        pairs: the dataset to read.
        batch_size: rows a batch, 1 or more, on this rank.
        shuffle: whether the order of rows changes from epoch to epoch.
        drop_last: leave out a smaller last batch.
        seed: a whole number; None draws one from torch's own generator, which several ranks would not share: refused.
        rank, world: of this process, and number of processes; by default those of torch.distributed.
    """

    def __init__(
        self, pairs: PairDataset, batch_size: int, *, shuffle: bool = True, drop_last: bool = False,
        seed: int | None = None, rank: int | None = None, world: int | None = None,
    ) -> None:  # fmt: skip
        if not isinstance(pairs, PairDataset):
            raise InputError(f"pairs must be a PairDataset, got {type(pairs).__name__}")
        this_rank, n_ranks = distributed_place()
        self.world = check_count("world", n_ranks if world is None else world, 1)
        self.rank = check_count("rank", this_rank if rank is None else rank)
        if self.rank >= self.world:
            raise InputError(f"rank must be below world={self.world}, got {self.rank}")
        if self.world > 1 and seed is None:
            raise InputError("seed must be given, the same on every rank, got None")
        self.pairs, self.shuffle = pairs, check_flag("shuffle", shuffle)
        self.drop_last = check_flag("drop_last", drop_last)
        self.batch_size = check_count("batch_size", batch_size, 1)
        self.seed, self.epoch, self._first, self._place = seed_or_random(seed), 0, 0, (0, 0)
        self._rows = -(-len(pairs) // self.world)  # on each rank
        if len(self) == 0:
            raise InputError(f"batch_size must leave a whole batch with drop_last, got {format_value(batch_size)}")

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the next epoch, 0 or more, which starts with its first batch."""
        self.epoch = check_count("epoch", epoch)
        self._first, self._place = 0, (self.epoch, 0)

    def state_dict(self) -> dict[str, int]:
        """Return the epoch and how many of its batches have been handed out.

        A plain `DataLoader` with workers takes batches ahead of the training, and ends an epoch early: then write the
        epoch and how many of its batches were trained into "epoch" and "batch". `StatefulDataLoader` knows both.
        """
        epoch, batch = self._place
        return {"seed": self.seed, "epoch": epoch, "batch": batch, "batch_size": self.batch_size, "world": self.world}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on from what `state_dict` returned: the next iteration hands out the rest of that epoch, batch for batch.

        States of another batch size or number of processes are refused.
        """
        try:
            seed, epoch, batch, size, world = (
                check_count(key, state[key]) for key in ("seed", "epoch", "batch", "batch_size", "world")
            )
        except (KeyError, TypeError):
            raise InputError(f"state must be that of a PairBatchSampler, got {format_value(state)}") from None
        if (size, world) != (self.batch_size, self.world) or batch > len(self):
            raise InputError(
                f"state must be of batch_size={self.batch_size}, world={self.world} and at most {len(self)} batches, "
                f"got batch_size={size}, world={world} and batch={batch}"
            )
        self.seed, self.epoch, self._first, self._place = seed, epoch, batch, (epoch, batch)

    def __len__(self) -> int:
        full, rest = divmod(self._rows, self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[list[Pair]]:
        """Yield the batches of the next epoch, and count it; after `load_state_dict` those that are left of it."""
        epoch, first, n = self.epoch, self._first, len(self.pairs)
        self.epoch, self._first = epoch + 1, 0
        order = stream("order", self.seed, epoch).permutation(n) if self.shuffle else np.arange(n)
        partners = self.pairs.sampler.draw(order, stream("partners", self.seed, epoch))
        lam = self.pairs.lam.draw(np.array([len(order)]), stream("lam", self.seed, epoch))
        rank_rows = np.resize(np.arange(n), self._rows * self.world)[self.rank :: self.world]
        order, partners, lam = order[rank_rows], partners[rank_rows], lam[rank_rows]
        for number in range(first, len(self)):
            self._place = (epoch, number + 1)
            part = slice(number * self.batch_size, (number + 1) * self.batch_size)
            yield list(map(Pair, *(column[part].tolist() for column in (order, partners, lam))))
        self._place = (epoch + 1, 0)


def _row_numbers(indices: Sequence[Any], n: int) -> np.ndarray:
    """Return indices as (B,) int64 in 0..n-1; negative ones count from the end."""
    try:
        return np.array([range(n)[operator.index(index)] for index in indices], dtype=np.int64)
    except TypeError:
        raise InputError(f"index must be a whole number, got {format_value(list(indices))}") from None
