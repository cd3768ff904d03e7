"""Tune methods on datasets, every method with the same budget, and write the winners to configs/tuned/<dataset>.yaml.

Trial 0 is preset `paper`; the others are drawn without repetition from the method's `grid` and three learning rates.
One seed that no table uses; the best validation score wins. `preset=default` starts from that preset, tries four rates
with four weight decays, so that ERM has 16 trials like the others, and writes to configs/tuned_default. All
trials stand in results/tuned.jsonl. They stand below `out` for data of your own, `table=my.csv target=price`, for a
dataset or method of `--config-dir`, and for changed options of a dataset. Then the winner's command is printed instead.

Example: python -m scripts.tune dataset=airfoil,no2 method=erm,cmixup
"""

import itertools
import json
import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cmixup.errors import InputError, check_choice
from cmixup.files import write_atomically
from cmixup.metrics import metric_of
from scripts.config.arguments import OUT, parse_args
from scripts.config.compose import (
    TUNE_SEED,
    TUNED,
    TUNED_DEFAULT,
    base_preset,
    compose_train,
    is_custom,
    option_names,
    override_words,
    part_file,
    read_part,
    tune_command,
    tuned_path,
)
from scripts.config.words import ALIASES, hydra_words
from scripts.driver.cli import print_once, user_errors
from scripts.driver.job import Job, plan_job
from scripts.driver.locks import holding_locks
from scripts.driver.runs import RunFolder
from scripts.plan.schedule import items_of, train_items
from scripts.records.experiment import RESULTS
from scripts.records.run_tables import options_text

FILE = "tuned.jsonl"  # below results/
TRIALS = 16
PRESETS = {"paper": TUNED, "default": TUNED_DEFAULT}  # what is made, by the preset that tuning starts from
LR_FACTORS = {TUNED: (1.0, 0.3, 3.0), TUNED_DEFAULT: (1.0, 0.3, 3.0, 0.1)}
WEIGHT_DECAYS = (0.0, 1e-5, 1e-4, 1e-3)  # of preset tuned_default
GRID_PREFIXES = ("method.", "train.lr", "train.weight_decay")  # begin the options of a grid
DATA_PREFIX = "dataset."  # begins an option of a dataset, such as the path of a table
EPOCHS_PREFIX = "train.epochs="
KEYS = {
    "dataset": "names between commas",
    "method": "names between commas; default all",
    "preset": "paper or default, which tuning starts from; default paper",
    "epochs": "of every trial; default the preset's",
    "device": "auto, cpu, cuda or cuda:1; default auto",
    "jobs": "processes at a time; default one a core, or one a GPU",
    "rerun": "1: train again what is done",
    **{word: alias.help_text for word, alias in ALIASES.items()},
    DATA_PREFIX: "options of the dataset, such as dataset.path=my.csv",
    "out": OUT,
}


def choose_trial(scores: Sequence[float | None], metric: str) -> int:
    """Return which trial has the best validation score, the first of ties; one that diverged has none."""
    if not (known := [score for score in scores if score is not None]):
        raise InputError("every trial diverged")
    return scores.index((min if metric_of(metric).lower_is_better else max)(known))


def write_values(path: Path, method: str, values: Mapping[str, Any]) -> None:
    """Put a method's tuned values into a dataset's file, beside other methods that are there."""
    with holding_locks(path.parent, [path.name], wait=True):
        known = {**(read_part(path) if path.is_file() else {}), method: dict(values)}
        # JSON's 1e-05 would be a string in YAML.
        lines = [yaml.safe_dump({name: known[name]}, default_flow_style=True, width=math.inf) for name in sorted(known)]
        head = f"# Tuned values by method: python -m scripts.tune dataset={path.stem}; every trial: results/{FILE}\n"
        write_atomically(path, head + "".join(f"{line[1:-2]}\n" for line in lines))


def values_of(trial: Job) -> dict[str, Any]:
    """Return what a trial changes of the preset that tuning starts from."""
    return {key: value for key, value in sorted(trial.options.items()) if key.startswith(GRID_PREFIXES)}


def grid_points(dataset: str, method: str, preset: str = TUNED) -> list[dict[str, Any]]:
    """Return every point of a method's grid with every learning rate, keys as on the command line.

    For `tuned_default` these are four rates with four weight decays.

    The `grid` of a method's config maps options to lists of values, and all their combinations count; a list of such
    mappings is their union.
    """
    cfg = compose_train([f"dataset={dataset}", f"preset={base_preset(dataset, preset)}"])
    grid: Any = part_file("method", method).get("grid", {})
    rates = [float(f"{cfg.train.lr * factor:.6g}") for factor in LR_FACTORS[preset]]
    training = {"train.lr": rates} | ({"train.weight_decay": WEIGHT_DECAYS} if preset == TUNED_DEFAULT else {})
    points = []
    for part in grid if isinstance(grid, list) else [grid]:
        lists = {**{f"method.{key}": values for key, values in part.items()}, **training}
        points += [dict(zip(lists, point, strict=True)) for point in itertools.product(*lists.values())]
    return points


def make_trials(
    dataset: str, method: str, extra: Sequence[str] = (), budget: int = TRIALS, preset: str = TUNED
) -> list[Job]:
    """Return the trials of one method: the preset to start from, then a seeded sample of `grid_points` without return.

    Points that this preset or an earlier trial already is, and those that do not fit the dataset (a k above the
    batch size), are passed over; fewer than `budget` trials means that the grid has no more.
    """
    base = [
        f"dataset={dataset}", f"method={method}", f"preset={base_preset(dataset, preset)}", "experiment=tune",
        f"seed={TUNE_SEED}", "logger=none", *extra,
    ]  # fmt: skip
    trials = {(job := plan_job(compose_train(base))).folder: job}
    candidates = grid_points(dataset, method, preset)
    for k in np.random.default_rng(TUNE_SEED).permutation(len(candidates)):
        if len(trials) == budget:
            break
        try:
            job = plan_job(compose_train([*base, *override_words(candidates[k])]))
        except InputError:
            continue
        trials.setdefault(job.folder, job)
    return list(trials.values())


