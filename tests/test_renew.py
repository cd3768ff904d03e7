"""Versions are dated and renewed by a command, and packages that pin old ones are imported by two datasets alone."""

from __future__ import annotations

import ast
import re
import time
import tomllib

import pytest

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
