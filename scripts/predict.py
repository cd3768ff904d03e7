"""Predict new rows with a finished run, by the word that it was trained with.

A column for every target and a row for every new row are written. Columns are found by name; others are ignored. Where
the new data have the targets, too, the error is printed.

Example: python -m scripts.predict run=outputs/runs/.../seed=0 table=new.csv id=house out=predictions.csv
"""

import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

from cmixup.data import in_threads
from cmixup.errors import InputError, check_choice, nearest
from cmixup.files import ARRAYS_FORMAT, IMAGES_FORMAT, SERIES_FORMAT, TABLE_FORMAT, checked, write_atomically
from cmixup.inputs.images import read_image
from cmixup.saved_run import SavedRun, load_run
from cmixup.tables.columns import as_numbers, read_column
from cmixup.tables.series import FILLS, SeriesPreprocessing
from cmixup.tables.written import unit_of
from datasets.arrays import read_arrays
from datasets.common.table.image_table import read_image_table
from datasets.common.table.reading import Format, column_named, read_table
from datasets.common.table.user import as_names
from scripts.config.arguments import Args, parse_args
from scripts.config.words import hydra_words, parse_word
from scripts.driver.cli import user_errors

KEYS = {
    "run": "folder of a finished run, such as outputs/runs/.../seed=0",
    "table": "text file with a header, whose rows are predicted; of a run on a table",
    "images": "folder of images, or one; of a run on images",
    "arrays": "file with an array x, .npz, .npy or .h5; of a run on arrays",
    "x": "the same, of a run on x= and y=",
    "labels": "table with a row for each of the images, whose columns id= names; it may have the targets",
    "series": "table whose rows end where the forecast begins; of a run on series",
    "id": "columns between commas that go into the predictions",
    "out": "file of the predictions; default predictions.csv",
    "dataset.": "how the new file is written, if not as the run's own: encoding, separator, decimal, thousands, skip, "
    "missing; and for series fill, for images skip_broken; with or without the word dataset",
    "trust": "1 runs code outside this project that the run names, such as a model of your own; default 0",
}


FORMAT = ("encoding", "separator", "decimal", "thousands", "skip", "missing")
READING = (*FORMAT, "fill", "skip_broken")  # options of datasets that say how new data are read
LITERAL = re.compile(r"\[.*\]|true|false|\d+")  # of a command line; other values are texts
FILE = "file"  # column of the predictions of images
#: The words of new data, and the format of the `preprocessing.json` of runs that take them.
KINDS = {
    "table": TABLE_FORMAT,
    "images": IMAGES_FORMAT,
    "arrays": ARRAYS_FORMAT,
    "x": ARRAYS_FORMAT,
    "series": SERIES_FORMAT,
}


