"""Text tables: what is read by which rule, and the one line that says what cannot be."""

import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cmixup.errors import InputError
from datasets.common.table.reading import Format, read_table


def table(folder: Path, content: str | bytes, text: tuple[str, ...] = (), **form: object) -> pd.DataFrame:
    path = folder / "t.csv"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_table(path, Format(**form), text)  # type: ignore[arg-type]


PLAIN = pd.DataFrame({"price": [1.5, 2.25], "size": [10, 20], "fuel": ["gas", "oil"]}, index=[1, 2])


@pytest.mark.parametrize(
    ("content", "form"),
    [
        ("price,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {}),
        ("\ufeffprice,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {}),
        ("\r\nprice,size,fuel\r\n1.5,10,gas\r\n\r\n2.25,20,oil", {}),
        ("price;size;fuel\n1,5;10;gas\n2,25;20;oil\n", {}),
        ("price\tsize\tfuel\n1,5\t10\tgas\n2,25\t20\toil\n", {}),
        ("price|size|fuel\n1.5|10|gas\n2.25|20|oil\n", {}),
        ('"price", size ,fuel\n"1.5",10, gas\n2.25,"20",oil\n', {}),
        ('price;size;fuel\n"1,5";10;gas\n2,25;20;oil\n', {"decimal": "comma", "separator": "semicolon"}),
        ('price,size,fuel\n"1,5",10,gas\n"2,25",20,oil\n', {"decimal": ",", "separator": ","}),
        ("price,size,fuel\n1.5,10,gas\n2.25,20,oil\n".encode("utf-16"), {"encoding": "utf-16"}),
    ],
)  # fmt: skip
def test_one_table_in_many_forms(content: str | bytes, form: dict[str, str], tmp_path: Path) -> None:
    pd.testing.assert_frame_equal(table(tmp_path, content, **form), PLAIN)


def test_the_header_is_asked_for_the_separator_outside_its_quotes(tmp_path: Path) -> None:
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
    found = table(tmp_path, 'a,"size\n(m2)"\n"x\ny",1\n\n"p ""q""",2\n')
    assert list(found) == ["a", "size (m2)"]
    assert found["a"].tolist() == ["x\ny", 'p "q"']
    assert found.index.tolist() == [1, 2]


def test_what_is_unknown_and_what_is_text(tmp_path: Path) -> None:
    content = "zip,a,b,c\n007,NA,1,x\n010,2,?,\n012,,3,NULL\n013,-9\n"
    found = table(tmp_path, content, ("zip", "absent"), missing=("-9",))
    assert found["zip"].tolist() == ["007", "010", "012", "013"]
    np.testing.assert_array_equal(found["a"], [np.nan, 2, np.nan, np.nan])
    np.testing.assert_array_equal(found["b"], [1, np.nan, 3, np.nan])  # the last row is short
    assert found["c"].isna().tolist() == [False, True, True, True]


def test_a_column_without_a_name_is_called_by_its_place(tmp_path: Path) -> None:
    assert list(table(tmp_path, ",a,\n0,1,2\n")) == ["column 1", "a", "column 3"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "t.csv is empty"),
        ("\ufeff\n \n", "t.csv is empty"),
        ("a,b\n", "t.csv has a header and no rows"),
        ("a,b, a\n1,2,3\n", "t.csv, header: column 'a' is there twice, as column 1 and column 3"),
        ("a,b\n1,2\n\n3,4,5\n", "t.csv, row 2: 3 cells, but the header names 2 columns"),
        ("a,b\n1,2,3\n4,5,6\n", "t.csv, row 1: 3 cells, but the header names 2 columns"),
        ('a,b\n1,2\n3,"4\n5,6\n', "t.csv, row 2: a quote is opened and not closed"),
        ('a,"b\n1,2\n', "t.csv, header: a quote is opened and not closed"),
        (b"a,b\n1,x\n2,\xe9t\xe9\n", "t.csv, row 2, column 'b': byte 0xe9 is not utf-8; encoding= names another"),
        (b"a;b\n1;x\n2;\xe9t\xe9\n", "t.csv, row 2, column 'b': byte 0xe9 is not utf-8"),
        (b"\xe9,b\n1,x\n", "t.csv, header: byte 0xe9 is not utf-8"),
        ("a,b\n1,2\n".encode("utf-16"), "t.csv, header: byte 0xff is not utf-8; .* such as cp1252 or utf-16"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "t.csv, header: byte 0x8b is not utf-8"),
    ],
)
def test_what_cannot_be_read_is_one_line(content: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        table(tmp_path, content)
    assert "\n" not in str(caught.value)


@pytest.mark.timeout(20)
def test_files_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=f"path: no such file {tmp_path}/my.csv"):
        read_table(tmp_path / "my.csv", Format())
    with pytest.raises(InputError, match=f"path {tmp_path} is a folder, not a file"):
        read_table(tmp_path, Format())
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match=f"path {tmp_path}/pipe is a pipe or device, not a file"):
        read_table(tmp_path / "pipe", Format())
