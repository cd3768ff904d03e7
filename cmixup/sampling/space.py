"""Where labels are compared: a scale for each output, outputs that go round a circle, ranks instead of values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmixup.errors import InputError, check_flag, format_value
from cmixup.inputs.spread import varies
from cmixup.sampling.inputs import MAX_LABEL, Floats, Labels, has_gaps, to_numpy


class LabelSpace:
    """Says how labels are compared. The labels that are mixed stay as they are.

    The distance of two labels is sqrt(sum_c (gap_c / scale_c)^2). The gap of an output is its difference, the
    difference of its ranks, or the chord between two points of its circle (of one circle the kernel is von Mises'). A
    chord is 1 % shorter than the way round for a gap of a twelfth of the period. A bandwidth is in units of this
    distance.

    Args:
        scale: divisor of each output: a number, (d,) numbers above 0, or "std" for the standard deviation of
            each (constant outputs are left as they are). None leaves the outputs in their own units.
        period: the length of the circle that an output goes round (360 for degrees): a number for all outputs, or (d,)
            with None or 0 for those that do not go round. Among labels with gaps a circle counts as two outputs.
        ranks: whether outputs are replaced by their ranks, (mean rank of equal values - 1/2) / N, in (0, 1). Labels
            outside the data are placed by linear interpolation.

    Raises:
        InputError: an argument cannot be used, or `ranks` is asked for together with `period`, or "std" with either.
    """

    def __init__(
        self,
        scale: float | Sequence[float] | str | None = None,
        period: float | Sequence[float | None] | None = None,
        *,
        ranks: bool = False,
    ) -> None:
        check_flag("ranks", ranks)
        if isinstance(scale, str) and scale != "std":
            raise InputError(f'scale must be a number, numbers or "std", got {format_value(scale)}')
        if ranks and period is not None:
            raise InputError(f"ranks and period do not go together, got period={period!r}")
        if isinstance(scale, str) and (ranks or period is not None):
            raise InputError(f'scale "std" goes with neither ranks nor period, got {ranks=} and {period=}')
        self.scale = scale if scale is None or isinstance(scale, str) else positive_numbers("scale", scale)
        self.period = None if period is None else positive_numbers("period", period, zero=True)
        self.ranks = ranks

    @property
    def needs_labels(self) -> bool:
        """Return whether the map depends on the labels it is fitted to."""
        return self.ranks or isinstance(self.scale, str)

    def fit(self, labels: Labels) -> "Coordinates":
        """Return the map from labels (N,) or (N, d), which are checked, to coordinates."""
        d = 1 if labels.ndim == 1 else int(labels.shape[1])
        values = labels.reshape(len(labels), d)
        if self.scale is None and self.period is None and not self.ranks:
            return Coordinates(d)
        if isinstance(self.scale, str):
            of = np.nanstd if has_gaps(values) else np.std
            deviation = of(values, axis=0, dtype=np.float64)
            low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
            scale = np.where(varies(low, high, len(values)), deviation, 1.0)
        else:
            scale = _per_output("scale", self.scale, d, 1.0)
        period = _per_output("period", self.period, d, 0.0)
        scale = np.concatenate([scale, scale[period > 0]])
        return Coordinates(d, scale, period, [_rank_table(column) for column in values.T] if self.ranks else None)

    def __repr__(self) -> str:
        scale, period = (v.tolist() if isinstance(v, np.ndarray) else v for v in (self.scale, self.period))
        return f"LabelSpace({scale=}, {period=}, ranks={self.ranks})"


@dataclass(frozen=True)
class Coordinates:
    """A fitted `LabelSpace`."""

    d: int  # number of outputs
    scale: Floats | None = None  # of every coordinate; None leaves labels as they are
    period: Floats | None = None  # (d,) in label units, 0 for outputs that do not go round
    tables: list[tuple[Floats, Floats]] | None = None  # for ranks, each output's different values and their ranks

    def of(self, name: str, labels: Labels) -> Labels:
        """Return coordinates (N,) or (N, c) of labels (N,) or (N, d); c is d and one more for each circle.

        `InputError` is raised if they are too large for distances.
        """
        if self.scale is None or self.period is None:
            return labels
        values = labels.astype(np.float64).reshape(len(labels), self.d)
        if self.tables is not None:
            values = np.stack([np.interp(v, *t) for v, t in zip(values.T, self.tables, strict=True)], axis=1)
        circular = self.period > 0
        length = self.period[circular]
        turn = np.mod(values[:, circular], length)
        turn = 2 * np.pi * (np.mod(turn, length) / length)  # rounding can leave the period itself, which is 0
        values[:, circular] = length / (2 * np.pi) * np.cos(turn)
        values = np.concatenate([values, length / (2 * np.pi) * np.sin(turn)], axis=1)
        with np.errstate(over="ignore"):
            values /= self.scale
        if (np.abs(values) > MAX_LABEL).any():
            raise InputError(
                f"{name} divided by scale must be within +-{MAX_LABEL:g}, got {np.nanmax(np.abs(values))!r}"
            )
        return values[:, 0] if labels.ndim == values.shape[1] == 1 else values


def as_space(space: LabelSpace | None) -> LabelSpace:
    """Return a space, for None the one that compares labels as they are, or raise `InputError`."""
    if not isinstance(space, LabelSpace | None):
        raise InputError(f"space must be a LabelSpace, got {format_value(space)}")
    return space or LabelSpace()


def positive_numbers(name: str, given: Any, *, zero: bool = False) -> Floats:
    """Return a number () or numbers (d,) above 0 as float64; with `zero`, 0 and None pass in a sequence, too, as 0."""
    entries = given
    if zero and isinstance(given, list | tuple):
        entries = [0.0 if entry is None else entry for entry in given]
    try:
        numbers = np.array(to_numpy(entries))
        numbers = numbers.astype(np.float64) if numbers.dtype.kind in "iuf" else np.full((1, 1), np.nan)
    except (TypeError, ValueError, OverflowError, RuntimeError):  # the last of tensors without values
        numbers = np.full((1, 1), np.nan)
    # What is no number at all has two axes by now.
    positive = (numbers >= 0) if zero and numbers.ndim else (numbers > 0)
    if numbers.ndim > 1 or numbers.size == 0 or not (positive & np.isfinite(numbers)).all():
        raise InputError(f"{name} must be a number or a sequence of numbers above 0, got {format_value(given)}")
    return numbers


def _per_output(name: str, given: Floats | None, d: int, default: float) -> Floats:
    if given is not None and given.ndim == 1 and len(given) != d:
        raise InputError(f"{name} must be one number or {d}, one for each output, got {len(given)}")
    return np.broadcast_to(default if given is None else given, (d,))


def _rank_table(column: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return the different values (u,) of a column (N,), ascending, and (mean rank - 1/2) / N of each."""
    column = column[~np.isnan(column)].astype(np.float64)
    values, counts = np.unique(column, return_counts=True)
    before = np.cumsum(counts) - counts
    return values, (before + counts / 2) / len(column)
