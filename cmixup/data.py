"""The data of the trainer: checked splits of (x, y, domain), whose rows may be tasks, and how to score them."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import get_worker_info

from cmixup.errors import InputError, check_choice
from cmixup.metrics import METRICS


class Indexable(Protocol):
    """Inputs that are read when they are asked for (windows of a series, videos, satellite images)."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Tensor) -> Any:
        """Return the inputs of the rows `index: (B,)` int64, always the same: `(B, ...)` float32, or a named tuple."""


class Together:
    """The inputs of several runs, of one length N, read on demand one after another: run e has rows from e N on."""

    def __init__(self, inputs: Sequence[Indexable]):
        self.inputs = inputs

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the rows `index: (E B,)` int64 as `(E B, ...)`: first the B rows of the first run."""
        parts = enumerate(zip(self.inputs, index.view(len(self.inputs), -1), strict=True))
        return torch.cat([x[rows - e * len(x)] for e, (x, rows) in parts])


@runtime_checkable
class Sampled(Indexable, Protocol):
    """Inputs that training sees by a random view every time: a clip of a video, an augmented image."""

    def sample(self, index: Tensor, draw: Tensor) -> Tensor:
        """Return a view `(B, ...)` of the rows `index`, a pure function of row and draw: `(B,)` int64, 0 or more."""


@runtime_checkable
class ManyViews(Indexable, Protocol):
    """Inputs that evaluation sees by many views a row: its prediction is their predictions' mean."""

    def all_views(self, row: int, size: int) -> Iterator[Tensor]:
        """Yield all views of one row, in blocks `(b, ...)` of at most `size`."""


@dataclass(frozen=True)
class Split:
    """One named part of a dataset.

    Raises:
        InputError: an empty split, a label of the wrong rank, lengths that differ, values that are not finite.
    """

    #: `(N, ...)` float32, or inputs read on demand; those of training may be `Sampled`, others may have `ManyViews`.
    x: Tensor | Indexable
    y: Tensor  #: labels in their own unit, always `(N, d_y)` float32; NaN is a gap in a row that has others
    domain: Tensor  #: of each row, `(N,)` int64 (all 0 where there are none)
    name: str = "split"  #: how errors call it

    def __post_init__(self) -> None:
        if self.y.ndim != 2:
            raise InputError(f"y of {self.name} must be two-dimensional (N, d_y), got shape {tuple(self.y.shape)}")
        if len(self.y) == 0:
            raise InputError(f"{self.name} is empty: it has no rows")
        for label, value in (("x", self.x), ("domain", self.domain)):
            if len(value) != len(self.y):
                raise InputError(f"{label} of {self.name} has {len(value)} rows, but y has {len(self.y)}")
        if self.domain.ndim != 1:
            raise InputError(f"domain of {self.name} must be (N,), got shape {tuple(self.domain.shape)}")
        for label, tensor in (("x", self.x), ("y", self.y)):
            if isinstance(tensor, Tensor) and not bool(torch.isfinite(tensor).all()):
                finite = torch.isfinite(tensor).reshape(len(tensor), -1)
                bad_rows = ~finite.all(dim=1) if label == "x" else tensor.isinf().any(dim=1) | ~finite.any(dim=1)
                if bool(bad_rows.any()):
                    row = int(bad_rows.nonzero()[0])
                    raise InputError(f"{label} of {self.name} has values that are not finite, first in row {row}")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def stackable(self) -> bool:
        """Whether runs can read such inputs as one stack: tensors, or others with an attribute `stackable` of True."""
        return isinstance(self.x, Tensor) or bool(getattr(self.x, "stackable", False))


@dataclass(frozen=True)
class RegressionData:
    """A loaded dataset: its splits, and how results on it are scored."""

    name: str  #: the dataset's spelling
    train: Split
    val: Split
    test: Split
    unit: str  #: of y, in words
    metrics: tuple[str, ...] = ("rmse", "mape", "r")  #: names in `cmixup.metrics.METRICS` to report
    selection: str = "rmse"  #: the metric on `val` that picks the checkpoint; `worst_<metric>` of one in `worst`
    worst: tuple[str, ...] = ()  #: metrics that are also reported as `worst_<metric>` and `mean_<metric>` over domains
    checksums: Mapping[str, str] = field(default_factory=dict)  #: SHA-256 of every file it was read from
    notes: tuple[str, ...] = ()  #: facts for a reader of its results (synthetic data, a split of our own)
    extras: Mapping[str, str] = field(default_factory=dict)  #: texts to keep beside a run's report, by file name
    #: Predictions that need no training, `(N, d_y)` by name and part, "val" or "test" (a series' last value); their
    #: scores stand beside the run's, as `<metric>_naive_<name>`.
    naive: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for metric in (*self.metrics, *self.worst):
            check_choice("metric", metric, tuple(METRICS))
        check_choice("metric", self.selection, (*METRICS, *(f"worst_{metric}" for metric in self.worst)))
        widths = [split.y.shape[1] for split in (self.train, self.val, self.test)]
        if len(set(widths)) > 1:
            raise InputError(f"y must have the same width in every split of {self.name}, got {widths}")

    @property
    def labels(self) -> Tensor:
        """The labels of all splits, those of training first."""
        return torch.cat([self.train.y, self.val.y, self.test.y])


