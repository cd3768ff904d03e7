"""A series of one's own: rows with times on a regular grid, and how a run makes windows of them; kept as JSON."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from cmixup.errors import InputError, format_value
from cmixup.files import SERIES_FORMAT
from cmixup.inputs.preprocessing import Preprocessing, with_units
from cmixup.inputs.spread import VANISH, is_new, warn_of_new
from cmixup.tables.columns import as_words, checked_columns, checked_numbers, level_codes, read_column
from cmixup.tables.steps import CURE, MONTHLY, grid, own_step, places, step_of, text_of
from cmixup.tables.written import TIME

FILLS = ("none", "previous", "linear")
ROW = "row"  # the column of times where there is none
ROUNDED = 0.01  # ms by which times differ from whole ones through rounding, as those of spreadsheets
STEPS = ("last", "all")


@dataclass(frozen=True)
class OneSeries:
    """One series with a row for every step."""

    name: str  # by which the rows of a file name it; empty where there is one
    times: pd.Index  # (n,) dates or numbers
    step: str  # between them (`cmixup.tables.steps`)
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
    time: str  # the column of times; `ROW` where there is none counts the rows of each series
    form: str  # how it is written (`cmixup.tables.written`); nothing for numbers
    id: str  # the column that names the series of a row; empty for one series
    columns: tuple[str, ...]  # that a row of a window holds: targets, others, those that are known ahead
    forms: tuple[str, ...]  # of the columns
    n_known: int  # columns that are known ahead
    window: int  # rows of an input
    horizon: int
    steps: str
    fill: str
    step: str = ""  # between rows (`cmixup.tables.steps`), such as "h" or "MS"; empty to find it
    shift: tuple[float, ...] = ()  # as the scale of every column, by its training rows
    scale: tuple[float, ...] = ()

    @property
    def in_shape(self) -> tuple[int, int]:
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
        counted = self.time == ROW and ROW not in map(str, frame)
        named = [*([] if counted else [self.time]), *filter(None, [self.id]), *self.columns]
        frame = checked_columns(frame, named, source)
        read = [checked_numbers(frame[name], source, form) for name, form in zip(self.columns, self.forms, strict=True)]
        if counted and not len(frame):
            raise InputError(f"{source} has no rows")
        codes = level_codes(frame[self.id]) if self.id else np.zeros(len(frame), dtype=np.int64)
        times = pd.Index(pd.Series(codes).groupby(codes).cumcount() + 1) if counted else self._times(frame, source)
        rows = pd.DataFrame(np.column_stack(read), index=times, columns=list(self.columns))
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
                when = times[place[same[0]]]
                cure = "" if self.id else ": leave one out, or name the column that tells series apart, dataset.id="
                cure = _of_clock(times[place], self.time, frame) or cure
                if self.form and frame[self.time].iloc[place].nunique() == len(place):
                    cure = f" to the microsecond: dataset.time={ROW} counts rows"
                raise InputError(f"{call}, rows {first} and {second} have one time, {text_of(when)}{cure}")
            every[word] = call, place
        call, longest = max(every.values(), key=lambda one: len(one[1]))
        step = self.step or step_of(times[longest], call)
        return [
            self._on_grid(
                word, rows.iloc[place], frame.index[place], own_step(times[place], step) if self.id else step, call
            )
            for word, (call, place) in every.items()
        ]

    def _times(self, frame: pd.DataFrame, source: str) -> pd.Index:
        """Return the times of a table's rows, as dates to the microsecond or as numbers."""
        days = checked_numbers(frame[self.time], source, self.form)
        if not len(days) or np.isnan(days).any():
            where = f", row {frame.index[int(np.argmax(np.isnan(days)))]}" if len(days) else ""
            raise InputError(f"{source}{where} has no time in column {format_value(self.time)}")
        if not self.form:
            return pd.Index(days.astype(np.int64) if (days == np.floor(days)).all() else days)
        length = days * 86_400_000
        whole = abs(length - np.round(length)).max() < ROUNDED
        count = np.round(length if whole else 1000 * length).astype(np.int64)
        return pd.DatetimeIndex(pd.to_datetime(count, unit="ms" if whole else "us"))

    def _on_grid(self, name: str, rows: pd.DataFrame, numbers: pd.Index, step: str, source: str) -> OneSeries:
        """Return sorted rows with one for every step; `numbers` are how errors call them."""
        times, place = rows.index, places(rows.index, step)
        if (wrong := (place < 0) | np.append(False, np.diff(place) <= 0)).any():
            k = int(np.argmax(wrong))
            where = f"{source}, row {numbers[k]}: {text_of(times[k])}"
            raise InputError(f"{where} is not on the steps of {step} that others have{CURE}")
        every = grid(times[0], int(place[-1]) + 1, step)
        missing = np.setdiff1d(np.arange(len(every)), place)
        if len(missing) and (self.fill == "none" or len(missing) > len(times)):
            cure = ": dataset.fill=previous or linear fills them"
            if len(missing) > len(times):
                cure = f": if rows follow each other all the same, dataset.time={ROW} counts them"
            cure = _of_clock(every[missing], self.time) or cure
            what = f"{len(missing)} of {len(every)} times are missing at steps of {step}"
            raise InputError(f"{source}: {what}, the first {text_of(every[missing[0]])}{cure}")
        if MONTHLY.fullmatch(step):  # a month's row keeps its day
            every = pd.DatetimeIndex(pd.Series(every.astype(times.dtype)).where(np.isin(np.arange(len(every)), missing),
                                     pd.Series(times, index=place)))  # fmt: skip
        values = np.full((len(every), rows.shape[1]), np.nan)
        values[place] = rows.to_numpy()
        known = np.flatnonzero(~np.isnan(values[:, : self.n_targets]).all(axis=1))
        if not known.size:
            raise InputError(f"{source} has no value of {', '.join(self.columns[: self.n_targets])} in any row")
        observed = int(known[-1]) + 1
        until_now = np.arange(values.shape[1]) < values.shape[1] - self.n_known
        gaps = np.isnan(values)
        gaps[observed:, until_now] = False
        if gaps.any() and self.fill != "none":
            table = pd.DataFrame(values)
            table = table.ffill() if self.fill == "previous" else table.interpolate(limit_area="inside")
            values = table.to_numpy(copy=True)
        values[observed:, until_now] = 0.0  # read by no window; a gap before must not be filled towards it
        if (unknown := np.isnan(values)).any():
            row, column = np.argwhere(unknown)[0]
            where = f"column {format_value(self.columns[column])} has no value at {text_of(every[row])}"
            cure = ": dataset.fill=previous or linear fills gaps"
            raise InputError(f"{source}: {where}{cure if self.fill == 'none' else f'; fill={self.fill} has none'}")
        return OneSeries(name, every, step, values, observed, int(gaps.sum()))

    def scaled_by(self, shift: np.ndarray, scale: np.ndarray) -> Self:
        """Return this with the mean and the scale `(columns,)` of training rows."""
        return replace(self, shift=tuple(shift.tolist()), scale=tuple(scale.tolist()))

    def new_values(self, every: Sequence[OneSeries]) -> list[str]:
        """Return the columns that were constant in training, and have another value in some series."""
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
        every = self.series(frame, source)
        short = [one for one in every if one.observed < self.window]
        windows, whole = [], [one for one in every if one.observed >= self.window]
        what = f"has {short[0].observed} rows with a target; a window needs {self.window}" if short else ""
        if not whole:
            raise InputError(f"{source}{f', {self.id} {short[0].name}' if self.id else ''} {what}")
        if short:
            others = f", and {len(short) - 1} others are as short" if short[1:] else ""
            line = f"{source}: {self.id} {short[0].name} {what}{others}: left out"
            warnings.warn(line, UserWarning, stacklevel=3)
        warn_of_new(self.new_values(whole), source)
        for one in whole:
            call = f"{source}, {self.id} {one.name}" if self.id else source
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
        index = list[tuple[str, Any]]()
        for one in (one for one in self.series(frame) if one.observed >= self.window):
            after = grid(one.times[one.observed - 1], self.horizon + 1, one.step)[1:]
            count = self.horizon if self.steps == "all" else len(self._ends(one))
            index += [(one.name, time) for time in after[-count:]]
        names, times = zip(*index, strict=True)
        time = pd.Index(times, name=self.time)
        both = pd.MultiIndex.from_arrays([pd.Index(names, name=self.id), time]) if self.id else time
        return pd.DataFrame(values.reshape(len(index), -1), index=both, columns=list(self.columns[: self.n_targets]))


