"""The kind of a table's file, by its first bytes: text, packed or not, or a kind that pandas reads."""

import importlib
import io
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from cmixup.errors import InputError

#: By their first bytes: the modules that unpack files, and readers of pandas with the names of the kinds.
PACKED = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\xfd7zXZ": "lzma", b"\x28\xb5\x2f\xfd": "zstandard"}
BINARY = {b"PAR1": ("read_parquet", "a Parquet file"), b"ARROW1": ("read_feather", "a Feather file"),
          b"FEA1": ("read_feather", "a Feather file"), b"PK\x03\x04": ("read_excel", "an Excel file"),
          b"\xd0\xcf\x11\xe0": ("read_excel", "an old Excel file")}  # fmt: skip
OTHERS = {b"\x89HDF": "an HDF5 file", b"SQLite": "an SQLite data base", b"%PDF": "a PDF", b"<stata": "a Stata file",
          b"$FL2": "an SPSS file", b"\x93NUMPY": "a NumPy array", b"\x80\x04": "a pickle", b"\x80\x05": "a pickle",
          b"RDX": "an R file", b"Rar!": "an archive", b"7z\xbc\xaf": "an archive", b"\x89PNG": "a picture"}  # fmt: skip
#: JSON, also one line for each row; old Stata files, by their release and byte order.
OTHERS |= dict.fromkeys([b"[{", b"[[", b"[\n", b"[\r", b"[ {", b'{"', b"{\n", b"{\r", b"{ "], "a JSON file")
OTHERS |= {b"CDF": "a netCDF file", b"MATLAB": "a MATLAB file", b"\0" * 8: "a SAS file", b"<?xml": "an XML file"}
OTHERS |= dict.fromkeys([b"<html", b"<HTML", b"<!DOC", b"<!doc", b"<table"], "an HTML page")
OTHERS |= {bytes([release, order, 1, 0]): "a Stata file" for release in range(105, 116) for order in (1, 2)}
Kind = TypeVar("Kind")


def by_start(start: bytes, kinds: Mapping[bytes, Kind]) -> Kind | None:
    """Return the value whose key begins a file, whose first bytes are given; None if no key does."""
    return next((kind for magic, kind in kinds.items() if start.startswith(magic)), None)


def packing(path: Path) -> str | None:
    """Return the module that unpacks a file, None if it is not packed; a workbook is an archive that pandas reads."""
    if not zipfile.is_zipfile(path):
        with path.open("rb") as stream:
            return by_start(stream.read(8), PACKED)
    with zipfile.ZipFile(path) as archive:
        return None if any(name.startswith("xl/") for name in archive.namelist()) else "zipfile"


def _unpacked(path: Path, module: str) -> bytes:
    """Return the content of a packed file, or of the one file of an archive."""
    if module == "zipfile":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if not name.startswith("__MACOSX") and name[-1] != "/"]
            if len(names) != 1:
                raise InputError(f"path {path} is an archive of {len(names)} files: unpack it and name one")
            return archive.read(names[0])
    try:
        with importlib.import_module(module).open(path, "rb") as stream:
            return bytes(stream.read())
    except ImportError:
        raise InputError(f"path {path} is packed by zstd, which needs {module}: pip install {module}") from None


def open_file(path: Path, codec: str = "", errors: str = "strict") -> Any:
    """Open a file, packed or not, as text of a codec, or as bytes where none is given."""
    module = packing(path)
    stream: Any = io.BytesIO(_unpacked(path, module)) if module else path.open("rb")
    return io.TextIOWrapper(stream, codec, errors, newline="") if codec else stream


def read_binary(path: Path, encoding: str, skip: str | int) -> pd.DataFrame | None:
    """Return the table of a file that pandas reads, whose columns have types of their own; None of text.

    In a sheet of Excel the header stands below `skip` lines, and text stays text, which pandas makes numbers of.
    """
    with open_file(path) as stream:
        start = stream.read(300)
    kind, title = by_start(start, BINARY), by_start(start.removeprefix(b"\xef\xbb\xbf").lstrip(), OTHERS)
    if start[257:262] == b"ustar":
        title = "a tar archive: unpack it"
    elif packing(path) and (kind or by_start(start, PACKED)):
        title = f"{kind[1] if kind else 'a packed file'} that is packed: unpack it"
    elif not kind and b"\0" in start and not re.match(b"\xff\xfe|\xfe\xff", start) and encoding.lower()[:5] == "utf-8":
        title = title or "no text, or of another encoding, such as encoding=utf-16"
    if title:
        raise InputError(
            f"path {path} is {title}; what can be read is text (CSV), Parquet, Feather and Excel, which pandas writes"
        )
    if not kind:
        return None
    reader, title = kind
    options = {"skiprows": 0 if skip == "auto" else int(skip), "dtype": object} if reader == "read_excel" else {}
    try:
        frame: pd.DataFrame = getattr(pd, reader)(path, **options).infer_objects()
    except ImportError as error:
        package = "pyarrow" if reader != "read_excel" else "xlrd" if "old" in title else "openpyxl"
        raise InputError(f"path {path} is {title}, which needs {package}: pip install {package}") from error
    except Exception as error:  # a damaged file can raise anything
        raise InputError(f"path {path} is {title} that cannot be read: {' '.join(str(error).split())[:200]}") from None
    has_index = frame.index.names != [None] or isinstance(frame.index, pd.DatetimeIndex)
    return frame.reset_index(allow_duplicates=True) if has_index else frame  # a name that is there twice is refused
