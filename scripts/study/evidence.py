"""What is published of protocol 2, a setting at a time: networks, sea level, and ensembles of stored predictions.

A table counts in a setting once every method of the setting is there, so that all methods are told of on the same ones.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from scripts.driver.predictions import Scored
from scripts.effects.verdicts import OVERLAP, Effect, Errors, errors_of, is_erm, method_effect
from scripts.protocol.protocols import SEA_LEVEL, WEIGHTS, Protocol2, load_protocol2, load_rules, rules_named
from scripts.protocol.published import experiment_of, read_store
from scripts.protocol.rules import BASE, Condition
from scripts.records.experiment import RESULTS
from scripts.records.packed import read_cells
from scripts.records.published import cell_name, predictions_file
from scripts.records.reads import remember_reads
from scripts.records.study_errors import error_scores

Record = Mapping[str, Any]
AGAIN = "ERM, other weights"
METHOD, ENSEMBLE = "cmixup", "ERM x 5"  # that pages lead with
MORE_SPLITS = "more_splits"  # the rules of later splits
READS = (
    "results/runs/study", "results/predictions/study", "results/predictions/targets",
    "results/runs/study_more_splits", "results/predictions/study_more_splits",
)  # fmt: skip
#: Whose predictions are averaged: methods, and the numbers of their initial weights. No number is there twice: where
#: tuning chose ERM for C-Mixup, runs of the same number are the same run.
ENSEMBLES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "ERM x 2": {"erm": (1, 2)},
    "ERM + C-Mixup": {"erm": (1,), "cmixup": (2,)},
    "ERM x 5": {"erm": (1, 2, 3, 4, 5)},
    "C-Mixup x 5": {"cmixup": (1, 2, 3, 4, 5)},
    "ERM x 3 + C-Mixup x 2": {"erm": (1, 2, 3), "cmixup": (4, 5)},
}
TITLES = {
    "rows100": "100 training rows", "rows100_noise": "100 training rows, noisy labels",
    "grouped": "Whole groups held out", "random": "All rows, split at random",
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """What there is of one setting.

    Attributes:
        condition: how much of a table it uses.
        of: how many tables it has by the rules.
        records: of the networks on the tables that have all of them.
        others: of the sea level and of ensembles, on these tables.
    """

    condition: Condition
    of: int
    records: Sequence[Record]
    others: Sequence[Record] = ()

    @property
    def title(self) -> str:
        """How the page calls it."""
        return TITLES[self.condition.name]

    @property
    def tables(self) -> list[str]:
        """The tables that have every method."""
        return list(dict.fromkeys(record["table"] for record in self.records))

    @property
    def whole(self) -> bool:
        """Whether these are all."""
        return len(self.tables) == self.of

    @property
    def progress(self) -> str:
        """How many of how many tables there are, in words."""
        return f"{self.of} tables" if self.whole else f"{len(self.tables)} of {self.of} tables so far"

    @property
    def heading(self) -> str:
        """The heading of its part of a page."""
        return f"{self.title} ({self.progress})"

    @property
    def wrapped(self) -> str:
        """The heading in two lines, for narrow panels."""
        first, comma, rest = self.title.partition(", ")
        return f"{first}{comma}\n{rest + ' ' if rest else ''}({self.progress})"

    def has(self, method: str) -> bool:
        """Return whether there is a network, model or ensemble of a name."""
        return any(record["method"] == method for record in (*self.records, *self.others))

    @property
    def methods(self) -> list[str]:
        """The methods of networks beside ERM."""
        return [method for method in self.condition.methods if method != BASE]

    def errors(self, score: str = "test") -> Errors:
        """Return the errors of all that is there; see `errors_of`."""
        return errors_of([*self.records, *self.others], self.condition.name, score)

    def effect(
        self, method: str, rules: Protocol2, score: str = "test", base: str = BASE, overlap: float = OVERLAP
    ) -> Effect | None:
        """Return what a method changes against `base`; see `scripts.effects.verdicts.method_effect`."""
        return method_effect(self.errors(score), method, rules.level, rules.equal, base=base, overlap=overlap)

    def against_itself(self, rules: Protocol2) -> Effect | None:
        """Return what ERM changes against ERM: the next two sets of initial weights, or the second against the first.

        It is the negative control: no table may gain or lose.
        """
        errors: dict[str, dict[str, dict[int, float]]] = {}
        for record in (r for r in self.records if r["method"] == BASE):
            rows: dict[int, list[float]] = {}
            for row in sorted(record["seeds"], key=lambda row: row["seed"]):
                rows.setdefault(row["split"], []).append(row["test"])
            for split, own in rows.items():
                pair = (own[:2], own[2:4]) if len(own) > 3 else (own[:1], own[1:2])
                for name, values in zip((BASE, AGAIN), pair, strict=True):
                    errors.setdefault(record["table"], {}).setdefault(name, {})[split] = float(np.mean(values))
        return method_effect(errors, AGAIN, rules.level, rules.equal)

    @property
    def splits(self) -> int:
        """How many splits a table has."""
        return len({row["split"] for record in self.records for row in record["seeds"]})


def later_cells(store: Path = RESULTS) -> tuple[list[Record], int]:
    """Return the published cells of ERM and C-Mixup on later splits, and how many there are by the rules."""
    rules = rules_named(MORE_SPLITS)
    found: list[Record] = [record for record in read_store(rules, store) if record["method"] in (BASE, METHOD)]
    return found, len(rules.cells(methods=[BASE, METHOD]))


@remember_reads
def with_later_splits(store: Path = RESULTS) -> Setting:
    """Return what pages lead with: ERM, C-Mixup and the ensembles of ERM on all splits at random.

    It is the last setting of protocol 2, with later splits once ERM and C-Mixup have all of them on all tables.
    """
    setting, (later, wanted) = study_settings(store)[-1], later_cells(store)
    if len(later) < wanted or not setting.whole:
        return setting
    more = [*later, *ensemble_records(later, rules_named(MORE_SPLITS), store)]
    rows = {(record["table"], record["method"]): record["seeds"] for record in more}

    def joined(records: Sequence[Record]) -> list[Record]:
        keys = [(record["table"], record["method"]) for record in records]
        pairs = [(record, rows[key]) for record, key in zip(records, keys, strict=True) if key in rows]
        return [{**record, "seeds": [*record["seeds"], *own]} for record, own in pairs]

    return replace(setting, records=joined(setting.records), others=joined(setting.others))


def leading_settings(store: Path = RESULTS) -> list[Setting]:
    """Return the settings of protocol 2 as first pages tell of them: the last with all of its splits."""
    return [*study_settings(store)[:-1], with_later_splits(store)]


@remember_reads
def study_settings(store: Path = RESULTS) -> list[Setting]:
    """Return what a store has of every setting of protocol 2."""
    rules, found = load_protocol2(), []
    records, sea = read_store(rules, store), read_store(load_rules(SEA_LEVEL), store)
    for condition in rules.conditions:
        mine = [record for record in records if record["condition"] == condition.name]
        groups = [list(each) for _, each in itertools.groupby(mine, key=lambda record: record["table"])]
        own = [record for each in groups if len(each) == len(condition.methods) for record in each]
        there = {record["table"] for record in own}
        level = [r for r in sea if r["condition"] == condition.name and r["table"] in there]
        of = len(rules.cells(conditions=[condition.name], methods=[BASE]))
        found.append(Setting(condition, of, own, [*level, *ensemble_records(own, rules, store)]))
    return found


def ensemble_records(records: Sequence[Record], rules: Protocol2, store: Path = RESULTS) -> Iterator[Record]:
    """Yield a record, of a row a split, for each of `ENSEMBLES` whose networks a store has of a table and setting."""
    for first in (record for record in records if record["method"] == BASE):
        kept = kept_predictions(first, rules, sorted({m for members in ENSEMBLES.values() for m in members}), store)
        for name, members in ENSEMBLES.items():
            rows = []
            for split in rules.split_numbers:
                runs = [kept[m].get(WEIGHTS * split + number) for m, numbers in members.items() for number in numbers]
                tests = [run["test"] for run in runs if run]
                if len(tests) == len(runs):
                    mean = np.stack([one.prediction[""] for one in tests]).mean(axis=0, dtype=np.float64)
                    one = Scored({"": mean}, tests[0].target, tests[0].domain)
                    found = error_scores(one, np.array(first["std"]), grouped="test_worst" in first["seeds"][0])
                    own = {key.replace("nrmse", "test", 1): value for key, value in found.items()}
                    rows.append({"seed": split, "split": split, **own})
            if len(rows) == rules.splits:
                yield {"table": first["table"], "condition": first["condition"], "method": name, "seeds": rows}


def kept_predictions(
    record: Record, rules: Protocol2, methods: Sequence[str] = (BASE,), store: Path = RESULTS
) -> dict[str, dict[int, dict[str, Scored]]]:
    """Return what a store has predicted on a record's table and setting, by method, seed and split of the rows."""
    about = {"experiment": experiment_of(rules), "dataset": record["table"], "model": rules.backbone,
             "preset": "default", "options": {"condition": record["condition"]}}  # fmt: skip
    cells = {method: {**about, "method": method} for method in methods}
    files: dict[Path, list[str]] = {}  # those of later studies hold one method each
    for method, cell in cells.items():
        files.setdefault(predictions_file(store, cell), []).append(method)
    found = dict[str, dict[int, dict[str, Scored]]]()
    for path, own in files.items():
        names = {method: cell_name(cells[method]) for method in own}
        kept = read_cells(path, names.values())
        found |= {method: kept.get(name, {}) for method, name in names.items()}
    return {method: found[method] for method in methods}


