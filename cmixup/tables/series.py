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
from cmixup.tables.steps import CURE, MONTHLY, grid, places, series_step, step_of, text_of
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
        is_counted = self.time == ROW and ROW not in map(str, frame)
        named = [*([] if is_counted else [self.time]), *filter(None, [self.id]), *self.columns]
        frame = checked_columns(frame, named, source)
        data = [checked_numbers(frame[name], source, form) for name, form in zip(self.columns, self.forms, strict=True)]
        if is_counted and not len(frame):
            raise InputError(f"{source} has no rows")
        codes = level_codes(frame[self.id]) if self.id else np.zeros(len(frame), dtype=np.int64)
        times = pd.Index(pd.Series(codes).groupby(codes).cumcount() + 1) if is_counted else self._times(frame, source)
        rows = pd.DataFrame(np.column_stack(data), index=times, columns=list(self.columns))
        words = sorted(as_words(frame[self.id])[1]) if self.id else [""]
        if (codes < 0).any():
            row = frame.index[int(np.argmax(codes < 0))]
            raise InputError(f"{source}, row {row} names no series in column {format_value(self.id)}")
        series_rows = {}
        for code, word in enumerate(words):
            place, title = np.flatnonzero(codes == code), f"{source}, {self.id} {word}" if self.id else source
            place = place[np.argsort(times[place], kind="stable")]
            if (doubled := np.flatnonzero(times[place][1:] == times[place][:-1])).size:
                first, second = frame.index[place[doubled[0] : doubled[0] + 2]]
                time = times[place[doubled[0]]]
                cure = "" if self.id else ": leave one out, or name the column that tells series apart, dataset.id="
                cure = _clock_advice(times[place], self.time, frame) or cure
                if self.form and frame[self.time].iloc[place].nunique() == len(place):
                    cure = f" to the microsecond: dataset.time={ROW} counts rows"
                raise InputError(f"{title}, rows {first} and {second} have one time, {text_of(time)}{cure}")
            series_rows[word] = title, place
        title, longest = max(series_rows.values(), key=lambda entry: len(entry[1]))
        step = self.step or step_of(times[longest], title)
        return [
            self._on_grid(
                word, rows.iloc[place], frame.index[place], series_step(times[place], step) if self.id else step, title
            )
            for word, (title, place) in series_rows.items()
        ]

    def _times(self, frame: pd.DataFrame, source: str) -> pd.Index:
        """Return the times of a table's rows, as dates to the microsecond or as numbers."""
        days = checked_numbers(frame[self.time], source, self.form)
        if not len(days) or np.isnan(days).any():
            where = f", row {frame.index[int(np.argmax(np.isnan(days)))]}" if len(days) else ""
            raise InputError(f"{source}{where} has no time in column {format_value(self.time)}")
        if not self.form:
            return pd.Index(days.astype(np.int64) if (days == np.floor(days)).all() else days)
        milliseconds = days * 86_400_000
        is_whole = abs(milliseconds - np.round(milliseconds)).max() < ROUNDED
        ticks = np.round(milliseconds if is_whole else 1000 * milliseconds).astype(np.int64)
        return pd.DatetimeIndex(pd.to_datetime(ticks, unit="ms" if is_whole else "us"))

    def _on_grid(self, name: str, rows: pd.DataFrame, numbers: pd.Index, step: str, source: str) -> OneSeries:
        """Return sorted rows with one for every step; `numbers` are how errors call them."""
        times, place = rows.index, places(rows.index, step)
        if (is_off := (place < 0) | np.append(False, np.diff(place) <= 0)).any():
            k = int(np.argmax(is_off))
            where = f"{source}, row {numbers[k]}: {text_of(times[k])}"
            raise InputError(f"{where} is not on the steps of {step} that others have{CURE}")
        slots = grid(times[0], int(place[-1]) + 1, step)
        missing = np.setdiff1d(np.arange(len(slots)), place)
        if len(missing) and (self.fill == "none" or len(missing) > len(times)):
            cure = ": dataset.fill=previous or linear fills them"
            if len(missing) > len(times):
                cure = f": if rows follow each other all the same, dataset.time={ROW} counts them"
            cure = _clock_advice(slots[missing], self.time) or cure
            problem = f"{len(missing)} of {len(slots)} times are missing at steps of {step}"
            raise InputError(f"{source}: {problem}, the first {text_of(slots[missing[0]])}{cure}")
        if MONTHLY.fullmatch(step):  # a month's row keeps its day
            slots = pd.DatetimeIndex(pd.Series(slots.astype(times.dtype)).where(np.isin(np.arange(len(slots)), missing),
                                     pd.Series(times, index=place)))  # fmt: skip
        values = np.full((len(slots), rows.shape[1]), np.nan)
        values[place] = rows.to_numpy()
        known = np.flatnonzero(~np.isnan(values[:, : self.n_targets]).all(axis=1))
        if not known.size:
            raise InputError(f"{source} has no value of {', '.join(self.columns[: self.n_targets])} in any row")
        observed = int(known[-1]) + 1
        is_past = np.arange(values.shape[1]) < values.shape[1] - self.n_known
        gaps = np.isnan(values)
        gaps[observed:, is_past] = False
        if gaps.any() and self.fill != "none":
            table = pd.DataFrame(values)
            table = table.ffill() if self.fill == "previous" else table.interpolate(limit_area="inside")
            values = table.to_numpy(copy=True)
        values[observed:, is_past] = 0.0  # read by no window; a gap before must not be filled towards it
        if (unknown := np.isnan(values)).any():
            row, column = np.argwhere(unknown)[0]
            where = f"column {format_value(self.columns[column])} has no value at {text_of(slots[row])}"
            cure = ": dataset.fill=previous or linear fills gaps"
            raise InputError(f"{source}: {where}{cure if self.fill == 'none' else f'; fill={self.fill} has none'}")
        return OneSeries(name, slots, step, values, observed, int(gaps.sum()))

    def scaled_by(self, shift: np.ndarray, scale: np.ndarray) -> Self:
        """Return this with the mean and the scale `(columns,)` of training rows."""
        return replace(self, shift=tuple(shift.tolist()), scale=tuple(scale.tolist()))

    def new_values(self, all_series: Sequence[OneSeries]) -> list[str]:
        """Return the columns that were constant in training, and have another value in some series."""
        constant = [k for k, scale in enumerate(self.scale) if scale >= VANISH]
        return [
            self.columns[k] for k in constant
            if any(is_new(series.values[: series.observed, k], self.shift[k]) for series in all_series)
        ]  # fmt: skip

    def inputs(self, series: OneSeries) -> np.ndarray:
        """Return the rows `(n, columns)` float32 that windows are cut from.

        They are scaled. Columns that are known ahead are `horizon` rows ahead, so that a window ends with what is known
        of the last row that is forecast; rows for which nothing is known there are NaN, and no window has them.
        """
        rows = ((series.values - self.shift) / self.scale).astype(np.float32)
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
        all_series = self.series(frame, source)
        short = [series for series in all_series if series.observed < self.window]
        windows, usable = [], [series for series in all_series if series.observed >= self.window]
        problem = f"has {short[0].observed} rows with a target; a window needs {self.window}" if short else ""
        if not usable:
            raise InputError(f"{source}{f', {self.id} {short[0].name}' if self.id else ''} {problem}")
        if short:
            others = f", and {len(short) - 1} others are as short" if short[1:] else ""
            line = f"{source}: {self.id} {short[0].name} {problem}{others}: left out"
            warnings.warn(line, UserWarning, stacklevel=3)
        warn_of_new(self.new_values(usable), source)
        for series in usable:
            title = f"{source}, {self.id} {series.name}" if self.id else source
            if self.n_known and len(series.times) < series.observed + self.horizon:
                names = ", ".join(self.columns[-self.n_known :])
                raise InputError(
                    f"{title} has {len(series.times) - series.observed} rows after the last target; {self.horizon} "
                    f"must say what is known ahead ({names})"
                )
            rows = self.inputs(series)
            windows += [rows[end - self.window : end] for end in self._ends(series)]
        return np.stack(windows)

    def _ends(self, series: OneSeries) -> range:
        """Return the rows that follow the windows of `apply`."""
        first = series.observed if self.steps == "all" else max(self.window, series.observed - self.horizon + 1)
        return range(first, series.observed + 1)

    def predictions(self, frame: pd.DataFrame, values: np.ndarray) -> pd.DataFrame:
        """Return outputs `(N, d_y)` for the windows of `apply` as a frame with a row for each step.

        Its index holds the times, below the names of the series where there are several.
        """
        index = list[tuple[str, Any]]()
        for series in (series for series in self.series(frame) if series.observed >= self.window):
            after = grid(series.times[series.observed - 1], self.horizon + 1, series.step)[1:]
            count = self.horizon if self.steps == "all" else len(self._ends(series))
            index += [(series.name, time) for time in after[-count:]]
        names, times = zip(*index, strict=True)
        time = pd.Index(times, name=self.time)
        keys = pd.MultiIndex.from_arrays([pd.Index(names, name=self.id), time]) if self.id else time
        return pd.DataFrame(values.reshape(len(index), -1), index=keys, columns=list(self.columns[: self.n_targets]))


