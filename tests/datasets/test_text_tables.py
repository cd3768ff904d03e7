"""Files of own tables: what is read by which rule, and the one line that says what cannot be."""

import gzip
import io
import os
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.errors import InputError
from cmixup.files import PREPROCESSING
from cmixup.tables.columns import as_numbers
from cmixup.tables.preprocessing import TablePreprocessing
from datasets.common.table.reading import Format, read_table
from datasets.csv import Csv


def table(folder: Path, content: str | bytes, text: tuple[str, ...] = (), **form: object) -> pd.DataFrame:
    path = folder / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path, Format(**form), text)  # type: ignore[arg-type]


PLAIN = pd.DataFrame({"price": [1.5, 2.25], "size": [10, 20], "fuel": ["gas", "oil"]}, index=[1, 2])


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ("price,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {}), ("\ufeffprice,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {}),
        ("\r\nprice,size,fuel\r\n1.5,10,gas\r\n\r\n2.25,20,oil", {}),
        ("price;size;fuel\n1,5;10;gas\n2,25;20;oil\n", {}), ("price\tsize\tfuel\n1,5\t10\tgas\n2,25\t20\toil\n", {}),
        ("price|size|fuel\n1.5|10|gas\n2.25|20|oil\n", {}), ('"price", size ,fuel\n"1.5",10, gas\n2.25,"20",oil\n', {}),
        ('price;size;fuel\n"1,5";10;gas\n2,25;20;oil\n', {"decimal": "comma", "separator": "semicolon"}),
        ('price,size,fuel\n"1,5",10,gas\n"2,25",20,oil\n', {"decimal": ",", "separator": ","}),
        ("price,size,fuel\n1.5,10,gas\n2.25,20,oil\n".encode("utf-16"), {"encoding": "utf-16"}),
    ],
)  # fmt: skip
def test_one_table_in_many_forms(content: str | bytes, form: dict[str, str], tmp_path: Path) -> None:
    pd.testing.assert_frame_equal(table(tmp_path, content, **form), PLAIN)


def test_the_header_gives_the_separator_outside_its_quotes(tmp_path: Path) -> None:
    assert list(table(tmp_path, '"a, b, c";"d, e"\n1;2\n')) == ["a, b, c", "d, e"]
    assert list(table(tmp_path, "a, m2;b\n1;2\n")) == ["a, m2", "b"]  # a tie: the semicolon comes first
    assert list(table(tmp_path, "alone\n1\n")) == ["alone"]


def test_the_comma_is_a_decimal_sign_only_where_no_column_has_points(tmp_path: Path) -> None:
    both = table(tmp_path, "a;b\n1,5;2.5\n3,5;4.5\n")
    assert both["a"].tolist() == ["1,5", "3,5"]
    assert both["b"].tolist() == [2.5, 4.5]
    words = table(tmp_path, "a;b\n1,5;x, y\n3;z\n")
    assert words["a"].tolist() == [1.5, 3.0]


def test_quotes_hold_line_breaks_and_rows_are_counted_without_blank_lines(tmp_path: Path) -> None:
    read = table(tmp_path, 'a,"size\n(m2)"\n"x\ny",1\n\n"p ""q""",2\n')
    assert list(read) == ["a", "size (m2)"]
    assert read["a"].tolist() == ["x\ny", 'p "q"']
    assert read.index.tolist() == [1, 2]


def test_what_is_unknown_and_what_is_text(tmp_path: Path) -> None:
    content = "zip,a,b,c\n007,NA,1,x\n010,2,?,\n012,,3,NULL\n013,-9 \n"
    read = table(tmp_path, content, ("zip", "absent"), missing=("-9",))
    assert read["zip"].tolist() == ["007", "010", "012", "013"]
    np.testing.assert_array_equal(read["a"], [np.nan, 2, np.nan, np.nan])
    np.testing.assert_array_equal(read["b"], [1, np.nan, 3, np.nan])  # the last row is short
    assert read["c"].isna().tolist() == [False, True, True, True]
    assert table(tmp_path, "a,b\n0,False\n1,True\n2,\n", missing=("0",))["b"].tolist()[:2] == [False, True]


