"""How much the predictions of held-out rows depend on a column: they are made again with its values permuted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cmixup.sampling.inputs import Floats
from cmixup.sklearn.losses import Loss
from cmixup.sklearn.rows import Rows

PERMUTATIONS = 5


class HeldOut(NamedTuple):
    """Rows that members hold out.

    Attributes:
        loss: by which they were fitted.
        rows: of each member, with columns as they came and standardised labels.
    """

    loss: Loss
    rows: Sequence[Rows]


def permutation_importances(held_out: HeldOut, predict: Callable[[Floats, int], Tensor]) -> Floats:
    """Return the share (d,) of each column in the loss that permuting adds (Breiman 2001), 0 where it adds none.

    Args:
        held_out: the rows.
        predict: takes rows and the number of a member, and returns its outputs `(n, d_y q)`.
    """
    added, rng = np.zeros(held_out.rows[0].x.shape[1]), np.random.default_rng(0)
    for member, held in enumerate(held_out.rows):
        order = np.concatenate([rng.permutation(len(held)) for _ in range(PERMUTATIONS)])
        repeated = held.take(np.tile(np.arange(len(held)), PERMUTATIONS))
        target, counted = torch.from_numpy(repeated.y), repeated.weight
        before = counted @ held_out.loss.of_rows(predict(repeated.x, member), target).numpy()
        for place in range(len(added)):
            permuted = repeated.x.copy()
            permuted[:, place] = held.x[order, place]
            added[place] += counted @ held_out.loss.of_rows(predict(permuted, member), target).numpy() - before
    added = added.clip(min=0)
    return added / (added.sum() or 1.0)