def model_seconds(setting: Setting, rules: Protocol2) -> dict[str, float]:
    """Return what a model for one split costs in seconds of a core, the geometric mean over tables.

    Of networks that is all trials and a run with the winner's options, of an ensemble its further runs, too, and of the
    sea level one fit.
    """
    times: dict[str, list[float]] = {}
    for record in (*setting.records, *setting.others):
        own = record["method"] != BASE  # whose runs with ERM's options are ERM's, and cost nothing
        if record.get("trials"):
            runs = sum(not own or k % rules.trials_each >= rules.shared for k in range(len(record["trials"])))
            runs += sum(not own or not is_erm(row["options"]) for row in record["seeds"])
            times.setdefault(record["method"], []).append(record["seconds"] / runs)
        elif "seconds" in record:
            times.setdefault(record["method"], []).append(record["seconds"] / rules.splits)
    run = {method: float(np.exp(np.mean(np.log(each)))) for method, each in times.items()}
    costs = {m: each * (rules.trials_each + 1 if m in setting.condition.methods else 1) for m, each in run.items()}
    for name in {record["method"] for record in setting.others} & ENSEMBLES.keys():
        costs[name] = sum((rules.trials_each + len(numbers)) * run[m] for m, numbers in ENSEMBLES[name].items())
    return costs
