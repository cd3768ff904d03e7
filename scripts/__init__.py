"""Commands of the reproduction; each runs as `python -m scripts.<name>`, and `--help` says what it takes.

What Ctrl-C, SIGTERM and a Python without packages print stands here, since it holds while a command still imports;
nothing here imports torch.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from types import TracebackType

INTERRUPTED = "interrupted: run the same command to go on (what is done stays)"
SET_UP = "`make setup` installs what commands need, and .venv/bin/python runs them"
TERMINATED = "terminated: run the same command to go on (what is done stays)"


def print_interrupted(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print one line for Ctrl-C and a package that is missing, else the traceback; a `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        print(INTERRUPTED, file=sys.stderr)
    elif issubclass(kind, ModuleNotFoundError) and not os.environ.get("CMIXUP_TRACEBACK"):
        print(f"error: {error} in {sys.executable}: {SET_UP}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


def handle_sigterm() -> None:
    """End with one line and exit status 143 at SIGTERM, as after Ctrl-C; a second SIGTERM ends at once."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _end_process)


def _end_process(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.write(2, f"{TERMINATED}\n".encode())
    raise SystemExit(143)


if sys.argv[0] == "-m":  # while Python looks for the command: imports take seconds
    sys.excepthook = print_interrupted
    handle_sigterm()
