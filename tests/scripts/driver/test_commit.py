"""What a report says of the code: its commit, edits, and a digest, in a checkout and in copies elsewhere."""

import json
import os
import py_compile
import shutil
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Any

import pytest
import torch

from cmixup.errors import InputError
from scripts.driver import provenance
from scripts.driver.provenance import (
    CARRIED,
    CODE,
    check_committed,
    code_at,
    code_digest,
    note_commit,
    run_environment,
)
from scripts.machine.kernels import running_kernels

CPU = torch.device("cpu")


def test_the_environment_says_what_is_needed_to_repeat_a_run() -> None:
    found = run_environment(CPU)
    assert found["commit"] == git(CODE, "rev-parse", "HEAD")
    assert found["versions"]["torch"] == metadata.version("torch")
    assert found["versions"]["python"] == sys.version.split()[0]
    assert {"torch", "numpy"} <= set(found["versions"])
    assert found["device"].startswith("cpu: ")
    assert len(found["device"]) > 5
    assert found["kernels"] == running_kernels()
    assert found["threads"] == torch.get_num_threads()
    json.dumps(found)


def test_the_environment_without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run_environment(CPU, tmp_path)["commit"] == ""


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


def test_a_clean_checkout_is_not_dirty(checkout: Path) -> None:
    (checkout / "notes.txt").write_text("untracked, but no code")
    (checkout / "outputs").mkdir()
    (checkout / "outputs" / "run.json").write_text("{}")
    (checkout / "cmixup" / "__pycache__").mkdir()
    (checkout / "cmixup" / "__pycache__" / "mix.pyc").write_text("ignored")
    found = run_environment(CPU, checkout)
    assert (found["commit"], found["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)


def test_code_that_is_carried_without_git_keeps_its_commit_until_it_changes(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    note_commit(checkout)
    (checkout / ".git").rename(checkout / "elsewhere")
    found = run_environment(CPU, checkout)
    assert (found["commit"], found["dirty"]) == (head, False)
    (checkout / "cmixup/new.py").write_text("")
    found = run_environment(CPU, checkout)
    assert (found["commit"], found["dirty"]) == ("", True)


def test_the_commit_of_dirty_code_is_not_noted(checkout: Path) -> None:
    (checkout / "cmixup/mix.py").write_text("changed")
    note_commit(checkout)
    assert not (checkout / CARRIED).exists()


@pytest.mark.parametrize("name", ["cmixup/mix.py", "docs/page.md"])
def test_a_changed_tracked_file_makes_a_run_dirty(checkout: Path, name: str) -> None:
    (checkout / name).write_text("changed")
    assert run_environment(CPU, checkout)["dirty"]
    git(checkout, "add", ".")
    assert run_environment(CPU, checkout)["dirty"]


@pytest.mark.parametrize("folder", ["cmixup/methods", "configs/method", "datasets", "models", "scripts/driver"])
def test_an_untracked_file_of_the_code_makes_a_run_dirty(checkout: Path, folder: str) -> None:
    (checkout / folder).mkdir(parents=True, exist_ok=True)
    (checkout / folder / "mine.py").write_text("a method that nobody committed")
    assert run_environment(CPU, checkout)["dirty"]


def test_the_repository_asked_is_that_of_the_code(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are started from anywhere, and the current directory may be another repository."""
    head = run_environment(CPU)["commit"]
    monkeypatch.chdir(checkout)
    assert run_environment(CPU)["commit"] == head != git(checkout, "rev-parse", "HEAD")
    assert (CODE / "scripts/driver/provenance.py").is_file()


def test_commit_and_dirty_follow_the_code_and_nothing_else_changes(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    first = run_environment(CPU, checkout)
    assert (first["commit"], first["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)
    (checkout / "cmixup" / "mix.py").write_text("changed")
    code_digest.cache_clear()
    edited = run_environment(CPU, checkout)
    assert edited == {**first, "dirty": True, "code": code_digest(checkout)}
    git(checkout, "commit", "--quiet", "--all", "--message", "second")
    second = run_environment(CPU, checkout)
    assert second == {**edited, "commit": git(checkout, "rev-parse", "HEAD"), "dirty": False}
    assert (second["commit"], second["code"]) != (first["commit"], first["code"])


# ---- copies in other places than a checkout's


@pytest.fixture
def vendored(checkout: Path) -> Path:
    """A copy of the checkout without its history, in an ignored folder of somebody else's repository."""
    outer = checkout.parent / "outer"
    outer.mkdir()
    git(outer, "init", "--quiet")
    (outer / ".gitignore").write_text("/vendor/\n")
    git(outer, "add", ".")
    git(outer, "commit", "--quiet", "--message", "not ours")
    shutil.copytree(checkout, outer / "vendor", ignore=shutil.ignore_patterns(".git"))
    return outer / "vendor"


def test_a_copy_in_somebody_elses_repository_has_no_commit(vendored: Path) -> None:
    found = run_environment(CPU, vendored)
    assert (found["commit"], found["dirty"]) == ("", True)
    note_commit(vendored)
    assert not (vendored / CARRIED).exists()
    git(vendored.parent, "add", "--force", "vendor")  # nor if its files are tracked there
    git(vendored.parent, "commit", "--quiet", "--message", "ours, too")
    found = run_environment(CPU, vendored)
    assert (found["commit"], found["dirty"]) == ("", True)


def test_a_copy_in_somebody_elses_repository_keeps_the_commit_that_it_carries(checkout: Path, vendored: Path) -> None:
    note_commit(checkout)
    shutil.copy2(checkout / CARRIED, vendored)
    found = run_environment(CPU, vendored)
    assert (found["commit"], found["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)
    (vendored / "cmixup/mix.py").write_text("edited")
    found = run_environment(CPU, vendored)
    assert (found["commit"], found["dirty"]) == ("", True)
    for damaged in ("", "[]", "{}", '{"commit": "c0ffee"'):
        (vendored / CARRIED).write_text(damaged)
        assert run_environment(CPU, vendored)["commit"] == ""


def test_a_link_to_the_checkout_is_the_checkout(checkout: Path) -> None:
    (checkout.parent / "link").symlink_to(checkout)
    found = run_environment(CPU, checkout.parent / "link")
    assert (found["commit"], found["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)


@pytest.mark.parametrize(
    "names", [("GIT_DIR",), ("GIT_DIR", "GIT_WORK_TREE"), ("GIT_INDEX_FILE",), ("GIT_CEILING_DIRECTORIES",)]
)
def test_what_a_hook_sets_for_another_repository_changes_nothing(
    names: tuple[str, ...], checkout: Path, vendored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head, outer = git(checkout, "rev-parse", "HEAD"), vendored.parent
    (checkout / "cmixup/mix.py").write_text("edited")
    values = {
        "GIT_DIR": outer / ".git", "GIT_WORK_TREE": outer, "GIT_INDEX_FILE": outer / ".git/index",
        "GIT_CEILING_DIRECTORIES": checkout.parent,
    }  # fmt: skip
    for name in names:
        monkeypatch.setenv(name, str(values[name]))
    found = run_environment(CPU, checkout)
    assert (found["commit"], found["dirty"]) == (head, True)
    found = run_environment(CPU, vendored)
    assert (found["commit"], found["dirty"]) == ("", True)


def test_code_counts_as_edited_where_git_cannot_say(checkout: Path) -> None:
    (checkout / ".git/index").write_text("damaged")
    found = run_environment(CPU, checkout)
    assert (found["commit"], found["dirty"]) == (git(checkout, "rev-parse", "HEAD"), True)


# ---- what may be published


def test_the_digest_of_a_commit_is_that_of_a_clean_checkout(checkout: Path) -> None:
    head = git(checkout, "rev-parse", "HEAD")
    for name in (
        "cmixup/a.py",
        "cmixup/a/b.py",
        "cmixup/a-b.py",
        "models/net.py",
        "scripts/no_number.py",
        "models/x.txt",
    ):
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text(name)
    code_digest.cache_clear()
    assert code_at(head, checkout) != code_digest(checkout)
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "--message", "more")
    assert code_at(git(checkout, "rev-parse", "HEAD"), checkout) == code_digest(checkout)
    for unknown in ("0" * 40, "", "--output=file"):
        assert code_at(unknown, checkout) is None


def test_runs_of_a_clean_checkout_may_be_published_later_and_by_earlier_versions(checkout: Path) -> None:
    code_digest.cache_clear()
    run = run_environment(CPU, checkout)
    (checkout / "cmixup/mix.py").write_text("changed since")
    git(checkout, "commit", "--quiet", "--all", "--message", "later")
    check_committed({"now": run, "before": {key: value for key, value in run.items() if key != "code"}}, checkout)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dirty": True}, "uncommitted changes"),
        ({"commit": ""}, "unknown commit"),
        ({"commit": "0" * 40}, "not in this checkout"),
        ({"code": "0" * 12}, "other sources than their commit holds"),
    ],
)
def test_runs_of_edited_or_unknown_code_are_named(changes: dict[str, Any], said: str, checkout: Path) -> None:
    code_digest.cache_clear()
    clean = run_environment(CPU, checkout)
    runs = {"fine": clean, **{f"run {k}": clean | changes for k in range(5)}}
    with pytest.raises(InputError, match=rf"^5 runs cannot be published \(run 0, run 1, run 2 and 2 more\): .*{said}"):
        check_committed(runs, checkout)


@pytest.mark.parametrize("script", ["sleep 100", "sleep 100 & wait", r"printf 'a\\000b\\n'", r"printf '\\377\\n'"])
def test_a_git_that_does_not_answer_or_answers_nonsense_leaves_the_commit_unknown(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "git").write_text(f"#!/bin/sh\n{script}\n")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(provenance, "GIT_SECONDS", 0.3)
    monkeypatch.setattr(provenance, "_SILENT", set())
    began = time.monotonic()
    said = provenance.run_environment(torch.device("cpu"), tmp_path)
    assert (said["commit"], said["dirty"]) == ("", True)
    assert time.monotonic() - began < 20  # seconds: it did not wait for the script


@pytest.mark.parametrize("kind", [*PycInvalidationMode, "cut"])
def test_bytecode_that_is_not_its_source_s_is_found_however_python_checks_it(kind: Any, checkout: Path) -> None:
    source = checkout / "cmixup/mix.py"
    source.write_text("RATE = 2.0\n")
    os.utime(source, (1e9, 1e9))
    mode = PycInvalidationMode.TIMESTAMP if kind == "cut" else kind
    path = Path(py_compile.compile(str(source), invalidation_mode=mode))
    assert provenance.stale_bytecode(checkout) == []
    if kind == "cut":  # as a limit on the size of files leaves it
        path.write_bytes(path.read_bytes()[:40])
    else:
        source.write_text("RATE = 1.0\n")
    os.utime(source, (1e9, 1e9))
    seen = mode != PycInvalidationMode.CHECKED_HASH  # that Python makes anew itself
    assert provenance.stale_bytecode(checkout) == [path] * seen
    unchecked = [path] if mode == PycInvalidationMode.UNCHECKED_HASH else []
    assert provenance.unchecked_bytecode(checkout) == unchecked
    os.utime(source)  # now Python compares and makes bytecode with a time anew
    assert provenance.stale_bytecode(checkout) == unchecked


def test_files_of_a_package_are_held_to_its_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "small-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: small\nVersion: 1\n")
    (tmp_path / "small.py").write_text("")
    (about / "RECORD").write_text("small.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert provenance.changed_files("small") == []
    assert len(provenance.record_digest("small")) == 12
    (tmp_path / "small.py").write_text("edited = 1\n")
    assert provenance.changed_files("small") == [tmp_path / "small.py"]
