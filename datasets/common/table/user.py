"""Datasets made of own tables: the kind of each column, the split, and what a run keeps of them."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError, check_choice, check_count, shortened
from cmixup.tables.columns import Constant, as_numbers, cell, checked_numbers, level_codes, read_column
from cmixup.tables.preprocessing import TablePreprocessing
from cmixup.tables.written import Reading, unit_of
from datasets.common.base import SPLITS, Dataset, smooth_labels
from datasets.common.table.fitting import fit_category, fit_number, holds_categories, label_column
from datasets.common.table.problems import equal_groups, find_problems, label_notes, reading_lines
from datasets.common.table.reading import columns_named
from datasets.common.table.splits import split_user_rows

SYNTHETIC_ROWS = 400


@dataclass(frozen=True)
class Source:
    """A table as it was read."""

    frame: pd.DataFrame  # the index numbers the rows from 1
    name: str  # how errors and notes call it
    checksums: Mapping[str, str]  # SHA-256 of the files that it was read from


@dataclass(frozen=True)
class Table:
    """The rows of a table that can be used."""

    features: pd.DataFrame  # (N, ...) columns to make features of
    y: np.ndarray  # (N, d_y) float64 labels
    domain: np.ndarray  # (N,) int64, 0 without a group
    categorical: frozenset[str]  # names of the features that hold categories
    source: Source
    notes: tuple[str, ...]  # what was left out
    forms: Mapping[str, str] = field(default_factory=dict)  # of text that holds numbers or times: `tables.written`
    readings: tuple[str, ...] = ()  # a line on each way in which text was read
    units: tuple[str, ...] = ()  # of the targets, such as "%" or "days"


class UserTable(Dataset):
    """A table whose columns the user describes.

    Columns of numbers are numeric features, also those of text that is a number or a time to a person, where
    `reads_text` (`cmixup.tables.written`). Other columns hold categories, if half or more of their known values are
    no numbers. Rows without a target or group are left out and counted.
    All else is fitted on the training rows alone (medians, scales, levels, which columns are of no use:
    `datasets.common.table.fitting`), and the run keeps it as preprocessing.json.

    Args:
        target: the label column, or a list of several.
        group: a column of domains; whole domains go to training, validation and test. It is no feature.
        categorical: columns that hold categories even if they look like numbers.
        drop: columns to leave out.
        keep: columns that stay even if they seem to number the rows.
        log_target: predict the natural logarithm of the targets.
        rare: levels with less than this share of the training rows, or fewer than 5 rows, are merged.
        scaling: of numeric features: standard, minmax or none.
        max_rows: use so many rows at most, drawn by the run seed before the split.
        train_rows, val_rows: train, validate on so many at most, drawn by the run seed; the other parts stay.
        together: rows with equal features go to the same part of a split; where a group is given, its rows do.
        synthetic: use synthetic data; its target and group have the names given.
    """

    reads_text: ClassVar[bool] = False  # the study's tables were published with dates as categories

    def __init__(
        self, *, target: str | int | list = "", group: str | int = "", categorical: str | int | list | None = None,
        drop: str | int | list | None = None, keep: str | int | list | None = None, log_target: bool = False,
        rare: float = 0.01, scaling: str = "standard", max_rows: int | None = None, train_rows: int | None = None,
        val_rows: int | None = None, together: bool = False, synthetic: bool = False,
    ):  # fmt: skip
        super().__init__(synthetic)
        self.together = together
        limits = (("max_rows", max_rows, len(SPLITS)), ("train_rows", train_rows, 1), ("val_rows", val_rows, 1))
        self.max_rows, self.train_rows, self.val_rows = (
            rows if rows is None else check_count(name, rows, minimum) for name, rows, minimum in limits
        )
        self.targets, self.group = as_names(target), str(group)
        self.categorical, self.drop, self.keep = as_names(categorical), as_names(drop), as_names(keep)
        self.log_target = log_target
        if not 0 <= rare < 1:
            raise InputError(f"rare must be a share of rows, 0 or more and below 1, got {rare!r}")
        self.rare = rare
        self.scaling = check_choice("scaling", scaling, ("standard", "minmax", "none"))
        for k, name in enumerate(self.targets):
            others = {"target": self.targets[:k], "group": (self.group,), "drop": self.drop, "keep": self.keep,
                      "categorical": self.categorical}  # fmt: skip
            if clash := [option for option, names in others.items() if name in names]:
                raise InputError(f"target {name!r} is in {clash[0]}, too")

    @abstractmethod
    def read(self) -> Source:
        """Return the table."""

    @cached_property
    def table(self) -> Table:
        """The rows that can be used; the stand-in's, if that is asked for."""
        return self._synthetic() if self.synthetic else self._usable(self.read())

    def problems(self) -> tuple[str, ...]:
        """Return how text was read, and a line for each problem that the table seems to have; the stand-in has none."""
        if self.synthetic:
            return ()
        table, labels = self.table, np.exp(self.table.y) if self.log_target else self.table.y
        lines = find_problems(_in_numbers(table), labels, self.targets, table.categorical, self.keep)
        return (*table.readings, *lines)

    def load(self, seed: int) -> RegressionData:
        """Split the table by run seed, 60 / 20 / 20, and make features of it; it is read once."""
        table, n = self.table, len(self.table.y)
        if self.max_rows is not None and n > self.max_rows:
            kept = np.sort(np.random.default_rng([seed, 2]).choice(n, self.max_rows, replace=False))
            features, y, domain = table.features.iloc[kept], table.y[kept], table.domain[kept]
            notes = (*table.notes, f"{self.max_rows} of {n} rows are used, others for every seed")
            table = replace(table, features=features, y=y, domain=domain, notes=notes)
        rng, source = np.random.default_rng(seed), table.source.name
        groups = table.domain if self.group else None
        if self.together and not self.group:
            groups = equal_groups(_in_numbers(table), table.categorical)
        rows = split_user_rows(len(table.y), rng, source, groups)
        for part, limit, stream in (("train", self.train_rows, 1), ("val", self.val_rows, 3)):  # 2 draws `max_rows`
            if limit is not None:
                sample = np.random.default_rng([seed, stream]).permutation(rows[part])[:limit]
                rows[part] = np.sort(sample) if self.group else sample
        preprocessing = self._fit(table, table.features.iloc[np.sort(rows["train"])])
        x = preprocessing.apply(table.features, source)
        splits = (
            self.make_split(part, torch.from_numpy(x[at]), table.y[at], table.domain[at]) for part, at in rows.items()
        )
        lines = ", ".join(f"{name} ({reason})" for name, reason in preprocessing.dropped.items())
        notes = (*table.notes, f"dropped: {lines}") if lines else table.notes
        more = {"unit": "log " * self.log_target + preprocessing.labels, "worst": ("rmse",) if self.group else ()}
        return self.assemble(seed, splits, table.source.checksums, notes, preprocessing=preprocessing.to_json(), **more)

    def _fit(self, table: Table, training: pd.DataFrame) -> TablePreprocessing:
        """Fit on the training rows of a table, in the order of the file."""
        fitted = {
            name: fit_category(training[name], self.rare)
            if name in table.categorical
            else fit_number(
                training[name], self.scaling, name in self.keep, table.source.name, table.forms.get(name, "")
            )
            for name in map(str, training)
        }
        columns = tuple(column for column in fitted.values() if not isinstance(column, str))
        dropped = {
            name: "constant in training" if isinstance(column_fit, Constant) else column_fit
            for name, column_fit in fitted.items() if isinstance(column_fit, str | Constant)
        }  # fmt: skip
        targets = self.targets or ("y",)  # the stand-in's
        if len(dropped) == len(fitted):
            reasons = "; ".join(f"{name}: {reason}" for name, reason in dropped.items())
            problem = f"no feature beside target {', '.join(targets)}{f' ({reasons})' if reasons else ''}"
            raise InputError(f"{table.source.name} has {problem}")
        return TablePreprocessing(targets, table.units, self.group, self.log_target, self.scaling, columns, dropped)

    def _usable(self, source: Source) -> Table:
        """Check that the columns asked for are there, and leave out rows without target or group."""
        frame, name = source.frame, source.name
        known = [str(column) for column in frame]
        frame = frame.set_axis(known, axis=1)
        if not self.targets:
            raise InputError(f"target must name a column of {name}: {shortened(known)}")
        options = {"target": self.targets, "group": as_names(self.group), "drop": self.drop,
                 "categorical": self.categorical, "keep": self.keep}  # fmt: skip
        self.targets, group, self.drop, self.categorical, self.keep = columns_named(options, known, name).values()
        self.group = "".join(group)
        plain_columns = [c for c in known if not self.reads_text or c in self.categorical]
        labels, readings = zip(
            *(
                (checked_numbers(frame[target], name), Reading(""))
                if target in plain_columns
                else label_column(frame[target], name)
                for target in self.targets
            ),
            strict=True,
        )
        y = np.column_stack(labels)
        usable, notes = ~np.isnan(y).any(axis=1), []
        if self.log_target and (wrong := y[usable] <= 0).any():
            row, column = np.argwhere(wrong)[0]
            where = cell(frame[self.targets[column]][usable], row, name)
            raise InputError(f"{where} has no logarithm (log_target=true)")
        if not usable.all():
            notes.append(f"{int((~usable).sum())} of {len(usable)} rows have no target and are left out")
        domain = np.zeros(len(frame), dtype=np.int64)
        if self.group:
            domain = level_codes(frame[self.group])
            if (domain[usable] < 0).any():
                notes.append(f"{int((domain[usable] < 0).sum())} rows have no {self.group} and are left out")
            usable &= domain >= 0
        features = frame[[c for c in known if c not in (*self.targets, self.group, *self.drop)]][usable]
        notes += label_notes(self.targets, y[usable], name, log=self.log_target)
        feature_readings = {c: read_column(features[c]) for c in features if c not in plain_columns}
        forms = {c: reading.form for c, reading in feature_readings.items() if reading.form}
        kinds = frozenset(
            c for c in features if c not in forms and (c in self.categorical or holds_categories(features[c], name))
        )
        y = np.log(y[usable]) if self.log_target else y[usable]
        lines = reading_lines(dict(zip(self.targets, readings, strict=True)) | feature_readings, frame.attrs)
        units = tuple(unit_of(reading.form) for reading in readings)
        return Table(features, y, domain[usable], kinds, source, tuple(notes), forms, tuple(lines), units)

    def _synthetic(self) -> Table:
        """Return made-up rows with every kind of column, whose targets and group have the names given."""
        rng, n = np.random.default_rng(0), SYNTHETIC_ROWS
        x = rng.random((n, 3))
        heating = rng.choice(["gas", "oil", "wood", "peat"], n, p=[0.6, 0.29, 0.1, 0.01])
        frame = pd.DataFrame(
            {"id": np.arange(n), "area": np.where(x[:, 0] < 0.1, np.nan, 100 * x[:, 0]), "age": 50 * x[:, 1],
             "rooms": np.floor(1 + 6 * x[:, 2]), "heating": heating, "country": "here"},
            index=pd.RangeIndex(1, n + 1),
        )  # fmt: skip
        y = np.column_stack([smooth_labels(x, rng, 200, 40) for _ in self.targets or "y"])
        domain = rng.integers(0, 12 if self.group else 1, n)
        return Table(frame, y, domain, frozenset({"heating", "country"}), Source(frame, "the stand-in", {}), ())


def _in_numbers(table: Table) -> pd.DataFrame:
    """Return a table's features as numbers, NaN where nothing is known; categories as codes of their levels."""
    numbers = {}
    for name in map(str, table.features):
        if name in table.categorical:
            codes = level_codes(table.features[name])
            numbers[name] = np.where(codes < 0, np.nan, codes)
        else:
            numbers[name] = as_numbers(table.features[name], table.forms.get(name, ""))[0]
    return pd.DataFrame(numbers, index=table.features.index)


def as_names(given: Any) -> tuple[str, ...]:
    """Return names of columns as they come from a command line: one or a list, numbers too."""
    names = given if isinstance(given, (list, tuple)) else [given]
    return tuple(str(name) for name in names if name not in ("", None))
