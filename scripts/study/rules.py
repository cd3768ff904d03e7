"""The rules of the study, as configs/study says, and the cells that they make.

A cell is a method on a table under a condition. Its trials are of one or more tunings, each on a split of its own, and
what a tuning chooses is trained again on the splits and with the seeds that the rules say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from cmixup.errors import InputError
from scripts.driver.compose import override
from scripts.driver.predictions import Scored
from scripts.study.score import nrmse

TRAIN_SHARE, HELD_SHARE = 0.6, 0.2  # of own tables; validation and test have as much each
#: Words of every trial of the study. Jobs that save checkpoints would share no stack: a cell is done or it is not.
SHARED_WORDS = ("preset=default", "logger=none", "checkpoint_every=0")
PATH = "+method.path"  # begins the word for the file of a method that is none of configs/method


class Run(NamedTuple):
    """A run of a cell: the split of its rows, and the seed of all else that is drawn."""

    split: int
    seed: int


class Tuning(NamedTuple):
    """The trials that compete with one another, and what is trained with the winner's words.

    Attributes:
        at: the run of every trial.
        trials: words of each.
        finals: runs with the winner's.
    """

    at: Run
    trials: list[list[str]]
    finals: list[Run]


@dataclass(frozen=True)
class StudyTable:
    """A real table: how `dataset=rdataset` loads it.

    Attributes:
        name: ours.
        rows: that have every target.
        targets: columns to predict.
        words: of the command line, all but those of columns that are no features.
        drop: columns that are no features.
        group: the column of domains, or "".
    """

    name: str
    rows: int
    targets: int
    words: tuple[str, ...]
    drop: tuple[str, ...] = ()
    group: str = ""

    def words_of(self, *, grouped: bool) -> list[str]:
        """Return the words that load the table, split at random or by whole domains."""
        dropped = [*self.drop, *([self.group] if self.group and not grouped else [])]
        columns = [override("dataset.drop", dropped)] if dropped else []
        return [*self.words, *columns, *([override("dataset.group", self.group)] if grouped else [])]


@dataclass(frozen=True)
class Condition:
    """How much of a table is used.

    Attributes:
        name: such as "rows100".
        methods: names in the rules.
        train_rows: at most, or None for all.
        label_noise: in standard deviations of the training labels.
        val_rows: at most, or None for all.
        label_noise_val: whether the validation labels have as much noise.
        grouped: whether whole domains are held out.
    """

    name: str
    methods: tuple[str, ...]
    train_rows: int | None = None
    label_noise: float = 0.0
    val_rows: int | None = None
    label_noise_val: bool = False
    grouped: bool = False


@dataclass(frozen=True)
class StudyCell:
    """A method on a table under a condition."""

    table: StudyTable
    condition: Condition
    method: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Table, condition and method."""
        return self.table.name, self.condition.name, self.method


@dataclass(frozen=True)
class Rules:
    """What a file of configs/study says, checked.

    Attributes:
        name: of the file.
        tables, conditions: in the order of the files.
        methods: of each name, `method`, `fixed` and `grid` or `space`; and `file`, of a method that is none of
            configs/method (`scripts.study.entry`).
        max_rows: of a table.
        level: below which a corrected p value counts.
        checksum: SHA-256 of the rules, of those that they are like, and of the list of tables.
    """

    name: str
    tables: tuple[StudyTable, ...]
    conditions: tuple[Condition, ...]
    methods: Mapping[str, Mapping[str, Any]]
    max_rows: int
    level: float
    checksum: str
    parts: ClassVar[tuple[str, ...]] = ("test",)  # whose predictions are kept
    backbone: ClassVar[str] = "fcn3"  # of the networks; "" where there are none

    def cells(
        self, tables: Sequence[str] = (), conditions: Sequence[str] = (), methods: Sequence[str] = ()
    ) -> list[StudyCell]:
        """Return the cells, all or those of the names given.

        Raises:
            InputError: a name that the rules do not have.
        """
        known = {
            "tables": (tables, [t.name for t in self.tables]),
            "conditions": (conditions, [c.name for c in self.conditions]),
            "methods": (methods, list(self.methods)),
        }
        for what, (asked, names) in known.items():
            if wrong := [name for name in asked if name not in names]:
                raise InputError(f"{what} must be among {', '.join(names)}, got {wrong[0]!r}")
        return [
            StudyCell(table, condition, method)
            for table in self.tables
            for condition in self.conditions
            for method in condition.methods
            if (not tables or table.name in tables)
            and (not conditions or condition.name in conditions)
            and (not methods or method in methods)
            and self.fits(table, condition)
        ]

    def fits(self, table: StudyTable, condition: Condition) -> bool:
        """Return whether a table has the domains and more training rows than the condition asks for."""
        whole = TRAIN_SHARE * min(table.rows, self.max_rows)
        enough = condition.train_rows is None or condition.train_rows < whole
        return enough and (bool(table.group) or not condition.grouped)

    def tunings(self, cell: StudyCell) -> list[Tuning]:
        """Return the tunings of a cell."""
        raise InputError(f"rules {self.name} say nothing of tuning")

    def kept(self, one: Scored) -> Scored:
        """Return the predictions of a run as they are kept and scored."""
        return one

    def scores(self, one: Scored, std: np.ndarray, *, grouped: bool) -> dict[str, float]:
        """Return the errors of kept predictions by name; see `scripts.study.score.scores`."""
        return {"nrmse": nrmse(one.prediction[""], one.target, std)}

    def words(self, cell: StudyCell) -> list[str]:
        """Return the words of scripts.train that all trials of a cell share: the rows, and how they are trained on."""
        condition = cell.condition
        limits = {"train_rows": condition.train_rows, "val_rows": condition.val_rows}
        rows = [f"dataset.{key}={limit}" for key, limit in limits.items() if limit is not None]
        noise = [f"dataset.label_noise={condition.label_noise}"] if condition.label_noise else []
        if condition.label_noise_val:
            noise.append("dataset.label_noise_val=true")
        if noise and cell.table.targets > 1:
            noise.append("dataset.label_noise_per=target")  # they may have units of their own
        loaded = cell.table.words_of(grouped=condition.grouped)
        return ["dataset=rdataset", *loaded, f"dataset.max_rows={self.max_rows}", *rows, *noise, *SHARED_WORDS]

    def command(self, cell: StudyCell, words: Sequence[str]) -> list[str]:
        """Return the command line of a run, of whose words a record names a method's file without its folder."""
        found = [*self.words(cell), *words]
        file = self.methods[cell.method].get("file")
        return [override(PATH, file) if word.startswith(f"{PATH}=") else word for word in found]

    def method_words(self, method: str) -> list[str]:
        """Return the words that choose a method and what is fixed of it."""
        about = self.methods[method]
        return [f"method={about['method']}", *(override(k, v) for k, v in about.get("fixed", {}).items())]
