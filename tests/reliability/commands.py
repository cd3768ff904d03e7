"""Commands as processes of their own, and what may not differ between two runs of one."""

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from cmixup.files import DONE
from scripts.driver.runs import REPORT, RunFolder

REPO = Path(__file__).resolve().parents[2]
TRAIN = ("scripts.train", "dataset.synthetic=true", "logger=none")
TIMES = ("seconds", "started")  # of a report, which differ from one run of a command to the next


def start(words: tuple[str, ...], out: Path, *, shell: str = "exec {}", **environment: str) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, by a line of a shell in which `{}` stands for it."""
    command = shlex.join([sys.executable, "-m", *words, f"out={out}"])
    return subprocess.Popen(
        ["bash", "-c", shell.format(command)], cwd=REPO, env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
    )  # fmt: skip


def run(words: tuple[str, ...], out: Path, **how: str) -> tuple[int, str]:
    """Run a command to its end; return its exit status and what it printed."""
    process = start(words, out, **how)
    text = process.communicate(timeout=300)[0]
    return process.returncode, text


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a command and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def undisturbed(words: tuple[str, ...], out: Path) -> dict[str, Any]:
    """Run a command that nothing disturbs; return what it leaves."""
    code, text = run(words, out)
    assert code == 0, text
    return content(out)


def content(folder: Path) -> dict[str, Any]:
    """Return what may not differ between two runs of a command: every file below a folder, without times and places."""
    return {
        path.relative_to(folder).as_posix(): _content(path, folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "sweeps" not in path.parts and path.name[0] != "."  # temporary files of the killed
    }


def _content(path: Path, root: Path) -> Any:
    if path.name == DONE:
        return "done"  # it has sizes, and a report's depends on its times
    if path.name == REPORT:
        return {key: value for key, value in json.loads(path.read_text()).items() if key not in TIMES}
    return path.read_bytes().replace(str(root).encode(), b"OUT")


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the files that are not in both, or not the same in both."""
    return [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]


def half_files(out: Path) -> list[str]:
    """Return the files of finished runs that are not whole, and empty or broken files beside them."""
    paths = [damage for done in out.rglob(DONE) if (damage := RunFolder(done.parent).damage())]
    for path in out.rglob("[!.]*"):
        if path.suffix in (".csv", ".yaml", ".pt", ".h5", ".json") and not path.stat().st_size:
            paths.append(str(path))
        elif path.suffix == ".json":
            json.loads(path.read_text())
    return paths


def finished(out: Path) -> dict[str, tuple[int, int]]:
    """Return the finished runs below a folder, each with inode and time, which change if it is finished again."""
    return {str(done.parent): (done.stat().st_ino, done.stat().st_mtime_ns) for done in out.rglob(DONE)}


def check_disturbed(words: tuple[str, ...], out: Path, expected: dict[str, Any]) -> None:
    """Check that a disturbed command left no half file and, started again, ends as undisturbed and repeats nothing."""
    assert half_files(out) == []
    before = finished(out)
    code, text = run(words, out)
    assert code == 0, text
    assert finished(out).items() >= before.items()
    assert differences(content(out), expected) == []
