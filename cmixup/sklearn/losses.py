"""The losses of `TabularRegressor`: one for networks, trees, early stopping and blend."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmixup.errors import InputError, as_number, check_choice, format_value
from cmixup.training.losses import known_squared_error, squared_error

LOSSES = ("squared", "absolute", "quantile")


@dataclass(frozen=True)
class Loss:
    """A loss of standardised labels."""

    name: str = "squared"  # one of `LOSSES`
    quantiles: tuple[float, ...] = ()  # (q,) the levels that are fitted, rising; other losses fit one number

    @property
    def outputs(self) -> int:
        """How many numbers are fitted to each label."""
        return len(self.quantiles) or 1

    def of_outputs(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return the errors `(..., n, d_y, q)` of predictions `(..., n, d_y q)`; NaN where a label is missing."""
        gap = target.unsqueeze(-1) - prediction.reshape(*target.shape, self.outputs)
        if self.name == "squared":
            return gap.square()
        if self.name == "absolute":
            return gap.abs()
        levels = torch.tensor(self.quantiles, dtype=gap.dtype, device=gap.device)
        return torch.maximum(levels * gap, (levels - 1) * gap)

    def of_rows(self, prediction: Tensor, target: Tensor) -> Tensor:
        """Return the errors `(..., n)` of rows, averaged over their labels that are there."""
        return self.of_outputs(prediction, target).mean(dim=-1).nanmean(dim=-1)

    def of_batch(self, gaps: bool) -> Callable[..., Tensor]:
        """Return the function of predictions and targets, with gaps or without, whose mean a step lowers."""
        if self.name == "squared":
            return known_squared_error if gaps else squared_error
        return self._known_error

    def tree_options(self, labels: int) -> list[dict[str, Any]]:
        """Return the arguments of `HistGradientBoostingRegressor` for each number that is fitted to so many labels."""
        if self.name == "quantile":
            return [{"loss": "quantile", "quantile": level} for level in self.quantiles] * labels
        return [{"loss": f"{self.name}_error"}] * labels

    def _known_error(self, prediction: Tensor, target: Tensor, weight: None = None) -> Tensor:
        known = ~target.isnan()
        errors = self.of_outputs(prediction, target.nan_to_num()).mean(dim=-1) * known
        return errors.sum(dim=(-2, -1)) / known.sum(dim=(-2, -1)).clamp_min(1)


def check_loss(loss: Any, quantiles: Any) -> Loss:
    """Return the loss of these arguments of `TabularRegressor`, or raise `InputError`."""
    check_choice("loss", loss, LOSSES)
    if loss != "quantile":
        return Loss(loss)
    is_sequence = isinstance(quantiles, Sequence | np.ndarray) and not isinstance(quantiles, str)
    levels = tuple(as_number("quantiles", level) for level in quantiles) if is_sequence else ()
    if not levels or not all(low < high for low, high in zip((0.0, *levels), (*levels, 1.0), strict=True)):
        raise InputError(f"quantiles must be numbers that rise between 0 and 1, got {format_value(quantiles)}")
    return Loss(loss, levels)
