"""Tables in files as frames, by rules that leave nothing to chance: text (CSV), packed or not, and what pandas reads.

- Rows are counted from 1 below the header; blank lines are none. Errors name file, row and column.
- `skip=auto` passes over lines before the header that begin with #; the header is the first other line that is not
  blank, or the last one with # if it has as many cells as the line below it, and one of these is a number. Blanks and
  line breaks in names become one blank, and none around them; a column without a name is called "column 3" by place;
  two of one name are refused.
- `separator=auto` takes the one of tab, semicolon, bar and comma that stands most often in the header outside quotes,
  the first of these on a tie.
- `decimal=auto` takes the comma if the separator is another, some column of the first 1,000 rows holds numbers only
  when it is read so, and none only when it is read with a point, those apart that stay text. Else it takes the point.
  A column may be written otherwise: `cmixup.tables.written` says how such text becomes numbers.
- `thousands=auto` takes 1.234 for a number with decimals, and notes the doubt in the frame's `attrs` where all values
  of a column could have groups of thousands.
- A cell that holds nothing or one of `MISSING` is unknown, and so are cells that a short row lacks. A row with more
  cells than the header is refused.
- A byte-order mark is skipped, and line breaks and separators inside double quotes belong to their cell.
- Files packed by gzip, bzip2, xz, zstd or zip (one file) are unpacked. Parquet, Feather and Excel files (the first
  sheet) are read by pandas.
"""

import csv
import io
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cmixup.errors import InputError, check_choice, check_count, check_flag, format_value, nearest
from cmixup.tables.columns import MISSING, alike
from cmixup.tables.written import THOUSANDS
from datasets.common.table.files import open_file, packing, read_binary

#: By name, in order of preference where the header holds several as often.
SEPARATORS = {"tab": "\t", "semicolon": ";", "bar": "|", "comma": ","}
DECIMALS = {"point": ".", "comma": ","}
CURE = "encoding= names another, such as cp1252 or utf-16"
SKIP = "dataset.skip= says how many lines are before it"
SAMPLE_ROWS = 1000
LONGEST_NAME = 1000  # characters of a column's name
NUMBER = r"[+-]?(?:\d+{0}?\d*|{0}\d+)(?:[eE][+-]?\d+)?"


@dataclass(frozen=True)
class Format:
    """How a text file holds a table."""

    separator: str = "auto"  # or one of `SEPARATORS` by name or as it is
    decimal: str = "auto"  # or one of `DECIMALS` by name or as it is
    encoding: str = "utf-8"  # a codec of Python, such as cp1252
    missing: tuple[str, ...] = ()  # texts that stand for an unknown value beside `MISSING`
    thousands: str = "auto"  # none, or what groups thousands: one of `THOUSANDS` by name
    skip: str | int = "auto"  # or how many lines stand before the header
    dayfirst: bool | str = "auto"  # or whether 02/01/2010 is in January, where all dates of a column read both ways

    def __post_init__(self) -> None:
        check_choice("thousands", self.thousands, ("auto", "none", *THOUSANDS))
        if self.skip != "auto":
            check_count("skip", self.skip, what="auto or a number of lines")  # type: ignore[arg-type]
        if self.dayfirst != "auto":
            check_flag("dayfirst", self.dayfirst)  # type: ignore[arg-type]
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

    @property
    def point(self) -> str:
        """What begins decimals, or auto; of comma and point the one that does not group thousands."""
        decimal = {"comma": ".", "point": ","}.get(self.thousands, "auto") if self.decimal == "auto" else self.decimal
        return DECIMALS.get(decimal, decimal)


