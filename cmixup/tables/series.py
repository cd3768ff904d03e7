"""A series of one's own: rows with times on a regular grid, and how a run makes windows of them; kept as JSON."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
import pandas as pd

from cmixup.errors import InputError, format_value
from cmixup.files import SERIES_FORMAT
from cmixup.inputs.preprocessing import Preprocessing, with_units
from cmixup.spread import VANISH, is_new, warn_of_new
from cmixup.tables.columns import as_words, checked_columns, checked_numbers, level_codes

FILLS = ("none", "previous", "linear")
STEPS = ("last", "all")


@dataclass(frozen=True)
class OneSeries:
    """One series with a row for every step."""

    name: str  # by which the rows of a file name it; empty where there is one
    times: pd.DatetimeIndex  # (n,), with their step as `freq`
    values: np.ndarray  # (n, columns) float64; in rows from `observed` on only columns that are known ahead have one
    observed: int  # rows up to the last one with a target
    filled: int  # rows and cells


@dataclass(frozen=True)
class SeriesPreprocessing(Preprocessing):
    """From rows with times to windows of scaled rows, and from outputs to forecasts with their times.

    `steps` "last" forecasts the row `horizon` steps after the window, "all" every one up to it; then the labels of the
    first step come first. `fill` says what stands where a time or a value is missing: the "previous" value, a "linear"
    one between the values beside it, or "none": it is refused.
    """

    format: ClassVar[str] = SERIES_FORMAT
    time: str  # the column of times
    form: str  # how it is written (`cmixup.tables.written`)
    id: str  # the column that names the series of a row; empty for one series
    columns: tuple[str, ...]  # that a row of a window holds: targets, others, those that are known ahead
    forms: tuple[str, ...]  # of the columns
    n_known: int  # columns that are known ahead
    window: int  # rows of an input
    horizon: int
    steps: str
    fill: str
    step: str = ""  # between rows, as pandas writes it, such as "h" or "MS"; empty to find it
    shift: tuple[float, ...] = ()  # as the scale of every column, by its training rows
    scale: tuple[float, ...] = ()

    @property
    def in_shape(self) -> tuple[int, int]:
        """Shape of an input."""
        return self.window, len(self.columns)

    @property
    def ahead(self) -> range:
        """The steps after a window that are forecast."""
        return range(1 if self.steps == "all" else self.horizon, self.horizon + 1)

    @property
    def n_targets(self) -> int:
        """Number of columns that are forecast."""
        return len(self.targets) // len(self.ahead)

    @property
    def labels(self) -> str:
        """The columns that are forecast, with their units, in words."""
        return with_units(self.columns[: self.n_targets], self.units)

    @property
    def text(self) -> list[str]:
        """Columns that a file is to be read with as text (`read_table`)."""
        forms = {self.time: self.form, **dict(zip(self.columns, self.forms, strict=True))}
        return [*filter(None, [self.id]), *(name for name, form in forms.items() if form)]

    def series(self, frame: pd.DataFrame, source: str = "series") -> list[OneSeries]:
        """Return the series of a table, whose rows are in any order, on one grid of steps, with their gaps filled.

        Raises:
            InputError: a column that is not there, a cell that cannot be read, a time that is missing, doubled or
                between two steps, a value that is missing and not to be filled, or times without a step.
        """
        if self.time not in frame and self.time in (named := [*frame.index.names]):
            frame = frame.reset_index([name for name in (self.id, self.time) if name in named])
        elif self.time not in frame and isinstance(frame.index, pd.DatetimeIndex) and frame.index.name is None:
            frame = frame.rename_axis(self.time).reset_index()
        frame = checked_columns(frame, [self.time, *filter(None, [self.id]), *self.columns], source)
        days = checked_numbers(frame[self.time], source, self.form)
        if not len(days) or np.isnan(days).any():
            where = f", row {frame.index[int(np.argmax(np.isnan(days)))]}" if len(days) else ""
            raise InputError(f"{source}{where} has no time in column {format_value(self.time)}")
        times = pd.DatetimeIndex(pd.to_datetime(np.round(days * 86_400_000).astype(np.int64), unit="ms"))
        read = [checked_numbers(frame[name], source, form) for name, form in zip(self.columns, self.forms, strict=True)]
        rows = pd.DataFrame(np.column_stack(read), index=times, columns=list(self.columns))
        codes = level_codes(frame[self.id]) if self.id else np.zeros(len(rows), dtype=np.int64)
        words = sorted(as_words(frame[self.id])[1]) if self.id else [""]
        if (codes < 0).any():
            row = frame.index[int(np.argmax(codes < 0))]
            raise InputError(f"{source}, row {row} names no series in column {format_value(self.id)}")
        every = {}
        for code, word in enumerate(words):
            place, call = np.flatnonzero(codes == code), f"{source}, {self.id} {word}" if self.id else source
            place = place[np.argsort(times[place], kind="stable")]
            if (same := np.flatnonzero(times[place][1:] == times[place][:-1])).size:
                first, second = frame.index[place[same[0] : same[0] + 2]]
                cure = "" if self.id else ": leave one out, or name the column that tells series apart, dataset.id="
                when = text_of(times[place[same[0]]])
                raise InputError(f"{call}, rows {first} and {second} have one time, {when}{cure}")
            every[word] = call, place
        call, longest = max(every.values(), key=lambda one: len(one[1]))
        step = self.step or _step_of(times[longest], call)
        return [
            self._on_grid(word, rows.iloc[place], frame.index[place], step, call)
            for word, (call, place) in every.items()
        ]

    def _on_grid(self, name: str, rows: pd.DataFrame, numbers: pd.Index, step: str, source: str) -> OneSeries:
        """Return sorted rows with one for every step; `numbers` are how errors call them."""
        times = pd.DatetimeIndex(rows.index)
        grid = pd.date_range(times[0], times[-1], freq=step)
        if (between := ~times.isin(grid)).any():
            k = int(np.argmax(between))
            where = f"{source}, row {numbers[k]}: {text_of(times[k])}"
            raise InputError(f"{where} is not on the steps of {step} that others have")
        missing = grid.difference(times)
        if len(missing) and (self.fill == "none" or len(missing) > len(times)):
            cure = "" if len(missing) > len(times) else ": dataset.fill=previous or linear fills them"
            what = f"{len(missing)} of {len(grid)} times are missing at steps of {step}"
            raise InputError(f"{source}: {what}, the first {text_of(missing[0])}{cure}")
        values = rows.reindex(grid).to_numpy(copy=True)
        known = np.flatnonzero(~np.isnan(values[:, : self.n_targets]).all(axis=1))
        if not known.size:
            raise InputError(f"{source} has no value of {', '.join(self.columns[: self.n_targets])} in any row")
        observed = int(known[-1]) + 1
        until_now = np.arange(values.shape[1]) < values.shape[1] - self.n_known
        values[observed:, until_now] = 0.0  # read by no window
        gaps = np.isnan(values)
        if gaps.any() and self.fill != "none":
            table = pd.DataFrame(values)
            values = (table.ffill() if self.fill == "previous" else table.interpolate(limit_area="inside")).to_numpy()
        if (unknown := np.isnan(values)).any():
            row, column = np.argwhere(unknown)[0]
            where = f"column {format_value(self.columns[column])} has no value at {text_of(grid[row])}"
            cure = ": dataset.fill=previous or linear fills gaps"
            raise InputError(f"{source}: {where}{cure if self.fill == 'none' else f'; fill={self.fill} has none'}")
        return OneSeries(name, grid, values, observed, int(gaps.sum()))

    def scaled_by(self, shift: np.ndarray, scale: np.ndarray) -> Self:
        """Return this with the mean and the scale `(columns,)` of training rows."""
        return replace(self, shift=tuple(shift.tolist()), scale=tuple(scale.tolist()))

    def new_values(self, every: Sequence[OneSeries]) -> list[str]:
        """Return the columns that were constant in training, and are not what they were in some series."""
        constant = [k for k, scale in enumerate(self.scale) if scale >= VANISH]
        return [
            self.columns[k] for k in constant
            if any(is_new(one.values[: one.observed, k], self.shift[k]) for one in every)
        ]  # fmt: skip

    def inputs(self, one: OneSeries) -> np.ndarray:
        """Return the rows `(n, columns)` float32 that windows are cut from.

        They are scaled. Columns that are known ahead are `horizon` rows ahead, so that a window ends with what is known
        of the last row that is forecast; rows for which nothing is known there are NaN, and no window has them.
        """
        rows = ((one.values - self.shift) / self.scale).astype(np.float32)
        if self.n_known:
            ahead = np.full((len(rows), self.n_known), np.nan, dtype=np.float32)
            ahead[: -self.horizon] = rows[self.horizon :, -self.n_known :]
            rows[:, -self.n_known :] = ahead
        return rows

    def apply(self, frame: pd.DataFrame, source: str = "series") -> np.ndarray:
        """Return the windows `(N, window, columns)` float32 that forecast what follows the last target of each series.

        With the last step alone windows that end up to `horizon` - 1 rows before it are among them, as many as there
        are: each forecasts one step.
        """
        windows, every = [], self.series(frame, source)
        warn_of_new(self.new_values(every), source)
        for one in every:
            call = f"{source}, {self.id} {one.name}" if self.id else source
            if one.observed < self.window:
                raise InputError(f"{call} has {one.observed} rows with a target; a window needs {self.window}")
            if self.n_known and len(one.times) < one.observed + self.horizon:
                names = ", ".join(self.columns[-self.n_known :])
                raise InputError(
                    f"{call} has {len(one.times) - one.observed} rows after the last target; {self.horizon} must say "
                    f"what is known ahead ({names})"
                )
            rows = self.inputs(one)
            windows += [rows[end - self.window : end] for end in self._ends(one)]
        return np.stack(windows)

    def _ends(self, one: OneSeries) -> range:
        """Return the rows that follow the windows of `apply`."""
        first = one.observed if self.steps == "all" else max(self.window, one.observed - self.horizon + 1)
        return range(first, one.observed + 1)

    def predictions(self, frame: pd.DataFrame, values: np.ndarray) -> pd.DataFrame:
        """Return outputs `(N, d_y)` for the windows of `apply` as a frame with a row for each step.

        Its index holds the times, below the names of the series where there are several.
        """
        index, every = list[tuple[str, pd.Timestamp]](), self.series(frame)
        for one in every:
            after = pd.date_range(one.times[one.observed - 1], periods=self.horizon + 1, freq=one.times.freq)[1:]
            count = self.horizon if self.steps == "all" else len(self._ends(one))
            index += [(one.name, time) for time in after[-count:]]
        names, times = zip(*index, strict=True)
        time = pd.DatetimeIndex(times, name=self.time)
        both = pd.MultiIndex.from_arrays([pd.Index(names, name=self.id), time]) if self.id else time
        return pd.DataFrame(values.reshape(len(index), -1), index=both, columns=list(self.columns[: self.n_targets]))


def _step_of(times: pd.DatetimeIndex, source: str) -> str:
    """Return the most common step of `times`, sorted: working days, months, or a length that most rows have."""
    if len(times) < 3:
        raise InputError(f"{source} has {len(times)} rows; a series needs 3 or more")
    length, count = Counter(times[1:] - times[:-1]).most_common(1)[0]
    if length == pd.Timedelta(days=1) and len(times) > 5 and (times.day_of_week < 5).all():
        return "B"
    for inside, unit in ((times.is_month_start, "MS"), (times.is_month_end, "ME")):
        if inside.all() and length >= pd.Timedelta(days=28):
            months = np.diff(12 * times.year + times.month)
            return f"{np.bincount(months).argmax()}{unit}"
    if count <= len(times) / 2:
        most = f"the most common one, {length}, is between {count} of {len(times)} rows"
        raise InputError(f"{source} has no regular step: {most}")
    days, rest = divmod(length, pd.Timedelta(days=1))
    return str(pd.tseries.frequencies.to_offset(length).freqstr) if rest else f"{days}D"


def text_of(time: pd.Timestamp) -> str:
    """Return a time as errors and notes write it, such as 2024-01-31 13:00."""
    return f"{time:%Y-%m-%d %H:%M:%S}".removesuffix(":00").removesuffix(" 00:00")
