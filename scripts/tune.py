"""Tune methods on datasets, every method with the same budget, and write the winners to configs/tuned.

`python -m scripts.tune dataset=airfoil,no2 method=erm,cmixup`. Trial 0 is preset `paper`; the others are drawn without
repetition from the method's `grid` and three learning rates. One seed that no table uses; the best validation score
wins. `preset=default` starts from that preset, tries four rates with four weight decays, so that ERM has 16 trials like
the others, and writes to configs/tuned_default. `jobs=2` sets the processes, `debug=tiny` tries everything in seconds
on synthetic data and writes below `out`.

A table of your own takes its options along, `dataset=csv dataset.path=my.csv dataset.target=price`; its values are
written below `out`, with the command that trains with them.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.metrics import metric_of
from scripts.driver.cli import out_folder, user_errors
from scripts.driver.compose import (
    TUNE_SEED,
    TUNED,
    TUNED_DEFAULT,
    base_preset,
    compose_train,
    names,
    override,
    part_file,
    tune_command,
    tuned_path,
)
from scripts.driver.plan import Job, plan
from scripts.driver.runs import is_done, read_report
from scripts.driver.words import parse_words
from scripts.plan.schedule import items_of, stacks_of, train
from scripts.records.layer_choice import Report, validation

TRIALS = 16
LR_FACTORS = {TUNED: (1.0, 0.3, 3.0), TUNED_DEFAULT: (1.0, 0.3, 3.0, 0.1)}
WEIGHT_DECAYS = (0.0, 1e-5, 1e-4, 1e-3)  # of preset tuned_default
KEYS = ("dataset", "method", "preset", "device", "out", "jobs", "rerun", "debug")
OWN = "dataset."  # begins an option of a dataset, such as the path of a table


@dataclass(frozen=True)
class Trial:
    """One configuration to try.

    Attributes:
        command: of scripts.train.
        job: what it plans.
        point: of the grid; empty for the preset that tuning starts from.
    """

    command: list[str]
    job: Job
    point: dict[str, Any]

    @property
    def report(self) -> Report | None:
        """The report of its run, or None: not trained, or diverged."""
        folder = self.job.run_folder(TUNE_SEED)
        return read_report(folder) if is_done(folder) else None

    @property
    def values(self) -> dict[str, Any]:
        """What its point changes of the preset that tuning starts from."""
        return {key: value for key, value in sorted(self.job.options.items()) if key in self.point}

    def __str__(self) -> str:
        return " ".join(f"{key}={value}" for key, value in self.values.items()) or f"preset {self.job.config['preset']}"


def points(dataset: str, method: str, preset: str = TUNED) -> list[dict[str, Any]]:
    """Return every point of a method's grid with every learning rate, keys as on the command line.

    For `tuned_default` these are four rates with four weight decays.

    The `grid` of a method's config maps options to lists of values, all combinations of which count; a list of such
    mappings is their union.
    """
    cfg = compose_train([f"dataset={dataset}", f"preset={base_preset(dataset, preset)}"])
    grid: Any = part_file("method", method).get("grid", {})
    rates = [float(f"{cfg.train.lr * factor:.6g}") for factor in LR_FACTORS[preset]]
    training = {"train.lr": rates} | ({"train.weight_decay": WEIGHT_DECAYS} if preset == TUNED_DEFAULT else {})
    found = []
    for part in grid if isinstance(grid, list) else [grid]:
        lists = {**{f"method.{key}": values for key, values in part.items()}, **training}
        found += [dict(zip(lists, point, strict=True)) for point in itertools.product(*lists.values())]
    return found


def make_trials(
    dataset: str, method: str, given: Sequence[str] = (), budget: int = TRIALS, preset: str = TUNED
) -> list[Trial]:
    """Return the trials of one method: the preset to start from, then a seeded sample of `points` without repetition.

    Points that this preset or an earlier trial already is, and those that do not fit the dataset (a k above the
    batch size), are passed over; fewer than `budget` trials means that the grid has no more.
    """
    base = [
        f"dataset={dataset}", f"method={method}", f"preset={base_preset(dataset, preset)}", "experiment=tune",
        f"seed={TUNE_SEED}", "logger=none",
        *given,
    ]  # fmt: skip
    trials = {(job := plan(compose_train(base))).folder: Trial(base, job, {})}
    candidates = points(dataset, method, preset)
    for k in np.random.default_rng(TUNE_SEED).permutation(len(candidates)):
        if len(trials) == budget:
            break
        command = [*base, *(override(key, value) for key, value in candidates[k].items())]
        try:
            job = plan(compose_train(command))
        except InputError:
            continue
        trials.setdefault(job.folder, Trial(command, job, candidates[k]))
    return list(trials.values())


def choose(reports: Sequence[Report | None]) -> int:
    """Return which trial has the best validation score, the first of ties.

    Raises:
        InputError: no trial gave a score.
    """
    scores = {k: (validation(report), report["selection"]) for k, report in enumerate(reports) if report}
    if not scores:
        raise InputError("every trial diverged")
    sign = 1 if metric_of(next(iter(scores.values()))[1]).lower_is_better else -1
    return min(scores, key=lambda k: sign * scores[k][0])


def render(trials: Sequence[Trial], best: int, preset: str = TUNED, given: Sequence[str] = ()) -> str:
    """Return the file of tuned values: what the winner changes of the preset tuning starts from, and how it was found.

    `given` are options of the dataset.
    """
    plain, reports = trials[0].job.config, [trial.report for trial in trials]
    report = reports[best]
    assert report is not None
    metric = report["selection"]

    def score(k: int) -> str:
        found = reports[k]
        return f"{validation(found):.5g}" if found else "diverged"

    few = "" if len(trials) == TRIALS else f" of {TRIALS}: the grid has no more"
    state = (report["commit"] or "unknown") + (", with uncommitted changes" if report["dirty"] else "")
    lines = [
        f"# {' '.join([tune_command(plain['dataset']['name'], plain['method']['name'], preset), *given])}",
        f"# Commit {state}; model {plain['model']['name']}, seed {TUNE_SEED}, {len(trials)} trials{few}.",
        f"# Best validation {metric}: {score(best)} (trial {best}); {trials[0]}: {score(0)}. All trials:",
        *(f"# {k:>2}  {score(k):<8}  {trial}" for k, trial in enumerate(trials)),
    ]
    body = [in_yaml(key, value) for key, value in trials[best].values.items()]
    return "\n".join([*lines, *(body or [f"{{}}  # {trials[0]}"])]) + "\n"


def in_yaml(key: str, value: Any) -> str:
    """Return a line of YAML that reads back as this value; JSON's 1e-05 would be a string there."""
    return yaml.safe_dump({key: value}, default_flow_style=True, width=math.inf)[1:-2]


