"""One step of CI: a line of shell in the repository's root, its limit, and the tree that it leaves.

Needs nothing but Python: what calls it is run before there is a virtual environment.
"""

import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
LAST = 25  # lines of what a failing command said


class Red(Exception):
    """What makes CI red, as a sentence."""


def run(line: str, limit: float, *, shown: bool = False, repo: Path = REPO) -> float:
    """Run a line of shell and return its seconds.

    Args:
        line: as typed.
        limit: seconds after which it and all that it started are killed.
        shown: what it says goes to the terminal as it comes, instead of being quoted if it fails.
        repo: where it is run.

    Raises:
        Red: it failed or did not end in time.
    """
    started = time.monotonic()
    with tempfile.TemporaryFile("w+", errors="replace") as said:
        process = subprocess.Popen(
            ["bash", "-c", line], cwd=repo, stdin=subprocess.DEVNULL, start_new_session=True,
            stdout=None if shown else said, stderr=None if shown else subprocess.STDOUT,
        )  # fmt: skip
        try:
            code = process.wait(limit)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            code = None
        said.seek(0)
        quoted = "".join(f"\n    {each.rstrip()}" for each in said.readlines()[-LAST:])
    if code is None:
        raise Red(f"`{line}` has not ended after {limit:.0f} s and was stopped{quoted}")
    if code:
        raise Red(f"`{line}` ended with {code}{quoted}")
    return time.monotonic() - started


def changed(repo: Path = REPO) -> str:
    """Return what git says has changed in the tree and is not ignored."""
    command = ["git", "-C", str(repo), "status", "--porcelain"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def check_clean(line: str, before: str, repo: Path = REPO) -> None:
    """Compare the tree with what had changed before a line was run.

    Raises:
        Red: something else has changed now.
    """
    if (now := changed(repo)) != before:
        raise Red(f"`{line}` leaves the tree changed:\n{now or 'nothing, though something was before'}")


def processor() -> str:
    """Return the kind of processor and how many of them this process may use."""
    info = Path("/proc/cpuinfo")
    names = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} x {names[0] if names else 'unknown'}"
