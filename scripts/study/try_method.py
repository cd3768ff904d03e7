"""Try a method that the study does not have beside its stored runs: only this method is trained.

An entry is a store of its own below the out folder: the method's file, its cells and their predictions.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from textwrap import fill

import numpy as np
import pandas as pd
import torch

from cmixup.errors import InputError
from datasets.common.fetch import sha256_of
from scripts.config.arguments import near_hint
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.records.experiment import RESULTS
from scripts.records.run_tables import WORD
from scripts.stats.effects import BASE, SCORES, errors_of, method_effect, rank_methods, sign_text
from scripts.stats.intervals import INCONCLUSIVE, interval_text
from scripts.study.cells import cells_done, read_store, run_keys, train_missing, train_runs
from scripts.study.entry import with_entry
from scripts.study.rules import Rules, StudyCell

LITE, ALL = "lite", "all"
PROBE_EPOCHS = 20  # that must repeat
WIDTH = 80  # columns of a verdict's lines


def try_method(
    method: str, tables: str, conditions: Sequence[str], rules: Rules, *, out: Path, jobs: int = 0,
    results: Path = RESULTS,
) -> list[str]:  # fmt: skip
    """Train a method where no cell of it is stored, print what it changes, and return a line for what went wrong.

    Arguments are as in `python -m scripts.study --help`; all is written below `out`/entries, and `results` is the store
    of the other methods. A method that cannot be trained or does not repeat is refused before anything is written.
    """
    entry, name = with_entry(rules, method)
    file = Path(entry.methods[name].get("file", ""))
    digest = sha256_of(file) if file.name else None
    store = out / "entries" / (f"{name}-{digest[:8]}" if digest else name)
    all_tables = [table.name for table in rules.tables]
    groups = {LITE: rules.lite_tables(), ALL: all_tables}
    chosen = groups.get(tables) or tables.split(",")
    if wrong := next((table for table in chosen if table not in all_tables), ""):
        raise InputError(f"tables must be {LITE}, {ALL} or names among {', '.join(all_tables)}, got {wrong!r}"
                         f"{near_hint(wrong, [*groups, *all_tables])}")  # fmt: skip
    if not (cells := entry.cells(chosen, conditions, [name])):
        raise InputError(f"conditions must fit the tables, got {','.join(conditions)} of {tables}")
    places = {cell.key[:2] for cell in cells}
    stored = read_store(entry, results, entries=True)
    finals = stored[stored["trial"].isna()]
    files = zip(run_keys(finals), finals["shared"], strict=True)
    published = {key for key, shared in files if key[:2] in places
                 and (key[2] != name or shared.get("entry", {}).get("sha256") == digest)}  # fmt: skip
    stored = stored[[key in published for key in run_keys(stored)]]
    lacking = places - {key[:2] for key in published if key[2] == BASE}
    if unpublished := ", ".join(sorted("/".join(place) for place in lacking)):
        raise InputError(f"tables must have published cells of ERM, and these have none: {unpublished}")
    check_repeats(cells, entry)
    if digest:
        store.mkdir(parents=True, exist_ok=True)
        (store / file.name).write_bytes(file.read_bytes())
        entry, _ = with_entry(rules, str(store / file.name))  # a copy, which nobody edits meanwhile
    todo = [cell for cell in cells if cell.key not in published | cells_done(store, entry)]
    print(f"{name}: {len(todo)} of {len(cells)} cells to train; all is written to {store}")
    if problems := train_missing(store, todo, entry, jobs, stored=results) if todo else []:
        return problems
    missing, method_runs = {cell.key for cell in cells} - published, read_store(entry, store)
    runs = pd.concat([stored, method_runs[[key in missing for key in run_keys(method_runs)]]])
    for condition in conditions:
        print(method_summary(runs, condition, name, entry))
    return []


def check_repeats(cells: Sequence[StudyCell], rules: Rules) -> None:
    """Refuse a method whose training does not repeat, on the smallest of its tables."""
    cell = min(cells, key=lambda c: c.table.rows)
    load = cache(plan_job(compose_train(rules.words(cell))).dataset.load)
    torch.set_num_threads(1)
    trials = rules.trials(cell.method, 0, cell.table.name)[rules.shared :]
    words = [[*rules.final_words(cell.method, trial), f"train.epochs={PROBE_EPOCHS}", "train.patience=null"]
             for trial in trials]  # fmt: skip
    runs = [(plan_job(compose_train(rules.command(cell, trial_words))), 0) for trial_words in words]
    for first, second in zip(*(train_runs(runs, load) for _ in range(2)), strict=True):
        if not np.array_equal(first.predictions["val"][""], second.predictions["val"][""], equal_nan=True):
            raise InputError(f"method {cell.method} gives other predictions when it is trained again with the same "
                             "seed: all that is random must come from the generator that it is given")  # fmt: skip


def degenerate_splits(runs: pd.DataFrame, method: str) -> tuple[int, int]:
    """Return on how many splits validation selected no mixing for a method, and of how many."""
    final_runs = runs[(runs["method"] == method) & runs["trial"].isna()]
    chosen = final_runs.groupby(["table", "split"])["hyperparameters"].last()
    # A word for the file of a method would stand beside `method=erm`.
    methods = [[word for word in WORD.split(words) if "method" in word] for words in chosen]
    return methods.count([f"method={BASE}"]), len(methods)


def method_summary(runs: pd.DataFrame, condition: str, method: str, rules: Rules) -> str:
    """Return what a method changes in a setting: each table, the mean, on how many it is lower, and its rank.

    Runs are of the method, of ERM and of whatever it is to be ranked with, on the tables that it is judged on.
    """
    runs = runs[runs["condition"] == condition]
    unit, errors = rules.unit, errors_of(runs, SCORES[rules.unit], rules.weights)
    if not (effect := method_effect(errors, method, relative=unit == "%")):
        raise InputError(f"{method} and {BASE} share no table of setting {condition} with two splits or more")
    order, (erm, splits) = rank_methods(errors[errors[method].notna()], method), degenerate_splits(runs, method)
    lost = splits - int(errors[method].count())
    tuned = f"Degenerate (equals ERM) on {erm} of {splits} splits, where validation selected no mixing."
    if rules.search != "all":
        tuned = "Learning rate and weight decay are ERM's; the method was not tuned."
    width, places = max(map(len, effect.tables)), 1 if unit == "%" else 2
    tables = "".join(f"  {table:<{width}}  {interval_text(one, places)}\n" for table, one in effect.tables.items())
    side, rank = effect.direction(), [name for name, _ in order].index(method) + 1
    direction = "the direction is inconclusive" if side == INCONCLUSIVE else f"the mean error is {side}"
    lines = [
        f"{method}, setting {condition}, {len(effect.tables)} datasets",
        f"Mean change: {interval_text(effect.mean, places)} {unit}; {direction}.",
        f"Datasets with a lower error (p of the sign test): {sign_text(effect)}.",
        f"Rank by mean error {rank} of {len(order)}: {', '.join(f'{name} {mean:.4f}' for name, mean in order)}.",
        tuned,
        *[f"Diverged on {lost} of {splits} splits, which no number above counts."][:lost],
    ]
    score = "error minus ERM's, % of ERM's" if unit == "%" else "negative log likelihood minus ERM's, nats"
    head = f"Test {score}, mean over splits, 95 % intervals"
    return f"{head}\n{tables}" + "\n".join(fill(line, WIDTH, break_on_hyphens=False) for line in lines)
