"""Sweeps of Hydra (`python -m scripts.train -m ...`): a job that fails does not end them, and is named at the end.

Every launcher runs jobs in its own way, in this process or in others, so a job that fails leaves a file in the sweep's
folder, and `ReportFailures`, which Hydra calls in the first process once all jobs have ended, reads them.
"""

from __future__ import annotations

import math
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from hydra.types import RunMode
from omegaconf import DictConfig

from cmixup.files import write_atomically
from scripts.driver.cli import USER_ERRORS

FAILED = "failed"  # folder below the sweep's


def in_sweep() -> bool:
    """Return whether this process runs a job of a sweep."""
    return bool(HydraConfig.initialized() and HydraConfig.get().mode == RunMode.MULTIRUN)


def guarded(job: Callable[[], float]) -> float:
    """Run a job of a sweep; one that fails says so in a line, leaves a file, and returns the worst score there is.

    That is infinity, or minus infinity for a sweeper that maximises: Optuna takes no NaN. An error that is not the
    user's keeps its traceback in that file.
    """
    try:
        return job()
    except Exception as error:
        if os.environ.get("CMIXUP_TRACEBACK"):
            raise
        hydra = HydraConfig.get()
        kind = "" if isinstance(error, USER_ERRORS) else f"{type(error).__name__}: "
        line = f"{' '.join(hydra.overrides.task)}: {kind}{' '.join(str(error).split())}"
        more = "\n" + traceback.format_exc() if kind else ""
        write_atomically(Path(hydra.sweep.dir) / FAILED / f"{int(hydra.job.num):06d}.txt", f"{line}\n{more}")
        print(f"failed: {line}", file=sys.stderr)
        return -math.inf if hydra.sweeper.get("direction") == "maximize" else math.inf


class ReportFailures(Callback):
    """Ends a sweep with a line for every job that failed, and exit status 1 if one did."""

    def on_multirun_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Read what the jobs left.

        Raises:
            SystemExit: a job failed.
        """
        folder = Path(config.hydra.sweep.dir) / FAILED
        if found := sorted(folder.glob("*.txt")):
            print(f"{len(found)} of the sweep's jobs failed ({folder}); the others are done:", file=sys.stderr)
            for path in found:
                print(f"- {path.read_text().splitlines()[0]}", file=sys.stderr)
            raise SystemExit(1)
