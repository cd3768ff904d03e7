"""A seed is worked on by one process at a time, and a dead one holds nothing."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scripts.driver.locks import holding_locks


def test_what_is_held_is_not_taken(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    with holding_locks(folder, ["a", "b"]) as mine, holding_locks(folder, ["b", "c"]) as yours:
        assert (mine, yours) == (["a", "b"], ["c"])
    with holding_locks(folder, ["a", "b", "c"]) as mine:
        assert mine == ["a", "b", "c"]


@contextmanager
def held_by_another(folder: Path, *names: str) -> Iterator["subprocess.Popen[str]"]:
    """Let another process hold locks, until it is killed or the block ends."""
    code = (
        "import sys, time; from pathlib import Path; from scripts.driver.locks import holding_locks\n"
        f"with holding_locks(Path({str(folder)!r}), {list(names)}) as mine:\n"
        "    print(mine, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{list(names)}\n"
        yield process
        process.kill()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows does not fork")
def test_a_forked_process_does_not_keep_a_lock(tmp_path: Path) -> None:
    """Such as one that reads data ahead and outlives the work."""
    with holding_locks(tmp_path / "locks", ["a"]):
        child = os.fork()
        if not child:
            signal.pause()
    with holding_locks(tmp_path / "locks", ["a"]) as mine:
        assert mine == ["a"]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