def _of_clock(times: pd.Index, name: str, frame: Any = None) -> str:
    """Return what to do where the times are local, or hours stand in a column of their own; nothing for others.

    They are those of a series, some of them doubled, with its table; or those that are missing.
    """
    if not isinstance(times, pd.DatetimeIndex):
        return ""
    doubled = times if frame is None else times[times.duplicated()]
    read = f"frame[{name!r}] = pd.to_datetime(frame[{name!r}])"
    if ((doubled.day_of_week == 6) & (doubled.hour < 4) & doubled.month.isin([3, 4, 9, 10, 11])).all():
        zone = "tz_localize('Europe/Berlin', ambiguous='infer').dt.tz_convert('UTC')"
        return f": an hour of summer time, it seems; times are taken with their offset, as by {read}.dt.{zone}"
    for column in frame if frame is not None and (times == times.normalize()).all() else ():
        values = pd.to_numeric(frame[column], errors="coerce")
        if column != name and read_column(frame[column]).form == TIME:
            what, length = "time of day", f"frame[{column!r}] + ':00'"
        elif column != name and 12 <= values.nunique() <= 25 and values.isin(range(25)).all():
            less = " - 1" if values.max() == 24 and values.min() == 1 else ""
            what, length = "hour", f"frame[{column!r}]{less}, unit='h'"
        else:
            continue
        return f": {column} is the {what}, it seems; both become one column by {read} + pd.to_timedelta({length})"
    return ""
