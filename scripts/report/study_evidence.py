"""What is published of the study: a part is rules and their runs, a setting its tables that have every method.

Beside the methods of the rules a setting has models with default settings, averages of networks whose predictions are
stored, and ERM with other initial weights, which changes nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from cmixup.losses import SQUARED, STD
from scripts.records.experiment import RESULTS
from scripts.records.prediction_store import read_cells
from scripts.records.published import cell_name, predictions_file
from scripts.stats.effects import BASE, Effect, errors_of, method_effect
from scripts.stats.scored import Parts, Scored, error_scores, normal_scores, row_key
from scripts.study.cells import Record, read_store
from scripts.study.rules import BASELINES, PROTOCOL2, WEIGHTS, Condition, Rules, load_rules

METHOD = "cmixup"
ENSEMBLE, FIRST, AGAIN = "ERM x 5", "ERM, first weights", "ERM, other weights"
#: Whose predictions are averaged: methods, and the numbers of their initial weights. No number is there twice: where
#: tuning chose ERM for C-Mixup, runs of the same number are the same run.
ENSEMBLES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "ERM x 2": {BASE: (1, 2)},
    ENSEMBLE: {BASE: (1, 2, 3, 4, 5)},
    "C-Mixup x 5": {METHOD: (1, 2, 3, 4, 5)},
    "ERM x 3 + C-Mixup x 2": {BASE: (1, 2, 3), METHOD: (4, 5)},
}
MORE_SPLITS, NO_SEARCH, LIKELIHOOD = "more_splits", "no_search", "likelihood"
LITE_SETTING = "random"  # in which methods are tried first, on the lite tables
NETWORKS = {"network_wide": "wide network", "network_realmlp": "RealMLP", "network_tabm": "TabM"}
TITLES = {
    "rows100": "100 training rows", "rows100_noise": "100 training rows, noisy labels",
    "grouped": "whole groups held out", "random": "all rows, split at random",
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What is published of one setting of a part.

    Attributes:
        rules: of the part.
        condition: how much of a table it uses.
        tables: which have every method, in words.
        records: of the networks on these tables, and of what stands beside them.
    """

    rules: Rules
    condition: Condition
    tables: str
    records: Sequence[Record]

    @property
    def unit(self) -> str:
        """The unit of effects: percent of ERM's error, or nats where networks predict distributions."""
        return "%" if self.rules.loss == SQUARED.name else "nats"

    @property
    def splits(self) -> int:
        """How many splits a table has."""
        return len({row["split"] for record in self.records for row in record["seeds"]})

    @property
    def where(self) -> str:
        """The setting with its tables and splits, in words."""
        return f"{TITLES[self.condition.name]}, {self.tables}, {self.splits} splits"

    @property
    def methods(self) -> list[str]:
        """The methods of the rules beside ERM."""
        return [method for method in self.condition.methods if method != BASE]

    def effect(self, method: str, base: str = BASE) -> Effect | None:
        """Return what a method changes against `base`, None where no table has both."""
        relative = self.unit == "%"
        errors = errors_of(self.records, "test" if relative else "test_nll_rescaled", self.rules.weights)
        return method_effect(errors, method, self.rules.level, self.rules.equal, base=base, relative=relative)


@functools.cache
def read_settings(name: str, store: Path = RESULTS) -> list[Setting]:
    """Return the settings of a part in which all methods have all tables, or the tables with the fewest rows.

    Args:
        name: of the rules.
        store: the folder of the runs.
    """
    rules = load_rules(name)
    records = read_store(rules, store)
    models = read_store(load_rules(BASELINES), store) if name == PROTOCOL2 else []
    settings = []
    for condition in rules.conditions:
        mine = [record for record in (*records, *models) if record["condition"] == condition.name]
        there = {(record["table"], record["method"]) for record in mine}
        every = {cell.table.name for cell in rules.cells(conditions=[condition.name])}
        whole = {table for table in every if all((table, method) in there for method in condition.methods)}
        lite = every & set(rules.lite_tables())
        tables = every if whole == every else lite if whole >= lite else set()
        if not tables:
            continue
        mine = [record for record in mine if record["table"] in tables]
        if name in (PROTOCOL2, LIKELIHOOD):
            mine += [*ensemble_records(mine, rules, store), *control_records(mine)]
        title = f"{len(tables)} tables" if tables == every else f"{len(tables)} smallest tables"
        settings.append(Setting(rules, condition, title, mine))
    return settings


