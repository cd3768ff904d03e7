"""Processes that work for this one: one that dies costs what it worked on alone, and all end with their parent."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from typing import Any

from scripts.driver.cli import USER_ERRORS

PARENT_LOOK = 1.0  # seconds between two looks at the parent

#: Takes a task and a function that reports progress.
Work = Callable[[Any, Callable[[Any], None]], None]


class Worker:
    """A process that takes one task after another; `work` is a function at the top of a module."""

    def __init__(self, context: SpawnContext, work: Work):
        self.connection, child_end = context.Pipe()
        self.process = context.Process(target=serve_tasks, args=(child_end, work))
        with _starting_a_process():
            self.process.start()
        child_end.close()

    def give(self, task: Any) -> None:
        """Give it a task; of a worker that is already dead `receive` tells."""
        with contextlib.suppress(OSError):
            self.connection.send(task)

    def receive(self) -> tuple[bool, Any]:
        """Return the next thing that it sends: whether the task has ended, and with what, or how it died itself."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            self.process.join()
            code = self.process.exitcode or 0
            ending = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
            memory = ", as it is where memory runs out" if code == -9 else ""
            return True, f"its process {ending}{memory}; the same command trains it again"

    def end(self) -> None:
        """End it at once."""
        self.process.terminate()
        self.process.join(5)
        self.process.kill()
        self.connection.close()


def run_tasks(tasks: Mapping[str, Any], work: Work, count: int, report: Callable[[str, bool, Any], None]) -> None:
    """Give tasks in turn to `count` workers; one that dies costs its task alone, and another follows it.

    `report` gets a task's name, whether it has ended, and what its worker sent, in the end what went wrong or None.
    """
    context, waiting = multiprocessing.get_context("spawn"), list(tasks)
    idle = [Worker(context, work) for _ in range(min(count, len(tasks)))]
    running: dict[Connection, tuple[Worker, str]] = {}
    try:
        while True:
            while waiting and len(running) < count:
                name = waiting.pop(0)
                worker = idle.pop() if idle else Worker(context, work)
                running[worker.connection] = (worker, name)
                worker.give(tasks[name])
            if not running:
                return
            for connection in wait(list(running)):
                assert isinstance(connection, Connection)
                worker, name = running[connection]
                exited, message = worker.receive()
                if exited:
                    del running[connection]
                    idle += [worker] if worker.process.is_alive() else []
                report(name, exited, message)
    finally:
        for worker in (*idle, *(worker for worker, _ in running.values())):
            worker.end()


@contextlib.contextmanager
def _starting_a_process() -> Iterator[None]:
    """Let processes that start meanwhile ignore Ctrl-C while they live, imports included, and import no command."""
    command, main_thread = sys.modules["__main__"], threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN) if main_thread else None
    sys.modules["__main__"] = types.ModuleType("__main__")  # that of the command would take them seconds
    try:
        yield
    finally:
        sys.modules["__main__"] = command
        if main_thread:
            signal.signal(signal.SIGINT, before)


def serve_tasks(connection: Connection, work: Work) -> None:
    """Do one task after another in a worker; an error ends its task alone, one that is not the user's is printed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to hear
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    end_with_parent()
    while True:
        try:
            task = connection.recv()
        except (EOFError, OSError):
            return
        problem = None
        try:
            work(task, lambda message: connection.send((False, message)))
        except USER_ERRORS as error:
            problem = str(error) or type(error).__name__
        except Exception as error:
            traceback.print_exc()
            problem = f"{type(error).__name__}: {' '.join(str(error).split())}"
        try:
            connection.send((True, problem))
        except OSError:
            return


def end_with_parent() -> None:
    """End this process when the one that started it ends, however that comes; the first process has none."""
    if (parent := multiprocessing.parent_process()) is None:
        return

    def watch() -> None:
        if sys.platform == "win32":  # where the number of a parent that has ended stays
            parent.join()
        else:  # joblib's processes have nothing to join
            while os.getppid() == parent.pid:
                time.sleep(PARENT_LOOK)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
