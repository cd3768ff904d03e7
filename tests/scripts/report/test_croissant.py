"""results/croissant.json describes the files that are there, column by column, and MLCommons' library reads it."""

import csv
import hashlib
import json

import pytest

from scripts.records.experiment import RESULTS
from scripts.report.croissant import FILE, TABLES, croissant_texts

PUBLISHED = json.loads((RESULTS / FILE).read_text())


def test_the_published_file_is_what_is_written():
    assert croissant_texts() == {FILE: (RESULTS / FILE).read_text()}


def test_every_file_has_its_own_checksum():
    sums = {one["contentUrl"]: one["sha256"] for one in PUBLISHED["distribution"] if "sha256" in one}
    assert sums == {name: hashlib.sha256((RESULTS / name).read_bytes()).hexdigest() for name in TABLES}


def test_every_set_has_files():
    patterns = [one["includes"] for one in PUBLISHED["distribution"] if "includes" in one]
    assert len(patterns) == 2
    assert all(any(path.is_file() for path in RESULTS.glob(pattern)) for pattern in patterns)


@pytest.mark.parametrize("name", TABLES)
def test_every_column_is_a_field_of_its_type(name):
    (table,) = (one for one in PUBLISHED["recordSet"] if f"{one['name']}.csv" == name)
    with (RESULTS / name).open(newline="") as file:
        columns = next(csv.reader(file))
    assert [one["source"]["extract"]["column"] for one in table["field"]] == columns
    kinds = {one["name"]: one["dataType"] for one in table["field"]}
    numbers = {"theory.csv": "value", "invariance.csv": "value", "spurious.csv": "same"}
    assert kinds[numbers[name]] == "sc:Float"
    assert kinds.get("seed") == "sc:Integer"


def test_the_library_of_the_format_reads_it():
    library = pytest.importorskip("mlcroissant")
    data = library.Dataset(jsonld=str(RESULTS / FILE))
    assert not data.metadata.issues.errors
    assert next(iter(data.records("theory")))["theory/theorem"] == 1
