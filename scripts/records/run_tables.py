"""Published runs as tables: one CSV an experiment and dataset, a row a run, and beside it a JSON of what runs share.

    pd.read_csv("results/runs/table1/airfoil.csv").query("method == 'cmixup' and preset == 'released'").test_rmse

A row has the run's seed, its scores (`val_rmse`, `test_rmse`, `test_worst_rmse`, ...) and what else is a number of its
own (`train_effective_fraction`, `best_epoch`, `seconds`). A trial of a search is a row with its number in `trial`. Of
runs that were chosen by a search, and of their trials, `hyperparameters` has the words that were tried.

The JSON has the experiment, the dataset and, for each cell, what its runs share: the options as typed values, the
configuration, commit, versions, device and checksums. The column `cell` has the name of the run's entry there, the
start of its SHA-256, which stays when other runs are published. Numbers are written so that reading gives the same bits
(before pandas 3.1 with `float_precision="round_trip"`).
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import lzma
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.files import write_atomically
from datasets.common.damaged import naming
from scripts.records.records import options_text

Report = dict[str, Any]
BEGIN = ("cell", "model", "method", "preset", "layer", "bandwidth", "alpha", "options", "trial", "seed", "split")
END = ("best_epoch", "seconds", "hyperparameters")
TEXTS, SETTINGS = ("model", "method", "preset", "layer"), ("bandwidth", "alpha")
NUMBERS = ("seed", "split", "best_epoch", "seconds")
PARTS = ("val", "test")
FACTS = "train"  # begins the columns of facts, as the split of their tidy records
#: Of a run's report, what nobody asks of a published one.
DROPPED = ("format", "status", "failure", "learned_nothing", "label_scaling", "started", "stack")
COLUMNS = {*BEGIN, *END, "words", "scores", "facts", "experiment", "dataset", "run"}
RUN_NAME = re.compile(r"(?:/trial=\d+)?/seed=-?\d+$")
WORD = re.compile(r" (?=[\w.+/]+=)")  # stands between words of the command line, whose values may have blanks


def cell_of(report: Mapping[str, Any]) -> str:
    """Return the name of a report's cell: its run without the trial and the seed."""
    return RUN_NAME.sub("", str(report["run"]))


def shared_file(path: Path) -> Path:
    """Return the JSON that goes with a table of runs, `TABLE.csv` or `TABLE.csv.xz`."""
    return path.with_name(f"{path.name.partition('.')[0]}.json")


def write_runs(path: Path, reports: Iterable[Mapping[str, Any]]) -> None:
    """Write the runs of an experiment on a dataset, in order of their cells, trials and seeds, as CSV and JSON."""
    ordered = sorted(reports, key=_order)
    entries, rows = dict[str, str](), []
    for report in ordered:
        entry = json.dumps(_cell_entry(report), sort_keys=True)
        name = hashlib.sha256(entry.encode()).hexdigest()[:8]
        entries[name] = entry
        rows.append({"cell": name, **_row_of(report)})
    names = dict.fromkeys(name for row in rows for name in row)
    scores = [name for name in names if name not in (*BEGIN, *END)]
    order = {f"{part}_": k for k, part in enumerate((*PARTS, FACTS))}
    scores.sort(key=lambda name: next((k for start, k in order.items() if name.startswith(start)), len(order)))
    columns = [*(name for name in BEGIN if name in names), *scores, *(name for name in END if name in names)]
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    about = json.dumps({"experiment": ordered[0]["experiment"], "dataset": ordered[0]["dataset"]})
    lines = ",\n".join(f'"{name}": {entry}' for name, entry in entries.items())
    write_atomically(shared_file(path), f'{about[:-1]},\n"cells": {{\n{lines}\n}}}}\n')
    packed = lzma.compress(text.getvalue().encode(), preset=9) if path.suffix == ".xz" else text.getvalue()
    write_atomically(path, packed)