def read_table(path: Path, form: Format, text: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table in a file, with its rows' numbers as index: numbers where a whole column holds them, else text.

    The columns `text` are read as text even if they hold numbers; names that are not there are passed over.

    Raises:
        InputError: nothing there, no table, or a cell that cannot be read; the line names file, row and column.
    """
    if not path.exists():
        raise InputError(f"path: no such file {path}")
    if not path.is_file():  # a pipe would wait for ever
        raise InputError(f"path {path} is a {'folder' if path.is_dir() else 'pipe or device'}, not a file")
    packed = packing(path)
    try:
        frame = read_binary(path, form.encoding, form.skip)
        frame = _read_text(path, form, text) if frame is None else _with_signs(frame, form, path, text)
    except UnicodeDecodeError as error:
        raise InputError(_bad_byte(path, form, error)) from None
    except UnicodeError as error:  # such as UTF-16 without its mark
        raise InputError(f"{path} is not {form.encoding}: {error}; {CURE}") from None
    except csv.Error as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except Exception as error:  # a damaged file can raise anything
        if not packed or isinstance(error, InputError):
            raise
        raise InputError(f"{path} cannot be unpacked ({packed}): {error}") from None
    if not len(frame):
        raise InputError(f"{path} has a header and no rows")
    first = str(frame.iloc[0, 0])
    if frame.shape[1] == 1 and " " in str(frame.columns[0]) and re.search(r"\S +\S", first) and re.search(r"\d", first):
        cure = f"pandas.read_csv({str(path)!r}, sep=r'\\s+').to_csv('new.csv', index=False) writes commas"
        raise InputError(f"{path}, header: blanks separate columns, it seems, which nothing else does; {cure}")
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    frame.attrs["dayfirst"] = form.dayfirst
    return _mask_missing(frame, form.missing)


def column_named(name: str, known: Sequence[str]) -> str:
    """Return the column that a name means: as headers are read, and with quotes or brackets that may be its own."""
    joined = " ".join(name.split())
    unquoted = joined[1:-1] if joined[:1] + joined[-1:] in ("[]", "''", '""') else name
    spellings = (name, joined, f"[{joined}]", f"'{joined}'", f'"{joined}"', unquoted, alike(joined, known))
    return next((spelling for spelling in spellings if spelling in known), name)


def columns_named(
    options: Mapping[str, Sequence[str]], known: Sequence[str], source: str | Path
) -> dict[str, tuple[str, ...]]:
    """Return the columns that options name, by option, as the table `source` spells them; they must be there."""
    chosen = {option: tuple(column_named(name, known) for name in names) for option, names in options.items()}
    for option, name in ((option, name) for option, names in chosen.items() for name in names):
        if name not in known:
            hint = f"; of several make a list, dataset.{option}=[a,b]" if "," in name else ""
            raise InputError(f"{option} {format_value(name)} is no column of {source}{nearest(name, known)}{hint}")
    return chosen


def _with_signs(frame: pd.DataFrame, form: Format, path: Path, text: Sequence[str]) -> pd.DataFrame:
    """Return a frame of a binary file with checked names, and the signs that texts in it are read by."""
    frame = frame.set_axis(_check_names([str(name) for name in frame], path), axis=1)
    frame.attrs = {"decimal": form.point.replace("auto", "."), "thousands": form.thousands}
    if form.thousands == "auto":
        as_text = {column_named(name, list(frame)) for name in text}
        texts = [c for c in frame if c not in as_text and pd.api.types.infer_dtype(frame[c]) == "string"]
        frame.attrs["doubts"] = _doubts(frame[texts], frame.attrs["decimal"])
    return frame


def _mask_missing(frame: pd.DataFrame, missing: Sequence[str]) -> pd.DataFrame:
    """Return a frame without the values that stand for unknown ones, also with blanks around them."""
    numbers = [float(text) for text in missing if re.fullmatch(NUMBER.format(r"\."), text)]
    for name in frame.select_dtypes(exclude="bool") if missing else ():  # of truth values False is 0
        stripped = column = frame[name]
        if column.dtype.kind == "O":
            stripped = column.map(lambda value: str(value).strip() if isinstance(value, str | bool) else value)
        frame[name] = column.mask(stripped.isin([*missing, *numbers]))
    return frame


def _read_text(path: Path, form: Format, text: Sequence[str]) -> pd.DataFrame:
    with open_file(path, form.codec) as stream:
        skip, record, header = _find_header(stream, path, form)
    separator = _pick_separator(record, form.separator)
    names = _check_names(next(csv.reader(io.StringIO(record), delimiter=separator, skipinitialspace=True)), path)
    options: dict[str, Any] = {
        "sep": separator, "encoding": form.codec, "names": names, "header": 0, "index_col": False, "skiprows": skip,
        "keep_default_na": False, "na_values": [*MISSING, *form.missing], "skipinitialspace": True,
    }  # fmt: skip
    thousands_sign, decimal = THOUSANDS.get(form.thousands, ""), form.point
    as_text = list({column_named(name, names) for name in text} & {*names})
    if decimal == "auto":
        sample = _parse(path, form, options | {"nrows": SAMPLE_ROWS}, names) if separator != "," else pd.DataFrame()
        decimal = _pick_decimal(sample.drop(columns=as_text, errors="ignore"))
    frame = _parse(path, form, options | {"decimal": decimal}, names if thousands_sign else as_text)
    frame.attrs |= {"decimal": decimal, "thousands": form.thousands} | header
    if form.thousands == "auto" and (doubtful := [name for name in frame if _may_be_grouped(frame[name])]):
        sample = _parse(path, form, options | {"nrows": SAMPLE_ROWS, "usecols": doubtful}, doubtful)
        frame.attrs["doubts"] = _doubts(sample, decimal)
    return frame


def _may_be_grouped(column: pd.Series) -> bool:
    """Return whether numbers with decimals could be whole ones of up to six digits whose thousands are grouped."""
    known = column.dropna().abs() if pd.api.types.is_float_dtype(column) else column[:0]
    return bool(
        len(known)
        and ((known == 0) | known.between(1, 1000, "left")).all()
        and np.isclose(known * 1000 % 1, [[0], [1]]).any(0).all()
    )


def _doubts(sample: pd.DataFrame, decimal: str) -> dict[str, str]:
    """Return a line, by the columns that it is on, if the texts of some columns read otherwise with thousands."""
    grouped = {}
    for name in sample:
        words = sample[name].dropna().str.strip()
        signed = words.str.contains(decimal, regex=False)  # whole numbers below 1,000 have no sign
        if signed.any() and words.str.fullmatch(rf"[+-]?(?:0|[1-9]\d{{0,2}}(?:{re.escape(decimal)}\d{{3}})?)").all():
            grouped[str(name)] = words[signed].iloc[0]
    if not grouped:
        return {}
    word, option = next(iter(grouped.values())), "point" if decimal == "." else "comma"
    integer = word.replace(decimal, "")
    line = f"{word!r} is taken for {word.replace(decimal, '.')}; dataset.thousands={option} takes it for {integer}"
    return {", ".join(grouped): line}


def _parse(path: Path, form: Format, options: dict[str, Any], as_text: Sequence[str]) -> pd.DataFrame:
    """Let pandas parse the file, and say its complaints in one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)  # it drops cells beyond the header
            with open_file(path) as stream:
                return pd.read_csv(stream, dtype=dict.fromkeys(as_text, str), low_memory=False, **options)
    except pd.errors.EmptyDataError:
        raise InputError(f"{path} is empty") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        if isinstance(error, pd.errors.ParserWarning) or "saw" in str(error):
            raise InputError(_long_row(path, form)) from None
        if match := re.search(r"EOF inside string starting at row (\d+)", str(error)):
            raise InputError(f"{path}, row {match[1]}: a quote is opened and not closed") from None
        raise InputError(f"{path} cannot be read: {' '.join(str(error).split())}") from None


