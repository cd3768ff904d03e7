"""Error messages that the commands share, and those of Hydra's sweeps (`python -m scripts.train -m ...`).

A job of a sweep that fails does not end it, and is named at the end. Launchers run jobs in this process or in others,
so a job that fails leaves a file in the sweep's folder. Hydra calls `ReportFailures` in the first process once all
jobs have ended, and it reads these files.
"""

import contextlib
import io
import math
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

from cmixup.errors import InputError
from cmixup.files import DONE, write_atomically
from scripts import INTERRUPTED
from scripts.config.words import as_typed
from scripts.driver.execute import Diverged
from scripts.driver.job import Job
from scripts.driver.runs import RunFolder

_PRINTED: set[str] = set()  # lines that this process has printed once
FAILED = "failed"  # folder below a sweep's, of its jobs that did
# Verdicts on a bandwidth with which C-Mixup is another method.
NO_EFFECT = ("self-pairing only: this is ERM", "indistinguishable from mixup")


def bandwidth_warnings(job: Job) -> list[str]:
    """Return a line for each bandwidth of a job's finished runs with which the method is ERM or mixup."""
    folders = [RunFolder(job.run_folder(seed)) for seed in job.seeds]
    reports = [folder.report() for folder in folders if (folder.path / DONE).is_file()]
    pairs = {(r["bandwidth"], r["verdict"]) for r in reports if r["verdict"] in NO_EFFECT}
    return [f"warning: {job.label}: bandwidth {bandwidth:g}: {verdict}" for bandwidth, verdict in sorted(pairs)]


#: What a user can correct.
USER_ERRORS = (InputError, OSError, Diverged)


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Turn an error that a user can correct into one line on stderr and exit code 2, and Ctrl-C into one and 130.

    SIGTERM is one line, too, and 143. A command whose output nobody reads any more ends without a word, and 0.
    """
    try:
        for stream in (sys.stdout, sys.stderr):  # a sign that an encoding lacks, such as "±" in ASCII, is a "?"
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="replace")
        yield
        if sys.stdout:
            sys.stdout.flush()
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python still wants to print at its end
        raise SystemExit(0) from None
    except USER_ERRORS as error:
        if os.environ.get("CMIXUP_TRACEBACK"):
            raise
        print(f"error: {as_typed(str(error))}", file=sys.stderr)
        try:
            print(end="", flush=True)
        except OSError:  # a full disk: Python would fail at its end to print what is left, and exit with 120
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(2) from None


def print_once(lines: Iterable[str]) -> None:
    """Print lines on stderr, each once, also where a process runs several jobs of a sweep."""
    for line in lines:
        if line not in _PRINTED:
            print(line, file=sys.stderr)
        _PRINTED.add(line)


def guarded_job(job: Callable[[], float]) -> float:
    """Run a job of a sweep; one that fails says so in a line, leaves a file, and returns the worst score there is.

    That is infinity, or minus infinity for a sweeper that maximises: Optuna takes no NaN. An error that is not the
    user's keeps its traceback in that file.
    """
    try:
        return job()
    except Exception as error:
        if os.environ.get("CMIXUP_TRACEBACK") or isinstance(error, BrokenPipeError):
            raise
        hydra = HydraConfig.get()
        prefix = "" if isinstance(error, USER_ERRORS) else f"{type(error).__name__}: "
        message = prefix + " ".join(as_typed(str(error)).split())
        line = f"{as_typed(' '.join(hydra.overrides.task))}: {message}"
        details = "\n" + traceback.format_exc() if prefix else ""
        write_atomically(Path(hydra.sweep.dir) / FAILED / f"{int(hydra.job.num):06d}.txt", f"{line}\n{details}")
        print(f"failed: {line}", file=sys.stderr)
        return -math.inf if hydra.sweeper.get("direction") == "maximize" else math.inf


class ReportFailures(Callback):
    """Ends a sweep with a line for every job that failed, and exit status 1 if one did."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Read what the jobs left."""
        folder = Path(config.hydra.sweep.dir) / FAILED
        if failures := sorted(folder.glob("*.txt")):
            print(f"{len(failures)} of the sweep's jobs failed ({folder}); the others are done:", file=sys.stderr)
            for path in failures:
                print(f"- {as_typed(path.read_text().splitlines()[0])}", file=sys.stderr)
            raise SystemExit(1)
