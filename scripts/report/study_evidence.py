"""Published runs of the study: a part is rules and their runs, a setting its tables that have every method.

Beside the methods of the rules a setting has averages of networks, scored when they were published. ERM with other
initial weights is there, too, which changes nothing.
"""

import functools
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import quantile_test
from scipy.stats.mstats import trimmed_mean_ci

from scripts.records.experiment import RESULTS
from scripts.report.result_table import markdown_table
from scripts.stats.effects import BASE, SCORES, Effect, errors_of, method_effect
from scripts.stats.intervals import LEVEL, Interval, clustered_interval, interval_text
from scripts.study.cells import read_store, run_keys
from scripts.study.ensembles import ENSEMBLE, METHOD, read_ensembles
from scripts.study.rules import PROTOCOL2, Condition, Rules, load_rules

FIRST, AGAIN = "ERM, first initialisation", "ERM, other initialisation"
PLACE = ["table", "condition"]  # columns of a table in a setting
MORE_SPLITS, NO_SEARCH, LIKELIHOOD = "more_splits", "no_search", "likelihood"
LITE_SETTING = "random"  # in which methods are tried first, on the lite tables
NETWORKS = {"network_wide": "wide network", "network_realmlp": "RealMLP", "network_tabm": "TabM"}
TITLES = {
    "rows100": "100 training rows", "rows100_noise": "100 training rows, noisy labels",
    "grouped": "whole groups held out", "random": "at most 5,000 rows, split at random",
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """The published runs of one setting of a part."""

    rules: Rules  # of the part
    condition: Condition  # how much of a table it uses
    tables: str  # which have every method, in words
    # of the networks on these tables, and of what stands beside them, see `scripts.study.cells.read_store`
    runs: pd.DataFrame

    @property
    def splits(self) -> int:
        """How many splits a table has."""
        return int(self.runs["split"].nunique())

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
        errors = errors_of(self.runs, SCORES[self.rules.unit], self.rules.weights)
        return method_effect(errors, method, base=base, relative=self.rules.unit == "%")


@functools.cache
def read_settings(name: str, store: Path = RESULTS) -> list[Setting]:
    """Return the settings of a part in which all methods have all tables, or the tables with the fewest rows."""
    rules = load_rules(name)
    runs = read_store(rules, store)
    added = [read_ensembles(store, rules.experiment), control_runs(runs)] if name in (PROTOCOL2, LIKELIHOOD) else []
    runs, settings = pd.concat([runs, *added]), []
    for condition in rules.conditions:
        condition_runs = runs[runs["condition"] == condition.name]
        keys = set(run_keys(condition_runs))
        names = {cell.table.name for cell in rules.cells(conditions=[condition.name])}
        full = {table for table in names if {(table, condition.name, method) for method in condition.methods} <= keys}
        lite = names & set(rules.lite_tables())
        tables = names if full == names else lite if full >= lite else set()
        if not tables:
            continue
        title = f"{len(tables)} datasets" if tables == names else f"{len(tables)} smallest datasets"
        settings.append(Setting(rules, condition, title, condition_runs[condition_runs["table"].isin(tables)]))
    return settings


def lite_runs() -> pd.DataFrame:
    """Return the runs of all methods, entries among them, in the setting at random on the lite tables."""
    rules = load_rules()
    runs = read_store(rules, entries=True)
    return runs[(runs["condition"] == LITE_SETTING) & runs["table"].isin(rules.lite_tables())]


def entry_settings() -> list[Setting]:
    """Return a setting for each entry, by name: its runs and those of ERM, on the tables that it has."""
    rules, runs, settings = load_rules(), lite_runs(), []
    (condition,) = (condition for condition in rules.conditions if condition.name == LITE_SETTING)
    for name in sorted(set(runs["method"]) - rules.methods.keys()):
        tables = set(runs.loc[runs["method"] == name, "table"])
        entry_runs = runs[runs["method"].isin([BASE, name]) & runs["table"].isin(tables)]
        mixed = replace(condition, methods=(BASE, name))
        settings.append(Setting(rules, mixed, f"{len(tables)} smallest datasets", entry_runs))
    return settings


@functools.cache
def leading_setting(store: Path = RESULTS) -> Setting:
    """Return what pages lead with: ERM, C-Mixup and five networks of ERM on all splits at random, later ones too."""
    setting, rules = read_settings(PROTOCOL2, store)[-1], load_rules(MORE_SPLITS)
    later = read_store(rules, store)
    later = later[later["method"].isin([BASE, METHOD])]
    if len(set(run_keys(later))) < len(rules.cells(methods=[BASE, METHOD])):
        return setting
    later = pd.concat([later, read_ensembles(store, rules.experiment)])
    runs, shared_keys = pd.concat([setting.runs, later]), set(run_keys(setting.runs)) & set(run_keys(later))
    return replace(setting, runs=runs[[key in shared_keys for key in run_keys(runs)]])


def control_runs(runs: pd.DataFrame) -> pd.DataFrame:
    """Return ERM's first initial weights of each split, and its next ones, as two methods without a difference."""
    runs = runs[(runs["method"] == BASE) & runs["trial"].isna()]
    weights, places = runs.groupby([*PLACE, "split"])["seed"], [runs[name] for name in PLACE]
    size = (weights.transform("size").groupby(places).transform("min") // 2).clip(upper=2)
    part = (weights.rank() - 1) // size
    return pd.concat([runs[part == k].assign(method=name) for k, name in enumerate((FIRST, AGAIN))])


TRIMMED = 0.1  # of the tables on each side
HEAD = ("summary of the changes over datasets, %", "C-Mixup", "ERM x 5")


def mean_summaries(setting: Setting, method: str) -> dict[str, Interval]:
    """Return the mean effect of a method by each summary, with its 95 % interval, by the summary's name."""
    errors = errors_of(setting.runs, SCORES[setting.rules.unit], setting.rules.weights)
    effect = method_effect(errors, method)
    assert effect
    means = np.array([interval.mean for interval in effect.tables.values()])
    ratios = np.log(errors[method] / errors[BASE]).groupby("table").mean()
    logs = (100 * ratios[list(effect.tables)]).tolist()
    log_ratio, middle = clustered_interval(logs, range(len(logs))), quantile_test(means).confidence_interval()
    assert log_ratio
    assert effect.mean
    low, high = map(float, trimmed_mean_ci(means, (TRIMMED, TRIMMED), alpha=1 - LEVEL))
    return {
        "mean": effect.mean,
        "mean of log ratios": log_ratio,
        "median": Interval(float(np.median(means)), float(middle.low), float(middle.high), len(means)),
        f"mean without {TRIMMED:.0%} on each side": Interval(float(np.mean([low, high])), low, high, len(means)),
    }


def summaries_table(setting: Setting) -> str:
    """Return the Markdown table of all summaries, of C-Mixup and of the 5-network ensemble."""
    ours, ensemble = (mean_summaries(setting, method) for method in (METHOD, ENSEMBLE))
    body = [[name, interval_text(ours[name], 2), interval_text(ensemble[name], 2)] for name in ours]
    return markdown_table(HEAD, body)
