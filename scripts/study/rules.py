"""The rules of the study, as configs/study says, and the cells that they make."""

from __future__ import annotations

import csv
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cmixup.errors import InputError
from datasets.common.fetch import sha256_of
from scripts.driver.compose import CONFIG_DIR, override

FOLDER = CONFIG_DIR / "study"
RULES = FOLDER / "rules.yaml"
SMALL = FOLDER / "small_validation.yaml"
#: What brought rules, by their name, before the first run by them; the first the list of tables, too.
COMMITS = {RULES.stem: "ec82211", SMALL.stem: "44c6435"}
TRAIN_SHARE, HELD_SHARE = 0.6, 0.2  # of own tables; validation and test have as much each
#: Words of every trial of the study. Jobs that save checkpoints would share no stack: a cell is done or it is not.
SHARED_WORDS = ("preset=default", "logger=none", "checkpoint_every=0")


@dataclass(frozen=True)
class Table:
    """A real table: how `dataset=rdataset` loads it.

    Attributes:
        name: ours.
        rows: that have every target.
        targets: columns to predict.
        words: of the command line.
    """

    name: str
    rows: int
    targets: int
    words: tuple[str, ...]


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
    """

    name: str
    methods: tuple[str, ...]
    train_rows: int | None = None
    label_noise: float = 0.0
    val_rows: int | None = None
    label_noise_val: bool = False


@dataclass(frozen=True)
class Cell:
    """A method on a table under a condition: 16 trials, then all seeds."""

    table: Table
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
        methods: of each name, `method`, `fixed` and `grid`.
        rates, points: of tuning.
        seeds: of the runs; `tune_seed` is none of them.
        max_rows: of a table.
        level: below which a corrected p value counts.
        checksum: SHA-256 of the rules, of those that they are like, and of the list of tables.
    """

    name: str
    tables: tuple[Table, ...]
    conditions: tuple[Condition, ...]
    methods: Mapping[str, Mapping[str, Any]]
    rates: tuple[float, ...]
    points: int
    tune_seed: int
    seeds: int
    max_rows: int
    level: float
    checksum: str

    def cells(
        self, tables: Sequence[str] = (), conditions: Sequence[str] = (), methods: Sequence[str] = ()
    ) -> list[Cell]:
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
            Cell(table, condition, method)
            for table in self.tables
            for condition in self.conditions
            for method in condition.methods
            if (not tables or table.name in tables)
            and (not conditions or condition.name in conditions)
            and (not methods or method in methods)
            and self.fits(table, condition)
        ]

    def fits(self, table: Table, condition: Condition) -> bool:
        """Return whether a table has more training rows than the condition asks for."""
        whole = TRAIN_SHARE * min(table.rows, self.max_rows)
        return condition.train_rows is None or condition.train_rows < whole

    def trials(self, method: str) -> list[list[str]]:
        """Return the words of every trial of a method, those of one rate after another."""
        about = self.methods[method]
        grid = [dict(zip(about["grid"], point, strict=True)) for point in itertools.product(*about["grid"].values())]
        found = []
        for place, rate in enumerate(self.rates):
            order = np.random.default_rng([self.tune_seed, place]).permutation(len(grid))[: self.points]
            found += [
                [override("train.lr", rate), *(override(k, v) for k, v in grid[n].items())] for n in sorted(order)
            ]
        return found

    def words(self, cell: Cell) -> list[str]:
        """Return the words of scripts.train that all trials of a cell share."""
        about, condition = self.methods[cell.method], cell.condition
        limits = {"train_rows": condition.train_rows, "val_rows": condition.val_rows}
        rows = [f"dataset.{key}={limit}" for key, limit in limits.items() if limit is not None]
        noise = [f"dataset.label_noise={condition.label_noise}"] if condition.label_noise else []
        if condition.label_noise_val:
            noise.append("dataset.label_noise_val=true")
        if noise and cell.table.targets > 1:
            noise.append("dataset.label_noise_per=target")  # they may have units of their own
        return [
            "dataset=rdataset", *cell.table.words, f"dataset.max_rows={self.max_rows}", *rows, *noise,
            f"method={about['method']}", *(override(k, v) for k, v in about.get("fixed", {}).items()),
            *SHARED_WORDS,
        ]  # fmt: skip


def load_rules(path: Path = RULES) -> Rules:
    """Read rules, those that they are `like` in what they do not say, and the tables beside them.

    Raises:
        InputError: there are no such rules, or a condition has a method that the rules do not have.
    """
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml")))
        raise InputError(f"rules must be one of {known}, got {path.stem!r}")
    given, files = yaml.safe_load(path.read_text()), [path]
    if "like" in given:
        files.append(path.parent / given["like"])
        given = {**yaml.safe_load(files[-1].read_text()), **given}
    listed = path.parent / given["tables"]
    with listed.open(newline="") as file:
        tables = tuple(_table(row) for row in csv.DictReader(file))
    conditions = []
    for name, about in given["conditions"].items():
        methods = list(given["methods"]) if about["methods"] == "all" else about["methods"]
        if wrong := [method for method in methods if method not in given["methods"]]:
            raise InputError(f"condition {name} of {path} has a method {wrong[0]!r} that the rules do not have")
        conditions.append(Condition(name, **{**about, "methods": tuple(methods)}))
    told = {key: given[key] for key in ("methods", "points", "tune_seed", "seeds", "max_rows", "level")}
    checksum = " ".join(sha256_of(file) for file in [*files, listed])
    return Rules(path.stem, tables, tuple(conditions), rates=tuple(given["rates"]), checksum=checksum, **told)


def _table(row: Mapping[str, str]) -> Table:
    dropped = [name for name in [*row["drop"].split("|"), row["group"]] if name]
    columns = {"target": row["target"].split("+"), "drop": dropped, "categorical": _names(row["categorical"])}
    words = [f"dataset.package={row['package']}", f"dataset.item={row['item']}"]
    words += [override(f"dataset.{key}", names) for key, names in columns.items() if names]
    words += ["dataset.log_target=true"] if row["log_target"] == "1" else []
    return Table(row["name"], int(row["rows"]), len(columns["target"]), tuple(words))


def _names(joined: str) -> list[str]:
    return [name for name in joined.split("|") if name]
