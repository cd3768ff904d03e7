"""What the command lines of all commands share."""

from __future__ import annotations

import json
import os
import sys

from cmixup.errors import InputError
from scripts.driver.job import Diverged, Job

# Bandwidths under which C-Mixup is another method.
NO_EFFECT = ("self-pairing only: this is ERM", "indistinguishable from mixup")


def label(job: Job) -> str:
    """Return a job in a few words."""
    options = " ".join(f"{key}={value}" for key, value in job.options.items())
    parts = [job.plain["dataset"]["name"], job.plain["method"]["name"], job.plain["preset"], options]
    return " ".join(part for part in parts if part)


def warnings(job: Job) -> list[str]:
    """Return a line for each bandwidth among a job's finished runs under which its method is another one."""
    paths = [job.run_folder(seed) / "report.json" for seed in job.seeds]
    reports = [json.loads(path.read_text()) for path in paths if path.is_file()]
    found = {(r["bandwidth"], r["verdict"]) for r in reports if r["verdict"] in NO_EFFECT}
    return [f"warning: {label(job)}: bandwidth {bandwidth:g}: {verdict}" for bandwidth, verdict in sorted(found)]


class user_errors:  # noqa: N801 - reads as a statement
    """Turn errors that a user can mend into one line on stderr and exit code 2."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (InputError, OSError, Diverged)) and not os.environ.get("CMIXUP_TRACEBACK"):
            print(f"error: {error}", file=sys.stderr)
            raise SystemExit(2) from None


def chosen(name: str, text: str, known: list[str]) -> list[str]:
    """Return the comma-separated names in `text`, or all that are known."""
    found = [part.strip() for part in text.split(",") if part.strip()] or known
    for part in found:
        if part not in known:
            raise InputError(f"{name} must be among {', '.join(known)}, got {part!r}")
    return found