def _find_header(stream: Any, path: Path, form: Format) -> tuple[int, str, dict[str, str]]:
    """Return how many lines stand before the header, the header's record, and a line on it if some are comments."""
    lines = list[str]()
    for line in stream:
        lines.append(line)
        if line.strip() and not (form.skip == "auto" and line.startswith("#")):
            break
    comments = [k for k, line in enumerate(lines) if line.startswith("#")] if form.skip == "auto" else []
    skip = 0 if form.skip == "auto" else int(form.skip)
    if comments:
        cells = [re.split(r"[\t;|,]", lines[k]) for k in (comments[-1], -1)]
        numbers = any(re.fullmatch(NUMBER.format("[.,]"), cell.strip().strip('"')) for cell in cells[1])
        in_comment = len(lines) - 1 in comments or (len(cells[0]) == len(cells[1]) > 1 and numbers)
        skip = comments[-1] if in_comment else len(lines) - 1
    stream.seek(0)
    record, number = "", 0
    for number, line in enumerate(stream, start=1):
        if number <= skip or (not record and not line.strip()):
            continue
        record += line
        if record.count('"') % 2 == 0:
            break
    else:
        if not record:
            raise InputError(f"{path} is empty")
        raise InputError(f"{path}, header: a quote is opened and not closed")
    note = f"the header is line {number}, {format_value(record.strip())}"
    return skip, record, {"header": f"{note}; {SKIP}"} if comments else {}


def _pick_separator(record: str, option: str) -> str:
    if option != "auto":
        return SEPARATORS.get(option, option)
    unquoted = re.sub(r'"[^"]*"', "", record)
    return max(SEPARATORS.values(), key=unquoted.count) if any(map(unquoted.count, SEPARATORS.values())) else ","


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
    has_numbers = dict.fromkeys(DECIMALS.values(), False)
    for name in sample:
        known = sample[name].dropna().str.strip()
        for sign in has_numbers:
            holds = known.str.contains(sign, regex=False).any()
            has_numbers[sign] |= bool(holds and known.str.fullmatch(NUMBER.format(re.escape(sign))).all())
    return "," if has_numbers[","] and not has_numbers["."] else "."


def _records(path: Path, form: Format) -> Iterator[tuple[int, list[str], list[str]]]:
    """Yield the number of each row of cells, 0 for the header, the header's cells and its own; blank lines are none.

    Bytes that are no text become surrogates.
    """
    with open_file(path, form.codec, "surrogateescape") as stream:
        skip, record, _ = _find_header(stream, path, form)
        separator = _pick_separator(record, form.separator)
        stream.seek(0)
        for _ in range(skip):
            stream.readline()
        filled = (cells for cells in csv.reader(stream, delimiter=separator, skipinitialspace=True) if cells)
        header = next(filled)
        yield 0, header, header
        yield from ((row, header, cells) for row, cells in enumerate(filled, start=1))


def _long_row(path: Path, form: Format) -> str:
    for row, header, cells in _records(path, form):
        if len(cells) > len(header):
            what = f"{path}, row {row}: {len(cells)} cells, but the header names {len(header)} columns"
            return f"{what} ({', '.join(header)[:80]!r}); {SKIP}"
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
