"""The rules of the study: tables, settings, splits and trials, each part a file of configs/study, and their cells.

A cell is a method on a table in a setting. Its trials belong to one tuning a split, whose choice is
trained again with other initial weights.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np

from cmixup.errors import InputError, check_choice
from cmixup.training.losses import LOSSES, SQUARED
from scripts.config.compose import CONFIG_DIR, override_word, override_words, read_part
from scripts.records.csv_rows import read_csv
from scripts.stats.effects import BASE

FOLDER = CONFIG_DIR / "study"
PROTOCOL2 = "protocol2"
#: Words of every trial of the study. Jobs that save checkpoints would share no stack: a cell is done or it is not.
SHARED_WORDS = ("preset=default", "logger=none", "checkpoint_every=0")
PATH = "+method.path"  # begins the word for the file of a method that is none of configs/method
WEIGHTS = 10  # a seed is so many times its split, plus the number of its initial weights
TRAIN_SHARE = 0.6  # of a table's rows; validation and test have half of the others each
SEARCHES = ("all", BASE, "chosen")


class Tuning(NamedTuple):
    """Trials that compete, and the runs that have the winner's words."""

    trials: list[list[str]]  # the words of each; a single one is chosen without training it
    seed: int  # of all trials
    seeds: list[int]  # of the runs


@dataclass(frozen=True)
class StudyTable:
    """A row of `tables.csv`: how many rows have every target, options of `rdataset`, and the column of domains."""

    name: str
    rows: int
    options: Mapping[str, Any]
    group: str = ""


@dataclass(frozen=True)
class Condition:
    """A setting: how much of a table is used."""

    name: str  # such as "rows100"
    methods: tuple[str, ...]  # names in the rules
    # options of the dataset: `train_rows` and `val_rows` at most, `label_noise` in standard deviations of the training
    # labels, and whether validation labels have it, `label_noise_val`
    rows: Mapping[str, Any]
    grouped: bool = False  # whether whole domains are held out


