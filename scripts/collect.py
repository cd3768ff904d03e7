"""Average the runs of a sweep over their seeds, by the value of one option, and print, write and draw the means.

Every finished run below the folders is taken, such as those of a Hydra sweep (`python -m scripts.train -m
dataset=airfoil,no2 method.bandwidth=0.1,1,10 'seed=range(0,3)'`); datasets, and runs that differ in other options, are
separate groups. Each value's paired difference from ERM is shown where ERM was trained with the same options.

python -m scripts.collect outputs/runs/adhoc over=method.bandwidth
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError, format_value
from cmixup.files import write_atomically
from cmixup.metrics import metric_of
from scripts.config.arguments import OUT, parse_args
from scripts.config.words import split_names, typed_path
from scripts.driver.cli import user_errors
from scripts.driver.runs import RunFolder
from scripts.records import names
from scripts.records.csv_rows import plain_cell, to_csv
from scripts.records.run_tables import Row, by_seed, frame_of
from scripts.report.rendering import to_png
from scripts.report.result_table import markdown_page, markdown_table, mean_text
from scripts.report.sweep import ERM, Point, Sweep, decimals_for, sweep_points, value_text
from scripts.report.sweep_figure import draw_panels
from scripts.stats.intervals import interval_text, paired_or_none, summarise_values

WHOLE = ("dataset", "model", "method", "preset", "experiment")  # what a report names beside its options
COLUMNS = ("group", "option", "value", "n", "metric", "mean", "std", "low", "high", "val_mean", "best", "minus_erm",
           "minus_erm_low", "minus_erm_high")  # fmt: skip


def find_runs(folders: Sequence[Path]) -> tuple[pd.DataFrame, int]:
    """Return the finished runs below the folders, and how many runs are not finished."""
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"folder must exist, got {format_value(str(folder))}")
    paths = sorted({path.parent.resolve() for folder in folders for path in folder.rglob("config.yaml")})
    runs = [RunFolder(path) for path in paths]
    done = [run for run in runs if run.is_done()]
    if not done:
        left = f"; {len(runs)} are not finished" if runs else ""
        raise InputError(f"no finished run below {', '.join(map(str, folders))}{left}")
    return frame_of(run.report() for run in done), len(runs) - len(done)


def narrowed_runs(runs: pd.DataFrame, where: Mapping[str, str]) -> pd.DataFrame:
    """Return the runs whose dataset, method, ... are as given; an empty text takes all."""
    for key, value in where.items():
        known = sorted(set(runs[key]))
        if value and value not in known:
            raise InputError(f"{key} must be one of {', '.join(known)} in these runs, got {value!r}")
        runs = runs[runs[key] == value] if value else runs
    return runs


def collect_sweeps(
    runs: pd.DataFrame, option: str, metric: str = "", method: str = ""
) -> tuple[list[Sweep], list[str]]:
    """Return a sweep for all runs that differ only in `option` and their seeds, and what was left out.

    Each dataset has sweeps of its own. The others are compared with runs of ERM that differ in nothing else,
    whatever `method` is named. `option` may be `dataset`, `model`, `method` or `preset`, too; `metric` is one of the
    test scores, by default that which selected the checkpoints.
    """
    if option in ("seed", "seeds"):
        raise InputError("over must be an option, got 'seed': scores are averaged over seeds")
    others = [json.dumps(_other_options(run, option), sort_keys=True) for run in runs.to_dict("records")]
    runs = runs.assign(others=others)
    erm, of_method = runs[runs["method"] == ERM], option.startswith("method.")
    runs = narrowed_runs(runs, {"method": method})
    if of_method and set(runs["method"]) != {ERM}:
        runs = runs[runs["method"] != ERM]
    methods = sorted(set(runs["method"]))
    if len(methods) > 1 and option != "method":
        raise InputError(f"these runs are of several methods, {', '.join(methods)}: say which with method=")
    groups = dict(list(runs.groupby("others", sort=False)))
    rests = [json.loads(key) for key in groups]
    collected, left_out = [], []
    for rest, mine in zip(rests, groups.values(), strict=True):
        label, score = _group_label(rest, rests), metric or str(mine["shared"].iloc[0]["selection"])
        swept = sweep_points(mine, option, score)
        if len(swept) < 2:
            left_out.append(f"{label}: {option} has one value, {value_text(swept[0].value)}, in {len(mine)} runs")
            continue
        # ERM has no option of a method, and stands beside every value of one.
        beside = {key: value for key, value in rest.items() if not key.startswith("method")}
        beside |= {} if option == "method" else {"method": ERM}
        rivals = erm[erm["others"] == json.dumps(beside, sort_keys=True)]
        whole = of_method or option == "method"
        every = by_seed(rivals, f"test_{score}") if whole else {}
        at = {} if whole else {p.value: p.scores for p in sweep_points(rivals, option, score)}
        swept = [replace(p, erm=at.get(p.value, every)) for p in swept]
        lines = {ERM: every} if of_method and every else {}
        collected.append(Sweep(label, option, score, swept, lines))
    if not collected:
        raise InputError(f"there is no sweep over {option} here; {'; '.join(left_out)}")
    return collected, left_out


def _other_options(run: Row, option: str) -> dict[str, Any]:
    """Return all that tells a run from others, but for the option, what stands below it, and the seed.

    Runs of a table before it changed are others than those after.
    """
    inside = f"{option}."
    shared = run["shared"]
    read = "".join(shared.get("checksums", {}).values())
    data = {"data": hashlib.sha256(read.encode()).hexdigest()[:8]} if read and not option.startswith("dataset") else {}
    options = {k: v for k, v in shared["options"].items() if k != option and not k.startswith(inside)}
    return {**{key: run[key] for key in WHOLE if key != option}, **data, **options}


def _group_label(rest: Mapping[str, Any], every: Sequence[Mapping[str, Any]]) -> str:
    """Return what tells one group from the others, or dataset, method and preset where it is alone."""
    keys = sorted({key for one in every for key in one if any(other.get(key) != one[key] for other in every)})
    if len({one.get("dataset") for one in every}) == len({(one.get("dataset"), one.get("data")) for one in every}):
        keys = [key for key in keys if key != "data"]  # the dataset says it
    telling = [f"{key}={value_text(rest[key])}" if key in rest else f"{key} as the preset" for key in keys]
    return ", ".join(telling) or " ".join(str(rest[key]) for key in ("dataset", "method", "preset") if key in rest)


def best_point(sweep: Sweep, split: str = "test") -> Point | None:
    """Return the point with the best mean on test or validation, the first of equals; None where none is finite."""
    sign = 1 if metric_of(sweep.metric).lower_is_better else -1
    means = [(sign * (p.interval.mean if split == "test" else p.on_val), p) for p in sweep.points]
    return min((pair for pair in means if math.isfinite(pair[0])), key=lambda pair: pair[0], default=(0, None))[1]


def collected_page(groups: Sequence[Sweep]) -> str:
    """Return a table a group, and below it the best values on test and on validation."""
    legend = (
        "Test score, mean ± standard deviation (n - 1 in the denominator) over n seeds; the best mean is bold. Its "
        "paired difference to ERM with all other options the same, or to the best mean where there is no such ERM, is "
        "over shared seeds: mean [95 % t interval]."
    )
    parts = [legend]
    for group in groups:
        on_test, on_val = best_point(group), best_point(group, "val")
        decimals = decimals_for([p.interval.mean for p in group.points if math.isfinite(p.interval.mean)] or [1.0])
        rows, with_erm = [], any(p.erm for p in group.points)
        for p in group.points:
            mark = "**{}**" if p == on_test else "{}"
            other = p.erm if with_erm else on_test.scores if on_test else {}
            change = paired_or_none(p.scores, other) if other != p.scores else None
            value, mean = _escaped_cell(value_text(p.value)), mean_text(p.scores, decimals)
            rows.append([mark.format(value), str(len(p.scores)), mark.format(mean),
                         interval_text(change, decimals), f"{p.on_val:.{decimals}f}"])  # fmt: skip
        metric = names.metric_title(group.metric)
        head = [group.option, "n", f"test {metric}", "minus ERM" if with_erm else "minus the best", f"val {metric}"]
        best = [
            f"Best on {split}: {group.option}={_escaped_cell(value_text(point.value))}."
            for split, point in (("test", on_test), ("validation, by which options are to be chosen", on_val))
            if point
        ]
        parts += [f"## {_escaped_cell(group.title)}", markdown_table(head, rows)]
        parts.append(" ".join(best) or "No value has a finite mean.")
    return markdown_page(*parts)


def _escaped_cell(text: str) -> str:
    """Return a text that stays one cell of a Markdown table, and text."""
    return " ".join(text.replace("|", r"\|").replace("<", "&lt;").split())


def to_rows(groups: Sequence[Sweep]) -> str:
    """Return the numbers as CSV, a row a value, with the 95 % t interval of the mean where it has one."""
    rows = []
    for group in groups:
        for p in group.points:
            ends = (p.interval.low, p.interval.high) if p.interval.n > 1 else (None, None)
            change = paired_or_none(p.scores, p.erm) if p.erm != p.scores else None
            minus = (change.mean, change.low, change.high) if change else (None, None, None)
            std, best = summarise_values(list(p.scores.values())).std, p == best_point(group)
            line = (group.title, group.option, value_text(p.value), p.interval.n, group.metric, p.interval.mean, std,
                    *ends, p.on_val, best, *minus)  # fmt: skip
            rows.append(dict(zip(COLUMNS, map(plain_cell, line), strict=True)))
    return to_csv(rows, COLUMNS)


MOST_NAMED = 4  # datasets in the name of a file
WHERE = ("dataset", "method", "experiment")
KEYS = {
    "folders": "where finished runs are, between commas; default the folder of runs",
    "over": "the option, such as method.bandwidth, train.lr, method.pairing",
    "metric": "of the test scores; default the one that selects checkpoints",
    **{key: f"only runs of this {key}; default all" for key in WHERE},
    "out": f"{OUT}; files go into collected/ in it",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("folders",))
        if not (over := given.get("over")):
            raise InputError("over must name an option, such as over=method.bandwidth")
        place, method = given.get("folders", str(given.out / "runs")), given.get("method", "")
        runs, unfinished = find_runs(
            [Path(typed_path(name)) for name in split_names(place, lambda name: Path(typed_path(name)).is_dir())]
        )
        if unfinished:
            print(f"left out: {unfinished} runs that are not finished", file=sys.stderr)
        mine = narrowed_runs(runs, {key: given.get(key, "") for key in WHERE if key != "method"})
        groups, left_out = collect_sweeps(mine, over, given.get("metric", ""), method)
        mine = narrowed_runs(mine, {"method": method})
        datasets, methods = (sorted(set(mine[key])) for key in ("dataset", "method"))
        which = datasets if len(datasets) <= MOST_NAMED else [f"{len(datasets)}_datasets"]
        stem = given.out / "collected" / re.sub(r"[^\w.+-]", "_", "-".join([*which, *methods, over]))
        swept = [name for name in methods if name != ERM] or methods
        plot = to_png(draw_panels(groups, over, swept[0] if len(swept) == 1 else "mean"))
        made: dict[str, str | bytes] = {".md": collected_page(groups), ".csv": to_rows(groups), ".png": plot}
        for suffix, content in made.items():
            write_atomically(stem.parent / f"{stem.name}{suffix}", content)
        print(made[".md"])
        for line in left_out:
            print(f"left out: {line}", file=sys.stderr)
        print(f"Written: {stem}{', '.join(made)}")


if __name__ == "__main__":
    main()
