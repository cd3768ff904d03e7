"""Commands as processes of their own, without three seconds of imports each: they are forked from one that has them.

A forked process runs a command as `python -m` would, in a process group of its own. The pools of `scripts.reproduce`
and `scripts.tune` are forked, too, where a command on its own would start Python anew.
"""

import contextlib
import functools
import importlib
import json
import math
import multiprocessing
import os
import runpy
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmixup.done import DONE
from scripts.config.compose import compose_train
from scripts.driver.runs import REPORT, find_damage
from scripts.driver.workers import end_with
from scripts.records.lines import from_lines

TINY = ("dataset.synthetic=true", "logger=none")
MODULES = (
    "hydra.main", "scipy.optimize", "pandas", "matplotlib.figure", "h5py", "sklearn.model_selection", "torch",
    "scripts.driver.execute", "scripts.plan.cells", "scripts.records.experiment", "scripts.records.published",
    "scripts.records.tables", "scripts.report.figures", "scripts.report.sweep_figure", "scripts.report.terminal",
    "datasets.no2", "datasets.exchange_rate", "datasets.pascal1d", "models.fcn3", "models.lstnet", "models.conv_maml",
    "cmixup.methods.mix", "cmixup.methods.erm", "cmixup.methods.mixrl", "cmixup.methods.metamix",
)  # fmt: skip
#: Choices of groups that are composed before the first command is forked.
WARM = (["dataset=no2", "method=cmixup"], ["dataset=no2", "method=mixup"], ["dataset=no2", "method=erm"],
        ["dataset=no2", "method=mixrl"], ["dataset=pascal1d", "method=maml"],
        ["dataset=exchange_rate", "method=mixup"], ["dataset=no2", "debug=tiny"])  # fmt: skip
CRASH = 99  # exit status of a process that ended itself where it was told to
CHANGES = ("seconds", "started")  # of a report from one run of a command to the next


def import_all() -> None:
    """Import what the commands import, before the first is forked; threads do not survive a fork, so none is made."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    for name in MODULES:
        importlib.import_module(name)
    for given in WARM:
        compose_train(given)


@dataclass(frozen=True)
class Command:
    """A command to run.

    Attributes:
        module: `scripts.<name>`.
        words: its command line.
        before: called in the process before it, to point it at a folder.
    """

    module: str
    words: tuple[str, ...]
    before: Callable[[], None] | None = None

    def start(self, log: Path) -> int:
        """Start it and return its process; what it prints is added to `log`."""
        log.parent.mkdir(parents=True, exist_ok=True)
        sys.stdout.flush()
        sys.stderr.flush()
        parent, process = os.getpid(), os.fork()
        if process:
            with contextlib.suppress(OSError):
                os.setpgid(process, process)
            return process
        code = 70
        try:
            os.setpgid(0, 0)
            end_with(parent)
            code = self._run(log)
        finally:
            os._exit(code)

    def _run(self, log: Path) -> int:
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for stream in (1, 2):
            os.dup2(handle, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        pools: Any = multiprocessing
        pools.get_context = functools.partial(_forking, multiprocessing.get_context("fork"))
        job: Any = sys.modules["scripts.driver.execute"]
        job.run_environment = _environment
        if self.before:
            self.before()
        sys.argv = [self.module, *self.words]
        code: Any = 0
        try:
            runpy.run_module(self.module, run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            code = ended.code
        except BaseException:
            traceback.print_exc()
            code = 1
        for stream in filter(None, (sys.stdout, sys.stderr)):  # there is none where they were closed
            stream.flush()
        return code if isinstance(code, int) else 0 if code is None else 1

    def run(self, log: Path, limit: float = 300.0) -> int:
        """Run it to its end and return its exit status, minus a signal's number; after `limit` seconds it is killed."""
        return ended(self.start(log), limit)


def _environment(device: Any) -> dict[str, Any]:
    """Describe the code as committed, and as the same whatever somebody commits while trials run."""
    return {"commit": "0" * 40, "dirty": False, "device": str(device), "versions": {}}


def _forking(context: Any, *_: str) -> Any:
    """Return a way of starting processes, whatever is asked for."""
    return context


def ended(process: int, limit: float = 300.0) -> int:
    """Wait for a process and return its exit status, minus a signal's number; after `limit` seconds it is killed."""
    until = time.monotonic() + limit
    while True:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process, signal.SIGKILL)
            return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        time.sleep(0.01)


def left_of(group: int, patience: float = 5.0) -> list[int]:
    """Return the processes of a group that still live after `patience` seconds."""
    until = time.monotonic() + patience
    while True:
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if int(fields[2]) == group and fields[0] not in "ZX":
                    found.append(int(stat.parent.name))
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.02)


def content(folder: Path) -> dict[str, Any]:
    """Return what may not differ between two runs of a command: every file below a folder, without times and places."""
    return {
        path.relative_to(folder).as_posix(): _content(path, folder)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "sweeps" not in path.parts
    }


def _content(path: Path, root: Path) -> Any:
    if path.name == DONE:
        return "done"  # it holds sizes, and a report's depends on its times
    if path.name == REPORT:
        return {key: value for key, value in json.loads(path.read_text()).items() if key not in CHANGES}
    if path.suffix == ".jsonl":
        reports = from_lines(path.read_text().splitlines())
        return [{key: value for key, value in report.items() if key not in CHANGES} for report in reports]
    return path.read_bytes().replace(str(root).encode(), b"OUT")


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """Return the files that are not in both, or not the same in both."""
    return [name for name in sorted({*one, *other}) if one.get(name, math.inf) != other.get(name, math.inf)]


def half_files(out: Path) -> list[str]:
    """Return the files below a folder that are there under their names and are not whole."""
    found = [str(bad[0]) for done in out.rglob(DONE) if (bad := find_damage(done.parent))]
    for path in out.rglob("*"):
        if path.suffix in (".json", ".jsonl") and path.name[0] != ".":
            try:
                for line in [path.read_text()] if path.suffix == ".json" else path.read_text().splitlines():
                    json.loads(line)
            except FileNotFoundError:
                continue
            except ValueError:
                found.append(str(path))
        elif path.suffix in (".csv", ".yaml", ".pt", ".h5") and path.name[0] != "." and not path.stat().st_size:
            found.append(str(path))
    return found


def finished(out: Path) -> dict[str, tuple[int, int]]:
    """Return the finished runs below a folder, each with what tells whether it has been finished again."""
    return {done.parent.relative_to(out).as_posix(): _state(done) for done in out.rglob(DONE)}


def _state(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_ino, about.st_mtime_ns


def tail(log: Path, lines: int = 3) -> str:
    """Return the last words of a log, in one line."""
    text = log.read_text().strip() if log.is_file() else ""
    return " | ".join(text.splitlines()[-lines:])


def words(*given: str, out: Path) -> tuple[str, ...]:
    """Return a command line of scripts.train for tiny runs on synthetic data."""
    return (*TINY, *given, f"out={out}")


def start_again(command: Command, out: Path, log: Path, reference: dict[str, Any]) -> list[str]:
    """Run a command that was disturbed once more; return what is wrong with it or with what it leaves in `out`.

    Args:
        command: as it is, without a disturbance.
        out: the folder of the disturbed run.
        log: the file for what it prints.
        reference: the content of a folder that nothing disturbed.
    """
    before, code = finished(out), command.run(log)
    now = finished(out)
    wrong = [f"the second start ended with {code}: {tail(log)}"] if code else []
    wrong += [f"trained again: {name}" for name, state in before.items() if now.get(name) != state]
    return wrong + [f"not as undisturbed: {name}" for name in differences(content(out), reference)]