@dataclass(frozen=True)
class StudyCell:
    """A method on a table in a setting."""

    table: StudyTable
    condition: Condition
    method: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Table, condition and method."""
        return self.table.name, self.condition.name, self.method


@dataclass(frozen=True)
class Rules:
    """What a file of configs/study says, checked."""

    name: str  # of the file
    # who is tuned on each split. "all": every method, with rates and decays that all share, and ERM's first trials
    # among its own. "erm": ERM alone; a method has its rate and decay, and the first value of each argument in its
    # space. "chosen": the same, but rates and decays are given
    search: str
    tables: tuple[StudyTable, ...]  # in the order of the file, as `conditions`
    conditions: tuple[Condition, ...]
    # of each name, `method`, `fixed` and `space`; `file`, of one that is none of configs/method (`scripts.study.entry`)
    methods: Mapping[str, Mapping[str, Any]]
    max_rows: int  # of a table
    equal: float  # percent of ERM's error (or nats) within which an effect makes no difference
    lite: int  # how many of the tables, those with the fewest rows, an entry is tried on first
    epochs: int  # of training
    patience: int  # in epochs
    splits: int  # how many
    n_trials: int  # of each split
    shared: int  # how many of the trials are ERM's
    rates: tuple[float, float]  # the lowest and the highest, drawn log-uniformly between
    decays: tuple[float, ...]  # one is drawn
    weights: int  # sets of initial weights that the winner is trained with
    ensemble: Mapping[str, Any]  # the `methods` that have more `weights` in some `settings`
    first_split: int = 0  # the number of the first
    # what the draws of rates, decays and points depend on beside the split: "split", nothing, so that they are the same
    # on all tables, or "table"
    draws: str = "split"
    loss: str = SQUARED.name  # `train.loss` of every run; the metric that it selects by picks among trials
    # words of the configuration that choose a network other than `fcn3` and its options, by key
    network: Mapping[str, Any] = field(default_factory=dict)
    # words of the rate and the decay by table, setting and split
    chosen: Mapping[tuple[str, str, int], list[str]] = field(default_factory=dict)

    @property
    def experiment(self) -> str:
        """The experiment of its runs."""
        return f"study_{self.name}"

    @property
    def backbone(self) -> str:
        """The network."""
        return str(self.network.get("model", "fcn3"))

    @property
    def selection(self) -> str:
        """The metric on validation that picks among trials, as reports name it."""
        return LOSSES[self.loss].selection or "nrmse"

    @property
    def unit(self) -> str:
        """The unit of effects: percent of ERM's error, or nats where networks predict distributions."""
        return "%" if self.loss == SQUARED.name else "nats"

    def lite_tables(self) -> list[str]:
        """Return the names of the tables with the fewest rows."""
        return [table.name for table in sorted(self.tables, key=lambda table: table.rows)[: self.lite]]

    def cells(
        self, tables: Sequence[str] = (), conditions: Sequence[str] = (), methods: Sequence[str] = ()
    ) -> list[StudyCell]:
        """Return the cells, all or those of the names given."""
        table_names, condition_names = [t.name for t in self.tables], [c.name for c in self.conditions]
        known = {"tables": table_names, "conditions": condition_names, "methods": list(self.methods)}
        for (key, names), selected in zip(known.items(), (tables, conditions, methods), strict=True):
            if wrong := [name for name in selected if name not in names]:
                raise InputError(f"{key} must be among {', '.join(names)}, got {wrong[0]!r}")
        return [
            StudyCell(t, c, method)
            for t in self.tables if t.name in (tables or table_names)
            for c in self.conditions if c.name in (conditions or condition_names) and self.fits(t, c)
            for method in c.methods if method in (methods or self.methods)
        ]  # fmt: skip

    def fits(self, table: StudyTable, condition: Condition) -> bool:
        """Return whether a table has the domains and more training rows than the condition takes."""
        enough = condition.rows.get("train_rows", 0) < TRAIN_SHARE * min(table.rows, self.max_rows)
        return enough and (bool(table.group) or not condition.grouped)

    def tunings(self, cell: StudyCell) -> list[Tuning]:
        """Return a tuning for each split; seeds are `WEIGHTS` times the split and the number of the initial weights."""
        is_ensemble = cell.method in self.ensemble["methods"] and cell.condition.name in self.ensemble["settings"]
        weights = self.ensemble["weights"] if is_ensemble else self.weights
        tunings = []
        for split in range(self.first_split, self.first_split + self.splits):
            seed, trials = WEIGHTS * split, self.trials(cell.method, split, cell.table.name)
            if self.search == "chosen":
                trials = [self.final_words(cell.method, self.chosen[cell.table.name, cell.condition.name, split])]
            tunings.append(Tuning(trials, seed, [*range(seed + 1, seed + weights + 1)]))
        return tunings

    def trials(self, method: str, split: int, table: str) -> list[list[str]]:
        """Return the words of the trials of a method on a split; the first `shared` of them are ERM's first."""
        method = BASE if self.search == BASE else method
        key = [split, zlib.crc32(table.encode())] if self.draws == "table" else [split]
        rng = np.random.default_rng([2, *key])
        low, high = np.log(self.rates)
        drawn = [
            (float(f"{np.exp(rng.uniform(low, high)):.3g}"), float(rng.choice(self.decays)))
            for _ in range(self.n_trials)
        ]
        space, points = self.methods[method].get("space", {}), np.random.default_rng([3, *key])
        trials = []
        for k, (rate, decay) in enumerate(drawn):
            part = space[points.integers(len(space))] if isinstance(space, list) else space  # a list is a union
            point = {name: values[points.integers(len(values))] for name, values in part.items()}
            words = self.method_words(BASE) if k < self.shared else [*self.method_words(method), *override_words(point)]
            trials.append([*words, f"train.lr={rate}", f"train.weight_decay={decay}"])
        return trials

    def final_words(self, method: str, chosen: Sequence[str]) -> list[str]:
        """Return the words of the runs of a method whose tuning has chosen those of a trial."""
        if self.search == "all":
            return list(chosen)
        rates = [word for word in chosen if word.startswith(("train.lr=", "train.weight_decay="))]
        space = self.methods[method].get("space", {})
        first = {key: values[0] for key, values in (space[0] if isinstance(space, list) else space).items()}
        return [*self.method_words(method), *override_words(first), *rates]

    def method_words(self, method: str) -> list[str]:
        """Return the words that choose a method and what is fixed of it."""
        about = self.methods[method]
        return [f"method={about['method']}", *override_words(about.get("fixed", {}))]

    def words(self, cell: StudyCell) -> list[str]:
        """Return the words of scripts.train that all trials of a cell share: the rows, and how they are trained on."""
        table, condition = cell.table, cell.condition
        rows = {**table.options, "max_rows": self.max_rows, **condition.rows}
        if condition.grouped:
            rows["group"] = table.group
        elif table.group:
            rows["drop"] = [*rows["drop"], table.group]
        if "label_noise" in rows and len(rows["target"]) > 1:
            rows["label_noise_per"] = "target"  # they may have units of their own
        training: dict[str, Any] = {"train.epochs": self.epochs, "train.patience": self.patience}
        training |= {"train.loss": self.loss} if self.loss != SQUARED.name else {}
        data = {f"dataset.{key}": value for key, value in rows.items()}
        return ["dataset=rdataset", *SHARED_WORDS, *override_words({**data, **training, **self.network})]

    def command(self, cell: StudyCell, words: Sequence[str]) -> list[str]:
        """Return the command line of a run, of whose words a record names a method's file without its folder."""
        file = self.methods[cell.method].get("file")
        line = [*self.words(cell), *words]
        return [override_word(PATH, file) if word.startswith(f"{PATH}=") else word for word in line]


