"""Predict new rows with a finished run.

A column for every target and a row for every row of the table are written. Columns are found by name; others are
ignored. Where the table has the targets, too, the error is printed.

Example: python -m scripts.predict run=outputs/runs/.../seed=0 table=new.csv id=house out=predictions.csv
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from cmixup.done import checked
from cmixup.errors import InputError, nearest
from cmixup.files import write_atomically
from cmixup.saved_run import SavedRun, load_run
from cmixup.tables.columns import as_numbers, read_column
from datasets.common.table.reading import Format, column_named, read_table
from scripts.config.arguments import parse_args
from scripts.config.words import split_names
from scripts.driver.cli import user_errors
from scripts.records.records import plain_cell

KEYS = {
    "run": "folder of a finished run, such as outputs/runs/.../seed=0",
    "table": "text file with a header, whose rows are predicted",
    "id": "columns between commas that go into the predictions; a formula of a spreadsheet as text",
    "out": "file of the predictions; default predictions.csv",
    "trust": "1 runs code outside this project that the run names, such as a model of your own; default 0",
}


def read_new(path: Path, run: SavedRun, text: Sequence[str] = ()) -> pd.DataFrame:
    """Read a table as the run read its own: decimal sign, encoding, unknown values; columns `text` stay text."""
    if not path.is_file():
        raise InputError(f"table must be a text file with a header, got {path}: no such file")
    config = yaml.safe_load(checked(run.folder / "config.yaml").read_text())["dataset"]
    options = {key: config[key] for key in ("separator", "decimal", "encoding", "thousands", "skip") if key in config}
    given = config.get("missing") or []
    missing = tuple(map(str, given if isinstance(given, list) else [given]))
    return read_table(path, Format(**options, missing=missing), (*text, *(run.table.text if run.table else ())))


def error_lines(frame: pd.DataFrame, predicted: pd.DataFrame) -> list[str]:
    """Return a line for each target that the table has, too, with the error on its rows."""
    lines = []
    for name in predicted:
        if name in frame:
            signs = frame.attrs.get("thousands", "auto"), frame.attrs.get("decimal", ".")
            truth, _ = as_numbers(frame[name], read_column(frame[name], *signs).form)
            known = np.isfinite(truth)
            residual = truth[known] - predicted[name].to_numpy()[known]
            if known.any():
                lines.append(
                    f"{name}: rmse {np.sqrt(np.mean(residual**2)):.4f}, mean absolute error "
                    f"{np.abs(residual).mean():.4f}, over {int(known.sum())} rows with a value"
                )
    return lines


def predict_table(run: SavedRun, table: Path, out: Path, wanted: str = "") -> None:
    """Write the predictions for a table, after the columns of it that `wanted` names between commas."""
    if run.table is None:
        raise InputError(
            f"run {run.folder} was not trained on a table; cmixup.load_run(folder).predict(inputs) takes arrays"
        )
    if out.exists() and out.samefile(table):
        raise InputError(f"out must be another file than the table, got {out}")
    parts = wanted.split(",")
    joined = [",".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1)]
    frame = read_new(table, run, [" ".join(name.split()) for name in joined])
    ids = [column_named(name, list(frame)) for name in split_names(wanted, lambda name: name in frame)]
    for name in ids:
        if name not in frame:
            raise InputError(f"id {name!r} is no column of {table}{nearest(name, list(frame))}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        predicted = run.predict(frame, source=str(table))
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    kept = pd.concat([frame[[name for name in ids if name not in predicted]].map(plain_cell), predicted], axis=1)
    kept = kept.rename(columns=plain_cell)
    write_atomically(out, kept.to_csv(index=False, lineterminator="\n"))
    print(f"{len(predicted)} rows: {run.table.labels} -> {out}")
    for line in error_lines(frame, predicted):
        print(line)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("run",))
        if "run" not in given:
            raise InputError("run must name the folder of a finished run: run=outputs/runs/.../seed=0")
        if "table" not in given:
            raise InputError("table must name a file to predict: table=new.csv")
        run = load_run(given.path("run"), trust=given.switch("trust"))
        out = given.path("out") if "out" in given else Path("predictions.csv")
        predict_table(run, given.path("table"), out, given.get("id", ""))


if __name__ == "__main__":
    main()
