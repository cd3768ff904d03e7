"""The rules of the study, each a file of configs/study, and how such a file is read."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError, check_choice
from cmixup.losses import LOSSES, SQUARED
from datasets.common.fetch import sha256_of
from scripts.config.compose import CONFIG_DIR, override_word, read_part
from scripts.protocol.rules import BASE, Condition, Rules, Run, StudyCell, StudyTable, Tuning

FOLDER = CONFIG_DIR / "study"
PROTOCOL2 = FOLDER / "protocol2.yaml"
SEA_LEVEL = FOLDER / "baselines.yaml"
NO_SEARCH = FOLDER / "no_search.yaml"
#: What brought rules, by their name, before the first run by them.
COMMITS = {PROTOCOL2.stem: "b41ae54", SEA_LEVEL.stem: "eaae21c"}
#: Words of every trial of the study. Jobs that save checkpoints would share no stack: a cell is done or it is not.
SHARED_WORDS = ("preset=default", "logger=none", "checkpoint_every=0")
PATH = "+method.path"  # begins the word for the file of a method that is none of configs/method
WEIGHTS = 10  # a seed of protocol 2 is so many times its split, plus the number of its initial weights


@dataclass(frozen=True)
class Protocol2(Rules):
    """Every split is tuned by itself, with rates and decays that are the same for all methods and ERM among the trials.

    Attributes:
        lite: how many of the tables, those with the fewest rows, an entry is tried on first.
        epochs, patience: of training.
        splits, trials_each: how many splits, and trials of each.
        shared: how many of the trials are ERM's.
        rates: the lowest and the highest, drawn log-uniformly between.
        decays: one is drawn.
        weights: sets of initial weights that the winner is trained with.
        ensemble: the `methods` that have more `weights` in some `settings`.
        equal: percent of ERM's error within which an effect is neither a gain nor a loss.
        first_split: the number of the first split.
        loss: `train.loss` of every run; the metric that it selects by picks among trials.
        network: words of the configuration that choose a network other than `fcn3` and its options, by key.
        draws: what the draws of rates, decays and points depend on beside the split: "split", nothing, so that they are
            the same on all tables, or "table".
    """

    lite: int
    epochs: int
    patience: int
    splits: int
    trials_each: int
    shared: int
    rates: tuple[float, float]
    decays: tuple[float, ...]
    weights: int
    ensemble: Mapping[str, Any]
    equal: float
    first_split: int = 0
    draws: str = "split"
    loss: str = SQUARED.name
    network: Mapping[str, Any] = field(default_factory=dict)

    @property
    def backbone(self) -> str:
        """The network; "" where there are none."""
        return str(self.network.get("model", "fcn3"))

    @property
    def takes_over(self) -> bool:
        """Whether cells take over the runs that ERM's has: those of two rules train them again, as their first did."""
        return self.name not in ("more_splits", "likelihood")

    @property
    def selection(self) -> str:
        """The metric on validation that picks among trials, as reports name it."""
        return LOSSES[self.loss].selection or "nrmse"

    def lite_tables(self) -> list[str]:
        """Return the names of the tables with the fewest rows."""
        return [table.name for table in sorted(self.tables, key=lambda table: table.rows)[: self.lite]]

    def tunings(self, cell: StudyCell) -> list[Tuning]:
        """Return a tuning for each split; seeds are `WEIGHTS` times the split and the number of the initial weights."""
        more = cell.method in self.ensemble["methods"] and cell.condition.name in self.ensemble["settings"]
        weights = self.ensemble["weights"] if more else self.weights
        found = []
        for split in self.split_numbers:
            first = WEIGHTS * split
            finals = [Run(split, first + number) for number in range(1, weights + 1)]
            found.append(Tuning(Run(split, first), self.trials(cell.method, split, cell.table.name), finals))
        return found

    @property
    def split_numbers(self) -> range:
        """The numbers of the splits, which draw the rows of each."""
        return range(self.first_split, self.first_split + self.splits)

    def trials(self, method: str, split: int, table: str) -> list[list[str]]:
        """Return the words of the trials of a method on a split; the first `shared` of them are ERM's first."""
        key = [split, zlib.crc32(table.encode())] if self.draws == "table" else [split]
        rng = np.random.default_rng([2, *key])
        low, high = np.log(self.rates)
        drawn = [
            (float(f"{np.exp(rng.uniform(low, high)):.3g}"), float(rng.choice(self.decays)))
            for _ in range(self.trials_each)
        ]
        space, own = self.methods[method].get("space", {}), np.random.default_rng([3, *key])
        found = []
        for k, (rate, decay) in enumerate(drawn):
            words = [override_word("train.lr", rate), override_word("train.weight_decay", decay)]
            part = space[own.integers(len(space))] if isinstance(space, list) else space  # a list is a union
            point = [override_word(key, values[own.integers(len(values))]) for key, values in part.items()]
            about = self.method_words("erm") if k < self.shared else [*self.method_words(method), *point]
            found.append([*about, *words])
        return found

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
        loaded = ["dataset=rdataset", *cell.table.words_of(grouped=condition.grouped)]
        training = [f"train.epochs={self.epochs}", f"train.patience={self.patience}"]
        training += [f"train.loss={self.loss}"] if self.loss != SQUARED.name else []
        training += [override_word(key, value) for key, value in self.network.items()]
        return [*loaded, f"dataset.max_rows={self.max_rows}", *rows, *noise, *SHARED_WORDS, *training]

    def command(self, cell: StudyCell, words: Sequence[str]) -> list[str]:
        """Return the command line of a run, of whose words a record names a method's file without its folder."""
        found = [*self.words(cell), *words]
        file = self.methods[cell.method].get("file")
        return [override_word(PATH, file) if word.startswith(f"{PATH}=") else word for word in found]

    def final_words(self, method: str, chosen: Sequence[str]) -> list[str]:
        """Return the words of the runs of a method whose tuning has chosen those of a trial."""
        return list(chosen)

    def method_words(self, method: str) -> list[str]:
        """Return the words that choose a method and what is fixed of it."""
        about = self.methods[method]
        return [f"method={about['method']}", *(override_word(k, v) for k, v in about.get("fixed", {}).items())]


