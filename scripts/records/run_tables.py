"""Published runs as tables: one CSV an experiment and dataset, a row a run, and beside it a JSON of what runs share.

    pd.read_csv("results/runs/table1/airfoil.csv").query("method == 'cmixup' and preset == 'released'").test_rmse

A row has the run's seed, its scores (`val_rmse`, `test_rmse`, `test_worst_rmse`, ...) and other numbers of its
own (`train_effective_fraction`, `best_epoch`, `seconds`). A trial of a search is a row with its number in `trial`. Of
runs that were chosen by a search, and of their trials, `hyperparameters` has the words that were tried.

The JSON has the experiment, the dataset and, for each cell, what its runs share: the options as typed values, the
configuration, commit, versions, device and checksums. The column `cell` has the name of the run's entry there, the
start of its SHA-256, which stays when other runs are published. Numbers are written so that reading gives the same bits
(before pandas 3.1 with `float_precision="round_trip"`). A score that is no number is infinity.

Everything that shows runs reads them as a frame of such rows, published ones and those of finished folders alike.
"""

import hashlib
import json
import lzma
import math
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.metrics import metric_of
from datasets.common.damaged import naming
from scripts.records.csv_rows import to_csv

Report = Mapping[str, Any]
Row = Mapping[str, Any]
Pairs = Iterable[tuple[Report, Row]]  # of runs, what each shares with others of its cell, and its row
BEGIN = ("cell", "model", "method", "preset", "layer", "bandwidth", "alpha", "options", "trial", "seed", "split")
END = ("best_epoch", "seconds", "hyperparameters")
TEXTS = ("model", "method", "preset", "layer", "options", "hyperparameters")
CELL = ("method", "model", "preset", "options")  # columns that tell the cells of a table apart
PLACE = ("experiment", "dataset", "run", "shared")  # columns of frames that a file has once or for each cell
PARTS = ("val", "test")
FACTS = "train"  # begins the columns of facts
#: Keys of a report that nobody asks of a published run.
DROPPED = ("format", "status", "failure", "learned_nothing", "label_scaling", "started", "stack")
COLUMNS = {*BEGIN, *END, "words", "scores", "facts", "experiment", "dataset", "run"}
#: Options of pandas that read a float to the same bits; from 3.1 on it does so by itself.
EXACT: dict[str, Any] = {} if pd.__version__ >= "3.1" else {"float_precision": "round_trip"}
LAYER = "method.layer"
VARIANTS = "_variants"  # ends the experiment of runs at the layer that was not chosen
RUN_NAME = re.compile(r"(?:/trial=\d+)?/seed=-?\d+$")
WORD = re.compile(r" (?=[\w.+/]+=)")  # stands between words of the command line, whose values may have blanks


def options_text(options: Mapping[str, Any]) -> str:
    """Return options as they are printed, in the order of their keys."""
    return " ".join(f"{key}={value}" for key, value in sorted(options.items()))


def option_words(text: str) -> dict[str, str]:
    """Return the values of printed options by key, as texts."""
    pairs = (word.partition("=") for word in WORD.split(text) if word)
    return {key: value for key, _, value in pairs}


def shared_file(path: Path) -> Path:
    """Return the JSON that goes with a table of runs, `TABLE.csv` or `TABLE.csv.xz`."""
    return path.with_name(f"{path.name.partition('.')[0]}.json")


def shared_of(report: Report) -> dict[str, Any]:
    """Return what a report shares with the others of its cell."""
    kept = {key: value for key, value in report.items() if key not in COLUMNS and key not in DROPPED}
    if "config" in kept:
        kept["config"] = {key: value for key, value in kept["config"].items() if key not in ("seed", "seeds")}
    options = {key: value for key, value in report["options"].items() if key != "trial"}
    return {"run": RUN_NAME.sub("", str(report["run"])), "options": options, **kept}


def row_of(report: Report) -> dict[str, Any]:
    """Return the values of a report that it does not share, by column."""
    row = {key: report[key] for key in (*BEGIN, *END) if key in report}
    options = dict(report["options"])
    row |= {"trial": options.pop("trial")} if "trial" in options else {}
    row["options"] = options_text(options)
    row |= {"hyperparameters": " ".join(report["words"])} if "words" in report else {}
    for part in PARTS:
        scores = report["scores"].get(part, {})
        row |= {f"{part}_{name}": math.inf if math.isnan(value) else value for name, value in scores.items()}
    return row | {f"{FACTS}_{name}": value for name, value in report["facts"].items() if name != "bandwidth"}


def scores_of(row: Row) -> dict[str, dict[str, float]]:
    """Return the scores of a row of a frame by split and name."""
    scores: dict[str, dict[str, float]] = {}
    for column, value in row.items():
        part, _, name = column.partition("_")
        if part in PARTS and not math.isnan(value):
            scores.setdefault(part, {})[name] = float(value)
    return scores


def frame_of(reports: Iterable[Report]) -> pd.DataFrame:
    """Return reports as a frame: the columns of a table of runs and `PLACE`, `shared` being what cells share."""
    rows = [{**{key: r[key] for key in PLACE[:3]}, "shared": shared_of(r), **row_of(r)} for r in reports]
    return _whole_frame(pd.DataFrame(rows))


