"""Options, labels and error messages that the commands share."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator

from cmixup.errors import InputError
from scripts.driver.execute import Diverged
from scripts.driver.interrupted import INTERRUPTED, hear_sigterm
from scripts.driver.job import Job
from scripts.driver.runs import is_done, read_report

# Verdicts on a bandwidth with which C-Mixup is another method.
NO_EFFECT = ("self-pairing only: this is ERM", "indistinguishable from mixup")


def label(job: Job) -> str:
    """Return a job in a few words."""
    options = " ".join(f"{key}={value}" for key, value in job.options.items())
    parts = [job.config["dataset"]["name"], job.config["method"]["name"], job.config["preset"], options]
    return " ".join(part for part in parts if part)


def warnings(job: Job) -> list[str]:
    """Return a line for each bandwidth of a job's finished runs with which the method is ERM or mixup."""
    reports = [read_report(job.run_folder(seed)) for seed in job.seeds if is_done(job.run_folder(seed))]
    found = {(r["bandwidth"], r["verdict"]) for r in reports if r["verdict"] in NO_EFFECT}
    return [f"warning: {label(job)}: bandwidth {bandwidth:g}: {verdict}" for bandwidth, verdict in sorted(found)]


#: What a user can mend.
USER_ERRORS = (InputError, OSError, Diverged)


@contextlib.contextmanager
def user_errors() -> Iterator[None]:
    """Turn an error that a user can mend into one line on stderr and exit code 2, and Ctrl-C into one and 130.

    SIGTERM is one line, too, and 143.
    """
    hear_sigterm()
    try:
        yield
    except KeyboardInterrupt:
        print(INTERRUPTED, file=sys.stderr)
        raise SystemExit(130) from None
    except USER_ERRORS as error:
        if os.environ.get("CMIXUP_TRACEBACK"):
            raise
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(2) from None