def _plan_trials(
    cells: Sequence[tuple[str, str]], extra: Sequence[str], budget: int, preset: str
) -> dict[tuple[str, str], list[Job]]:
    """Return the trials of each dataset and method; with a line, methods that do not fit are left out."""
    planned = dict[tuple[str, str], list[Job]]()
    for cell in cells:
        try:
            planned[cell] = make_trials(*cell, extra, budget, preset)
        except InputError as error:
            if not planned and cell == cells[-1]:
                raise
            print(f"{' '.join(cell)} is left out: {error}", file=sys.stderr)
    return planned


def tune_cells(
    cells: Sequence[tuple[str, str]], extra: Sequence[str], jobs: int = 0, budget: int = TRIALS, *, preset: str = TUNED
) -> None:
    """Train all trials of datasets with methods, `budget` of each, and write the winners' values and what was tried.

    `extra` are further overrides of every trial, such as a table's `dataset.path=my.csv`. Where data, options of data
    or a part are the user's, the trials go below `out`, and the command with the winner's values is printed.
    """
    planned = _plan_trials(cells, extra, budget, preset)
    for trials in {dataset: trials for (dataset, _), trials in planned.items()}.values():
        if not trials[0].dataset.synthetic:
            trials[0].dataset.fetch()  # once, before several processes ask for the same file
    work = [trial for trials in planned.values() for trial in trials]
    for problem in train_items(items_of(work), "tuning", workers=jobs):
        print(problem, file=sys.stderr)
    if not any(RunFolder(trial.run_folder(TUNE_SEED)).is_done() for trial in work):
        raise InputError("every trial diverged")
    options = [word for word in extra if word.startswith(DATA_PREFIX)]
    epochs = [word.removeprefix("train.") for word in extra if word.startswith(EPOCHS_PREFIX)]
    for (dataset, method), trials in planned.items():
        folders, config = [RunFolder(trial.run_folder(TUNE_SEED)) for trial in trials], trials[0].config
        reports = [run.report() if run.is_done() else None for run in folders]  # None: diverged
        if not any(reports):
            print(f"{dataset} {method}: no trial ended, nothing is written", file=sys.stderr)
            continue
        metric = next((report["selection"] for report in reports if report), "")
        scores = [float(report["scores"]["val"][metric]) if report else None for report in reports]
        best = choose_trial(scores, metric)
        winner, values = reports[best], values_of(trials[best])
        assert winner is not None
        custom = bool(options) or is_custom(dataset, method)
        file = (Path(config["out"]) if custom else RESULTS) / FILE
        path = file if custom else tuned_path(dataset, preset)
        if not custom:
            write_values(path, method, values)
        record = json.dumps({
            "dataset": dataset, "method": method, "preset": preset,
            "command": " ".join([tune_command(dataset, method, preset), *options, *epochs]),
            "commit": winner["commit"], "dirty": winner["dirty"], "model": config["model"]["name"], "seed": TUNE_SEED,
            "budget": budget, "metric": metric, "best": best,
            "trials": [{"options": values_of(t), "val": score} for t, score in zip(trials, scores, strict=True)],
        })  # fmt: skip
        with holding_locks(file.parent, [FILE], wait=True):  # others may write it, too
            lines = file.read_text().splitlines() if file.is_file() else []
            write_atomically(file, "".join(f"{line}\n" for line in dict.fromkeys([*lines, record])))
        first, last = ("diverged" if score is None else f"{score:.5g}" for score in (scores[0], scores[best]))
        start = f"preset {config['preset']}"
        summary = f"best validation {metric} {last}, {start} {first}"
        print(f"{dataset} {method}: {summary}: {options_text(values) or start} -> {path}")
        if custom:
            words = [f"dataset={dataset}", f"method={method}", f"preset={config['preset']}", *options]
            print("python -m scripts.train", shlex.join([*words, *override_words(values)]))


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args = parse_args(argv, KEYS, __doc__)
        words = hydra_words([f"{key}={v}" for key, v in args.items() if key in ALIASES or key.startswith(DATA_PREFIX)])
        options = [word for word in words if word.startswith(DATA_PREFIX)]
        args.setdefault("dataset", next((word.partition("=")[2] for word in words if word.startswith("dataset=")), ""))
        if not args["dataset"]:
            raise InputError(f"dataset must be among {', '.join(option_names('dataset'))}, got none")
        datasets = args.names("dataset", option_names("dataset"))
        methods = args.names("method", option_names("method"))
        if options and len(datasets) > 1:
            raise InputError(f"dataset must be one for {' '.join(options)}, got {args['dataset']}")
        start = check_choice("preset", args.get("preset", "paper"), tuple(PRESETS))
        passed = [f"device={args['device']}"] if "device" in args else []
        passed += [f"{EPOCHS_PREFIX}{args.count('epochs')}"] if "epochs" in args else []
        if options:
            print_once(plan_job(compose_train([f"dataset={datasets[0]}", *options])).dataset.problems())
        tune_cells(
            list(itertools.product(datasets, methods)),
            [f"out={args.out}", f"rerun={str(args.switch('rerun')).lower()}", *passed, *options],
            args.count("jobs"),
            preset=PRESETS[start],
        )


if __name__ == "__main__":
    main()
