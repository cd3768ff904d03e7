"""Help on a terminal of 80 columns: `make help`, and `--help` of every command."""

import importlib
import re
import subprocess
from pathlib import Path

import pytest

from scripts.config.compose import compose_train, listed_names, option_names
from scripts.config.help_text import EXAMPLES, GROUPS, KEYS, lay_out, train_help

REPO = Path(__file__).resolve().parents[2]
WIDTH = 80
COMMANDS = [path.stem for path in sorted((REPO / "scripts").glob("[a-z]*.py"))]
ROOMS = [f"{path.parent.name}.__main__" for path in sorted((REPO / "scripts").glob("*/__main__.py"))]


def too_wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > WIDTH]


def made(target: str) -> str:
    return subprocess.run(["make", "-s", target], cwd=REPO, check=True, capture_output=True, text=True).stdout


def test_make_help_has_five_groups_and_fits() -> None:
    short, every = made("help"), made("help-all")
    assert too_wide(short) == too_wide(every) == []
    headings = [line for line in short.splitlines() if line and not line.startswith(" ")]
    assert len(headings) == 5
    listed_in = [set(re.findall(r"^  ([a-z][a-z0-9-]+) ", text, re.MULTILINE)) for text in (short, every)]
    targets = set(re.findall(r"^([a-z0-9-]+):.*## ", (REPO / "Makefile").read_text(), re.MULTILINE))
    assert listed_in[1] == targets > listed_in[0]
    assert {"setup", "test", "docs", "reproduce-table1"} <= listed_in[0]


@pytest.mark.parametrize("name", [name for name in [*COMMANDS, *ROOMS] if name != "train"])
def test_help_of_every_command_fits(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", [name, "--help"])
    with pytest.raises(SystemExit):
        importlib.import_module(f"scripts.{name}").main()
    assert too_wide(capsys.readouterr().out) == []


def test_help_of_train_names_every_option_of_its_groups_and_fits() -> None:
    text = train_help(option_names)
    assert too_wide(text) == []
    for group in GROUPS:
        section = text.partition(f"  {group}=")[2].partition("\n\n")[0]
        assert set(option_names(group)) <= set(re.findall(r"\w+", section))
    keys = compose_train([])
    assert all(key == "table" or key.split(".")[0] in keys for key in KEYS)
    assert all(f"  {line}\n" in text for line in EXAMPLES)


def test_paragraphs_are_filled_and_examples_are_lines() -> None:
    about = f"Does {'very ' * 30}much.\n\n  train  {'a thing ' * 12}\n\nExamples: `run a=1`,\n`run b=2`."
    text = lay_out(about, {"out": "folder", "more.": "options"})
    assert too_wide(text) == []
    assert text.endswith("Examples:\n  run a=1\n  run b=2\n\n  out=    folder\n  more.*= options")
    assert lay_out("Example: run a=1", {}) == "Example:\n  run a=1"


def test_a_list_of_names_is_whole_or_says_that_it_is_cut() -> None:
    known = [f"name{k}" for k in range(40)]
    assert listed_names(known[:12], "x") == ", ".join(known[:12])
    cut = listed_names(known, "name39")
    assert cut.startswith("name39, ")
    assert "... (40 in all" in cut
