"""Text tables (CSV) as frames, by rules that leave nothing to chance.

- Rows are counted from 1 below the header; blank lines are none. Errors name file, row and column.
- The header is the first line that is not blank. Blanks and line breaks in names become one blank, and none around
  them; a column without a name is called "column 3" by its place; two of one name are refused.
- `separator=auto` takes the one of tab, semicolon, bar and comma that stands most often in the header outside quotes,
  the first of these on a tie.
- `decimal=auto` takes the comma if the separator is another, some column of the first 1,000 rows holds numbers only
  when it is read so, and none only when it is read with a point. Else it takes the point.
- A cell that holds nothing or one of `MISSING` is unknown, and so are cells that a short row lacks. A row with more
  cells than the header is refused.
- A byte-order mark is skipped, and line breaks and separators inside double quotes belong to their cell.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError, check_choice, format_value
from cmixup.tables.columns import MISSING

#: By name, in order of preference where the header holds several as often.
SEPARATORS = {"tab": "\t", "semicolon": ";", "bar": "|", "comma": ","}
DECIMALS = {"point": ".", "comma": ","}
CURE = "encoding= names another, such as cp1252 or utf-16"
SAMPLE_ROWS = 1000
LONGEST_NAME = 1000  # characters of a column's name
NUMBER = r"[+-]?(?:\d+{0}?\d*|{0}\d+)(?:[eE][+-]?\d+)?"


@dataclass(frozen=True)
class Format:
    """How a text file holds a table.

    Args:
        separator: auto, or one of `SEPARATORS` by name or as it is.
        decimal: auto, or one of `DECIMALS` by name or as it is.
        encoding: a codec of Python, such as utf-8 or cp1252.
        missing: texts that stand for an unknown value beside `MISSING`.

    Raises:
        InputError: another separator, decimal sign or encoding.
    """

    separator: str = "auto"
    decimal: str = "auto"
    encoding: str = "utf-8"
    missing: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_choice("separator", self.separator, ("auto", *SEPARATORS, *SEPARATORS.values()))
        check_choice("decimal", self.decimal, ("auto", *DECIMALS, *DECIMALS.values()))
        try:
            "".encode(self.encoding)
        except LookupError:
            raise InputError(f"encoding must be one that Python knows, such as utf-8, got {self.encoding!r}") from None

    @property
    def codec(self) -> str:
        """The encoding; of UTF-8 the variant that skips a byte-order mark."""
        return "utf-8-sig" if self.encoding.lower() in ("utf-8", "utf8") else self.encoding


def read_table(path: Path, form: Format, text: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table in a file, with its rows' numbers as index: numbers where a whole column holds them, else text.

    Args:
        path: the file.
        form: how it holds the table.
        text: columns to be read as text even if they hold numbers; names that are not there are passed over.

    Raises:
        InputError: nothing there, no table, or a cell that cannot be read; the line names file, row and column.
    """
    if not path.exists():
        raise InputError(f"path: no such file {path}")
    if not path.is_file():  # a pipe would wait for ever
        raise InputError(f"path {path} is a {'folder' if path.is_dir() else 'pipe or device'}, not a file")
    try:
        with path.open(encoding=form.codec, newline="") as stream:
            record = _first_record(stream, path)
        separator = _pick_separator(record, form.separator)
        names = _check_names(next(csv.reader(io.StringIO(record), delimiter=separator, skipinitialspace=True)), path)
        options: dict[str, Any] = {
            "sep": separator, "encoding": form.codec, "names": names, "header": 0, "index_col": False,
            "keep_default_na": False, "na_values": [*MISSING, *form.missing], "skipinitialspace": True,
        }  # fmt: skip
        decimal = DECIMALS.get(form.decimal, form.decimal)
        if decimal == "auto":
            decimal = (
                "." if separator == "," else _pick_decimal(_parse(path, form, options | {"nrows": SAMPLE_ROWS}, names))
            )
        frame = _parse(path, form, options | {"decimal": decimal}, [name for name in names if name in text])
    except UnicodeDecodeError as error:
        raise InputError(_bad_byte(path, form, error)) from None
    except UnicodeError as error:  # such as UTF-16 without its mark
        raise InputError(f"{path} is not {form.encoding}: {error}; {CURE}") from None
    except csv.Error as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    if not len(frame):
        raise InputError(f"{path} has a header and no rows")
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    return frame


