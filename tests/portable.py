"""A plugin of pytest that hides what only POSIX systems have, as on Windows: `make test-portable`.

It hides the modules fcntl, resource, pwd, grp and termios, `os.fork`, `os.sched_getaffinity`, `select.poll`, the start
method "fork" and the signals that Windows lacks, before any of our modules is imported. Other processes that a test
starts see all of them, but for workers, which are spawned. Tests that are about what is hidden are left out by name.
"""

import multiprocessing
import os
import select
import signal
import subprocess
import sys

MODULES = ("fcntl", "resource", "pwd", "grp", "termios")
FUNCTIONS = {os: ("fork", "sched_getaffinity"), select: ("poll",)}
SIGNALS = ("SIGKILL", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGSTOP", "SIGCONT", "SIGQUIT", "SIGPIPE")
# SIGCHLD stays: PyTorch's loader asks for it wherever it is not on Windows.
KILL = 9  # Python's own `Popen.kill` asks for it by its name
#: Files whose tests are about POSIX systems: locks of the kernel, forked processes, signals.
POSIX_TESTS = (
    "tests/scripts/driver/test_workers.py", "tests/scripts/driver/test_locks.py", "tests/test_files.py",
    "tests/test_connections.py", "tests/scripts/plan/test_time_budget.py", "tests/scripts/test_sweeps.py",
    "tests/scripts/driver/test_durable_runs.py", "tests/robustness", "tests/quickstart",
)  # fmt: skip


def hide() -> None:
    """Hide them in this process."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for module, names in FUNCTIONS.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    for name in SIGNALS:
        if hasattr(signal, name):
            delattr(signal, name)
    subprocess.Popen.kill = lambda self: self.send_signal(KILL)  # type: ignore[method-assign]
    multiprocessing.get_all_start_methods = lambda: ["spawn"]  # type: ignore[method-assign]
    multiprocessing.set_start_method("spawn", force=True)


hide()


def pytest_ignore_collect(collection_path: object) -> bool | None:
    """Leave out the tests of what is hidden."""
    return any(name in str(collection_path).replace("\\", "/") for name in POSIX_TESTS) or None