def read_frame(path: Path) -> pd.DataFrame:
    """Return the rows of a table of runs as `frame_of` returns those of reports."""
    with naming(path, f"a table of runs with {shared_file(path).name} beside it"):
        about = json.loads(shared_file(path).read_text())
        rows = pd.read_csv(path, dtype={"cell": str}, **EXACT)
        shared = [about["cells"][cell] for cell in rows["cell"]]
        trials = rows["trial"].map("/trial={:02.0f}".format, na_action="ignore").fillna("") if "trial" in rows else ""
        runs = pd.Series([entry["run"] for entry in shared]) + trials + "/seed=" + rows["seed"].astype(str)
        place = zip(PLACE, (about["experiment"], about["dataset"], runs, shared), strict=True)
        return _whole_frame(rows.assign(**dict(place)))


def _whole_frame(frame: pd.DataFrame) -> pd.DataFrame:
    frame = frame.reindex(columns=list(dict.fromkeys([*PLACE, *BEGIN, *frame, *END])))
    return frame.assign(**{name: frame[name].astype(object).fillna("") for name in (*PLACE[:3], *TEXTS)})


def by_seed(runs: pd.DataFrame, column: str) -> dict[int, float]:
    """Return the numbers that runs have in a column by their seed, which no two may share."""
    if column not in runs:
        return {}
    known = runs[runs[column].notna()]
    for seed in known.loc[known["seed"].duplicated(), "seed"]:
        both = " and ".join(known.loc[known["seed"] == seed, "run"])
        raise InputError(f"seed {seed} is there twice with the same options: {both}")
    return {int(seed): float(value) for seed, value in sorted(zip(known["seed"], known[column], strict=True))}


def choose_variants(runs: pd.DataFrame) -> pd.DataFrame:
    """Keep, of runs that differ in their layer alone, the layer with the best mean validation score on shared seeds.

    The others are recorded as `<experiment>_variants`. The layer has a column of its own, so it is no longer listed
    among the options that differ. Where no seed has all variants, all seeds count.
    """
    options = [options_text({k: v for k, v in option_words(text).items() if k != LAYER}) for text in runs["options"]]
    losses = []
    for run in runs.to_dict("records"):
        score = float(run[f"val_{run['shared']['selection']}"])
        as_loss = metric_of(run["shared"]["selection"]).lower_is_better or math.isinf(score)
        losses.append(score if as_loss else -score)
    runs = runs.assign(options=options, loss=losses)
    cell = ["experiment", "dataset", "model", "method", "preset", "options"]
    layers = runs.groupby(cell)["layer"].transform("nunique")
    shared = runs.groupby([*cell, "seed"])["layer"].transform("nunique") == layers
    counted = runs[shared | ~shared.groupby([runs[name] for name in cell]).transform("any")]
    means = counted.groupby([*cell, "layer"], sort=False)["loss"].mean()
    best = set(means.groupby(level=cell).idxmin())
    chosen = [key in best for key in zip(*(runs[name] for name in (*cell, "layer")), strict=True)]
    experiment = runs["experiment"].where(chosen, runs["experiment"] + VARIANTS)
    return runs.drop(columns="loss").assign(experiment=experiment).sort_values("run", ignore_index=True)


def read_pairs(path: Path) -> Pairs:
    """Return the runs of a table, every value as its text; none where it does not exist."""
    if not path.is_file():
        return []
    with naming(path, f"a table of runs with {shared_file(path).name} beside it"):
        cells = json.loads(shared_file(path).read_text())["cells"]
        rows = pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
        return [(cells[r["cell"]], {key: value for key, value in r.items() if value or key in BEGIN}) for r in rows]


def write_pairs(path: Path, experiment: str, dataset: str, pairs: Pairs) -> None:
    """Write runs as CSV and JSON, in order of names, trials and seeds; of two of one cell the last one stays."""
    runs, entries = dict[tuple[object, ...], tuple[str, int, int, Row]](), dict[str, str]()
    for shared, row in pairs:
        entry, trial = json.dumps(shared, sort_keys=True), row.get("trial", "")
        name = hashlib.sha256(entry.encode()).hexdigest()[:8]
        entries[name] = entry
        place = shared["run"], -1 if trial == "" else int(trial), int(row["seed"])
        runs[(*(row[key] for key in CELL), *place[1:])] = *place, {**row, "cell": name}
    rows = [row for *_, row in sorted(runs.values(), key=lambda run: run[:3])]
    used = {row["cell"]: entries[row["cell"]] for row in rows}
    names = dict.fromkeys(name for row in rows for name in row)
    order = {part: place for place, part in enumerate((*PARTS, FACTS))}
    scores = [name for name in names if name not in (*BEGIN, *END)]
    scores.sort(key=lambda name: order[name.partition("_")[0]])
    columns = [*(name for name in BEGIN if name in names), *scores, *(name for name in END if name in names)]
    about, text = json.dumps({"experiment": experiment, "dataset": dataset}), to_csv(rows, columns)

    def write_shared(cells: Mapping[str, str]) -> None:
        lines = ",\n".join(f'"{name}": {entry}' for name, entry in cells.items())
        write_atomically(shared_file(path), f'{about[:-1]},\n"cells": {{\n{lines}\n}}}}\n')

    write_shared(used | entries)  # of the rows before, too, which stay if this ends here
    write_atomically(path, lzma.compress(text.encode(), preset=9) if path.suffix == ".xz" else text)
    if len(used) < len(entries):
        write_shared(used)
