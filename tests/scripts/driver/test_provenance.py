"""A report says where its numbers come from: commit, edits, packages and device."""

import json
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch

from cmixup.errors import InputError
from scripts.driver.provenance import CODE, PACKAGES, check_committed, run_environment

CPU = torch.device("cpu")


def git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    done = subprocess.run(["git", "-C", str(folder), *identity, *command], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A scratch repository with one committed file in a code folder, and one elsewhere."""
    code = tmp_path / "checkout"
    for name in ("cmixup/mix.py", "docs/page.md", ".gitignore"):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text("__pycache__/\n")
    git(tmp_path, "init", "--quiet", str(code))
    git(code, "add", ".")
    git(code, "commit", "--quiet", "--message", "all")
    return code


# ---- the code


def test_the_environment_has_what_is_needed_to_repeat_a_run() -> None:
    environment = run_environment(CPU)
    installed = {one.metadata["Name"]: one.version for one in metadata.distributions()}
    versions = {name: installed[name] for name in PACKAGES if name in installed}
    assert environment["commit"] == git(CODE, "rev-parse", "HEAD")
    assert environment["versions"] == {"python": platform.python_version(), **versions}
    assert {"torch", "numpy"} <= set(versions)
    assert environment["device"].startswith("cpu: ")
    assert environment["threads"] == torch.get_num_threads()
    json.dumps(environment)


def test_a_clean_checkout_is_not_dirty(checkout: Path) -> None:
    (checkout / "notes.txt").write_text("untracked, but no code")
    (checkout / "cmixup" / "__pycache__").mkdir()
    (checkout / "cmixup" / "__pycache__" / "mix.pyc").write_text("ignored")
    environment = run_environment(CPU, checkout)
    assert (environment["commit"], environment["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)


@pytest.mark.parametrize(
    "name", ["cmixup/mix.py", "docs/page.md", "configs/method/mine.yaml", "scripts/driver/mine.py"]
)
def test_a_changed_file_and_a_new_one_of_the_code_make_a_run_dirty(checkout: Path, name: str) -> None:
    (checkout / name).parent.mkdir(parents=True, exist_ok=True)
    (checkout / name).write_text("changed")
    assert run_environment(CPU, checkout)["dirty"]


def test_the_repository_is_that_of_the_code(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the current folder, of a hook's variables, or of a repository around a copy of the code."""
    head = run_environment(CPU)["commit"]
    monkeypatch.chdir(checkout)
    monkeypatch.setenv("GIT_DIR", str(checkout / ".git"))
    assert run_environment(CPU)["commit"] == head != git(checkout, "rev-parse", "HEAD")
    monkeypatch.delenv("GIT_DIR")
    (checkout / "vendored").mkdir()
    copied = run_environment(CPU, checkout / "vendored")
    assert (copied["commit"], copied["dirty"]) == ("", True)
    assert run_environment(CPU, tmp_path)["dirty"]


def test_the_environment_without_git(monkeypatch: pytest.MonkeyPatch, checkout: Path) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    environment = run_environment(CPU, checkout)
    assert (environment["commit"], environment["dirty"]) == ("", True)


# ---- what may be published


def test_runs_of_a_commit_of_this_checkout_may_be_published(checkout: Path) -> None:
    check_committed({"clean": run_environment(CPU, checkout)}, checkout)


@pytest.mark.parametrize(
    ("changes", "reason"), [({"dirty": True}, "made with uncommitted changes"),
    ({"commit": ""}, "made with uncommitted changes or by code of unknown commit"),
    ({"commit": "c0ffee" * 6 + "c0ff"}, "of a commit that is not in this checkout"),
    ({"commit": "--all"}, "of a commit that is not in this checkout")],
)  # fmt: skip
def test_others_are_refused_by_name(changes: dict[str, Any], reason: str, checkout: Path) -> None:
    clean = run_environment(CPU, checkout)
    runs = {"clean": clean, **{f"run {k}": clean | changes for k in range(5)}}
    with pytest.raises(InputError, match=rf"5 runs cannot be published \(run 0, run 1, run 2 and 2 more\): {reason}"):
        check_committed(runs, checkout)
