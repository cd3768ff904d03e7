"""The study's page and first lines: tables, sentences and the picture say what effects say; controls hold."""

import pytest

from scripts.records.experiment import RESULTS
from scripts.report import first_picture, study_page
from scripts.report.study_evidence import ENSEMBLE, Setting
from scripts.study.rules import load_rules
from tests.scripts.report.test_study_evidence import made


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A setting in which C-Mixup has an error that is ten percent higher, and the average a lower one."""
    setting = made(load_rules(), {"erm": 1.0, "cmixup": 1.1, ENSEMBLE: 0.9}, tables="abcdef")
    for module in (study_page, first_picture):
        monkeypatch.setattr(module, "leading_setting", lambda: setting)
    return setting


@pytest.fixture(scope="module")
def page() -> str:
    return (RESULTS / study_page.PAGE).read_text()


def test_the_short_answer_gives_the_direction_and_what_to_expect_of_a_new_table(
    lead: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = study_page.short_answer()
    assert answer.startswith("On average it raises the error: over 6 real tables, 5 splits each, +10")
    assert answer.endswith("that it worsens as much: above 0.99")
    monkeypatch.setattr(study_page, "leading_setting", lambda: made(lead.rules, {"erm": 1.0, "cmixup": 1.0}))
    assert study_page.short_answer().startswith("On average that is inconclusive: ")


def test_rows_of_tables_give_what_the_effect_gives(lead: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    table = study_page.effect_table(study_page.effect_rows([lead], ["cmixup", ENSEMBLE]))
    first, second = (row.split(" | ") for row in table.splitlines()[2:])
    assert first[:2] == ["| all rows, split at random, 6 tables, 5 splits", "C-Mixup"]
    assert first[2].startswith("+10.0 [")
    assert first[4:] == ["higher", "0 / 6 / 0 / 0", "below 0.01, above 0.99 |"]
    assert (second[0], second[1], second[4]) == ("| ", "ERM x 5", "lower")
    monkeypatch.setattr(study_page, "read_settings", lambda _: [lead])
    head, row, *_ = study_page.effects_csv()["study/effects.csv"].splitlines()
    assert head == "setting,table,method,effect,low,high,verdict"
    assert row.startswith("random,a,cmixup,10.00,")
    assert row.endswith(",worsens")


def test_the_picture_says_what_the_tables_show(lead: Setting) -> None:
    (picture,) = first_picture.first_picture().values()
    _, right = picture.axes
    assert right.get_title() == "6 tables: none surely improve by 1 %, 6 worsen as much"
    assert len(right.containers) == 6 + 2  # tables, their mean and a new one


def test_the_published_controls_hold(page: str) -> None:
    controls = page.partition("<!-- controls:begin")[2].partition("<!-- controls:end")[0]
    rows = [line.strip("| ").split(" | ")[-6:] for line in controls.splitlines() if line.startswith("|")]
    again = [row for row in rows if row[0] == "ERM, other initialisation"]
    averages = [row for row in rows if row[0] in ("ERM x 2", "ERM x 5")]
    assert [row[3] for row in averages] == ["lower"] * 4
    assert all(row[4].startswith("0 / 0 /") and row[3] == "inconclusive" for row in again)
    assert len(again) == 4


def test_the_published_effects_are_calibrated(page: str) -> None:
    for part in page.partition('<span id="calibration">')[2].partition("</span>")[0].split(", and "):
        n, low, high = int(part.split(" of ")[0]), *map(int, part.strip(")").rpartition(": ")[2].split(" to "))
        assert low <= n <= high


def test_every_entry_has_a_row_on_the_page(page: str) -> None:
    for path in (RESULTS.parent / "examples/entries").glob("*.py"):
        assert f"[{path.stem}](../examples/entries/{path.name})" in page
