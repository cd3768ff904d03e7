"""Changes of the networks of `CMixupRegressor` that the ablation compares; each names its source.

None of them is part of the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import TargetEncoder
from torch import Tensor, nn
from torch.nn.functional import mish, relu

from cmixup.backbone import StackLinear
from cmixup.model_stack import ModelStack
from cmixup.optim import Adam
from cmixup.sklearn.network import MLP, Pieces

#: Columns of categories with so many levels, or more, get target statistics.
MANY_LEVELS = 10
FREQUENCIES, EMBEDDED = 16, 8


def with_activation(activation: Callable[[Tensor], Tensor]) -> type[MLP]:
    """Return the class of networks with another function between their layers."""

    class Activated(MLP):
        def decode(self, state: Tensor, layer: str) -> Tensor:
            state = self.pieces(state)
            for number, linear in enumerate(self.linears):
                state = linear(activation(state) if number else state)
            return state

    return Activated


class ScaledMLP(MLP):
    """A learned scale of each input, at six times the learning rate (RealMLP, Holzmueller et al. 2024, section 3)."""

    def __init__(self, sizes: Sequence[int], pieces: Pieces | None = None):
        super().__init__(sizes, pieces)
        self.scale = nn.Parameter(torch.zeros(sizes[0] + (len(pieces) if pieces else 0)))

    def decode(self, state: Tensor, layer: str) -> Tensor:
        """Return predictions `(..., B, d_y)`."""
        state = self.pieces(state) * (1 + 6 * self.scale.unsqueeze(-2))
        for number, linear in enumerate(self.linears):
            state = linear(relu(state) if number else state)
        return state


class PeriodicMLP(MLP):
    """Learned periodic embeddings, PLR(lite), in place of pieces (Gorishniy et al. 2022, section 3.3)."""

    def __init__(self, sizes: Sequence[int], pieces: Pieces | None = None):
        super().__init__((sizes[0] * (1 + EMBEDDED), *sizes[1:]))
        self.frequencies = nn.Parameter(0.1 * torch.randn(sizes[0], FREQUENCIES))
        self.embed = StackLinear(2 * FREQUENCIES, EMBEDDED)

    def decode(self, state: Tensor, layer: str) -> Tensor:
        """Return predictions `(..., B, d_y)`."""
        angles = 2 * math.pi * state.unsqueeze(-1) * self.frequencies.unsqueeze(-3)
        waves = torch.cat([angles.sin(), angles.cos()], dim=-1)
        embedded = relu(self.embed(waves.flatten(-3, -2))).reshape(*state.shape[:-1], -1)
        return super().decode(torch.cat([state, embedded], dim=-1), layer)


def stack_with(decay: float = 0.0, steps: int = 0) -> type[ModelStack]:
    """Return a class of stacks trained with decoupled weight decay and, over so many steps, a cosine schedule.

    Loshchilov and Hutter (2019) for the decay, (2017) for the schedule.
    """

    class Scheduled(Adam):
        def __init__(self, rate: float, params: Any):
            super().__init__(params, rate)
            self.first, self.taken = rate, 0

        @torch.no_grad()
        def step(self) -> None:
            rate = self.first
            if steps:
                rate *= 0.5 * (1 + math.cos(math.pi * min(1.0, self.taken / steps)))
            self.lr, self.taken = rate, self.taken + 1
            if decay:
                torch._foreach_mul_(self._values, 1 - rate * decay)
            super().step()

    class Stack(ModelStack):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            assert isinstance(self.optimizer.lr, float)
            self.optimizer = Scheduled(self.optimizer.lr, self.model.parameters())

    return Stack


@dataclass(frozen=True)
class Recipe:
    """One change of the networks.

    Attributes:
        what: a line for the table.
        options: of `CMixupRegressor`.
        network: class of a network.
        decay: decoupled weight decay.
        cosine: whether the rate falls to 0 by a cosine over `epochs`.
        prepare: what is done to the columns first: "", "robust" or "target".
    """

    what: str
    options: dict[str, Any] = field(default_factory=dict)
    network: type[MLP] = MLP
    decay: float = 0.0
    cosine: bool = False
    prepare: str = ""


RECIPES: dict[str, Recipe] = {
    "no_pieces": Recipe("no pieces", {"n_pieces": 0}),
    "periodic": Recipe("learned periodic embeddings, PLR(lite), for pieces", {"n_pieces": 0}, network=PeriodicMLP),
    "robust": Recipe("robust scaling with smooth clipping (RealMLP)", prepare="robust"),
    "target": Recipe(f"target statistics out of fold for columns of {MANY_LEVELS} levels or more", prepare="target"),
    "scaled": Recipe("a learned scale of each input (RealMLP)", network=ScaledMLP),
    "mish": Recipe("Mish for ReLU (RealMLP)", network=with_activation(mish)),
    "adamw": Recipe("decoupled weight decay of 0.1 (AdamW)", decay=0.1),
    "cosine": Recipe(
        "all rows, 60 epochs, cosine schedule", {"early_stopping": False, "epochs": 60}, cosine=True
    ),
    "patience_10": Recipe("patience of 10 epochs for 20", {"patience": 10}),
    "batch_256": Recipe("256 rows a step at twice the rate", {"batch_size": 256, "lr": 2e-3}),
}  # fmt: skip


def prepared_columns(
    kind: str, train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the columns of training and test as a recipe has them.

    Args:
        kind: "robust" scales numbers by their quartiles and clips them smoothly at 3 (RealMLP); "target" gives columns
            of many levels the smoothed mean label of their level, in training that of other folds (Micci-Barreca 2001).
        train, test: frames.
        y: (n, d_y) labels of the rows trained on.
    """
    if kind == "robust":
        numbers = list(train.select_dtypes("number"))
        values = train[numbers]
        width = values.quantile(0.75) - values.quantile(0.25)
        width = width.where(width > 0, (values.max() - values.min()) / 2).replace(0, 1.0)

        def squeezed(frame: pd.DataFrame) -> pd.DataFrame:
            z = (frame[numbers] - values.median()) / width
            return frame.assign(**(z / np.sqrt(1 + (z / 3) ** 2)))

        return squeezed(train), squeezed(test)
    if kind == "target":
        many = [c for c in train.select_dtypes("category") if train[c].nunique() >= MANY_LEVELS]
        for place in range(y.shape[1] if many else 0):
            encoder = TargetEncoder(target_type="continuous", random_state=0)
            names = [f"{c}|{place}" for c in many]
            train = train.assign(**dict(zip(names, encoder.fit_transform(train[many], y[:, place]).T, strict=True)))
            test = test.assign(**dict(zip(names, encoder.transform(test[many]).T, strict=True)))
        return train.drop(columns=many), test.drop(columns=many)
    return train, test