def tarred(content: bytes) -> bytes:
    with tarfile.open(fileobj=(out := io.BytesIO()), mode="w") as archive:
        archive.addfile(tarfile.TarInfo("t.csv"), io.BytesIO(content))
    return out.getvalue()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv is empty"), ("\ufeff\n \n", "t.csv is empty"), ("a,b\n", "t.csv has a header and no rows"),
        ("a,b, a\n1,2,3\n", "t.csv, header: column 'a' is there twice, as column 1 and column 3"),
        ("a,b\n1,2\n\n3,4,5\n", "t.csv, row 2: 3 cells, but the header names 2 columns"),
        ("a,b\n1,2,3\n4,5,6\n", "t.csv, row 1: 3 cells, but the header names 2 columns"),
        ('a,b\n1,2\n3,"4\n5,6\n', "t.csv, row 2: a quote is opened and not closed"),
        ('a,"b\n1,2\n', "t.csv, header: a quote is opened and not closed"),
        (b"a,b\n1,x\n2,\xe9t\xe9\n", "t.csv, row 2, column 'b': byte 0xe9 is not utf-8; encoding= names another"),
        (b"a;b\n1;x\n2;\xe9t\xe9\n", "t.csv, row 2, column 'b': byte 0xe9 is not utf-8"),
        (b"\xe9,b\n1,x\n", "t.csv, header: byte 0xe9 is not utf-8"),
        (b"PAR1\xe0\x8b" + bytes(range(128, 256)) + b"PAR1", "is a Parquet file"),
        (b"PK\x03\x04 and no more", "is an Excel file"), (b"\x89HDF\r\n", "is an HDF5 file; what can be read is text"),
        (b"SQLite format 3\0", "is an SQLite data base"), (b'[{"a":1}]', "is a JSON file"),
        (b'{"a":1}\n{"a":2}\n', "is a JSON file"), (b'{\n "a":{\n  "0":1}}', "is a JSON file"),
        (b"\x72\x02\x01\x00" + bytes(80), "is a Stata file"), (b"<stata_dta><header>", "is a Stata file"),
        (b"CDF\x01" + bytes(4), "is a netCDF file; what can be read is text .CSV., Parquet, Feather and Excel"),
        (gzip.compress(b' [\n{"a":1}]', mtime=0), "is a JSON file"), (b"\xef\xbb\xbf[[1, 2]]", "is a JSON file"),
        (gzip.compress(tarred(b"a\n1\n"), mtime=0), "is a tar archive: unpack it"), (tarred(b""), "is a tar archive"),
        (gzip.compress(gzip.compress(b"a,b\n1,2\n", mtime=0), mtime=0), "is a packed file that is packed: unpack it"),
        (gzip.compress(b"PAR1\xe0", mtime=0), "is a Parquet file that is packed: unpack it"),
        (b"Obj\x01\0\x02", "is no text, or of another encoding, such as encoding=utf-16"),
        ("a b c\n1 2 3\n", r"t.csv, header: blanks separate columns, it seems.* sep=r'\\s\+'\).to_csv\('new.csv'"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv, header: byte 0xff is not utf-8; .* such as cp1252 or utf-16"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], r"t.csv cannot be unpacked \(gzip\): Compressed file ended"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_one_line(content: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        table(tmp_path, content)
    assert "\n" not in str(caught.value)


COMMENTS = "# exported by hand, 2024\n\n# units: CHF\n"


@pytest.mark.parametrize(
    ("content", "form", "line"),
    [
        (COMMENTS + "price,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {},
         "the header is line 4, 'price,size,fuel'; dataset.skip="),
        ("# a, b, c\nprice,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {}, "the header is line 2, "),
        ("Exported by hand\n\nprice,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {"skip": 1}, ""),
        ("# made\nprice;size;fuel\n1,5;10;gas\n2,25;20;oil\n", {}, "the header is line 2, "),
    ],
)  # fmt: skip
def test_lines_before_the_header(content: str, form: dict[str, Any], line: str, tmp_path: Path) -> None:
    read = table(tmp_path, content, **form)
    pd.testing.assert_frame_equal(read, PLAIN)
    assert read.attrs.get("header", "").startswith(line)
    assert bool(line) == ("header" in read.attrs)


def test_a_header_that_begins_with_the_sign_of_comments(tmp_path: Path) -> None:
    read = table(tmp_path, "# made by hand\n#price,size,fuel\n1.5,10,gas\n2.25,20,oil\n")
    assert list(read) == ["#price", "size", "fuel"]
    assert read.attrs["header"].startswith("the header is line 2, '#price,size,fuel'; dataset.skip=")
    with pytest.raises(
        InputError, match=r"row 1: 3 cells, but .* 1 columns \('Exported by hand'\); dataset.skip= says"
    ):
        table(tmp_path, "Exported by hand\nprice,size,fuel\n1.5,10,gas\n2.25,20,oil\n")
    with pytest.raises(InputError, match="skip must be auto or a number of lines, 0 or more, got -1"):
        Format(skip=-1)


def test_archives_of_one_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "t.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("t.csv", TEXT)
    pd.testing.assert_frame_equal(read_table(path, Format()), PLAIN)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("u.csv", TEXT)
    with pytest.raises(InputError, match="is an archive of 2 files: unpack it and name one"):
        read_table(path, Format())


TEXT = b"price;size;fuel\n1,5;10;gas\n2,25;20;oil\n"


@pytest.mark.parametrize("module", ["gzip", "bz2", "lzma", "zstandard"])
def test_packed_files_are_read_whatever_their_name(module: str, tmp_path: Path) -> None:
    packer = pytest.importorskip(module)
    pd.testing.assert_frame_equal(table(tmp_path, packer.compress(TEXT)), PLAIN)
    with pytest.raises(InputError, match=r"row 1, column 'fuel': byte 0xe9 is not utf-8; encoding= names another"):
        table(tmp_path, packer.compress(TEXT.replace(b"gas", b"\xe9")))


def test_binary_tables_are_read_by_the_same_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    frame = pd.DataFrame({"day": pd.date_range("2024", periods=90), "x": [f"{k}.{k}{k}1" for k in range(1, 10)] * 10})
    monkeypatch.setattr(pd, "read_parquet", lambda _: frame.assign(y=range(90)))
    dataset = Csv(str(tmp_path / "t.parquet"), target="y", thousands="point", scaling="none")
    assert as_numbers(dataset.table.features["x"], dataset.table.forms["x"])[0][0] == 1111
    monkeypatch.setattr(pd, "read_parquet", lambda _: frame.set_index("day").rename_axis(None))
    assert list(read_table(tmp_path / "t.parquet", Format())) == ["index", "x"]
    monkeypatch.setattr(pd, "read_parquet", lambda _: pd.DataFrame({"x": ["1.234", None, "12.345"]}))
    line = "'1.234' is taken for 1.234; dataset.thousands=point takes it for 1234"
    assert read_table(tmp_path / "t.parquet", Format()).attrs["doubts"] == {"x": line}
    assert read_table(tmp_path / "t.parquet", Format(), ["x"]).attrs["doubts"] == {}
    monkeypatch.setattr(pd, "read_parquet", lambda _: frame.set_index("day", drop=False))
    with pytest.raises(InputError, match="column 'day' is there twice"):
        read_table(tmp_path / "t.parquet", Format())


@pytest.mark.parametrize(
    ("name", "package"), [("to_parquet", "pyarrow"), ("to_feather", "pyarrow"), ("to_excel", "openpyxl")]
)
def test_tables_of_other_programs_are_read_with_their_types(name: str, package: str, tmp_path: Path) -> None:
    pytest.importorskip(package)
    frame = PLAIN.reset_index(drop=True).assign(
        day=pd.to_datetime(["2020-01-01", "2020-01-02"]), flag=[True, False], code=[-9.0, 1.0]
    )
    getattr(frame, name)(tmp_path / "t", **({"index": False, "engine": "openpyxl"} if package == "openpyxl" else {}))
    read = read_table(tmp_path / "t", Format(missing=("-9",)))
    pd.testing.assert_frame_equal(read[["price", "size", "fuel"]], PLAIN, check_dtype=False)
    assert read["code"].isna().tolist() == [True, False]
    many = pd.concat([frame] * 20, ignore_index=True).assign(
        price=np.arange(40.0), day=pd.date_range("2020-01-01", periods=40)
    )
    getattr(many, name)(tmp_path / "t", **({"index": False, "engine": "openpyxl"} if package == "openpyxl" else {}))
    dataset = Csv(str(tmp_path / "t"), target="price", drop="code", scaling="none")
    data = dataset.load(0)
    made = TablePreprocessing.from_json(data.extras[PREPROCESSING])
    assert made.features == ["size", "fuel=gas", "fuel=oil", "day", "flag"]
    np.testing.assert_array_equal(data.test.x[:, 3], 18262 + data.test.y[:, 0])
    assert "read as days: day (ISO 8601)" in dataset.problems()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "openpyxl", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    for content, package in ((b"PAR1", "pyarrow"), (b"ARROW1", "pyarrow"), (b"\x28\xb5\x2f\xfd", "zstandard")):
        with pytest.raises(InputError, match=package):
            table(tmp_path, content)


@pytest.mark.timeout(20)
def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"path: no such file {tmp_path}/my.csv"):
        read_table(tmp_path / "my.csv", Format())
    with pytest.raises(InputError, match=f"path {tmp_path} is a folder, not a file"):
        read_table(tmp_path, Format())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=f"path {tmp_path}/pipe is a pipe or device, not a file"):
        read_table(tmp_path / "pipe", Format())
