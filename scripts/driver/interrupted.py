"""What Ctrl-C says, also while a command still imports."""

from __future__ import annotations

import sys
from types import TracebackType

INTERRUPTED = "interrupted: run the same command to go on (what is done stays)"


def say_interrupted(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print one line for Ctrl-C, and the traceback of everything else; a `sys.excepthook`."""
    if issubclass(kind, KeyboardInterrupt):
        print(INTERRUPTED, file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)
