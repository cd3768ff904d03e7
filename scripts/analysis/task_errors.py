"""Compare the finished runs of Table 2 on the same test tasks.

Every model's squared error on each test task goes into results/task_errors/<dataset>_<preset>.csv; from these files
comes a table of paired differences with their intervals (results/tables/table2_paired_<dataset>_<preset>.md).

Example: python -m scripts.analysis task_errors preset=cpu
"""

import json
from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cmixup.errors import InputError
from scripts.analysis.runs import KEYS as COMMON
from scripts.analysis.runs import Report, dataset_of, results_of, runs_of, write_analysis
from scripts.config.arguments import Args
from scripts.driver.runs import RunFolder
from scripts.records import names
from scripts.records.experiment import RESULTS, load_experiment
from scripts.report.rendering import writes
from scripts.report.result_table import markdown_page, markdown_table
from scripts.stats.intervals import clustered_interval

EXPERIMENT, FOLDER = "table2", "task_errors"
KEYS = {key: COMMON[key] for key in ("out", "results")} | {"preset": "whose runs; default all that were run"}
TASK_KEY = ("seed", "task", "object")
CONSTANT, CONSTANT_TITLE = "constant", "mean training label"  # what predicts that of the training objects everywhere


def score_runs(reports: Sequence[Report], out: Path) -> pd.DataFrame:
    """Return a row a seed and test task of one dataset: its object, and as text each method's MSE on its query."""
    configs = {json.dumps(r["config"]["dataset"], sort_keys=True) for r in reports}
    if len(configs) > 1:
        raise InputError(f"runs on {reports[0]['dataset']} must share its options, got {len(configs)} different ones")
    dataset: Any = dataset_of(reports[0]["config"]["dataset"])  # a TaskDataset
    objects = dataset.objects()[1].names
    frames = []
    for seed, group in groupby(sorted(reports, key=lambda r: r["seed"]), key=lambda r: r["seed"]):
        data = dataset.load(seed)
        constant = _error_digits(data.test.y.numpy(), float(data.train.x.labels.mean()))
        columns = {
            "seed": seed, "task": range(len(constant)),
            "object": [objects[int(domain)] for domain in data.test.domain], CONSTANT: constant,
        }  # fmt: skip
        for report in group:
            predictions = RunFolder(out / "runs" / report["run"]).predictions()["test"]
            columns[report["method"]] = _error_digits(predictions.target, predictions.prediction[""])
        frames.append(pd.DataFrame(columns))
    frame = pd.concat(frames)
    return frame[[*TASK_KEY, *methods_of(frame)]]


def _error_digits(y: np.ndarray, prediction: np.ndarray | float) -> list[str]:
    """Return the mean squared error of every task (N, Q) in five digits."""
    return [f"{error:.5g}" for error in np.square(y - prediction, dtype=np.float64).mean(axis=-1)]


def methods_of(frame: pd.DataFrame) -> list[str]:
    """Return the constant and the methods of a file in the table's order; one that the table does not have is last."""
    methods = [name for name in frame if name not in (*TASK_KEY, CONSTANT)]
    return [CONSTANT, *names.in_order(methods, load_experiment(EXPERIMENT).methods)]


def task_means(frame: pd.DataFrame, method: str, minus: str = "") -> tuple[pd.Series, pd.Series, int]:
    """Return the mean over seeds of a method's error on each task, minus another's; the objects; the number of seeds.

    Only seeds that both methods have are taken.
    """
    error = frame[method] - frame[minus] if minus else frame[method]
    used = frame.assign(error=error).dropna(subset=["error"])
    by_task = used.groupby("task")
    return by_task["error"].mean(), by_task["object"].first(), used["seed"].nunique()


def paired_table(frame: pd.DataFrame, dataset: str, preset: str) -> str:
    """Return the table of one dataset and preset as Markdown."""
    experiment = load_experiment(EXPERIMENT)
    compare, methods = experiment.compare, methods_of(frame)
    about = experiment.about_preset.get(preset, "")
    title = f"{names.dataset_title(dataset)}, preset {preset}{f' ({about})' if about else ''}"
    body = []
    for method in methods:
        errors, objects, seeds = task_means(frame, method)
        line = [CONSTANT_TITLE, "—"] if method == CONSTANT else [names.method_title(method), str(seeds)]
        line.append(f"{errors.mean():.3f} {_interval_text(errors, objects, '')}".rstrip())
        differences, objects, _ = task_means(frame, compare, method) if compare in methods else (errors[:0], objects, 0)
        if method == compare or differences.empty:
            body.append([*line, *"———"])
        else:
            intervals = [_interval_text(differences, clusters) for clusters in (objects, differences.index)]
            body.append([*line, f"{differences.mean():+.3f}", *intervals])
    head = ["method", "seeds", "MSE", f"{names.method_title(compare)} minus it", "95 % over objects", "95 % over tasks"]
    _, objects, _ = task_means(frame, CONSTANT)
    legend = (
        f"MSE of 10 x azimuth on the query of {len(objects)} test tasks of {objects.nunique()} objects after 5 inner "
        "steps, mean over seeds, with its 95 % interval over objects. Then paired differences on the same tasks, with "
        "two intervals. Over objects, tasks of one object are dependent (cluster-robust), as new objects need. Over "
        "tasks, every task counts as an object of its own, like the paper's ± over 6000 tasks. Neither knows how much "
        "another seed would change."
    )
    made_by = f"`make reproduce-table2-paired PRESET={preset}` makes this page."
    return markdown_page(f"## {title}: paired over test tasks", legend, markdown_table(head, body), made_by)


def _interval_text(values: pd.Series, clusters: Iterable[Hashable], sign: str = "+") -> str:
    interval = clustered_interval(values.tolist(), list(clusters))
    return f"[{interval.low:{sign}.3f}, {interval.high:{sign}.3f}]" if interval else "—"


@writes
def render_tables(results: Path = RESULTS) -> dict[str, str]:
    """Return the tables that the files of task errors give, by their paths below results/."""
    paths = {path.stem.rpartition("_"): path for path in sorted((results / FOLDER).glob("*.csv"))}
    return {
        f"tables/{EXPERIMENT}_paired_{dataset}_{preset}.md": paired_table(pd.read_csv(path), dataset, preset)
        for (dataset, _, preset), path in paths.items()
    }


def run(args: Args) -> None:
    """Measure the runs of each dataset and preset, then render all tables."""
    results, preset = results_of(args), args.get("preset", "")
    about = f"{EXPERIMENT}{f', preset {preset!r}' if preset else ''}; make reproduce-{EXPERIMENT}"
    reports = runs_of(args, [EXPERIMENT], lambda r: not r["options"] and preset in ("", r["preset"]), about)
    reports.sort(key=lambda r: (r["dataset"], r["preset"]))
    for (dataset, run_preset), group in groupby(reports, key=lambda r: (r["dataset"], r["preset"])):
        name = f"{FOLDER}/{dataset}_{run_preset}.csv"
        frame = score_runs(list(group), args.out)
        write_analysis(args, {name: frame.to_csv(index=False, lineterminator="\n")})
    write_analysis(args, render_tables(results))
