"""docs/report.md counts the runs of the records; its PDF has a title, tables, pictures and no inner link."""

from __future__ import annotations

import runpy

import pytest

from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports
from scripts.report.report_facts import PAGE, compute_text, count_hours, run_lines

ROOT = RESULTS.parent
PDF = runpy.run_path(str(ROOT / "docs" / "report_pdf.py"), run_name="report_pdf")


def make_report(**given):
    base = {"experiment": "table1", "dataset": "airfoil", "method": "erm", "seed": 0, "seconds": 1800.0, "threads": 2}
    return {**base, "device": "cpu: Some processor", "versions": {"torch": "2.1"}, **given}


def test_hours_count_every_thread_of_every_run():
    assert count_hours([make_report(), make_report(seed=1, seconds=3600.0, threads=1)]) == 2.0


def test_a_row_counts_datasets_methods_runs_and_seeds():
    reports = [make_report(), make_report(seed=1), make_report(method="cmixup"), make_report(dataset="no2")]
    *_, row = run_lines(reports, {"table1": "The | main table"})
    assert row == ("| The / main table | airfoil, no2 | 2 | 4 | 2 | 4.0 |")


def test_the_sentence_names_processors_and_versions():
    text = compute_text([make_report(), make_report(device="cpu: Another")])
    assert "2 runs, which took 2 core-hours on Another, Some processor with PyTorch 2.1" in text


def test_the_page_counts_every_published_run():
    rows = (ROOT / PAGE).read_text().partition("<!-- runs:begin")[2].partition("<!-- runs:end")[0]
    _, _, *lines = rows.partition("\n")[2].strip().splitlines()
    assert sum(int(line.split("|")[4]) for line in lines) == len(published_reports())


def test_a_column_is_as_wide_as_its_longest_cell():
    head, line, *rows = PDF["set_widths"](["| a | b |", "| --- | ---: |", "| x | 123456789012 |", "", "no | table |"])
    assert line == f"|:{'-' * 8}|:{'-' * 14}|"
    assert (head, rows) == ("| a | b |", ["| x | 123456789012 |", "", "no | table |"])


def test_the_document_has_title_pictures_and_no_inner_link():
    pytest.importorskip("pypandoc")
    page = '# A title\n\nSee [there](data.md), <span id="x">a $y_i$</span> and [a site](https://example.org).\n\n'
    made = PDF["make_typst"](page + "![Seeds](figures/table1.png)\n\n<!-- note -->\n", ROOT / "docs")
    assert 'weight: "bold")[A title]' in made
    assert f'image("/{(ROOT / "docs/figures/table1.png").resolve().relative_to(ROOT)}"' in made
    assert "See there, a $y_(i)$" in made.replace("$y_i$", "$y_(i)$")
    assert "https://example.org" in made
    assert not any(word in made for word in ("data.md", "note", "span"))
