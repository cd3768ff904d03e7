"""The cells of the study: trained a table and setting at a time by the shared scheduler, and stored as runs.

A store is a folder in the form of results/, which training and publishing write into. A cell is a run for each seed
with the winner's options, whose predictions are kept, and a run without predictions for each trial.
"""

import itertools
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch

from cmixup.data import RegressionData, core_count
from cmixup.errors import InputError
from cmixup.training.losses import Loss
from cmixup.training.trainer import RunResult, train
from datasets.common.fetch import sha256_of
from scripts.config.compose import compose_train
from scripts.driver.execute import make_run, scored_predictions
from scripts.driver.job import Job, plan_job
from scripts.driver.locks import holding_locks
from scripts.driver.provenance import run_environment
from scripts.plan.rerun import Cell, Rerun
from scripts.plan.schedule import Item, stacks_of, train_items
from scripts.records.experiment import RESULTS
from scripts.records.prediction_store import read_cells
from scripts.records.published import (
    STUDY,
    cell_name,
    keep_predictions,
    predictions_file,
    published_runs,
    write_reports,
)
from scripts.records.run_tables import PARTS, WORD, by_seed, scores_of
from scripts.stats.effects import BASE
from scripts.stats.scored import Parts, Scored, error_scores, finite_or_inf, normal_scores, rounded_predictions
from scripts.study.rules import WEIGHTS, Rules, StudyCell, load_rules

Report = dict[str, Any]
Load = Callable[[int], RegressionData]  # the rows of a split


class Outcome(NamedTuple):
    """The results of a run: `scores` and other keys of its report, and predictions, {} of a trial."""

    about: Mapping[str, Any]
    parts: Parts


Known = dict[tuple[int, tuple[str, ...]], Outcome]  # by seed and words
Runs = list[tuple[Report, Parts | None]]  # trials come without predictions


def train_missing(
    store: Path, cells: Sequence[StudyCell], rules: Rules, jobs: int = 0, *, stored: Path | None = None
) -> list[str]:
    """Train what is missing, show the progress, and return a line for every table that could not be trained.

    `jobs` processes train at a time, 0 is one a core; `stored` is the store with ERM's runs, where it is another.
    """

    def cost(group: Sequence[StudyCell]) -> float:  # in rows that are trained on; every cell costs as much as 400 more
        table, condition = group[0].table, group[0].condition
        return len(group) * (400 + min(table.rows, condition.rows.get("train_rows", rules.max_rows)))

    done = cells_done(store, rules)
    groups = itertools.groupby((cell for cell in cells if cell.key not in done), key=lambda cell: cell.key[:2])
    todo = sorted((list(group) for _, group in groups), key=cost, reverse=True)
    n_left = sum(map(len, todo))
    print(f"{len(cells) - n_left} of {len(cells)} cells are done; training {n_left}", flush=True)
    call = partial(train_group, store, rules=rules, stored=stored or store)
    items = [Item(" ".join(group[0].key[:2]), epochs=len(group), call=partial(call, group)) for group in todo]
    return train_items(items, "study", workers=jobs or core_count(), unit="cells")


def train_group(
    store: Path, cells: Sequence[StudyCell], report: Callable[[Any], None], *, rules: Rules, stored: Path
) -> None:  # fmt: skip
    """Train cells of one table and setting in a worker, but no runs of ERM that are in `stored`; report each."""
    dataset = plan_job(compose_train(rules.words(cells[0]))).dataset
    load = cache(dataset.load)
    for k, cell in enumerate(cells, 1):
        with holding_locks(store, [" ".join(cell.key)], wait=True):
            if cell.key not in cells_done(store, rules):  # another command may have trained it
                known = {} if cell.method == BASE else known_runs(stored, rules, *cell.key[:2], load)
                write_cells(store, train_cell(cell, rules, load, dataset.table.y.std(axis=0), known))
        report((k, len(cells), {}))


def known_runs(store: Path, rules: Rules, table: str, condition: str, load: Load) -> Known:
    """Return the outcomes of ERM's runs and trials on a table in a setting, which other cells need not train.

    They have no predictions in the published store.
    """
    known = Known()
    runs = published_runs(store, [rules.experiment], [table])
    erm_runs = runs[(runs["options"] == f"condition={condition}") & (runs["method"] == BASE)]
    cells = read_cells(predictions_file(store, rules.experiment, table))
    for run in erm_runs.to_dict("records"):
        about, parts = Report(scores=scores_of(run)), dict[str, Scored]()
        if math.isnan(run["trial"]):
            if run["shared"].get("checksums", {}) != dict(load(int(run["split"])).checksums):
                raise InputError(f"{table} has other raw data here than the runs of ERM in {store} had")
            about["best_epoch"], parts = int(run["best_epoch"]), cells.get(cell_name(run), {}).get(run["seed"], {})
        known[run["seed"], tuple(WORD.split(run["hyperparameters"]))] = Outcome(about, parts)
    return known


