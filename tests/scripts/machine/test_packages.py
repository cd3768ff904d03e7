"""The lock of packages: its text, what of it is installed, and what was installed by hashes."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from scripts.machine import packages
from scripts.machine.packages import CUDA, LOCK, Locked, compare_with_lock, parse_lock, requirements_of, write_receipt

A, B, C = ("0123456789abcdef"[k] * 64 for k in (10, 11, 12))
TEXT = requirements_of({"one": Locked("1.0", (A,)), "two-more": Locked("2.0", (B, C)), "gone": Locked("3", (A,))},
                       ["two-more", "one", "gone"])  # fmt: skip


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Packages that seem to be installed: version and text of RECORD by name, which a test may change."""
    found = {"one": ["1.0+cpu", "one/a.py"], "Two_More": ["2.0", "two/b.py"], "own": ["9", "c.py"]}

    def named(name: str) -> Any:
        for each, (version, record) in found.items():
            if packages.plain_name(each) == packages.plain_name(name):
                return SimpleNamespace(name=each, version=version, read_text=lambda _, text=record: text)
        raise packages.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(packages.metadata, "distribution", named)
    monkeypatch.setattr(packages.metadata, "distributions", lambda: map(named, found))
    return found


def test_a_lock_is_read_as_it_is_written() -> None:
    assert parse_lock(f"# a comment\n{TEXT}") == {
        "gone": Locked("3", (A,)), "one": Locked("1.0", (A,)), "two-more": Locked("2.0", (B, C)),
    }  # fmt: skip
    assert parse_lock("Two_More==2.0 \\\n    --hash=sha256:" + B + "\n") == {"two-more": Locked("2.0", (B,))}


def test_packages_that_were_installed_by_their_hashes_are_the_lock_s(
    installed: dict[str, list[str]], tmp_path: Path
) -> None:
    assert compare_with_lock(TEXT, tmp_path) == (2, [], ["one", "two-more"])  # without a receipt
    write_receipt(TEXT, tmp_path)
    assert compare_with_lock(TEXT, tmp_path) == (2, [], [])
    assert compare_with_lock(TEXT.replace(A, B), tmp_path) == (2, [], ["one", "two-more"])  # of another lock


def test_another_version_and_another_installation_are_named(installed: dict[str, list[str]], tmp_path: Path) -> None:
    write_receipt(TEXT, tmp_path)
    installed["one"][1] = "one/a.py, installed again"
    assert compare_with_lock(TEXT, tmp_path) == (2, [], ["one"])
    installed["Two_More"][0] = "2.1"
    assert compare_with_lock(TEXT, tmp_path) == (2, ["two-more 2.1 (lock: 2.0)"], ["one"])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lock": 1}', "\0"])
def test_a_damaged_receipt_is_none(text: str, installed: dict[str, list[str]], tmp_path: Path) -> None:
    (tmp_path / packages.RECEIPT).write_text(text)
    assert compare_with_lock(TEXT, tmp_path)[2] == ["one", "two-more"]


def test_the_lock_names_no_host_and_each_package_has_a_hash() -> None:
    text = LOCK.read_text()
    assert "://" not in text
    assert "index" not in text
    lock = parse_lock(text)
    assert len(lock) == sum("==" in line for line in text.splitlines())
    assert all(one.hashes for one in lock.values())
    assert len(lock["torch"].hashes) == 2  # the index's own, and a build for CPUs
    assert {name for name in lock if CUDA.fullmatch(name)} >= {"triton", "nvidia-cublas"}
    assert json.dumps(text).isascii()
