"""What a method is given at every step: rows of the training split on the device."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

# Predictions `(..., B, d_y)` of a model for inputs.
Predict = Callable[[nn.Module, Any], Tensor]


@dataclass(frozen=True)
class Batch:
    """Rows of the training split, on the device; `(B, ...)`, or `(E, B, ...)` for a stack of E models.

    Attributes:
        x, y: inputs and labels; the inputs of tasks are a `cmixup.tasks.Episode`.
        domain: `(..., B)` int64.
        partner: the rows that the method's `partner` draw points to, or None.
        draws: everything else the method drew, each `(..., B)`, or `(..., B, n)` for n numbers a row.
    """

    x: Tensor
    y: Tensor
    domain: Tensor
    partner: Batch | None = None
    draws: Mapping[str, Tensor] = field(default_factory=dict)