def train_cell(cell: StudyCell, rules: Rules, load: Load, std: np.ndarray, known: Known | None = None) -> Runs:
    """Train a cell by its rules; the reports of its runs come with their predictions, then those of its trials.

    `std` is the standard deviation of every target over the whole table, `(d_y,)` float64; `known` is what other cells
    of the table and setting have trained.
    """
    started = time.perf_counter()
    trials, runs, about = tune_networks(cell, rules, load, std, dict(known or {}))
    data = load(runs[0][0] // WEIGHTS)
    shared = {
        "train_rows": len(data.train), "val_rows": len(data.val), "std": std.tolist(),
        "checksums": dict(data.checksums), "seconds": time.perf_counter() - started, **about,
    }  # fmt: skip
    if file := rules.methods[cell.method].get("file"):
        shared["entry"] = {"file": Path(file).name, "sha256": sha256_of(Path(file))}
    finals: Runs = [
        ({**run_head(cell, rules, seed), "words": list(words), **outcome.about, "facts": {}, "split": seed // WEIGHTS,
          **shared}, outcome.parts)
        for seed, words, outcome in runs
    ]  # fmt: skip
    return [*finals, *((trial, None) for trial in trials)]


def run_head(cell: StudyCell, rules: Rules, seed: int, trial: int | None = None) -> Report:
    """Return what names a run of a cell, or a trial."""
    table, condition, method = cell.key
    options = {"condition": condition, **({} if trial is None else {"trial": trial})}
    place = "" if trial is None else f"/trial={trial:02}"
    return {
        "experiment": rules.experiment, "dataset": table, "model": rules.backbone, "method": method,
        "preset": "default", "options": options, "seed": seed,
        "run": f"{rules.experiment}/{table}/{condition}/{method}{place}/seed={seed}",
    }  # fmt: skip


Trained = tuple[list[Report], list[tuple[int, tuple[str, ...], Outcome]], Report]


def tune_networks(cell: StudyCell, rules: Rules, load: Load, std: np.ndarray, known: Known) -> Trained:
    """Tune a method and train the runs of the rules with the best options, those that can as one stack.

    Returns the reports of trials; seed, words and outcome of each run; and where it trained.
    """
    torch.set_num_threads(1)
    make = cache(lambda words: plan_job(compose_train(rules.command(cell, words))))

    def train_new(wanted: Sequence[tuple[int, tuple[str, ...]]]) -> None:
        new = [pair for pair in dict.fromkeys(wanted) if pair not in known]
        jobs = [(make(words), seed) for seed, words in new]
        results = train_runs(jobs, load, apart=cell.condition.grouped)
        for pair, (job, seed), result in zip(new, jobs, results, strict=True):
            parts = run_predictions(result, load(seed // WEIGHTS), job.settings.fitted_by)
            known[pair] = score_run(parts, result.best_epoch, std, grouped=cell.condition.grouped)

    tunings = rules.tunings(cell)
    train_new([(t.seed, tuple(words)) for t in tunings if len(t.trials) > 1 for words in t.trials])
    trials, finals = list[Report](), list[tuple[int, tuple[str, ...]]]()
    for words_of_trials, seed, seeds in tunings:
        best = words_of_trials[0]
        if len(words_of_trials) > 1:
            scores = [known[seed, tuple(words)].about["scores"]["val"][rules.selection] for words in words_of_trials]
            if not np.isfinite(scores).any():
                raise InputError(f"every trial on split {seed // WEIGHTS} diverged")
            best = words_of_trials[int(np.argmin(scores))]
            trials += [
                {**run_head(cell, rules, seed, k), "words": words, "scores": {"val": {rules.selection: score}},
                 "facts": {}}
                for k, (words, score) in enumerate(zip(words_of_trials, scores, strict=True))
            ]  # fmt: skip
        finals += [(run_seed, tuple(rules.final_words(cell.method, best))) for run_seed in seeds]
    train_new(finals)
    return trials, [(*pair, known[pair]) for pair in finals], run_environment(make(finals[0][1]).device)


def train_runs(runs: Sequence[tuple[Job, int]], load: Load, *, apart: bool = False) -> list[RunResult]:
    """Train jobs with a seed each, those that can as one stack, and return the results in order.

    No method sees the test labels. Where splits differ in size, runs of different ones share no stack: `apart`.
    """
    results: dict[int, RunResult] = {}

    @cache
    def rows(split: int) -> RegressionData:
        data = load(split)
        return replace(data, test=replace(data.test, y=torch.zeros_like(data.test.y)))

    splits = [seed // WEIGHTS for _, seed in runs]
    for split in sorted(set(splits)) if apart else [None]:
        members = [k for k in range(len(runs)) if split in (None, splits[k])]
        for stack in stacks_of([runs[k][0] for k in members]):
            places = [members[place] for place in stack]
            first, stack_runs = runs[places[0]][0], [make_run(*runs[k], rows(splits[k])) for k in places]
            results |= zip(places, train(stack_runs, first.settings, first.device), strict=True)
    return [results[k] for k in range(len(runs))]


def run_predictions(result: RunResult, data: RegressionData, loss: Loss) -> dict[str, Scored]:
    """Return the predictions of a run with its labels; of one that failed NaN."""
    if result.failure:
        nothing = {p: torch.full_like(getattr(data, p).y, math.nan).repeat(1, loss.outputs) for p in PARTS}
        result = replace(result, predictions={p: loss.by_predictor("", array) for p, array in nothing.items()})
    return scored_predictions(result, data)


def score_run(parts: Mapping[str, Scored], best_epoch: int, std: np.ndarray, *, grouped: bool) -> Outcome:
    """Return the outcome of a run's predictions; scores that are not finite are infinity."""
    kept = {part: rounded_predictions(predictions) for part, predictions in parts.items()}
    scores = {}
    for part, predictions in kept.items():
        values = error_scores(predictions, std, grouped=grouped) | normal_scores(predictions, kept["val"], std)
        scores[part] = {name: finite_or_inf(value) for name, value in values.items()}
    return Outcome({"scores": scores, "best_epoch": best_epoch}, kept)


def study_rerun(cell: Cell, folder: Path) -> Rerun:
    """Return how a published cell is trained again in a folder, with a tuning of its own, and its reports read then."""
    first = cell.first
    rules = load_rules(first["experiment"].removeprefix(f"{STUDY}_"))
    cells = rules.cells([first["dataset"]], [first["shared"]["options"]["condition"]], [first["method"]])
    call = partial(train_group, folder, cells, rules=rules, stored=folder)

    def read() -> dict[int, float]:
        runs = published_runs(folder, [rules.experiment])
        return by_seed(runs[runs["trial"].isna()], "test_nrmse")

    return Item(cell.name, epochs=1, call=call), read


Key = tuple[str, str, str]  # table, condition and method


def read_store(rules: Rules, store: Path = RESULTS, *, entries: bool = False) -> pd.DataFrame:
    """Return the runs and trials of a store's cells, a row each, in the order of the rules and of seeds.

    Columns are those of tables of runs (`scripts.records.run_tables`), with `table`, `condition`, and `shared`, what
    the runs of a cell share. With `entries` those of methods that the rules do not have come, too, by their keys.
    """
    runs = published_runs(store, [rules.experiment]).rename(columns={"dataset": "table"})
    runs["condition"] = [text.removeprefix("condition=") for text in runs["options"]]
    places = {cell.key: place for place, cell in enumerate(rules.cells())}
    runs["place"] = [places.get(key, len(places)) for key in run_keys(runs)]
    order = ["place", "table", "condition", "method", "seed", "trial"]
    return (runs if entries else runs[runs["place"] < len(places)]).sort_values(order, ignore_index=True)


def run_keys(runs: pd.DataFrame) -> list[Key]:
    """Return table, condition and method of each run."""
    return list(zip(runs["table"], runs["condition"], runs["method"], strict=True))


def cells_done(store: Path, rules: Rules) -> set[Key]:
    """Return the keys of the cells by these rules that a store has."""
    return set(run_keys(read_store(rules, store, entries=True)))


def write_cells(store: Path, runs: Runs) -> None:
    """Write reports of a table's runs and trials, with the predictions that some have, into a store."""
    with holding_locks(store, [f"study {runs[0][0]['dataset']}"], wait=True):
        keep_predictions(store, ((report, parts) for report, parts in runs if parts))
        write_reports(store, [report for report, _ in runs])