@dataclass(frozen=True)
class SeaLevel(Protocol2):
    """Models that are fitted once on each split of protocol 2, without trials; of each, `methods` has the `model`."""

    @property
    def backbone(self) -> str:
        """No network."""
        return ""

    def tunings(self, cell: StudyCell) -> list[Tuning]:
        """Return a fit for each split, under the seed of protocol 2's first initial weights."""
        return [Tuning(Run(s, WEIGHTS * s), [], [Run(s, WEIGHTS * s + 1)]) for s in self.split_numbers]


@dataclass(frozen=True)
class NoSearch(Protocol2):
    """Nothing is tuned: every method trains with the rate and decay that ERM's tuning chose on the split.

    Attributes:
        chosen: `(rate, decay)` by table, setting and split.
    """

    chosen: Mapping[tuple[str, str, int], tuple[float, float]] = field(default_factory=dict)

    def tunings(self, cell: StudyCell) -> list[Tuning]:
        """Return one trial for each split, which nothing competes with and nobody trains, and the runs with it."""
        found = []
        for split in self.split_numbers:
            rate, decay = self.chosen[cell.table.name, cell.condition.name, split]
            rates = [override_word("train.lr", rate), override_word("train.weight_decay", decay)]
            finals = [Run(split, WEIGHTS * split + number) for number in range(1, self.weights + 1)]
            found.append(Tuning(Run(split, WEIGHTS * split), [[*self.method_words(cell.method), *rates]], finals))
        return found


