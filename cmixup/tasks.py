"""Tasks as the rows of a split: views of one object, some with their labels to adapt on, the others to predict."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cmixup.errors import InputError


class Episode(NamedTuple):
    """The inputs of several tasks, from which a model predicts the labels of the query views.

    Attributes:
        support: `(B, K, ...)` float32 inputs of K examples of each task.
        labels: `(B, K)` float32, their labels.
        query: `(B, Q, ...)` float32 inputs of the examples to predict. Their labels are the row's y, `(B, Q)`.
    """

    support: Tensor
    labels: Tensor
    query: Tensor


class Tasks:
    """N tasks on a pool of objects, gathered when they are asked for; an `Indexable` whose rows are `Episode`s.

    Args:
        images: `(objects, views, H, W)` uint8; x is image / 255, `(1, H, W)`.
        labels: `(objects, views)` float32.
        objects: `(N,)` int64, the object of each task.
        views: `(N, K + Q)` int64, its views, all different: first the support, then the query.
        shots: K.

    Raises:
        InputError: a view in a task twice, an object or view that is not there.

    Attributes:
        shape: `(N, 1, H, W)`: the number of tasks and the shape of one view.
        y: `(N, Q)` float32 labels of the query views.
    """

    def __init__(self, images: np.ndarray, labels: np.ndarray, objects: np.ndarray, views: np.ndarray, shots: int):
        n_objects, n_views, *side = images.shape
        if objects.size and not (objects.min() >= 0 and objects.max() < n_objects):
            raise InputError(f"objects must lie in 0..{n_objects - 1}, got {objects.min()} to {objects.max()}")
        if views.size and not (views.min() >= 0 and views.max() < n_views):
            raise InputError(f"views must lie in 0..{n_views - 1}, got {views.min()} to {views.max()}")
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

        Pixels lie in [0, 1]. The distances between all views of an object are measured once and kept.
        """
        objects, views = self.objects[rows, None, None], self.views[rows]
        return self._table[objects, views[:, self.shots :, None], views[:, None, : self.shots]]

    def pair_distances(self) -> np.ndarray:
        """Return the distances between different views of one object, of every object, `(n,)`."""
        above = np.triu_indices(self._table.shape[1], 1)
        return self._table[:, above[0], above[1]].reshape(-1)

    @cached_property
    def _table(self) -> np.ndarray:
        tables = []
        for images in self.images:
            flat = images.reshape(len(images), -1) / 255.0
            norm = np.square(flat).sum(axis=1)
            squared = norm[:, None] + norm - 2 * flat @ flat.T
            np.fill_diagonal(squared, 0.0)
            tables.append(np.sqrt(squared.clip(min=0.0)))
        return np.stack(tables)
