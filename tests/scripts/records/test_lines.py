"""Reports as lines: what is read is what was written, what cells share is said once, and damage names its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts.records.lines import from_lines, to_lines
from scripts.records.published import published_reports


def report(seed: int, **more: Any) -> dict[str, Any]:
    return {
        "seed": seed, "run": f"table1/airfoil/fcn3/erm/paper/seed={seed}", "options": {},
        "scores": {"val": {"rmse": 1.5 + seed}, "test": {"rmse": 1 / 3}}, "facts": {}, "notes": [], **more,
    }  # fmt: skip


def back(text: str) -> list[dict[str, Any]]:
    return list(from_lines(text.splitlines()))


def test_reports_come_back_key_for_key_and_what_they_share_is_said_once() -> None:
    given = [
        report(seed, versions={"torch": "2.13.0"}, label={"mean": [float(seed)], "std": [1.0]}) for seed in (0, 2, 10)
    ]
    text = to_lines(reversed(given))
    assert json.dumps(back(text)) == json.dumps(given)
    assert text.count("torch") == 1
    assert text.splitlines()[1:] == ["[0,1.5,0.0]", "[2,3.5,2.0]", "[10,11.5,10.0]"]
    assert to_lines(back(text)) == text


@pytest.mark.parametrize(
    "more",
    [
        [{"a": 1}, {"a": 1.0}], [{"a": True}, {"a": 1}], [{"a": {}}, {"a": {"b": 1}}], [{"a": [1, 2]}, {"a": [1]}],
        [{"a": [["x"], {"b": None}]}, {"a": [["y"], {"b": 2}]}], [{"a": 1}, {"b": 1}], [{"a": "*"}, {"a": None}],
        [{"run": "table1/airfoil/fcn3/erm/paper/seed=7"}, {}], [{"a": ["x", "y"]}, {"a": ["y"]}],
        [{"a": {"b": [[]]}}, {}],
    ],
)  # fmt: skip
def test_values_that_are_alike_are_not_taken_for_each_other(more: list[dict[str, Any]]) -> None:
    given = [report(seed, **each) for seed, each in enumerate(more)]
    found = {json.dumps(one) for one in back(to_lines(given))}
    assert found == {json.dumps(one) for one in given}


def test_trials_of_a_cell_share_a_block_and_their_words_stand_once_in_the_file() -> None:
    given = [
        report(seed, run=f"s/t/all/erm/trial={k:02}/seed={seed}", options={"trial": k}, words=["method=erm", f"lr={k}"])
        for k in range(12)
        for seed in (0, 10)
    ]  # fmt: skip
    text = to_lines(given)
    assert json.dumps(back(text)) == json.dumps(given)
    assert text.count("shared") == text.count("method=erm") == text.count('"lr=11"') == 1


def test_lines_of_earlier_versions_are_read_beside_others() -> None:
    old, new = report(0), [report(1), report(2)]
    assert back(json.dumps(old) + "\n" + to_lines(new)) == [old, *new]


@pytest.mark.parametrize(
    "line",
    [
        "[0]",
        "[1, 2, 3, 4, 5]",
        "{",
        "3",
        '{"shared": {}}',
        '{"texts": 1}\n{"shared": {}, "own": [["a"]], "of_texts": [0]}\n[[0]]',
    ],
)
def test_a_line_that_is_no_report_is_named_with_its_file(line: str, tmp_path: Path) -> None:
    path = tmp_path / "runs/table1/airfoil/erm.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(to_lines([report(0), report(1)]) + line + "\n")
    with pytest.raises(InputError, match=r"erm.jsonl is no file of reports: .*line \d"):
        published_reports(tmp_path)
