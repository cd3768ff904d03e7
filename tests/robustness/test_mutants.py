"""The mutants apply to today's code, and the command that runs them tells the killed from those that survive."""

import subprocess
from pathlib import Path

import pytest

from tests.robustness.mutants import (
    BROKEN,
    KILLED,
    MUTANTS,
    NO_MATCH,
    ROOT,
    SURVIVES,
    UNUSABLE,
    Mutant,
    judge_all,
    read_mutants,
    summary,
)
from tests.robustness.planted_faults import read_faults

LISTED, FAULTS = read_mutants(MUTANTS), read_faults()


@pytest.mark.parametrize("mutant", [*LISTED, *FAULTS], ids=lambda m: f"{m.file}: {m.why}")
def test_a_mutant_applies_to_the_code_and_its_tests_are_there(mutant: Mutant) -> None:
    assert mutant.problem(ROOT) == ""


def test_no_mutant_is_listed_twice() -> None:
    changes = [(m.file, m.old, m.new) for m in [*LISTED, *FAULTS]]
    assert len(set(changes)) == len(changes)
    assert len(FAULTS) == 20


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one package, one test that looks at `add` alone, and one that always fails."""
    files = {
        "sums/__init__.py": "def add(a, b):\n    return a + b\n\n\ndef twice(a):\n    return 2 * a\n",
        "tests/test_add.py": "from sums import add\n\n\ndef test_add():\n    assert add(2, 3) == 5\n",
        "tests/test_no.py": "def test_no():\n    assert False\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # importing plugins is most of the time
    return tmp_path


def mutant(old: str, new: str, test: str = "tests/test_add.py", equivalent: str = "") -> Mutant:
    return Mutant("sums/__init__.py", old, new, (test,), "a mistake", equivalent)


def test_every_outcome_is_reported(project: Path) -> None:
    killed, equivalent = mutant("a + b", "a - b"), mutant("2 * a", "a * 2", equivalent="multiplication commutes")
    mutants = {
        killed: KILLED,
        equivalent: SURVIVES,
        mutant("2 * a", "3 * a"): SURVIVES,
        mutant("2 * a", "4 * a", "tests/test_no.py"): BROKEN,
        mutant("def add", "def plus"): UNUSABLE,  # the file of tests cannot be imported, so no test has seen anything
        mutant("return", "yield"): NO_MATCH,
    }
    before = (project / "sums" / "__init__.py").read_text()
    said: list[str] = []
    verdicts = judge_all(list(mutants), project, 1, said.append, preload=())
    assert {v.mutant: v.outcome for v in verdicts} == mutants
    assert {v.mutant for v in verdicts if v.expected} == {killed, equivalent}
    assert (project / "sums" / "__init__.py").read_text() == before
    assert any("min left] killed" in line for line in said)
    lines = summary(verdicts).splitlines()
    assert lines[0] == "score: 1 of 5 mutants killed; 1 said to be equivalent"
    assert len(lines) == 5  # every other one is named
    assert "'return' occurs 2 times in the file, not once" in "\n".join(lines)
