"""What a method is given at every step: rows of the training split on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.data import Split

# A function from a model (or a stack of models) and inputs to predictions `(..., B, d_y)`.
PredictFn = Callable[[nn.Module, Any], Tensor]

# The draws that are rows to read, by the name they have in `Batch`.
PARTNERS = {"partner": "partner", "other": "other_partner"}


@dataclass(frozen=True)
class Batch:
    """Rows of the training split on the device; `(B, ...)`, or `(E, B, ...)` for a stack of E models.

    Attributes:
        x, y: inputs and labels; the inputs of tasks are a `cmixup.tasks.Episode`.
        domain: `(..., B)` int64.
        partner: the rows that the method's `partner` draw points to, or None.
        candidates: the rows that its `candidates` draw points to, `(C, ...)` or `(E, C, ...)` for the whole batch, of
            which a pairing chooses partners in the step, or None.
        other: the rows that its `other_partner` draw points to, a second partner of each row, or None.
        draws: everything else the method drew, each `(..., B)`, or `(..., B, n)` for n numbers a row.
    """

    x: Tensor
    y: Tensor
    domain: Tensor
    partner: Batch | None = None
    draws: Mapping[str, Tensor] = field(default_factory=dict)
    other: Batch | None = None
    candidates: Batch | None = None


def read_rows(split: Split, rows: np.ndarray, device: torch.device | str = "cpu") -> Batch:
    """Return the rows `(B,)` int64 of a split as a batch without partners, for methods that look at rows."""
    index = torch.from_numpy(rows)
    return Batch(split.x[index].to(device), split.y[index].to(device), split.domain[index].to(device))