def lite_records() -> list[Record]:
    """Return the records of all methods, entries among them, in the setting at random on the lite tables."""
    rules = load_rules()
    tables, every = rules.lite_tables(), read_store(rules, entries=True)
    return [record for record in every if record["condition"] == LITE_SETTING and record["table"] in tables]


def entry_settings() -> list[Setting]:
    """Return a setting for each entry, by name: its records and those of ERM, on the tables that it has."""
    rules, records = load_rules(), lite_records()
    (condition,) = (condition for condition in rules.conditions if condition.name == LITE_SETTING)
    settings = []
    for name in sorted({record["method"] for record in records} - rules.methods.keys()):
        tables = {record["table"] for record in records if record["method"] == name}
        mine = [r for r in records if r["method"] in (BASE, name) and r["table"] in tables]
        title = f"{len(tables)} smallest tables"
        settings.append(Setting(rules, replace(condition, methods=(BASE, name)), title, mine))
    return settings


@functools.cache
def leading_setting(store: Path = RESULTS) -> Setting:
    """Return what pages lead with: ERM, C-Mixup and five networks of ERM on all splits at random, later ones too."""
    setting, rules = read_settings(PROTOCOL2, store)[-1], load_rules(MORE_SPLITS)
    later = [record for record in read_store(rules, store) if record["method"] in (BASE, METHOD)]
    if len(later) < len(rules.cells(methods=[BASE, METHOD])):
        return setting
    rows = {(r["table"], r["method"]): r["seeds"] for r in [*later, *ensemble_records(later, rules, store)]}
    joined = [
        {**record, "seeds": [*record["seeds"], *rows[record["table"], record["method"]]]}
        for record in setting.records if (record["table"], record["method"]) in rows
    ]  # fmt: skip
    return replace(setting, records=joined)


def control_records(records: Sequence[Record]) -> Iterator[Record]:
    """Yield ERM's first initial weights of each split, and its next ones, as two methods without a difference."""
    for record in (r for r in records if r["method"] == BASE):
        by_split: dict[int, list[Record]] = {}
        for row in sorted(record["seeds"], key=lambda row: row["seed"]):
            by_split.setdefault(row["split"], []).append(row)
        size = min(2, min(map(len, by_split.values())) // 2)
        for k, name in enumerate((FIRST, AGAIN)):
            rows = [row for split in by_split.values() for row in split[k * size : (k + 1) * size]]
            yield {**record, "method": name, "seeds": rows, "trials": []}


def ensemble_records(records: Sequence[Record], rules: Rules, store: Path) -> Iterator[Record]:
    """Yield a record, of a row a split, for each of `ENSEMBLES` whose networks a store has of a table and setting."""
    for first in (record for record in records if record["method"] == BASE):
        kept = {method: kept_predictions(first, method, rules, store) for method in (BASE, METHOD)}
        for name, members in ENSEMBLES.items():
            rows = []
            for split in rules.split_numbers:
                runs = [kept[m].get(WEIGHTS * split + number) for m, numbers in members.items() for number in numbers]
                if there := [run for run in runs if run] if all(runs) else []:
                    val, test = (average([run[part] for run in there]) for part in ("val", "test"))
                    std, grouped = np.array(first["std"]), "test_worst" in first["seeds"][0]
                    scores = error_scores(test, std, grouped=grouped) | normal_scores(test, val, std)
                    values = {row_key("test", score): value for score, value in scores.items()}
                    rows.append({"seed": split, "split": split, **values})
            if len(rows) == rules.splits:
                yield {"table": first["table"], "condition": first["condition"], "method": name, "seeds": rows}


def average(members: Sequence[Scored]) -> Scored:
    """Return the mean prediction of networks; of distributions the normal one with the moments of their mixture."""
    means = np.stack([one.prediction[""] for one in members]).astype(np.float64)
    prediction = {"": means.mean(axis=0)}
    if STD in members[0].prediction:
        stds = np.stack([one.prediction[STD] for one in members]).astype(np.float64)
        prediction[STD] = np.sqrt((stds**2 + means**2).mean(axis=0) - prediction[""] ** 2)
    return Scored(prediction, members[0].target, members[0].domain)


def kept_predictions(record: Record, method: str, rules: Rules, store: Path) -> dict[int, Parts]:
    """Return what a store has predicted by a method on a record's table and setting, by seed."""
    about = {"experiment": rules.experiment, "dataset": record["table"], "model": rules.backbone, "method": method,
             "preset": "default", "options": {"condition": record["condition"]}}  # fmt: skip
    name = cell_name(about)
    return dict(read_cells(predictions_file(store, about), [name]).get(name, {}))
