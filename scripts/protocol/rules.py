"""The rules of the study, as configs/study says, and the cells that they make.

A cell is a method on a table under a condition. Its trials are of one or more tunings, each on a split of its own, and
what a tuning chooses is trained again on the splits and with the seeds that the rules say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from cmixup.errors import InputError
from scripts.config.compose import override_word

BASE = "erm"  # what all methods stand beside
TRAIN_SHARE, HELD_SHARE = 0.6, 0.2  # of own tables; validation and test have as much each


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
        columns = [override_word("dataset.drop", dropped)] if dropped else []
        return [*self.words, *columns, *([override_word("dataset.group", self.group)] if grouped else [])]


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
            configs/method (`scripts.study.submission`).
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