@dataclass(frozen=True)
class ErmTuned(Protocol2):
    """ERM alone is tuned; every method trains with the rate and decay that ERM's tuning chose on the split.

    Where a network has no published runs of ERM this is the study without a search: all trials are ERM's. A method that
    has a space, as submissions may, trains with the first value of each of its arguments.
    """

    def trials(self, method: str, split: int, table: str) -> list[list[str]]:
        """Return the words of ERM's trials on a split, whatever the method."""
        return super().trials(BASE, split, table)

    def final_words(self, method: str, chosen: Sequence[str]) -> list[str]:
        """Return a method's own words with rate and decay of ERM's best trial."""
        rates = [word for word in chosen if word.startswith(("train.lr=", "train.weight_decay="))]
        space = self.methods[method].get("space", {})
        first = {key: values[0] for key, values in (space[0] if isinstance(space, list) else space).items()}
        return [*self.method_words(method), *(override_word(key, value) for key, value in first.items()), *rates]


def load_protocol2() -> Protocol2:
    """Read the rules of protocol 2."""
    return load_rules(PROTOCOL2)


def rules_named(name: str) -> Protocol2:
    """Read the rules of a file of configs/study."""
    return load_rules(FOLDER / f"{name}.yaml")


def load_rules(path: Path) -> Protocol2:
    """Read rules, those that they are `like` in what they do not say, and the tables beside them.

    Raises:
        InputError: there are no such rules, or a condition has a method that the rules do not have.
    """
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.yaml")))
        raise InputError(f"rules must be one of {known}, got {path.stem!r}")
    given, files = read_part(path), [path]
    if "like" in given:
        files.append(path.parent / given["like"])
        given = {**read_part(files[-1]), **given}
    listed = path.parent / given["tables"]
    with listed.open(newline="") as file:
        tables = tuple(_table_row(row) for row in csv.DictReader(file))
    conditions = []
    for name, about in given["conditions"].items():
        methods = list(given["methods"]) if about["methods"] == "all" else about["methods"]
        if wrong := [method for method in methods if method not in given["methods"]]:
            raise InputError(f"condition {name} of {path} has a method {wrong[0]!r} that the rules do not have")
        conditions.append(Condition(name, **{**about, "methods": tuple(methods)}))
    check_choice(f"draws of {path}", given.get("draws", "split"), ("split", "table"))
    check_choice(f"loss of {path}", given.get("loss", SQUARED.name), tuple(LOSSES))
    kinds = {"2": Protocol2, "sea_level": SeaLevel, NO_SEARCH.stem: NoSearch, "erm_tuned": ErmTuned}
    kind = kinds[check_choice(f"protocol of {path}", str(given.get("protocol")), tuple(kinds))]
    if "chosen" in given:
        files.append(path.parent / given["chosen"])
        given["chosen"] = _read_chosen(files[-1])
    told = {each.name: given[each.name] for each in fields(kind) if each.name in given}
    made = {"name": path.stem, "tables": tables, "conditions": tuple(conditions)}
    checksum = " ".join(sha256_of(file) for file in [*files, listed])
    return kind(**{**told, **made, "rates": tuple(given["rates"]), "checksum": checksum})


def _read_chosen(path: Path) -> dict[tuple[str, str, int], tuple[float, float]]:
    """Return what ERM's tuning chose, of a CSV file with a line for each table, setting and split."""
    with path.open(newline="") as file:
        return {
            (row["table"], row["condition"], int(row["split"])): (float(row["lr"]), float(row["weight_decay"]))
            for row in csv.DictReader(file)
        }


def _table_row(row: Mapping[str, str]) -> StudyTable:
    columns = {"target": row["target"].split("+"), "categorical": _split_names(row["categorical"])}
    words = [f"dataset.package={row['package']}", f"dataset.item={row['item']}"]
    words += [override_word(f"dataset.{key}", names) for key, names in columns.items() if names]
    words += ["dataset.log_target=true"] if row["log_target"] == "1" else []
    drop = tuple(_split_names(row["drop"]))
    return StudyTable(row["name"], int(row["rows"]), len(columns["target"]), tuple(words), drop, row["group"])


def _split_names(joined: str) -> list[str]:
    return [name for name in joined.split("|") if name]