def read_runs(path: Path) -> list[Report]:
    """Return the reports of a table's runs in the order of its rows; none where it does not exist."""
    if not path.is_file():
        return []
    with naming(path, f"a table of runs with {shared_file(path).name} beside it"):
        whole = json.loads(shared_file(path).read_text())
        cells = whole.pop("cells")
        with lzma.open(path, "rt", newline="") if path.suffix == ".xz" else path.open(newline="") as stream:
            rows = csv.DictReader(stream)
            columns = _score_columns(rows.fieldnames or ())
            return [_report_of(row, cells[row["cell"]], whole, columns) for row in rows]


def read_frame(path: Path) -> pd.DataFrame:
    """Return the rows of a table of runs, with its `dataset`, and as `shared` what the runs of the row's cell share."""
    with naming(path, f"a table of runs with {shared_file(path).name} beside it"):
        whole = json.loads(shared_file(path).read_text())
        rows = pd.read_csv(path, dtype={"cell": str})
        return rows.assign(dataset=whole["dataset"], shared=rows["cell"].map(whole["cells"]))


def _order(report: Mapping[str, Any]) -> tuple[str, int, int]:
    return cell_of(report), report["options"].get("trial", -1), report["seed"]


def _cell_entry(report: Mapping[str, Any]) -> Report:
    """Return what a report shares with the others of its cell."""
    kept = {key: value for key, value in report.items() if key not in COLUMNS and key not in DROPPED}
    if "config" in kept:
        kept["config"] = {key: value for key, value in kept["config"].items() if key not in ("seed", "seeds")}
    options = {key: value for key, value in report["options"].items() if key != "trial"}
    return {"run": cell_of(report), "options": options, **kept}


def _row_of(report: Mapping[str, Any]) -> dict[str, Any]:
    row = {key: report[key] for key in (*BEGIN, *END) if key in report}
    options = dict(report["options"])
    row |= {"trial": options.pop("trial")} if "trial" in options else {}
    row["options"] = options_text(options)
    row |= {"hyperparameters": " ".join(report["words"])} if "words" in report else {}
    for part in PARTS:
        row |= {f"{part}_{name}": value for name, value in report["scores"].get(part, {}).items()}
    row |= {f"{FACTS}_{name}": value for name, value in report["facts"].items() if name != "bandwidth"}
    return row


def _score_columns(names: Iterable[str]) -> list[tuple[str, str, str, str]]:
    """Return the columns of scores and facts: key in the report, split, name and column of each."""
    columns = []
    for column in names:
        kind, _, rest = column.partition("_")
        if kind in (*PARTS, FACTS):
            columns.append(("facts" if kind == FACTS else "scores", kind, rest, column))
    return columns


def _report_of(
    row: Mapping[str, str], cell: Report, place: Mapping[str, str], columns: Iterable[tuple[str, ...]]
) -> Report:
    report = {**place, "scores": {}, "facts": {}, **cell}
    for key, part, name, column in columns:
        if text := row[column]:
            report.setdefault(key, {}).setdefault(part, {})[name] = float(text)
    report["facts"] = report["facts"].get(FACTS, {})
    report |= {name: row[name] for name in TEXTS if name in row}
    report |= {name: _number(row[name]) for name in NUMBERS if row.get(name)}
    report |= {name: _number(row[name]) for name in SETTINGS if name in row}  # None of methods that have none
    if report.get("bandwidth") is not None:
        report["facts"]["bandwidth"] = report["bandwidth"]
    if "hyperparameters" in row:
        report["words"] = WORD.split(row["hyperparameters"])
    trial = f"/trial={int(row['trial']):02}" if row.get("trial") else ""
    if trial:
        report["options"] = {**cell["options"], "trial": int(row["trial"])}
    return report | {"run": f"{cell['run']}{trial}/seed={report['seed']}"}


def _number(text: str) -> float | int | None:
    return None if not text else int(text) if text.removeprefix("-").isdecimal() else float(text)
