"""Average the runs of a sweep over their seeds, by the value of one option, and print, write and draw the means.

Every finished run below the folder is taken, such as those of a Hydra sweep (`python -m scripts.train -m
dataset=airfoil,no2 method.bandwidth=0.1,1,10 'seed=range(0,3)'`); datasets, and runs that differ in other options, are
separate groups. Each value's paired difference from ERM is shown where ERM was trained with the same options.

python -m scripts.collect outputs/runs/adhoc over=method.bandwidth
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError, check_choice
from cmixup.files import write_atomically
from cmixup.metrics import metric_of
from scripts.config.arguments import OUT, parse_args
from scripts.driver.cli import user_errors
from scripts.driver.runs import load_reports
from scripts.records import names
from scripts.records.csv_rows import to_csv
from scripts.records.run_tables import Row, by_seed, frame_of
from scripts.report.rendering import to_png
from scripts.report.result_table import markdown_page, markdown_table, summary_text
from scripts.report.sweep import ERM, Point, Sweep, sweep_points, value_text
from scripts.report.sweep_figure import draw_sweeps
from scripts.stats.intervals import interval_text, paired_or_none, summarise_values

REPORT_KEYS = ("dataset", "model", "method", "preset", "experiment")  # what a report names beside its options
LEGEND = (
    "Test score, mean ± standard deviation (n - 1 in the denominator) over n seeds; the value with the best mean on "
    "validation is bold. The paired difference to ERM with all other options the same is over shared seeds: mean [95 % "
    "t interval]."
)
KEYS = {
    "folder": "where finished runs are; default the folder of runs",
    "over": "the option, such as method.bandwidth, train.lr, method.pairing",
    "metric": "of the test scores; default the one that selects checkpoints",
    "dataset": "only runs on this dataset; default all",
    "method": "only runs of this method; default all",
    "out": f"{OUT}; files go into collected/ in it",
}


def narrowed_runs(runs: pd.DataFrame, key: str, value: str) -> pd.DataFrame:
    """Return the runs whose dataset or method is as given; an empty text takes all."""
    return runs[runs[key] == check_choice(key, value, tuple(sorted(set(runs[key]))))] if value else runs


def collect_sweeps(runs: pd.DataFrame, option: str, metric: str = "", method: str = "") -> list[Sweep]:
    """Return a sweep for all runs that differ only in `option` and their seeds.

    Each dataset has sweeps of its own. The others are compared with runs of ERM that differ in nothing else,
    whatever `method` is named. `option` may be `dataset`, `model`, `method` or `preset`, too; `metric` is one of the
    test scores, by default that which selected the checkpoints.
    """
    if option in ("seed", "seeds"):
        raise InputError("over must be an option, got 'seed': scores are averaged over seeds")
    others = [json.dumps(_other_options(run, option), sort_keys=True) for run in runs.to_dict("records")]
    runs = runs.assign(others=others)
    erm, of_method = runs[runs["method"] == ERM], option.startswith("method.")
    runs = narrowed_runs(runs, "method", method)
    if of_method and set(runs["method"]) != {ERM}:
        runs = runs[runs["method"] != ERM]
    methods = sorted(set(runs["method"]))
    if len(methods) > 1 and option != "method":
        raise InputError(f"these runs are of several methods, {', '.join(methods)}: say which with method=")
    groups = [(json.loads(str(key)), group_runs) for key, group_runs in runs.groupby("others", sort=False)]
    sweeps = []
    for group_options, group_runs in groups:
        score = metric or str(group_runs["shared"].iloc[0]["selection"])
        swept = sweep_points(group_runs, option, score)
        # ERM has no option of a method, and stands beside every value of one.
        erm_options = {key: value for key, value in group_options.items() if not key.startswith("method")}
        erm_options |= {} if option == "method" else {"method": ERM}
        erm_runs = erm[erm["others"] == json.dumps(erm_options, sort_keys=True)]
        any_value = of_method or option == "method"
        erm_scores = by_seed(erm_runs, f"test_{score}") if any_value else {}
        erm_by_value = {} if any_value else {p.value: p.scores for p in sweep_points(erm_runs, option, score)}
        swept = [replace(p, erm=erm_by_value.get(p.value, erm_scores)) for p in swept]
        label = _group_label(group_options, [options for options, _ in groups])
        sweeps.append(Sweep(label, option, score, swept, {ERM: erm_scores} if of_method and erm_scores else {}))
    return sweeps


def _other_options(run: Row, option: str) -> dict[str, Any]:
    """Return all that tells a run from others, but for the option, what stands below it, and the seed."""
    shared, inside = run["shared"], f"{option}."
    options = {k: v for k, v in shared["options"].items() if k != option and not k.startswith(inside)}
    return {**{key: run[key] for key in REPORT_KEYS if key != option}, **options}


def _group_label(options: Mapping[str, Any], groups: Sequence[Mapping[str, Any]]) -> str:
    """Return what tells one group from the others, or dataset, method and preset where it is alone."""
    keys = sorted({key for group in groups for key in group if any(other.get(key) != group[key] for other in groups)})
    texts = [f"{key}={value_text(options[key])}" if key in options else f"{key} as the preset" for key in keys]
    return ", ".join(texts) or " ".join(str(options[key]) for key in ("dataset", "method", "preset") if key in options)


def best_on_val(sweep: Sweep) -> Point | None:
    """Return the point with the best mean on validation, the first of equals; None where none is finite."""
    sign = 1 if metric_of(sweep.metric).lower_is_better else -1
    finite = [point for point in sweep.points if math.isfinite(point.on_val)]
    return min(finite, key=lambda point: sign * point.on_val, default=None)


def collected_page(groups: Sequence[Sweep]) -> str:
    """Return a table a group."""
    parts = [LEGEND]
    for group in groups:
        best, metric = best_on_val(group), names.metric_title(group.metric)
        decimals = 4 if all(not abs(p.interval.mean) >= 0.1 for p in group.points) else 3
        rows = []
        for p in group.points:
            mark, value = "**{}**" if p == best else "{}", value_text(p.value).replace("|", r"\|")
            change = paired_or_none(p.scores, p.erm) if p.erm != p.scores else None
            mean = summary_text(summarise_values(list(p.scores.values())), decimals)
            rows.append([mark.format(value), str(len(p.scores)), mark.format(mean),
                         interval_text(change, decimals), f"{p.on_val:.{decimals}f}"])  # fmt: skip
        head = [group.option, "n", f"test {metric}", "minus ERM", f"val {metric}"]
        parts += [f"## {group.title}", markdown_table(head, rows)]
    return markdown_page(*parts)


def to_rows(groups: Sequence[Sweep]) -> str:
    """Return the numbers as CSV, a row a value, with the 95 % t interval of the mean where it has one."""
    rows = []
    for group in groups:
        for p in group.points:
            ends = (p.interval.low, p.interval.high) if p.interval.n > 1 else (None, None)
            change = paired_or_none(p.scores, p.erm) if p.erm != p.scores else None
            rows.append({
                "group": group.title, "option": group.option, "value": value_text(p.value), "n": p.interval.n,
                "metric": group.metric, "mean": p.interval.mean, "std": summarise_values(list(p.scores.values())).std,
                "low": ends[0], "high": ends[1], "val_mean": p.on_val,
                **{f"minus_erm{end}": getattr(change, name, None)
                   for end, name in (("", "mean"), ("_low", "low"), ("_high", "high"))},
            })  # fmt: skip
    return to_csv(rows, list(rows[0]))


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args = parse_args(argv, KEYS, __doc__, names=("folder",))
        if not (over := args.get("over")):
            raise InputError("over must name an option, such as over=method.bandwidth")
        folder = args.path("folder") if "folder" in args else args.out / "runs"
        if not (reports := load_reports(folder)):
            raise InputError(f"no finished run below {folder}")
        dataset, method = args.get("dataset", ""), args.get("method", "")
        runs = narrowed_runs(frame_of(reports), "dataset", dataset)
        groups = collect_sweeps(runs, over, args.get("metric", ""), method)
        stem = re.sub(r"[^\w.+-]", "_", "-".join(filter(None, [dataset, method, over])))
        plot = to_png(draw_sweeps(groups, method or "mean"))
        files: dict[str, str | bytes] = {".md": collected_page(groups), ".csv": to_rows(groups), ".png": plot}
        for suffix, content in files.items():
            write_atomically(Path(args.out, "collected", f"{stem}{suffix}"), content)
        print(files[".md"])
        print(f"Written: {args.out / 'collected' / stem}{', '.join(files)}")


if __name__ == "__main__":
    main()
