"""A table whose rows are labels of images: which column names them, and which file each row means."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from cmixup.errors import InputError, format_value, nearest, shortened
from cmixup.inputs.images import SUFFIXES, list_images
from cmixup.tables.columns import looks
from datasets.common.table.reading import Format, column_named, read_table

ENOUGH = 0.5  # share of a column's values that are images, if it is to be found


@dataclass(frozen=True)
class ImageTable:
    """A table with an image for each row."""

    frame: pd.DataFrame  # the index numbers the rows from 1
    column: str  # that names images
    files: list[Path | None]  # of the rows
    wrong: dict[int, str]  # what is wrong with a row's image, by the row's place from 0
    unlabelled: int  # images below the folder that no row names


def read_image_table(
    path: Path, folder: Path, column: str = "", text: Sequence[str] = (), form: Format | None = None
) -> ImageTable:
    """Read a table, and find an image below the folder for each row.

    A row names its image by the path below the folder or by the file's name, with or without the ending, in `column`;
    "" finds it, as the one that names most images, at least half of the rows, with their endings if several do.
    Columns `text` stay as written.
    """
    images, form = _spellings(folder), form or Format()
    frame = read_table(path, form, text)
    names = [str(name) for name in frame]
    words = read_table(path, form, names)  # as they are written: 007 stays 007
    if column and (column := column_named(column, names)) not in names:
        raise InputError(f"image {format_value(column)} is no column of {path}{nearest(column, names)}")
    by_column = {name: [_matches(value, images) for value in words[name]] for name in ([column] if column else names)}
    counts = {name: _count(words[name], by_column[name]) for name in by_column}
    best = max(counts, key=counts.__getitem__)
    if sum(map(bool, by_column[best])) < (1 if column else ENOUGH * len(frame)):
        values = {name: words[name].iloc[0] for name in by_column}
        example = next(iter(images.values()))[0].relative_to(folder)
        raise InputError(f"{path}: no column names the images below {folder}, such as {example}; its first row has "
                         f"{shortened([f'{name}={value}' for name, value in values.items()])}")  # fmt: skip
    if others := [name for name in by_column if counts[name] == counts[best] and by_column[name] != by_column[best]]:
        raise InputError(f"{path}: columns {best} and {others[0]} both name images: dataset.image= says which is meant")
    files, wrong, rows = list[Path | None](), dict[int, str](), dict[Path, int]()
    for row, (value, matches) in enumerate(zip(words[best], by_column[best], strict=True)):
        where = f"{path}, row {row + 1}, column {best}: "
        if pd.isna(value):
            wrong[row] = f"{where}no image is named"
        elif not matches:
            wrong[row] = f"{where}there is no image {format_value(value)} below {folder}"
        elif len(matches) > 1:
            paths = shortened(sorted(map(str, matches)), 2)
            wrong[row] = f"{where}{len(matches)} images are called {format_value(value)}: {paths}"
        elif (file := matches[0]) in rows:
            cure = f"frame.groupby({best!r}, as_index=False).mean() makes one row of several"
            wrong[row] = f"{where}{format_value(value)} is the image of row {rows[file] + 1}, too: {cure}"
        else:
            rows[file] = row
        files.append(None if row in wrong else matches[0])
    return ImageTable(frame, best, files, wrong, len({path for paths in images.values() for path in paths} - {*rows}))


def _spellings(folder: Path) -> Mapping[str, list[Path]]:
    """Return the images below a folder by every text that names them, such as `b/c.png`, `b/c`, `c.png` and `c`."""
    images = defaultdict[str, list[Path]](list)
    for path in list_images(folder):
        below = path.relative_to(folder)
        spellings = {*(str(spelled.as_posix()) for spelled in (below, below.with_suffix(""))), path.name, path.stem}
        for text in spellings | {f"{folder.name}/{below.as_posix()}", str(path)}:
            images[looks(text)].append(path)
    for text, paths in [*images.items()]:
        images[_any_case(text)] += paths
    return images


def _matches(value: object, images: Mapping[str, Sequence[Path]]) -> Sequence[Path]:
    value = int(value) if isinstance(value, float) and value.is_integer() else value  # of a column with gaps
    text = looks(str(value)).replace("\\", "/").removeprefix("./")  # macOS writes ü as two characters
    return images.get(text) or images.get(_any_case(text), ())


def _count(values: pd.Series, matches: Sequence[Sequence[Path]]) -> tuple[int, int]:
    """Return how many images a column names alone, and rows with their endings, since numbers may count the rows.

    And how many rows name any.
    """
    ending = values.astype(str).str.strip().str.lower().str.endswith(SUFFIXES)
    with_ending = sum(has_ending for has_ending, files in zip(ending, matches, strict=True) if files)
    return len({files[0] for files in matches if len(files) == 1}) + with_ending, sum(map(bool, matches))


def _any_case(text: str) -> str:
    """Return the common stem of file names whose endings differ in case; it is no name itself."""
    start, _, ending = text.rpartition(".")
    return f"{start}\0{ending.lower()}"