class Episode(NamedTuple):
    """The inputs of B tasks, float32; the labels of the query views, which a model predicts, are y `(B, Q)`."""

    support: Tensor  #: `(B, K, ...)`, K examples of each task
    labels: Tensor  #: `(B, K)`, their labels
    query: Tensor  #: `(B, Q, ...)`, the examples to predict


class Tasks:
    """N tasks on a pool of objects, gathered when they are asked for; an `Indexable` whose rows are `Episode`s.

    Args:
        images: `(objects, views, H, W)` uint8; x is image / 255, `(1, H, W)`.
        labels: `(objects, views)` float32; those of the query views are y `(N, Q)`.
        objects: `(N,)` int64, the object of each task.
        views: `(N, K + Q)` int64, its views, all different: first the support, then the query.
        shots: K.
    """

    def __init__(self, images: np.ndarray, labels: np.ndarray, objects: np.ndarray, views: np.ndarray, shots: int):
        n_objects, n_views, *side = images.shape
        for name, numbers, count in (("objects", objects, n_objects), ("views", views, n_views)):
            if numbers.size and not (numbers.min() >= 0 and numbers.max() < count):
                raise InputError(f"{name} must lie in 0..{count - 1}, got {numbers.min()} to {numbers.max()}")
        if not 0 < shots < views.shape[1]:
            raise InputError(f"shots must leave support and query among {views.shape[1]} views, got {shots!r}")
        if (np.diff(np.sort(views, axis=1), axis=1) == 0).any():
            raise InputError("views must not name a view of a task twice")
        self.images, self.labels, self.objects, self.views, self.shots = images, labels, objects, views, shots
        self.shape = torch.Size((len(objects), 1, *side))
        self.y = torch.from_numpy(labels[objects[:, None], views[:, shots:]].astype(np.float32))

    def __len__(self) -> int:
        return len(self.objects)

    def __getitem__(self, index: Tensor) -> Episode:
        """Return the tasks `index: (B,)` int64."""
        rows = index.numpy()
        objects, views = self.objects[rows, None], self.views[rows]
        x = torch.from_numpy(self.images[objects, views]).float().div_(255).unsqueeze(2)
        labels = torch.from_numpy(self.support_labels(rows))
        return Episode(x[:, : self.shots], labels, x[:, self.shots :])

    def support_labels(self, rows: np.ndarray) -> np.ndarray:
        """Return the labels `(B, K)` float32 of the support views of the tasks `rows: (B,)`."""
        return self.labels[self.objects[rows, None], self.views[rows, : self.shots]].astype(np.float32)

    def distances(self, rows: np.ndarray) -> np.ndarray:
        """Return the Euclidean distances between query and support views of the tasks `rows: (M,)`, `(M, Q, K)`.

        Pixels lie in [0, 1].
        """
        objects, views = self.objects[rows, None, None], self.views[rows]
        return self._table[objects, views[:, self.shots :, None], views[:, None, : self.shots]]

    def pair_distances(self) -> np.ndarray:
        """Return the distances between different views of one object, of every object, `(n,)`."""
        upper = np.triu_indices(self._table.shape[1], 1)
        return self._table[:, upper[0], upper[1]].reshape(-1)

    @cached_property
    def _table(self) -> np.ndarray:
        """The distances between all views of each object, which are measured once and kept."""
        tables = []
        for images in self.images:
            flat = images.reshape(len(images), -1) / 255.0
            norm = np.square(flat).sum(axis=1)
            squared = norm[:, None] + norm - 2 * flat @ flat.T
            np.fill_diagonal(squared, 0.0)
            tables.append(np.sqrt(squared.clip(min=0.0)))
        return np.stack(tables)


def core_count() -> int:
    """Return how many cores this process may use; macOS and Windows only tell how many there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1


N_CORES = min(8, core_count())
WORKERS = N_CORES if N_CORES > 1 else 0  # processes that read ahead for training, see `cmixup.training.loader`


def in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return `function` of each item, such as unpacking an image, which lets other threads run, by several threads.

    A worker process of a `DataLoader` has a core to itself, and reads in one thread.
    """
    if N_CORES == 1 or get_worker_info() is not None:
        return [function(item) for item in items]
    with ThreadPoolExecutor(N_CORES) as pool:
        return list(pool.map(function, items))