def load_rules(name: str = PROTOCOL2) -> Rules:
    """Read rules by their name, those that they are `like` in what they do not say, and the tables beside them."""
    check_choice("rules", name, tuple(sorted(file.stem for file in FOLDER.glob("*.yaml"))))
    path = FOLDER / f"{name}.yaml"
    config = read_part(path)
    if "like" in config:
        config = {**read_part(FOLDER / config["like"]), **config}
    for key, choices in {"search": SEARCHES, "draws": ("split", "table"), "loss": tuple(LOSSES)}.items():
        check_choice(f"{key} of {path}", config.get(key, choices[0]), choices)
    conditions = []
    for condition, about in config["conditions"].items():
        rows = {key: value for key, value in about.items() if key not in ("methods", "grouped")}
        methods = config["methods"] if about["methods"] == "all" else about["methods"]
        conditions.append(Condition(condition, tuple(methods), rows, about.get("grouped", False)))
    config["tables"] = tuple(map(_table_row, read_csv(FOLDER / config["tables"])))
    if "chosen" in config:
        config["chosen"] = {
            (row["table"], row["condition"], int(row["split"])):
                [f"train.lr={float(row['lr'])}", f"train.weight_decay={float(row['weight_decay'])}"]
            for row in read_csv(FOLDER / config["chosen"])
        }  # fmt: skip
    values = {field.name: config[field.name] for field in fields(Rules) if field.name in config}
    return Rules(**{**values, "name": name, "conditions": tuple(conditions)})


def _table_row(row: Mapping[str, str]) -> StudyTable:
    target, categorical, drop = (
        row[key].split(sign) if row[key] else [] for key, sign in (("target", "+"), ("categorical", "|"), ("drop", "|"))
    )
    options = {"package": row["package"], "item": row["item"], "target": target, "categorical": categorical,
               "drop": drop, "log_target": row["log_target"] == "1"}  # fmt: skip
    return StudyTable(row["name"], int(row["rows"]), options, row["group"])
