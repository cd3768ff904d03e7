"""A run is whole or absent, and an error of the disk is an error: each tried for real, a few times.

More of the same: `RELIABILITY_TIMES=10 make reliability`.
"""

import errno
import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reliability.commands import (
    TRAIN,
    check_disturbed,
    content,
    differences,
    half_files,
    kill,
    run,
    start,
    undisturbed,
)  # fmt: skip

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
TIMES = int(os.environ.get("RELIABILITY_TIMES", "1"))
STACK = (*TRAIN, "dataset=no2", "method=cmixup", "seeds=0..2", "train.epochs=4", "checkpoint_every=2")
SMALL = (*TRAIN, "dataset=no2", "method=cmixup", "seeds=0..1", "train.epochs=2")
COMMANDS = {
    "one seed": (*TRAIN, "dataset=no2", "method=cmixup", "seed=3", "train.epochs=8", "checkpoint_every=1"),
    "a stack": STACK,
    "a stack without checkpoints": (*TRAIN, "dataset=no2", "method=cmixup", "seeds=0..2", "train.epochs=4"),
    "one after the other": (*TRAIN, "dataset=no2", "method=mixrl", "method.outer=3", "method.n_in=2", "seeds=0..1",
                            "train.epochs=4", "checkpoint_every=1"),
    "a sequence model": (*TRAIN, "dataset=exchange_rate", "method=mixup", "seeds=0..1", "train.epochs=2",
                         "model.channels=3", "model.hidden=3", "checkpoint_every=1"),
    "tuning": ("scripts.tune", "dataset=no2", "method=erm", "dataset.synthetic=true", "epochs=1", "jobs=2"),
}  # fmt: skip


def count_errors(text: str) -> int:
    """Return how many lines of a command's output are errors."""
    return sum(line.startswith("error: ") for line in text.splitlines())


@pytest.mark.parametrize("name", COMMANDS)
def test_a_killed_command_loses_nothing(name: str, tmp_path: Path) -> None:
    words, rng = COMMANDS[name], random.Random(name)
    began = time.monotonic()
    expected = undisturbed(words, tmp_path / "whole")
    seconds = time.monotonic() - began
    for number in range(3 * TIMES):
        out = tmp_path / f"killed{number}"
        for _ in range(2):  # the second goes on from the first
            process = start(words, out)
            time.sleep(rng.uniform(0.5, 1.0) * seconds)  # the first half are imports
            kill(process)
        check_disturbed(words, out, expected)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of fail_nth.c."""
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    made = tmp_path_factory.mktemp("library") / "fail_nth.so"
    source = Path(__file__).with_name("fail_nth.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", str(source), "-o", str(made), "-ldl"], check=True)
    return made


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, 0], ids=["EIO", "ENOSPC", "killed"])
@pytest.mark.parametrize("kind", ["write", "fsync", "rename", "close"])
def test_the_nth_call_fails(kind: str, error: int, library: Path, tmp_path: Path) -> None:
    expected, out = undisturbed(SMALL, tmp_path / "whole"), tmp_path / "out"
    which = ("write", "fsync", "rename", "close").index(kind)
    given = {"LD_PRELOAD": str(library), "FAIL_BELOW": str(out), "FAIL_KIND": str(which)}
    run(SMALL, out, **given, FAIL_COUNTS=str(tmp_path / "counts"))
    calls = int((tmp_path / "counts").read_text().split()[which])
    assert calls
    for at in sorted(random.Random(kind).sample(range(1, calls + 1), min(calls, 4 * TIMES))):
        shutil.rmtree(out)
        code, text = run(SMALL, out, **given, FAIL_AT=str(at), FAIL_ERROR=str(error))
        assert code in ((99,) if not error else (2,) if kind == "fsync" else (0, 2)), text
        assert "Traceback" not in text
        assert count_errors(text) == (code == 2), text
        check_disturbed(SMALL, out, expected)


@pytest.mark.parametrize(
    ("first", "second"),
    [("seeds=0..2", "seeds=0..2"), ("seeds=0..2", "seeds=1..3"), ("seeds=0..1", "seed=1"), ("seed=0", "seeds=0..2")],
)
def test_two_commands_at_once_train_no_seed_twice(first: str, second: str, tmp_path: Path) -> None:
    words = (*TRAIN, "dataset=no2", "method=cmixup", "train.epochs=6", "checkpoint_every=2")
    both, expected = [(*words, first), (*words, second)], list[dict[str, Any]]()
    for order in (both, both[::-1]):
        out = tmp_path / f"in-turn{len(expected)}"
        for item in order:
            undisturbed(item, out)
        expected.append(content(out))
    for number in range(2 * TIMES):
        out = tmp_path / f"raced{number}"
        started = []
        for item in both:
            started.append(start(item, out))
            time.sleep(random.Random(number).uniform(0, 0.6))
        for process in started:
            text = process.communicate(timeout=300)[0]
            assert process.returncode == 0, text
        assert [] in [differences(content(out), item) for item in expected]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 4 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], check=False).returncode:
        pytest.skip("a small disk can be mounted by root alone")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.parametrize("room", [0.0, 0.3, 0.7])
def test_a_full_disk_is_one_line(room: float, small_disk: Path, tmp_path: Path) -> None:
    expected, out = undisturbed(STACK, tmp_path / "whole"), small_disk / "out"
    needed = sum(4096 * -(-path.stat().st_size // 4096) for path in (tmp_path / "whole").rglob("*"))
    (small_disk / "filler").write_bytes(bytes(4 * 2**20 - 8192 - int(room * needed)))
    code, text = run(STACK, out)
    assert code == 2, text
    assert text.count("No space left") == 1
    assert "Traceback" not in text
    (small_disk / "filler").unlink()
    check_disturbed(STACK, out, expected)


@pytest.mark.parametrize(
    "shell",
    [
        "HOME=/dev/null/home exec {}", "unset HOME; exec {}", "TMPDIR=/nowhere exec {}", "umask 077; exec {}",
        "ulimit -n 64; exec {}", "exec {} <&-", "exec {} >&- 2>&- <&-", "{} | true", "PYTHONIOENCODING=ascii exec {}",
        "CMIXUP_OUT=/dev/null exec {}",
    ],
)  # fmt: skip
def test_a_command_ends_well_in_a_poor_environment(shell: str, tmp_path: Path) -> None:
    expected = undisturbed(SMALL, tmp_path / "whole")
    code, text = run(SMALL, tmp_path / "out", shell=shell)
    assert (code, "Traceback" in text) == (0, False), text
    assert differences(content(tmp_path / "out"), expected) == []


@pytest.mark.parametrize(
    "shell", ["exec {} >/dev/full", "ulimit -f 4; exec {}", "mkdir -p $(dirname $OUT); touch $OUT; exec {}"]
)
def test_a_command_that_cannot_write_says_so_in_one_line(shell: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, text = run(SMALL, out, shell=shell, OUT=str(out))
    assert "Traceback" not in text
    assert code in (0, 2), text
    assert count_errors(text) == (code == 2), text
    if out.is_dir():
        assert half_files(out) == []
        check_disturbed(SMALL, out, undisturbed(SMALL, tmp_path / "whole"))
