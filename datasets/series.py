"""A series of your own, or several, from a table in a file with a time in every row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError, check_choice, check_count, format_value, shortened
from cmixup.inputs.spread import moments
from cmixup.tables.columns import as_numbers, cell, read_column
from cmixup.tables.series import FILLS, ROW, STEPS, OneSeries, SeriesPreprocessing
from cmixup.tables.steps import text_of
from cmixup.tables.written import Reading, form_of_times, unit_of
from datasets.common.base import SPLITS
from datasets.common.naive import naive_forecasts
from datasets.common.table.fitting import numbers_rows
from datasets.common.table.problems import label_notes, reading_lines
from datasets.common.table.reading import columns_named
from datasets.common.table.text_file import TextFile
from datasets.common.table.user import Source, as_names
from datasets.common.windows import WINDOW, Windows

SYNTHETIC_ROWS = 600
MUCH = 300.0  # times the size of the other series
FAR = 10.0  # times the spread of another target: it decides the error, and who is mixed with whom


@dataclass(frozen=True)
class Placed:
    """The series of a file, and how they become windows."""

    made: SeriesPreprocessing  # without scales
    every: list[OneSeries]
    source: Source  # the file that they were read from
    readings: Sequence[str]  # a line on each way in which text was read
    left_out: Sequence[str]  # columns that are no numbers


class Series(TextFile):
    """Windows of series in a file: `dataset=series dataset.path=load.csv dataset.time=date`.

    Origin: the user's. y: the columns named by `target`, `horizon` steps ahead, in their own units; with all steps
    those of the first step come first. x: the last `window` rows of all numeric columns, targets first, scaled by the
    training rows to mean 0 and standard deviation 1.
    Shapes: x (N, window, columns), y (N, targets or horizon x targets); split by time, the same for every run seed:
    targets of training lie in the first 60 % of all times, those of validation in the next 20 %, and so do all steps
    that a window forecasts. Windows of val and test reach back into the part before. No domains.
    Licence: the user's to know. Citation: the user's to give.

    Args:
        time: the column of times; by default the only one that holds dates. One of numbers can be named; "row", where
            no column is called so, counts the rows of each series.
        id: the column that names the series of a row, where the file has several; no window holds rows of two.
        target: the columns to forecast; by default all numeric ones.
        known: columns that are known ahead, such as holidays: a window has their values up to the row it forecasts.
        drop: columns to leave out.
        window, horizon, steps, fill: see `SeriesPreprocessing`.
        synthetic: use synthetic data, whose columns have the names given.
        file: see `TextFile`.
    """

    name = "series"
    unit = "the columns' own"
    metrics = ("rmse", "mae", "mape")

    def __init__(
        self, path: str = "", *, time: str = "", id: str | int = "",  # noqa: A002, the word of a command line
        target: str | int | list | None = None, known: str | int | list | None = None,
        drop: str | int | list | None = None, window: int = WINDOW, horizon: int = 24, steps: str = "last",
        fill: str = "none", **file: Any,
    ):  # fmt: skip
        super().__init__(path, **file)
        self.time, self.id = str(time), str(id)
        self.targets, self.known, self.drop = as_names(target), as_names(known), as_names(drop)
        self.window, self.horizon = check_count("window", window, 1), check_count("horizon", horizon, 1)
        self.steps, self.fill = check_choice("steps", steps, STEPS), check_choice("fill", fill, FILLS)
        named = [self.time, self.id, *self.targets, *self.known, *self.drop]
        for name in filter(None, named):
            if named.count(name) > 1:
                raise InputError(f"column {name!r} is named twice by time, id, target, known and drop")
        if self.known and steps == "all" and window < horizon:
            raise InputError(f"window must be {horizon} or more to hold what is known of all steps, got {window}")

    @cached_property
    def placed(self) -> Placed:
        """The series of the file on their grids, or synthetic ones, if these are asked for."""
        example = "dataset=series dataset.path=load.csv dataset.time=date"
        source = self._synthetic() if self.synthetic else self.read_file((self.id,), example)
        frame = source.frame
        names = [str(name) for name in frame]
        frame = frame.set_axis(names, axis=1)
        readings = {name: read_column(frame[name]) for name in names}
        dates = [name for name in names if _holds_dates(readings[name].form)]
        given = {"time": as_names(self.time), "id": as_names(self.id), "target": self.targets, "known": self.known,
                 "drop": self.drop}  # fmt: skip
        chosen = columns_named(given, [*names, *[ROW] * (self.time == ROW)], source.name)
        time = chosen["time"] or dates
        if len(time) == 1 and time[0] in names and not (read := as_numbers(frame[time[0]]))[1].any():
            readings[time[0]] = Reading(form_of_times(read[0][~np.isnan(read[0])]))
        elif len(time) != 1 or time[0] not in (*dates, ROW):
            verb = "hold dates" if dates else "holds dates such as 2024-01-31 13:00"
            actual = f", got {format_value(time[0])}" if self.time else ""
            numbers = f"; a column of numbers can be named, too, and time={ROW} counts the rows"
            problem = f"time must name a column of {source.name}: {shortened(dates) or 'none'} {verb}{actual}"
            raise InputError(problem + numbers * (not dates))
        readings.setdefault(ROW, Reading(""))
        taken = {name for option in ("id", "drop") for name in chosen[option]} | {*time}
        named = [*chosen["target"], *chosen["known"]]
        numeric = [
            name for name in names
            if name in named or (name not in taken and _is_numeric(frame[name], readings[name].form, source.name))
        ]  # fmt: skip
        for name in named:
            if _holds_dates(readings[name].form):
                raise InputError(
                    f"column {format_value(name)} of {source.name} holds dates; targets and known are numbers"
                )
        targets = chosen["target"] or [name for name in numeric if name not in chosen["known"]]
        if not targets:
            raise InputError(f"target must name a column of {source.name}: none beside {time[0]} holds numbers")
        columns = [*targets, *(name for name in numeric if name not in named and name not in targets), *chosen["known"]]
        labels = targets
        if self.steps == "all" and self.horizon > 1:
            labels = [f"{name} +{step}" for step in range(1, self.horizon + 1) for name in targets]
        units = tuple(unit_of(readings[name].form) for name in targets)
        made = SeriesPreprocessing(
            tuple(labels), units, time[0], readings[time[0]].form, "".join(chosen["id"]), tuple(columns),
            tuple(readings[name].form for name in columns), len(self.known), self.window, self.horizon,
            self.steps, self.fill,
        )  # fmt: skip
        made, every = self._in_order(made, frame, source.name, readings[made.time].other)
        used = {name: readings[name] for name in (made.time, *columns)}
        if made.form != used[made.time].form:
            used[made.time] = Reading(made.form, f"{used[made.time].form} gives no regular step")
        left_out = [name for name in names if name not in taken and name not in columns]
        return Placed(replace(made, step=every[0].step), every, source, reading_lines(used, frame.attrs), left_out)

    def _in_order(
        self, made: SeriesPreprocessing, frame: pd.DataFrame, source: str, other: str
    ) -> tuple[SeriesPreprocessing, list[OneSeries]]:
        """Return the series by the order of day and month that alone gives a regular step, by day first if both do."""
        readings, errors = list[tuple[SeriesPreprocessing, list[OneSeries]]](), list[InputError]()
        for attempt in [made, *([replace(made, form=other)] if other else [])]:
            try:
                readings.append((attempt, attempt.series(frame, source)))
            except InputError as error:
                errors.append(error)
        if not readings and other:
            raise InputError(f"{errors[0]}; the dates are taken for {made.form}, dataset.dayfirst=false for {other}")
        if not readings:
            raise errors[0]
        return min(readings, key=lambda entry: sum(series.filled for series in entry[1]))

    def problems(self) -> tuple[str, ...]:
        """Return how text was read, and a line for each likely problem of the series; synthetic data have none."""
        if self.synthetic:
            return ()
        placed, lines = self.placed, list(self.placed.readings)
        if placed.left_out:
            lines.append(f"left out, since they hold no numbers: {', '.join(placed.left_out)}")
        targets = placed.made.columns[: placed.made.n_targets]
        values = np.concatenate([one.values[: one.observed, : len(targets)] for one in placed.every])
        spread = dict(zip(targets, values.std(axis=0), strict=True))
        lines += [
            f"{name} numbers the rows, it seems: dataset.drop=[{name}]"
            for k, name in enumerate(targets) if numbers_rows(values[:, k])
        ]  # fmt: skip
        most, least = max(spread, key=spread.__getitem__), min(spread, key=spread.__getitem__)
        if spread[most] > FAR * spread[least]:
            lines.append(
                f"{most} varies more than {FAR:g} times as much as {least}, so it decides the error and who is mixed "
                f"with whom: dataset.target={least} forecasts that one alone"
            )
        size = {one.name: float(abs(one.values[: one.observed, : len(targets)]).mean()) for one in placed.every}
        largest = max(size, key=size.__getitem__)
        middle = float(np.median([size[name] for name in size if name != largest] or [np.inf]))
        if size[largest] > MUCH * middle > 0:
            cure = f"frame[target] / frame.groupby({self.id!r})[target].transform('mean')"
            problem = f"{self.id} {largest} is {size[largest] / middle:.3g} times as large as the others"
            lines.append(f"{problem}, so it decides scale and error: {cure} divides each by its mean")
        return tuple(lines)

    def load(self, seed: int) -> RegressionData:
        placed, made = self.placed, self.placed.made
        series, m = placed.every, made.n_targets
        times = np.unique(np.concatenate([one.times[: one.observed] for one in series]))
        cuts = [times[int(share * len(times))] for share in (0.6, 0.8)]
        all_values = np.concatenate([one.values[: one.observed, :m] for one in series])
        label_notes(made.columns[:m], all_values, placed.source.name, log=True)
        rows = {part: list[np.ndarray]() for part in SPLITS}  # after each window, of the concatenated series
        begins = np.cumsum([0, *(len(one.times) for one in series)])
        for one, begin in zip(series, begins, strict=False):
            for part, ends in self._split(one, cuts).items():
                rows[part].append(ends + begin)
        after = {part: np.concatenate(ends) for part, ends in rows.items()}
        for part, ends in after.items():
            if not len(ends):
                raise InputError(
                    f"window {self.window} with horizon {self.horizon} is too long for {placed.source.name}: its "
                    f"{len(times)} times leave nothing for {part}"
                )
        training = np.concatenate([one.values[: one.observed][one.times[: one.observed] < cuts[0]] for one in series])
        made = made.scaled_by(*moments(training))
        x = torch.from_numpy(np.concatenate([made.inputs(one) for one in series]))
        values = np.concatenate([one.values[:, :m] for one in series])
        ahead = np.array(made.ahead) - 1
        splits = (
            self.make_split(
                part, Windows(x, torch.from_numpy(after[part] - self.window), self.window),
                values[after[part][:, None] + ahead].reshape(len(after[part]), -1),
            )
            for part in SPLITS
        )  # fmt: skip
        parts = {part: after[part] for part in SPLITS[1:]}
        naive = naive_forecasts(values, begins[:-1], parts, ahead, series[0].step)
        checksums, notes = placed.source.checksums, self._notes(cuts, after)
        if new := made.new_values(series):
            notes.append(f"constant in training, so that later values change nothing: {', '.join(new)}")
        more = {"unit": made.labels, "naive": naive}
        return self.assemble(seed, splits, checksums, notes, preprocessing=made.to_json(), **more)

    def _split(self, series: OneSeries, cuts: Sequence[np.datetime64]) -> dict[str, np.ndarray]:
        """Return the row after each window, by part: all that it forecasts lies there."""
        val, test = np.searchsorted(series.times, cuts)
        ends = np.arange(self.window, series.observed - self.horizon + 1)
        first, last = ends + self.placed.made.ahead[0] - 1, ends + self.horizon - 1
        inside = {"train": last < val, "val": (first >= val) & (last < test), "test": first >= test}
        return {part: ends[mask] for part, mask in inside.items()}

    def _notes(self, cuts: Sequence[np.datetime64], after: Mapping[str, np.ndarray]) -> list[str]:
        placed = self.placed
        first = min(one.times[0] for one in placed.every)
        last = max(one.times[one.observed - 1] for one in placed.every)
        val, test = map(text_of, cuts)
        counts = ", ".join(f"{len(ends)} of {part}" for part, ends in after.items())
        split = f"trains on times from {text_of(first)}, validates from {val}, tests from {test} to {text_of(last)}"
        filled = sum(one.filled for one in placed.every)
        short = [
            f"{one.name} ({one.observed} rows)" for one in placed.every if one.observed < self.window + self.horizon
        ]
        return [
            f"{split} (steps of {placed.made.step}; windows: {counts})",
            *[f"{filled} missing values were filled (fill={self.fill})"] * bool(filled),
            *[f"too short for window {self.window} and horizon {self.horizon}: {shortened(short)}"] * bool(short),
        ]

    def _synthetic(self) -> Source:
        """Return made-up hours with a daily and a weekly cycle."""
        rng, hours = np.random.default_rng(0), np.arange(SYNTHETIC_ROWS)
        columns: dict[str, Any] = {self.time or "time": pd.date_range("2024-01-01", periods=len(hours), freq="h")}
        columns |= {self.id: "a"} if self.id else {}
        for name in self.targets or ("load",):
            daily, weekly = (np.sin(2 * np.pi * hours / period + rng.uniform(0, 6)) for period in (24, 168))
            columns[name] = 10 + 3 * daily + weekly + 0.3 * rng.normal(size=len(hours))
        columns |= dict.fromkeys(self.known, hours % 24)
        return Source(pd.DataFrame(columns, index=hours + 1), "the stand-in", {})


def _holds_dates(form: str) -> bool:
    return bool(form) and form[0] in "%Iq"  # a form of strptime, ISO, or quarters


def _is_numeric(values: pd.Series, form: str, source: str) -> bool:
    """Return whether a column holds numbers; a few other values among them are refused."""
    wrong = as_numbers(values, form)[1]
    if form[:1] == "1" or not wrong.any():
        return form[:1] in ("", "1")
    if wrong.sum() < (~wrong & values.notna()).sum():
        cure = f"dataset.missing=[...] or dataset.drop=[{shortened([str(values.name)])}]"
        raise InputError(f"{cell(values, int(np.argmax(wrong)), source)} is not a number; fix it, or give {cure}")
    return False
