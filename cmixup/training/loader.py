"""The rows of a split on the device, gathered into batches for one model or a stack of models, and predictions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from cmixup.data import Episode, Indexable, ManyViews, Sampled, Split, Together
from cmixup.errors import InputError
from cmixup.seeding import StepRandom
from cmixup.training.batch import DRAWN_ROWS, GATHER_KEYS, Batch, EpochBatches, PredictFn
from cmixup.training.losses import SQUARED, LabelScaling, Loss
from cmixup.tree import map_leaves

CHUNK_BYTES = 32 * 2**20  # rows gathered at once; slices of it are the batches
Key = tuple[Tensor, Tensor | None]  # the rows `(E, B)` to read, and which view of each


class BatchLoader:
    """The rows of one split for every run of a stack, in batches `(B, ...)` for one run and `(E, B, ...)` for E.

    Tensors live on the device, and so may other inputs that have `to(device)` and `device`, as images in memory have.
    Others are read when a batch asks for them: in this process, since a `DataLoader` costs more than it saves where
    reading is cheap. Where the inputs have an attribute `workers` above 0, so many processes of a `DataLoader` read
    ahead into pinned memory. Then row numbers live on the CPU (`index_device`), so that reading the next batch does not
    wait until the device is done with this one.
    """

    def __init__(self, splits: Sequence[Split], device: torch.device, labels: LabelScaling | None = None):
        self.device, self.size, self.n_rows = device, len(splits), len(splits[0])
        self.labels = labels or LabelScaling()
        # Runs of one split share its rows on the device.
        shared = isinstance(splits[0].x, Tensor) and all(s is splits[0] for s in splits)
        unique_splits = splits[:1] if shared else splits
        resident = [s.x for s in unique_splits if isinstance(s.x, Tensor)]
        on_demand = splits[0].x if len(splits) == 1 else Together([s.x for s in splits])
        self._x: Any = torch.cat(resident) if resident else on_demand
        if hasattr(self._x, "to"):
            self._x = self._x.to(device)
        self.index_device = getattr(self._x, "device", torch.device("cpu"))
        self._y = torch.cat([s.y for s in unique_splits]).to(device)
        self._domain = torch.cat([s.domain for s in unique_splits]).to(device)
        # Rows of all runs lie one after another, so that one index reaches any of them.
        self._start = torch.arange(self.size, device=self.index_device)[:, None] * (0 if shared else self.n_rows)

    @property
    def y(self) -> Tensor:
        """All labels in their own unit, `(N, d_y)` or `(E, N, d_y)`."""
        return self._per_run(self._y)

    @property
    def domain(self) -> Tensor:
        """All domains, `(N,)` or `(E, N)`."""
        return self._per_run(self._domain)

    def fetch(self, index: Tensor, view: Tensor | None = None) -> Batch:
        """Return the rows `index: (E, B)` int64 at `index_device`, of inputs that are `Sampled` in these views."""
        flat, views = self._flat(index, view)
        return self._batch(flat, _read(self._x, flat, views))

    def fetch_batches(self, keys: Sequence[Key]) -> Iterator[Batch]:
        """Yield `fetch(*key)` for each of `keys`; worker processes read ahead where the inputs ask for them."""
        workers = getattr(self._x, "workers", 0)
        if not workers:
            yield from (self.fetch(*key) for key in keys)
            return
        loader: DataLoader[Any] = DataLoader(
            flat_keys := [self._flat(*key) for key in keys],  # type: ignore[arg-type]  # a list will do
            batch_size=None,  # a key is a whole batch
            collate_fn=partial(_read_or_error, self._x),
            num_workers=workers,
            pin_memory=self.device.type == "cuda",
            generator=torch.Generator(),  # it draws a seed for its workers, which must not come from the global stream
        )
        for (flat, _), x in zip(flat_keys, loader, strict=True):
            if isinstance(x, InputError):
                raise x
            yield self._batch(flat, x)

    def in_order(self, batch_size: int) -> Iterator[Any]:
        """Yield the inputs of all rows, from first to last, `batch_size` at once."""
        all_rows = torch.arange(self.n_rows, device=self.index_device).expand(self.size, -1)
        for batch in self.fetch_batches([(index, None) for index in torch.split(all_rows, batch_size, dim=1)]):
            yield batch.x

    def _batch(self, flat: Tensor, x: Any) -> Batch:
        """Return inputs `(E * B, ...)` that were read for the rows `flat: (E * B,)`, with their labels and domains."""
        flat = flat.to(self.device)
        y, domain = (self._shaped(rows.index_select(0, flat)) for rows in (self._y, self._domain))
        x = map_leaves(lambda _, part: self._shaped(part.to(self.device, non_blocking=True)), "x", x)
        if isinstance(x, Episode):
            x = x._replace(labels=self.labels.scale(x.labels))
        return Batch(x, self.labels.scale(y), domain, labels=y)

    def _flat(self, index: Tensor, view: Tensor | None) -> Key:
        return (index + self._start).reshape(-1), None if view is None else view.reshape(-1)

    def all_views(self, size: int) -> Iterator[Iterator[Tensor]] | None:
        """Return for each row an iterator of all its views, in blocks `(b, ...)` of at most `size`, if it has many."""
        if not isinstance(x := self._x, ManyViews):
            return None
        return ((b.to(self.device, non_blocking=True) for b in x.all_views(row, size)) for row in range(self.n_rows))

    def batches(self, orders: Sequence[EpochBatches], draws: Sequence[Mapping[str, np.ndarray]]) -> Iterator[Batch]:
        """Yield the batches of one epoch from the order of each run, and the draws of its method, aligned with it.

        `GATHER_KEYS` of `cmixup.training.batch` are used here, all other draws go into the batches. The candidates of a
        batch are those of all its rows; of inputs that are `Sampled` they are `x[index]`.
        """
        sizes = orders[0].sizes.tolist()
        if any(order.sizes.tolist() != sizes for order in orders):
            raise InputError("all runs of a stack need batches of the same sizes")
        if any(d.keys() != draws[0].keys() for d in draws):
            raise InputError(f"all runs of a stack need the same draws, got {[sorted(d) for d in draws]}")
        devices = dict.fromkeys(draws[0], self.device) | dict.fromkeys(GATHER_KEYS, self.index_device)
        drawn = {name: self._aligned([d[name] for d in draws], devices[name]) for name in draws[0]}
        row_draws = {name: drawn.pop(name, None) for name in GATHER_KEYS}
        indices = {"": self._aligned([order.index for order in orders], self.index_device)}
        indices |= {name: drawn_rows for name, key in DRAWN_ROWS.items() if (drawn_rows := row_draws[key]) is not None}
        views = {name: row_draws.get(f"{DRAWN_ROWS[name]}_view" if name else "view") for name in indices}
        per_row = {name: rows[0, 0].numel() for name, rows in indices.items()}  # rows that are read for one
        chunks = self._chunks(sizes, max(2, sum(per_row.values())))
        keys = [
            (index[:, rows].flatten(1), None if (view := views[name]) is None else view[:, rows])
            for rows, _ in chunks
            for name, index in indices.items()
        ]
        fetched = self.fetch_batches(keys)
        seeds = zip(*(d["seed"][np.cumsum(sizes) - 1].tolist() for d in draws if "seed" in d), strict=True)
        for rows, group in chunks:
            parts = {name: self._split(next(fetched), [per_row[name] * size for size in group]) for name in indices}
            extra = {name: self._pieces(self._shaped(v[:, rows].flatten(0, 1)), group) for name, v in drawn.items()}
            for b, batch in enumerate(parts.pop("")):
                with_rows: dict[str, Any] = {name: part[b] for name, part in parts.items()}
                if row_draws["seed"] is not None:
                    with_rows["rng"] = StepRandom(next(seeds), self.device)
                yield replace(batch, draws={name: pieces[b] for name, pieces in extra.items()}, **with_rows)

    def _aligned(self, arrays: list[np.ndarray], device: torch.device) -> Tensor:
        return torch.from_numpy(np.stack(arrays)).to(device)

    def _shaped(self, rows: Tensor) -> Tensor:
        """Return rows of all runs, `(E * B, ...)`, as `(E, B, ...)`, or as they are where E is 1."""
        return rows if self.size == 1 else rows.reshape(self.size, -1, *rows.shape[1:])

    def _per_run(self, rows: Tensor) -> Tensor:
        return self._shaped(rows) if len(rows) == self.size * self.n_rows else rows.expand(self.size, *rows.shape)

    def _pieces(self, value: Tensor, sizes: list[int]) -> tuple[Tensor, ...]:
        return torch.split(value, sizes, dim=0 if self.size == 1 else 1)

    def _split(self, rows: Batch, sizes: list[int]) -> list[Batch]:
        if len(sizes) == 1:
            return [rows]
        columns = (self._pieces(value, sizes) for value in (rows.x, rows.y, rows.domain, rows.labels))
        return [Batch(x, y, domain, labels=labels) for x, y, domain, labels in zip(*columns, strict=True)]

    def _chunks(self, sizes: list[int], reads: int) -> list[tuple[slice, list[int]]]:
        """Return rows that are gathered at once, within `CHUNK_BYTES`, and the sizes of the batches they make."""
        row_bytes = 4 * (self._x[0].numel() + self._y[0].numel()) if isinstance(self._x, Tensor) else CHUNK_BYTES
        n = max(1, CHUNK_BYTES // (reads * row_bytes * self.size * max(sizes)))
        groups = [sizes[k : k + n] for k in range(0, len(sizes), n)]
        ends = np.cumsum([sum(group) for group in groups])
        return [(slice(end - sum(group), end), group) for group, end in zip(groups, ends, strict=True)]


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
            means = [torch.cat([predict_fn(model, x) for x in blocks]).mean(dim=0, keepdim=True) for blocks in views]
            return loss.to_labels(torch.cat(means), rows.labels)
        outputs = torch.cat([predict_fn(model, x) for x in rows.in_order(batch_size)], dim=-2)
        return loss.to_labels(outputs, rows.labels)


def _read_or_error(x: Indexable, key: Key) -> Any:
    """The task of a worker process of a `DataLoader`; an `InputError` comes back as a value, to be raised unchanged."""
    try:
        return _read(x, *key)
    except InputError as error:
        return error


def _read(x: Tensor | Indexable, index: Tensor, view: Tensor | None) -> Any:
    """Return the inputs of the rows `index: (B,)`, as the views `view: (B,)` where inputs are `Sampled`."""
    if isinstance(x, Tensor):
        return x.index_select(0, index)
    return x.sample(index, view) if view is not None and isinstance(x, Sampled) else x[index]