def _clock_advice(times: pd.Index, name: str, frame: Any = None) -> str:
    """Return what to do where the times are local, or hours stand in a column of their own; nothing for others.

    They are those of a series, some of them doubled, with its table; or those that are missing.
    """
    if not isinstance(times, pd.DatetimeIndex):
        return ""
    doubled = times if frame is None else times[times.duplicated()]
    code = f"frame[{name!r}] = pd.to_datetime(frame[{name!r}])"
    if ((doubled.day_of_week == 6) & (doubled.hour < 4) & doubled.month.isin([3, 4, 9, 10, 11])).all():
        zone = "tz_localize('Europe/Berlin', ambiguous='infer').dt.tz_convert('UTC')"
        return f": an hour of summer time, it seems; times are taken with their offset, as by {code}.dt.{zone}"
    for column in frame if frame is not None and (times == times.normalize()).all() else ():
        values = pd.to_numeric(frame[column], errors="coerce")
        if column != name and read_column(frame[column]).form == TIME:
            unit, length = "time of day", f"frame[{column!r}] + ':00'"
        elif column != name and 12 <= values.nunique() <= 25 and values.isin(range(25)).all():
            less = " - 1" if values.max() == 24 and values.min() == 1 else ""
            unit, length = "hour", f"frame[{column!r}]{less}, unit='h'"
        else:
            continue
        return f": {column} is the {unit}, it seems; both become one column by {code} + pd.to_timedelta({length})"
    return ""
