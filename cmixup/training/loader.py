"""The rows of a split on the device, gathered into batches for one model or a stack of models, and predictions."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from cmixup.batch import GATHER_KEYS, PARTNERS, Batch, EpochBatches, PredictFn
from cmixup.data import Indexable, ManyViews, Sampled, Split, Together
from cmixup.errors import InputError
from cmixup.losses import SQUARED, LabelScaling, Loss
from cmixup.seeding import StepRandom

CHUNK_BYTES = 32 * 2**20  # rows gathered at once; slices of it are the batches
Key = tuple[Tensor, Tensor | None]  # the rows `(E, B)` to read, and which view of each


class BatchLoader:
    """The rows of one split for every run of a stack, in batches `(B, ...)` for one run and `(E, B, ...)` for E.

    Tensors live on the device. Other inputs are read when a batch asks for them: in this process, since a `DataLoader`
    costs more than it saves where reading is cheap, or, where the inputs have an attribute `workers` above 0, by so
    many processes of a `DataLoader`, which read ahead into pinned memory. Then row numbers live on the CPU
    (`index_device`), so that reading the next batch does not wait until the device is done with this one.

    Args:
        splits: one split a run, all of one shape.
        device: where batches go.
        labels: how labels of batches are scaled; not at all by default.
    """

    def __init__(self, splits: Sequence[Split], device: torch.device, labels: LabelScaling | None = None):
        shapes = {(len(s), tuple(s.y.shape), tuple(getattr(s.x, "shape", ()))) for s in splits}
        if len(shapes) > 1:
            raise InputError(f"all runs of a stack need splits of one shape, got {sorted(map(str, shapes))}")
        self.device, self.size, self.n_rows = device, len(splits), len(splits[0])
        self.labels = labels or LabelScaling()
        # Runs of one split share its rows on the device.
        shared = isinstance(splits[0].x, Tensor) and all(s is splits[0] for s in splits)
        held = splits[:1] if shared else splits
        resident = [s.x for s in held if isinstance(s.x, Tensor)]
        if len(splits) > 1 and not all(s.stackable for s in splits):
            raise InputError("inputs that are read on demand cannot be stacked unless they say so (`stackable`)")
        read = splits[0].x if len(splits) == 1 else Together([s.x for s in splits])
        self._x = torch.cat(resident).to(device) if resident else read
        self.index_device = device if resident else torch.device("cpu")
        self._y = torch.cat([s.y for s in held]).to(device)
        self._domain = torch.cat([s.domain for s in held]).to(device)
        # Rows of all runs lie one after another, so that one index reaches any of them.
        self._start = torch.arange(self.size, device=self.index_device)[:, None] * (0 if shared else self.n_rows)

    @property
    def y(self) -> Tensor:
        """All labels in their own unit, `(N, d_y)` or `(E, N, d_y)`."""
        return self._every(self._y)

    @property
    def domain(self) -> Tensor:
        """All domains, `(N,)` or `(E, N)`."""
        return self._every(self._domain)

    def fetch(self, index: Tensor, view: Tensor | None = None) -> Batch:
        """Return the rows `index: (E, B)` int64 at `index_device`, of inputs that are `Sampled` in these views."""
        flat = (index + self._start).reshape(-1)
        if isinstance(self._x, Tensor):
            return self._batch(index, self._x.index_select(0, flat))
        return self._batch(index, _read(self._x, flat, None if view is None else view.reshape(-1)))

    def fetch_batches(self, keys: Sequence[Key]) -> Iterator[Batch]:
        """Yield `fetch(*key)` for each of `keys`; worker processes read ahead where the inputs ask for them."""
        workers = 0 if isinstance(self._x, Tensor) else getattr(self._x, "workers", 0)
        if not workers:
            for key in keys:
                yield self.fetch(*key)
            return
        loader: DataLoader[Any] = DataLoader(
            keys,  # type: ignore[arg-type]  # a list will do
            batch_size=None,  # a key is a whole batch
            collate_fn=partial(_read_or_error, self._x),
            num_workers=workers,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator(),  # it draws a seed for its workers, which must not come from the global stream
        )
        for (index, _), x in zip(keys, loader, strict=True):
            if isinstance(x, InputError):
                raise x
            yield self._batch(index, x)

    def in_order(self, batch_size: int) -> Iterator[Any]:
        """Yield the inputs of all rows, from first to last, `batch_size` at once."""
        every = torch.arange(self.n_rows, device=self.index_device).expand(self.size, -1)
        for batch in self.fetch_batches([(index, None) for index in torch.split(every, batch_size, dim=1)]):
            yield batch.x

    def _batch(self, index: Tensor, x: Any) -> Batch:
        """Return inputs `(E * B, ...)` that were read for `index`, with their labels and domains."""
        count, flat = index.shape[1], (index + self._start).reshape(-1).to(self.device)
        y, domain = self._y.index_select(0, flat), self._domain.index_select(0, flat)
        x = _map_tensors(lambda part: self._shaped(part.to(self.device, non_blocking=True), count), x)
        y = self._shaped(y, count)
        return Batch(self.labels.scale_support(x), self.labels.scale(y), self._shaped(domain, count), labels=y)

    def all_views(self, size: int) -> Iterator[Iterator[Tensor]] | None:
        """Return for each row an iterator of all its views, in blocks `(b, ...)` of at most `size`, if it has many."""
        if not isinstance(x := self._x, ManyViews):
            return None
        return ((b.to(self.device, non_blocking=True) for b in x.all_views(row, size)) for row in range(self.n_rows))

    def batches(self, orders: Sequence[EpochBatches], draws: Sequence[Mapping[str, np.ndarray]]) -> Iterator[Batch]:
        """Yield the batches of one epoch from the order of each run, and the draws of its method, aligned with it.

        `GATHER_KEYS` of `cmixup.batch` are used here, all other draws go into the batches. The candidates of a batch
        are those of all its rows; of inputs that are `Sampled` they are `x[index]`.
        """
        sizes = orders[0].sizes.tolist()
        if any(order.sizes.tolist() != sizes for order in orders):
            raise InputError("all runs of a stack need batches of the same sizes")
        if any(d.keys() != draws[0].keys() for d in draws):
            raise InputError(f"all runs of a stack need the same draws, got {[sorted(d) for d in draws]}")
        index = self._aligned([order.index for order in orders], self.index_device)
        devices = dict.fromkeys(draws[0], self.device) | dict.fromkeys(GATHER_KEYS, self.index_device)
        drawn = {name: self._aligned([d[name] for d in draws], devices[name]) for name in draws[0]}
        which = {name: drawn.pop(name, None) for name in GATHER_KEYS}
        partners = {name: rows_of for name, key in PARTNERS.items() if (rows_of := which[key]) is not None}
        views = [which["view"], *(which[f"{PARTNERS[name]}_view"] for name in partners)]
        to_read = list(zip([index, *partners.values()], views, strict=True))
        candidates = which["candidates"]
        per_row = 0 if candidates is None else candidates.shape[2]
        chunks = list(self._chunks(sizes, max(2, len(to_read) + per_row)))
        keys: list[Key] = []
        for rows, _ in chunks:
            keys += [(of[:, rows], None if view is None else view[:, rows]) for of, view in to_read]
            if candidates is not None:
                keys.append((candidates[:, rows].flatten(1), None))
        fetched = self.fetch_batches(keys)
        last = np.cumsum(sizes) - 1
        seeds = zip(*(d["seed"][last].tolist() for d in draws if "seed" in d), strict=True)
        for rows, group in chunks:
            mine = self._split(next(fetched), group)
            theirs = {name: self._split(next(fetched), group) for name in partners}
            if candidates is not None:
                theirs["candidates"] = self._split(next(fetched), [per_row * size for size in group])
            extra = {name: self._pieces(value[:, rows].reshape(*self._lead(sum(group)), *value.shape[2:]), group)
                     for name, value in drawn.items()}  # fmt: skip
            for b, batch in enumerate(mine):
                draws_of = {name: pieces[b] for name, pieces in extra.items()}
                with_rows: dict[str, Any] = {name: parts[b] for name, parts in theirs.items()}
                if which["seed"] is not None:
                    with_rows["rng"] = StepRandom(next(seeds), self.device)
                yield replace(batch, draws=draws_of, **with_rows)

    def _aligned(self, arrays: list[np.ndarray], device: torch.device) -> Tensor:
        return torch.from_numpy(np.stack(arrays)).to(device)

    def _lead(self, count: int) -> tuple[int, ...]:
        return (count,) if self.size == 1 else (self.size, count)

    def _shaped(self, rows: Tensor, count: int) -> Tensor:
        return rows.reshape(*self._lead(count), *rows.shape[1:])

    def _every(self, rows: Tensor) -> Tensor:
        if len(rows) < self.size * self.n_rows:
            return rows.expand(self.size, *rows.shape)
        return self._shaped(rows, self.n_rows)

    def _pieces(self, value: Tensor, sizes: list[int]) -> tuple[Tensor, ...]:
        return torch.split(value, sizes, dim=0 if self.size == 1 else 1)

    def _split(self, rows: Batch, sizes: list[int]) -> list[Batch]:
        if len(sizes) == 1:
            return [rows]
        columns = (self._pieces(value, sizes) for value in (rows.x, rows.y, rows.domain, rows.labels))
        return [Batch(x, y, domain, labels=labels) for x, y, domain, labels in zip(*columns, strict=True)]

    def _chunks(self, sizes: list[int], reads: int) -> Iterator[tuple[slice, list[int]]]:
        """Yield rows that are gathered at once, within `CHUNK_BYTES`, and the sizes of the batches they make."""
        row_bytes = 4 * (self._x[0].numel() + self._y[0].numel()) if isinstance(self._x, Tensor) else CHUNK_BYTES
        rows_per_chunk = CHUNK_BYTES // (reads * row_bytes * self.size)
        start, group = 0, list[int]()
        for size in sizes:
            if group and sum(group) + size > rows_per_chunk:
                yield slice(start, start + sum(group)), group
                start, group = start + sum(group), []
            group.append(size)
        if group:
            yield slice(start, start + sum(group)), group


def predict(
    predict_fn: PredictFn, model: nn.Module, rows: BatchLoader, batch_size: int, loss: Loss = SQUARED
) -> Tensor:
    """Return predictions in label units, `(N, d_y)`, or `(E, N, d_y)` for a stack, in evaluation mode.

    Where rows have many views, a prediction is the mean over those of its row. A loss that fits variances gives
    `(..., N, 2 d_y)`, standard deviations after the means.
    """
    model.eval()
    with torch.no_grad():
        if views := rows.all_views(batch_size):
            means = [torch.cat([predict_fn(model, x) for x in of_row]).mean(dim=0, keepdim=True) for of_row in views]
            return loss.to_labels(torch.cat(means), rows.labels)
        outputs = torch.cat([predict_fn(model, x) for x in rows.in_order(batch_size)], dim=-2)
        return loss.to_labels(outputs, rows.labels)


def _read_or_error(x: Indexable, key: Key) -> Any:
    """The task of a worker process of a `DataLoader`; an `InputError` comes back as a value, to be raised unchanged."""
    index, view = key
    try:
        return _read(x, index.reshape(-1), None if view is None else view.reshape(-1))
    except InputError as error:
        return error


def _read(x: Indexable, index: Tensor, view: Tensor | None) -> Any:
    """Return the inputs of the rows `index: (B,)`, as the views `view: (B,)` where inputs are `Sampled`."""
    return x.sample(index, view) if view is not None and isinstance(x, Sampled) else x[index]


def _map_tensors(change: Callable[[Tensor], Tensor], x: Any) -> Any:
    """Return `x`, a tensor or a named tuple of tensors, with each tensor changed."""
    return change(x) if isinstance(x, Tensor) else type(x)(*map(change, x))
