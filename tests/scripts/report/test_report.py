"""docs/report.md counts the runs of the records; its PDF has a title, tables, pictures and no inner link."""

import re
import runpy

import pytest

from scripts.effects.effects import fit_effects
from scripts.effects.verdicts import Effect
from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports
from scripts.records.tables import interval_text
from scripts.report.report_facts import PAGE, compute_text, count_hours, run_lines
from scripts.study.answers import Answer
from scripts.study.report_parts import effect_table, others_text

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


def test_a_column_is_as_wide_as_its_cells_usually_are():
    rows = [
        "| a | b |",
        "| --- | ---: |",
        "| x | 123456789012 |",
        "|  | 1 |",
        "|  | 12345678901234567890 |",
        "",
        "no | t |",
    ]
    head, line, *left = PDF["set_widths"](rows)
    assert (head, left) == (rows[0], rows[2:])
    assert line == f"|:-|:{'-' * 20}|"  # the longest word; empty cells do not count
    assert PDF["column_width"](["setting", *["a few words"] * 9, "a few words " * 9, ""]) == 11
    assert PDF["column_width"](["a long title of many words", "1"]) == 13  # half of the title


def test_the_byline_is_that_of_the_citation():
    cited = (ROOT / "CITATION.cff").read_text()
    name, _, version = PDF["make_byline"]().partition(", version ")
    assert f"- name: {name}\n" in cited
    assert f"\nversion: {version}\n" in cited


def test_the_document_has_title_pictures_and_no_inner_link():
    pytest.importorskip("pypandoc")
    page = '# A title\n\nSee [there](data.md), <span id="x">a $y_i$</span> and [a site](https://example.org).\n\n'
    made = PDF["make_typst"](page + "![Seeds](figures/table1.png)\n\n<!-- note -->\n", ROOT / "docs")
    assert 'weight: "bold")[A title]' in made
    assert f'image("/{(ROOT / "docs/figures/table1.png").resolve().relative_to(ROOT)}"' in made
    assert "See there, a $y_(i)$" in made.replace("$y_i$", "$y_(i)$")
    assert "https://example.org" in made
    assert not any(word in made for word in ("data.md", "note", "span"))


BEYOND = {
    "settings": "study/when.md", "untuned": "study/no_search.md", "networks": "study/networks.md",
    "likelihood": "study/likelihood.md",
}  # fmt: skip


@pytest.mark.parametrize("place", BEYOND)
def test_every_mean_of_the_reports_tables_is_on_the_page_that_it_names(place):
    part = re.search(rf"<!-- {place}:begin .*?-->\n(.*?)<!-- {place}:end", (ROOT / PAGE).read_text(), re.DOTALL)
    means = re.findall(r"[+-]\d+\.\d+ \[[^\]]+\]", part[1])
    assert len(means) >= 12
    text = (RESULTS / BEYOND[place]).read_text()
    assert [one for one in means if one not in text] == []


def test_a_table_names_its_setting_once_and_gives_both_means():
    means = {f"table{k}": (value, value + 0.5, value - 0.5) for k, value in enumerate((-2.0, -2.5, -1.5, -2.2))}
    own = Effect(fit_effects(means, 0.25, 1.0), {name: sum(v) / 3 for name, v in means.items()}, 0.95)
    rows = effect_table([Answer("network_realmlp", "some rows, 3 splits", arm, own) for arm in ("mixup", "C-Mixup")])
    *_, first, second = rows.splitlines()
    assert first.startswith("| RealMLP; some rows, 3 splits | mixup | ")
    assert second.startswith("|  | C-Mixup | ")
    assert first.count("[") == 2
    assert f" {interval_text(own.plain, 1)} | lower | " in first
    assert effect_table([]) == "No cell of this part is published yet."


def test_what_others_found_is_counted_by_source():
    every = [
        {"source": "a", "task": "one", "tuned": "both", "pairs": [[1, 0.9], [2, 1.7], [3, 2.75]]},
        {"source": "the same", "task": "two", "tuned": "no", "pairs": [[1, 1.1]]},
        {"source": "b", "task": "three", "tuned": "no", "pairs": [[1, 1.1], [2, 2.3], [3, 3.25]]},
    ]
    text = others_text(every)
    assert " ".join(text.split()).startswith("In 3 of 7 pairs mixing has the lower error.")
    assert text.splitlines()[-2:] == ["| a | one | 3 of 4 | 1 | 0 | 1 |", "| b | three | 0 of 3 | 0 | 1 | 0 |"]
