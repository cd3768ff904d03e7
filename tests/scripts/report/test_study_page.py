"""The study's page and first lines: tables, sentences and the picture say what effects say; controls hold."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from scripts.records.experiment import RESULTS
from scripts.report import effect_checks, first_picture, study_page
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


def test_the_short_answer_gives_what_all_summaries_say(lead: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = study_page.short_answer()
    about = "over 6 real tables (5 splits each, tuned small networks) it raises the error by about 10.0 % on average"
    assert answer.startswith(f"Expect little of it: {about} (7 summaries of its effect: +9.5 to +10.0 %, 7 of ")
    assert answer.endswith("surely improves none of them by 1 % and worsens 6 as much")
    assert "(below 0.01 and above 0.99) become 0.07 and 0.93; " in study_page.recalibration_text(lead)
    same = made(lead.rules, {"erm": 1.0, "cmixup": 1.0}, tables="abcdef")
    monkeypatch.setattr(study_page, "leading_setting", lambda: same)
    assert "it changes the error in no sure direction on average" in study_page.short_answer()


def test_rows_of_tables_give_what_the_effect_gives(lead: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    table = study_page.effect_table(study_page.effect_rows([lead], ["cmixup", ENSEMBLE]))
    first, second = (row.split(" | ") for row in table.splitlines()[2:])
    assert first[:2] == ["| all rows, split at random, 6 tables, 5 splits", "C-Mixup"]
    assert first[2].startswith("+10.0 [")
    assert first[4:] == ["0 / 6 / 0 / 0", "below 0.01, above 0.99 |"]
    assert second[:2] == ["| ", "ERM x 5"]
    monkeypatch.setattr(study_page, "read_settings", lambda _: [lead])
    head, row, *_ = study_page.effects_csv()["study/effects.csv"].splitlines()
    assert head == "setting,table,method,effect,low,high,verdict"
    assert row.startswith("random,a,cmixup,10.00,")
    assert row.endswith(",worsens")


def test_the_picture_says_what_the_tables_show(lead: Setting) -> None:
    first, effects = first_picture.pictures().values()
    (right,), (_, rivals) = effects.axes, first.axes
    assert right.get_title() == "6 tables, 5 splits, a tuned network: none surely improve by 1 %, 6 worsen"
    table = pd.read_csv(RESULTS / "benchmarks/estimators.csv").query("part == 'reserved' and model == 'cmixup'")
    (ours, *_) = (container.lines[0] for container in rivals.containers)
    means = table.groupby("table")["behind"].mean()
    place = [table["seconds"].median()], [100 * np.expm1(means.mean())]
    assert ours.get_data() == tuple(map(pytest.approx, place))
    assert len(right.containers) == 6 + 2  # tables, their mean and a new one


def test_the_published_controls_hold(page: str) -> None:
    controls = page.partition("<!-- controls:begin")[2].partition("<!-- controls:end")[0]
    rows = [line.strip("| ").split(" | ")[-5:] for line in controls.splitlines() if line.startswith("|")]
    again = [row for row in rows if row[0] == "ERM, other initialisation"]
    averages = [row for row in rows if row[0] in ("ERM x 2", "ERM x 5")]
    signs = [[(end.startswith("-"), end.endswith("-0.0")) for end in re.findall(r"[-+][\d.]+(?=[],])", row[1])]
             for row in averages]  # fmt: skip
    assert signs == [[(True, False)] * 2] * 4
    assert all(row[3].startswith("0 / 0 /") and row[1].partition(", ")[2].startswith("+") for row in again)
    assert len(again) == 4


def test_the_published_effects_are_calibrated(page: str) -> None:
    for part in page.partition('<span id="calibration">')[2].partition("</span>")[0].split(", and "):
        n, low, high = int(part.split(" of ")[0]), *map(int, part.strip(")").rpartition(": ")[2].split(" to "))
        assert low <= n <= high


def test_every_entry_has_a_row_on_the_page(page: str) -> None:
    for path in (RESULTS.parent / "examples/entries").glob("*.py"):
        assert f"[{path.stem}](../examples/entries/{path.name})" in page


def test_summaries_weigh_tables_as_their_names_say() -> None:
    setting = made(load_rules(), {"erm": 1.0, "cmixup": 1.0}, tables="abcde")
    by_table = dict(zip("abcde", (0.0, 1.0, 2.0, 3.0, 20.0), strict=True))
    rows = setting.runs
    spread = np.where(rows["table"] == "e", 0.1, 0.001) * np.where(rows["split"] % 2, 1, -1)
    change = (0.01 * rows["table"].map(by_table) + spread) * (rows["method"] == "cmixup")
    runs = rows.assign(test_nrmse=1 + change)
    means = effect_checks.mean_summaries(replace(setting, runs=runs), "cmixup")
    values = {name.partition(" ")[0]: one.mean for name, one in means.items() if "log" not in name}
    assert values["unweighted"] == pytest.approx(5.2 - 0.2 * (4 * 0.1 + 10) / 5)
    assert values["median"] == pytest.approx(2.0 - 0.02)
    assert values["weighted"] < 2.0 < values["unweighted"]  # the fifth table is the noisiest