def tune(cells: Sequence[tuple[str, str]], given: Sequence[str], folder: Path | None = None, jobs: int = 0,
         budget: int = TRIALS, *, preset: str = TUNED) -> list[Path]:  # fmt: skip
    """Train all trials of these datasets and methods, and write a file for each.

    Args:
        cells: datasets with methods.
        given: further overrides of every trial, such as `device=cpu` or a table's `dataset.path=my.csv`.
        folder: where files go; the configuration's by default.
        jobs: processes at a time; 0 is one a core.
        budget: trials of each.
        preset: the tuned preset to make.

    Raises:
        InputError: unknown names or values, or every trial of a method diverged.
    """
    planned = {cell: make_trials(*cell, given, budget, preset) for cell in cells}
    for trials in {cell[0]: trials for cell, trials in planned.items()}.values():
        if not trials[0].job.dataset.synthetic:
            trials[0].job.dataset.fetch()  # once, before several processes ask for the same file
    work = [(trial.command, trial.job) for trials in planned.values() for trial in trials]
    for problem in train(items_of(stacks_of(work)), "tuning", workers=jobs):
        print(problem, file=sys.stderr)
    written = []
    for (dataset, method), trials in planned.items():
        best = choose([trial.report for trial in trials])
        path = folder / dataset / f"{method}.yaml" if folder else tuned_path(dataset, method, preset)
        own = [word for word in given if word.startswith(OWN)]
        text = render(trials, best, preset, own)
        write_atomically(path, text)
        found = text.splitlines()[2].removeprefix("# ").removesuffix(" All trials:")
        print(f"{dataset} {method}: {found} {trials[best]} -> {path}")
        if own:
            values = [override(key, value) for key, value in trials[best].values.items()]
            print(" ".join(["python -m scripts.train", f"dataset={dataset}", f"method={method}", *own, *values]))
        written.append(path)
    return written


def _listed(given: dict[str, str], key: str, default: Sequence[str] = ()) -> list[str]:
    chosen = [word.strip() for word in given.get(key, ",".join(default)).split(",") if word.strip()]
    known = names(key)
    for word in chosen or [""]:
        if word not in known:
            raise InputError(f"{key} must be among {', '.join(known)}, got {word!r}")
    return chosen


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        words = list(sys.argv[1:] if argv is None else argv)
        own = [word for word in words if word.startswith(OWN)]
        given = parse_words([word for word in words if word not in own], KEYS, __doc__)
        jobs = given.get("jobs", "0")
        if not jobs.isdecimal():
            raise InputError(f"jobs must be a whole number, got {jobs!r}")
        cells = list(itertools.product(_listed(given, "dataset"), _listed(given, "method", names("method"))))
        if own and len(given["dataset"].split(",")) > 1:
            raise InputError(f"options of a dataset are for one of them, got {' '.join(own)} for {given['dataset']}")
        start = given.get("preset", "")
        preset = TUNED_DEFAULT if start == "default" else TUNED
        if start not in ("", "default", "paper"):
            raise InputError(f"preset must be paper or default, which tuning starts from, got {start!r}")
        out = out_folder(given.get("out", ""))
        rerun = "false" if given.get("rerun", "0") in ("0", "false") else "true"
        passed = [f"{key}={given[key]}" for key in ("device", "debug") if key in given]
        folder = out / preset if own or given.get("debug", "none") != "none" else None
        tune(cells, [f"out={out}", f"rerun={rerun}", *passed, *own], folder, int(jobs), preset=preset)


if __name__ == "__main__":
    main()
