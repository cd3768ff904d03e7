"""Packages are installed by the hashes of the lock, or by constraints.txt with a line that says why."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts import setup
from scripts.machine.packages import Locked, requirements_of

LOCK = requirements_of(
    {name: Locked("1.0", ("a" * 64,)) for name in ("numpy", "nvidia-cublas", "setuptools", "torch", "triton")},
    ["numpy", "nvidia-cublas", "setuptools", "torch", "triton"],
)
MISMATCH = """WARNING: The file is another one
ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package versions,
    numpy==1.0 from https://somewhere/numpy.whl (from -r x.txt (line 3)):
        Expected sha256 aaaa
             Got        bbbb
"""


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """A pip that pretends: what it was asked to install, and what it answers to a word among the requirements."""
    state: dict[str, Any] = {"asked": [], "fails": {}, "torch": "1.0+cpu"}

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        state["words"] = words = command[len(setup.PIP) :]
        named = Path(words[-1]).read_text() if words[-2] == "-r" else " ".join(words)
        state["asked"].append([*[w for w in words if w.startswith("--")], *[x.split()[0] for x in named.splitlines()
                              if not x.startswith(" ")]])  # fmt: skip
        said = next((said for word, said in state["fails"].items() if word in named), "")
        return SimpleNamespace(returncode=int(bool(said)), stderr=said, stdout="")

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(setup.metadata, "version", lambda _: state["torch"])
    monkeypatch.setattr(setup, "write_receipt", lambda lock, _: state.update(receipt=lock))
    monkeypatch.setattr(setup, "lock_is_for_here", lambda: state.get("here", ""))
    monkeypatch.setattr(setup.sys, "prefix", str(tmp_path))
    monkeypatch.setattr(setup, "named_packages", lambda _: state.get("named", {"numpy", "torch"}))
    (tmp_path / "lock").write_text(LOCK)
    monkeypatch.setattr(setup, "LOCK", tmp_path / "lock")
    return state


BY_HASH = ["--require-hashes", "--no-deps", "--no-build-isolation"]


def test_a_build_for_cpus_goes_first_and_needs_nothing_of_cuda(pip: dict[str, Any]) -> None:
    setup.main([])
    backend, rest, project = pip["asked"]
    assert backend == [*BY_HASH, "setuptools==1.0", "torch==1.0+cpu"]
    assert rest == [*BY_HASH, "numpy==1.0"]
    assert project[:2] == ["--no-deps", "--no-build-isolation"]
    assert pip["receipt"] == LOCK


def test_the_index_s_own_torch_comes_with_cuda(pip: dict[str, Any]) -> None:
    pip["fails"] = {"+cpu": "ERROR: No matching distribution found for torch==1.0+cpu"}
    pip["torch"] = "1.0"
    setup.main([])
    assert pip["asked"][1] == [*BY_HASH, "setuptools==1.0", "torch==1.0"]
    assert pip["asked"][2] == [*BY_HASH, "numpy==1.0", "nvidia-cublas==1.0", "triton==1.0"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"here": "Darwin arm64, CPython 3.13"}, "this is Darwin arm64, CPython 3.13"),
        ({"named": {"numpy", "new"}}, "it lacks new (python -m tests.renew lock=1 makes it anew)"),
        ({"fails": {"numpy==": MISMATCH}}, "the index serves another file of numpy==1.0"),
        ({"fails": {"numpy==": "WARNING: x\nERROR: No matching distribution found for numpy==1.0\n"}},
         "No matching distribution found for numpy==1.0"),
        ({"fails": {"numpy==": "no network"}}, "no network"),
    ],
)  # fmt: skip
def test_what_the_lock_cannot_give_is_installed_by_constraints_with_a_line(
    change: dict[str, Any], said: str, pip: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    pip.update(change)
    with pytest.raises(SystemExit) as stop:
        setup.main([])
    assert stop.value.code == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("installing by constraints.txt, not by the hashes of lock: ")
    assert line.endswith(said)
    assert pip["words"][0] == "-c"
    assert pip["words"][1].endswith("constraints.txt")
    assert pip["words"][3].endswith("[repro,dev]")
    assert "receipt" not in pip


def test_it_installs_into_virtual_environments_alone(pip: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup.sys, "prefix", setup.sys.base_prefix)
    with pytest.raises(SystemExit, match="virtual environment"):
        setup.main([])
    assert pip["asked"] == []