def column_named(name: str, known: Sequence[str]) -> str:
    """Return the column that a name means: as headers are read, and with quotes or brackets that may be its own."""
    plain = " ".join(name.split())
    spellings = (name, plain, f"[{plain}]", f"'{plain}'", f'"{plain}"', plain[1:-1])
    return next((spelling for spelling in spellings if spelling in known), name)


def _parse(path: Path, form: Format, options: dict[str, Any], as_text: Sequence[str]) -> pd.DataFrame:
    """Let pandas parse the file, and say its complaints in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # it drops cells beyond the header
            return pd.read_csv(path, dtype=dict.fromkeys(as_text, str), low_memory=False, **options)
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty") from None
    except pd.errors.ParserWarning:
        raise InputError(_long_row(path, form)) from None
    except pd.errors.ParserError as error:
        if "saw" in str(error):
            raise InputError(_long_row(path, form)) from None
        if match := re.search(r"EOF inside string starting at row (\d+)", str(error)):
            raise InputError(f"{path}, row {match[1]}: a quote is opened and not closed") from None
        raise InputError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def _first_record(stream: Any, path: Path) -> str:
    """Return the first line that is not blank, with the lines that its quotes go on to."""
    record = ""
    for line in stream:
        if not record and not line.strip():
            continue
        record += line
        if record.count('"') % 2 == 0:
            return record
    if not record:
        raise InputError(f"{path} is empty")
    raise InputError(f"{path}, header: a quote is opened and not closed")


def _pick_separator(record: str, given: str) -> str:
    if given != "auto":
        return SEPARATORS.get(given, given)
    bare = re.sub(r'"[^"]*"', "", record)
    return max(SEPARATORS.values(), key=bare.count) if any(map(bare.count, SEPARATORS.values())) else ","


def _check_names(cells: Sequence[str], path: Path) -> list[str]:
    """Return the columns' names; the header must not hold one twice, nor a whole file in one, as other line ends do."""
    names = [" ".join(cell.split()) or f"column {k}" for k, cell in enumerate(cells, start=1)]
    for k, name in enumerate(names):
        if len(name) > LONGEST_NAME:
            raise InputError(
                f"{path}, header: column {k + 1} has a name of {len(name)} characters: {format_value(name)}"
            )
        if name in names[:k]:
            first = names.index(name) + 1
            raise InputError(
                f"{path}, header: column {format_value(name)} is there twice, as column {first} and column {k + 1}"
            )
    return names


def _pick_decimal(sample: pd.DataFrame) -> str:
    """Return the decimal sign of a sample that was read as text."""
    only = dict.fromkeys(DECIMALS.values(), False)
    for name in sample:
        known = sample[name].dropna().str.strip()
        for sign in only:
            holds = known.str.contains(sign, regex=False).any()
            only[sign] |= bool(holds and known.str.fullmatch(NUMBER.format(re.escape(sign))).all())
    return "," if only[","] and not only["."] else "."


def _records(path: Path, form: Format) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield the number of each row of cells, 0 for the header, the header's cells and its own; blank lines are none.

    Bytes that are no text become surrogates.
    """
    with path.open(encoding=form.codec, errors="surrogateescape", newline="") as stream:
        separator = _pick_separator(_first_record(stream, path), form.separator)
        stream.seek(0)
        filled = (cells for cells in csv.reader(stream, delimiter=separator, skipinitialspace=True) if cells)
        header = next(filled)
        yield 0, header, header
        yield from ((row, header, cells) for row, cells in enumerate(filled, start=1))


def _long_row(path: Path, form: Format) -> str:
    for row, header, cells in _records(path, form):
        if len(cells) > len(header):
            return f"{path}, row {row}: {len(cells)} cells, but the header names {len(header)} columns"
    return f"{path} has rows with more cells than the header names columns"


def _bad_byte(path: Path, form: Format, error: UnicodeDecodeError) -> str:
    """Say where the first byte is that the encoding does not have."""
    try:
        for row, header, cells in _records(path, form):
            for name, cell in zip_longest(header, cells[: len(header)], fillvalue=""):
                if match := re.search("[\udc80-\udcff]", cell):
                    where = f"row {row}, column {format_value(name.strip())}" if row else "header"
                    return f"{path}, {where}: byte 0x{ord(match[0]) - 0xDC00:02x} is not {form.encoding}; {CURE}"
    except (UnicodeError, csv.Error):  # such as half a character of UTF-16
        pass
    return f"{path} is not {form.encoding}: {error.reason}; {CURE}"