def run_options(run: SavedRun, args: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a run's dataset, with those that are given for the new data."""
    config = yaml.safe_load(checked(run.folder / "config.yaml").read_text())["dataset"]
    for key, value in args.items():
        name = key.removeprefix("dataset.")
        if name in config and name in READING:
            (word,) = hydra_words([f"dataset.{name}={value}"])
            config[name] = parse_word(word).value() if LITERAL.fullmatch(value) else value
        elif name != key or name in READING:
            named = ", ".join(f"dataset.{key}" for key in READING if key in config) or "none for this run"
            raise InputError(f"option {key} is none of those that say how new data are read: {named}")
    return config


def format_of(options: Mapping[str, Any]) -> Format:
    """Return how a file of new rows is written: decimal sign, encoding, unknown values."""
    named = {key: options[key] for key in FORMAT if key in options and key != "missing"}
    return Format(**named, missing=as_names(options.get("missing")))


def read_new_table(path: Path, run: SavedRun, text: Sequence[str] = (), args: Mapping[str, str] = {}) -> pd.DataFrame:
    """Read a table as the run read its own, but for what is given; columns `text` stay text."""
    if not path.is_file():
        raise InputError(f"new rows must be in a text file with a header, got {path}: no such file")
    return read_table(path, format_of(run_options(run, args)), (*text, *getattr(run.preprocessing, "text", ())))


def error_lines(frame: pd.DataFrame, predicted: pd.DataFrame, units: Sequence[str] = ()) -> list[str]:
    """Return a line for each target that the table has, too, with the error on its rows."""
    lines = []
    for name, unit in zip(predicted, units or [""] * predicted.shape[1], strict=True):
        form = read_column(frame[name]).form if name in frame else ""
        if unit and (here := unit_of(form)) and here != unit and {here, unit} != {"day", "days"}:
            lines.append(f"{name}: no error, since it is in {here} here and in {unit} in the run")
        elif name in frame:
            truth, _ = as_numbers(frame[name], form)
            known = np.isfinite(truth)
            residual = truth[known] - predicted[name].to_numpy()[known]
            if known.any():
                lines.append(f"{name}: rmse {np.sqrt(np.mean(residual**2)):.4f}, mean absolute error "
                             f"{np.abs(residual).mean():.4f}, over {int(known.sum())} rows with a value")  # fmt: skip
    return lines


def id_columns(args: Args) -> list[str]:
    """Return the columns that `id` names, which are read as text: 007 stays 007."""
    return [name for part in args.get("id", "").split(",") if (name := " ".join(part.split()))]


def read_images(run: SavedRun, args: Args) -> tuple[pd.DataFrame, list[Path]]:
    """Return a table of images, or of their names below the folder alone, and their files."""
    folder, options, broken = args.path("images"), run_options(run, args), dict[int, str]()
    row_files: list[Path | None]
    if "labels" in args:
        image = str(options.get("image") or "")
        table = read_image_table(args.path("labels"), folder, image, id_columns(args), format_of(options))
        frame, row_files, broken = table.frame, table.files, dict(table.wrong)
        if broken and not options["skip_broken"]:
            raise InputError(f"{broken[min(broken)]} (dataset.skip_broken=true goes on without)")
    else:
        row_files = run.preprocessing.files(folder)
        frame = pd.DataFrame(index=range(len(row_files)))
    if options.get("skip_broken"):
        rows_with_file = [row for row, file in enumerate(row_files) if file]
        reasons = in_threads(lambda row: _why_broken(row_files[row]), rows_with_file)
        broken |= {row: reason for row, reason in zip(rows_with_file, reasons, strict=True) if reason}
    if broken:
        summary = f"{len(broken)} rows have no image that can be used and are left out"
        print(f"warning: {summary}: {broken[min(broken)]}", file=sys.stderr)
    files = [file for row, file in enumerate(row_files) if file and row not in broken]
    frame = frame[[row not in broken for row in range(len(frame))]]
    top = folder if folder.is_dir() else folder.parent
    return frame.assign(**{FILE: [file.relative_to(top).as_posix() for file in files]}), files


def _why_broken(file: Any) -> str:
    """Return why an image cannot be read; nothing if it can."""
    try:
        read_image(file, 1)
    except InputError as error:
        return str(error)
    return ""


def read_new_arrays(run: SavedRun, args: Args) -> tuple[pd.DataFrame, Any]:
    """Return the labels of arrays, if they are there, and the inputs."""
    path = args.path("x" if "x" in args else "arrays")
    arrays = read_arrays(path)
    if "x" not in arrays:
        raise InputError(f"{path} has no array x; there are {', '.join(arrays) or 'none'}")
    frame, targets = pd.DataFrame(index=range(*arrays["x"].shape[:1] or (0,))), run.preprocessing.targets
    if "y" in arrays:
        y = np.asarray(arrays["y"])
        if y.size != len(frame) * len(targets) or y.dtype.kind not in "biuf":
            raise InputError(f"{path}: y must be numbers ({len(frame)}, {len(targets)}) as the labels "
                             f"of the run, got {y.dtype} {y.shape}")  # fmt: skip
        frame = frame.assign(**dict(zip(targets, y.reshape(len(frame), -1).T, strict=True)))
    return frame, arrays["x"]


def read_inputs(word: str, run: SavedRun, args: Args) -> tuple[pd.DataFrame | None, Any]:
    """Return a frame with a row for each prediction, and what `run.predict` takes.

    None instead of a frame stands for the index of the predictions, which has the times of series.
    """
    if word == "images":
        return read_images(run, args)
    if word in ("arrays", "x"):
        return read_new_arrays(run, args)
    rows = read_new_table(args.path(word), run, id_columns(args) if word == "table" else (), args)
    return rows if word == "table" else None, rows


def write_predicted(run: SavedRun, word: str, args: Args) -> None:
    """Write the predictions for new data, after the columns of them that `id` names."""
    preprocessing = run.preprocessing
    if (form := getattr(preprocessing, "format", "")) != KINDS[word]:
        other = next((other for other, its in KINDS.items() if its == form), "")
        advice = f"give {other}=" if other else "cmixup.load_run(folder).predict(inputs) takes arrays"
        raise InputError(f"run {run.folder} was not trained on {word}=; {advice}")
    source, out = args.path(word), args.path("out") if "out" in args else Path("predictions.csv")
    for key in {word, "labels"} & args.keys():
        if out.exists() and args.path(key).exists() and out.samefile(args.path(key)):
            raise InputError(f"out must be another file than {key}, got {out}")
    options = run_options(run, args)
    if isinstance(preprocessing, SeriesPreprocessing):
        run = replace(run, preprocessing=replace(preprocessing, fill=check_choice("fill", options["fill"], FILLS)))
    frame, rows = read_inputs(word, run, args)
    known = [] if frame is None else list(frame)
    ids = [column_named(name, known) for name in id_columns(args)]
    for name in ids:
        if name not in known:
            raise InputError(f"id {name!r} is no column of {args.get('labels', source)}{nearest(name, known)}")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        predicted = run.predict(rows, source=str(source))
    for warning in caught:
        print(f"warning: {warning.message}", file=sys.stderr)
    columns = [FILE] if word == "images" else []
    if frame is None:
        frame = predicted.index.to_frame()
        columns = list(frame)
    predicted = predicted.set_axis(frame.index)
    first = [name for name in dict.fromkeys([*columns, *ids]) if name not in predicted]
    kept = pd.concat([frame[first], predicted], axis=1)
    write_atomically(out, kept.to_csv(index=False, lineterminator="\n"))
    print(f"{len(predicted)} rows: {preprocessing.labels} -> {out}")
    for line in error_lines(frame, predicted, preprocessing.units):
        print(line)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        keys = KEYS | dict.fromkeys(READING, "see dataset.*=")
        args = parse_args(argv, keys, __doc__, names=("run",))
        if "run" not in args:
            raise InputError("run must name the folder of a finished run: run=outputs/runs/.../seed=0")
        words = [word for word in KINDS if word in args]
        if len(words) != 1:
            raise InputError(f"{'=, '.join(KINDS)}= must name new data to predict, such as table=new.csv")
        write_predicted(load_run(args.path("run"), trust=args.switch("trust")), words[0], args)


if __name__ == "__main__":
    main()
