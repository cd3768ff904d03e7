"""What the pages say of an entry is counted on its own tables, beside ERM there."""

import pytest

from scripts.protocol.protocols import load_protocol2
from scripts.protocol.published import Record
from scripts.study import front
from tests.scripts.study.test_page import SHIFTS, record


def test_an_entry_has_a_row_and_the_first_with_a_file_its_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    rules, stored = load_protocol2(), list[Record]()
    lite = rules.lite_tables()
    monkeypatch.setitem(SHIFTS, "mine", -0.1)
    for k, table in enumerate(lite):
        stored += [record(table, name, "erm", k) for name in ("random", "rows100")]
    monkeypatch.setattr(front, "read_store", lambda *_, **__: stored)
    assert front.submission_rows(front.lite_records(rules), rules) == front.NO_ENTRY
    assert front.submission_output(front.lite_records(rules), rules) == front.NO_ENTRY
    told = {
        "entry": {"file": "mine.py", "sha256": "0"},
        "seconds": 16.0,
    }  # of 38 runs; ERM 10 of 50
    stored += [{**record(table, "random", "mine", k), **told} for k, table in enumerate(lite[:3])]
    stored += [record(table, "random", "ada", k) for k, table in enumerate(lite[:2])]
    stored += [record("diamond_prices", "random", "mine", 9), record(lite[4], "rows100", "mine", 9)]
    found = front.lite_records(rules)
    *_, other, mine = front.submission_rows(found, rules).splitlines()
    cells = [cell.strip() for cell in mine.strip("|").split("|")]
    assert cells[:6] == ["mine", "3 of 10", "3", "0", "0", "0"]
    assert cells[6].startswith("-8.3 [")
    assert cells[7].startswith("-8.3 [")
    assert cells[8:] == ["[mine.py](../../examples/entries/mine.py)"]
    assert other.startswith("| ada | 2 of 10 | 0 | 0 | 2 | 0 | ")  # gains, loses, within, cannot be told
    assert other.endswith(" | `method=ada` |")
    said = front.submission_output(found, rules)
    assert said.startswith("```text\nTest error minus ERM's")
    assert "\nVerdict on mine, setting random, 3 tables\nMean over tables: " in said
    assert "\nBy mean error 1 of 2: mine " in said
    size = "Size: gains 1 % or more on 3 tables, loses as much on 0, lies within on 0, cannot be told on 0."
    assert size in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80
