"""Versions are dated and renewed by a command, and packages that pin old ones are imported by two datasets alone."""

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

from scripts.machine.packages import LOCK, Locked, parse_lock, plain_name
from scripts.setup import named_packages
from tests import renew
from tests.renew import CONSTRAINTS, ROOT, fits_here, lock_of, renewed

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
    monkeypatch.setattr(renew, "LOCK", tmp_path / "constraints.lock")
    monkeypatch.setattr(renew, "make_lock", lambda *_: "a lock")
    monkeypatch.setattr(renew.venv, "create", lambda *_, **__: None)
    monkeypatch.setattr(renew.subprocess, "run", run)
    with pytest.raises(SystemExit) if failing else nullcontext():
        renew.main(["keep=torch"])
    after, said = (tmp_path / "constraints.txt").read_text(), capsys.readouterr()
    assert kept == ["torch==1.0\n"]
    assert tried == ["pip"] * 3 + ["ruff", "ruff", "mypy", "pytest", "scripts.render"]
    assert said.out.startswith("newer: PyYAML 6.0\n")
    assert (after == text) == bool(failing)
    assert (tmp_path / "constraints.lock").exists() == (not failing)
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


def test_the_lock_holds_all_that_the_project_names_in_the_versions_of_the_constraints() -> None:
    lock = parse_lock(LOCK.read_text())
    lacking = named_packages((ROOT / "pyproject.toml").read_text()) - lock.keys()
    assert not lacking, f"python -m tests.renew lock=1 takes {lacking} in"
    pinned = {plain_name(name): version for name, version in renew.PINNED.findall(CONSTRAINTS.read_text())}
    assert {name: one.version for name, one in lock.items() if name in pinned} == {
        name: version for name, version in pinned.items() if name in lock
    }


@pytest.mark.parametrize(
    ("file", "fits"),
    [
        ("six-1.16.0-py2.py3-none-any.whl", True),
        ("numpy-2.4-cp311-cp311-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl", True),
        ("librt-0.1-cp39-abi3-manylinux2014_x86_64.whl", True),
        ("torch-2.13.0+cpu-cp311-cp311-linux_x86_64.whl", True),
        ("ruff-0.1-py3-none-manylinux_2_17_x86_64.whl", True),
        ("a-1-cp312-abi3-manylinux2014_x86_64.whl", False),
        ("a-1-cp312-cp312-manylinux2014_x86_64.whl", False),
        ("a-1-cp311-cp311-musllinux_1_2_x86_64.whl", False),
        ("a-1-cp311-cp311-manylinux_2_17_aarch64.whl", False),
        ("a-1-cp311-cp311-macosx_10_9_x86_64.whl", False),
        ("a-1-py2-none-any.whl", False),
    ],
)
def test_files_of_this_platform_are_locked(file: str, fits: bool) -> None:
    assert fits_here(file) == fits


def test_a_lock_has_the_files_that_uv_finds_and_those_that_pip_takes() -> None:
    def file(name: str, digit: str) -> dict[str, Any]:
        return {"url": f"https://an.index/packages/{name}", "hashes": {"sha256": digit * 64}}

    found = {"packages": [
        {"name": "torch", "version": "2.0", "sdist": file("torch-2.0.tar.gz", "f"),
         "wheels": [file("torch-2.0-cp311-cp311-manylinux_2_28_x86_64.whl", "b"),
                    file("torch-2.0-cp312-cp312-manylinux_2_28_x86_64.whl", "e")]},
        {"name": "antlr4", "version": "4.9", "sdist": file("antlr4-4.9.tar.gz", "c")},
    ]}  # fmt: skip
    text = lock_of(found, {"torch": Locked("2.0", ("a" * 64,)), "antlr4": Locked("5", ("d" * 64,))})
    assert parse_lock(text) == {"torch": Locked("2.0", ("a" * 64, "b" * 64)), "antlr4": Locked("4.9", ("c" * 64,))}
    assert "://" not in text


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
