"""Versions are dated and renewed by a command, and packages that pin old ones are imported by two datasets alone."""

from __future__ import annotations

import ast
import json
import re
import time
import tomllib
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests import renew
from tests.renew import CONSTRAINTS, ROOT, renewed

PINNING = {"wilds": "datasets/poverty_map.py", "tdc": "datasets/dti.py"}


def test_versions_are_renewed_and_dated() -> None:
    text = (
        "# as of 2020-01-02; `make renew`\ntorch==1.0\nPyYAML==5.1\nsetuptools>=77,<82\nabsent==0.1\nhydra-core==1.0\n"
    )
    installed = {"torch": "2.13.0+cpu", "pyyaml": "6.0.3", "setuptools": "81.0", "hydra_core": "1.3.8", "other": "9"}
    assert renewed(text, installed, "2026-11-24") == (
        "# as of 2026-11-24; `make renew`\ntorch==2.13.0\nPyYAML==6.0.3\nsetuptools>=77,<82\nabsent==0.1\n"
        "hydra-core==1.3.8\n"
    )


@pytest.mark.parametrize("failing", ["", "pytest", "scripts.render"])
def test_constraints_change_where_every_check_passes_and_what_is_kept_is_asked_for(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text, kept, tried = "# as of 2020-01-02\ntorch==1.0\nPyYAML==5.1\n", list[str](), list[str]()
    (tmp_path / "constraints.txt").write_text(text)

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        tried.append(command[2])
        if "install" in command:
            kept.append(Path(command[command.index("-c") + 1]).read_text())
        listed = [{"name": "torch", "version": "1.0+cpu"}, {"name": "PyYAML", "version": "6.0"}]
        return SimpleNamespace(returncode=int(command[2] == failing), stdout=json.dumps(listed))

    monkeypatch.setattr(renew, "CONSTRAINTS", tmp_path / "constraints.txt")
    monkeypatch.setattr(renew.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(renew.subprocess, "run", run)
    with pytest.raises(SystemExit) if failing else nullcontext():
        renew.main(["keep=torch"])
    after, said = (tmp_path / "constraints.txt").read_text(), capsys.readouterr()
    assert kept == ["torch==1.0\n"]
    assert tried == ["pip"] * 3 + ["ruff", "ruff", "mypy", "pytest", "scripts.render", "tests.robustness.pictures"]
    assert said.out.startswith("newer: PyYAML 6.0\n")
    assert (after == text) == bool(failing)
    if not failing:
        assert after == f"# as of {time.strftime('%Y-%m-%d')}\ntorch==1.0\nPyYAML==6.0\n"


def test_the_constraints_have_a_date_and_cover_what_is_installed() -> None:
    text = CONSTRAINTS.read_text()
    (date,) = re.findall(r"as of (\d{4}-\d\d-\d\d)", text)
    assert time.strptime(date, "%Y-%m-%d")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        re.split(r"[=<>;\[ ]", one)[0].lower() for extra in ("repro", "splits", "docs", "dev") for one in extras[extra]
    }
    assert named <= {re.split(r"[=<>]", line)[0].lower() for line in text.splitlines() if line[:1] != "#"}


@pytest.mark.parametrize(("package", "reader"), PINNING.items())
def test_a_package_that_pins_old_ones_is_imported_where_its_splits_are_asked_for_alone(
    package: str, reader: str
) -> None:
    for folder in ("cmixup", "datasets", "models", "scripts"):
        for path in (ROOT / folder).rglob("*.py"):
            text = path.read_text()
            if package not in text:
                continue
            tree = ast.parse(text)
            inside = [node for made in ast.walk(tree) if isinstance(made, ast.FunctionDef) for node in ast.walk(made)]
            found = [
                node
                for node in ast.walk(tree)
                if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == package)
                or (isinstance(node, ast.Import) and any(one.name.split(".")[0] == package for one in node.names))
            ]
            assert not found or path.relative_to(ROOT).as_posix() == reader
            assert all(node in inside for node in found), f"{path} imports {package} when it is imported"
