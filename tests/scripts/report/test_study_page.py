"""The study's page and first lines: the pages are what the records render, and the pictures are drawn from them."""

import pytest

from scripts.records.experiment import RESULTS
from scripts.report import study_page
from scripts.report.study_evidence import Setting
from scripts.stats.effects import HIGHER, INCONCLUSIVE, LOWER
from scripts.study.rules import load_rules
from tests.scripts.report.test_study_evidence import made


@pytest.fixture
def lead(monkeypatch: pytest.MonkeyPatch) -> Setting:
    """A setting in which C-Mixup has an error that is ten percent higher, and the average a lower one."""
    setting = made(load_rules(), {"erm": 1.0, "cmixup": 1.1, "ERM x 5": 0.9}, tables="abcdef")
    monkeypatch.setattr(study_page, "leading_setting", lambda: setting)
    return setting


def test_first_lines_give_direction_size_and_what_to_expect_of_a_new_table(lead: Setting) -> None:
    assert study_page.effect_of(lead).direction() == HIGHER
    text = " ".join(study_page.lead_text().split())
    assert text.startswith("**C-Mixup: the mean error is higher (6 tables, 5 splits each).** With C-Mixup the error ")
    assert "improves by 1 % or more on none of the tables and worsens as much on 6;" in text
    assert text.endswith("**An average of five networks of ERM: the mean error is lower (6 tables, 5 splits each).**")
    assert study_page.short_answer().startswith(
        "On average it raises the error: over 6 real tables, 5 splits each, +10"
    )
    rows = study_page.lead_table().splitlines()
    assert [row.split(" | ")[3] for row in rows[2:]] == [HIGHER, LOWER]


def test_a_direction_that_is_inconclusive_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = made(load_rules(), {"erm": 1.0, "cmixup": 1.0})
    monkeypatch.setattr(study_page, "leading_setting", lambda: setting)
    assert study_page.effect_of(setting).direction() == INCONCLUSIVE
    assert study_page.short_answer().startswith("On average that is inconclusive: ")


def test_the_picture_says_what_the_tables_show(lead: Setting) -> None:
    (first,) = study_page.study_figures().values()
    assert len(first.axes) == 2
    assert first.axes[1].get_title() == "6 tables: none surely improve by 1 %, 6 worsen as much"


def test_every_entry_is_on_the_page_with_its_file() -> None:
    entries = study_page.entry_settings()
    page = (RESULTS / study_page.PAGE).read_text()
    assert len(entries) >= 5
    for setting in entries:
        assert f"examples/entries/{setting.methods[0]}.py" in page
        assert setting.tables == "10 smallest tables"
