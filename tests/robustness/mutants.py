"""Put mutants into the code, one at a time, and say which of them the tests see.

A mutant is a small mistake that somebody could make, with the tests that must fail if it is made; tests/mutants/*.yaml
list them. They are put into copies of the checkout in a temporary folder, never into the checkout itself. The exit
status is 1 if a mutant survives without a reason, no longer applies, or cannot be judged because its tests fail or do
not run without it. Example: `python -m tests.robustness.mutants only=fish jobs=1`.
"""

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, fields
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from cmixup.errors import InputError
from scripts.config.arguments import Args, parse_args
from scripts.config.compose import read_part
from scripts.driver.cli import user_errors
from scripts.driver.provenance import git_environment

ROOT = Path(__file__).resolve().parents[2]
MUTANTS = ROOT / "tests" / "mutants"
KEYS = {"only": "mutants whose file, text or reason contains this; default all",
        "jobs": "how many at a time; default one a core"}  # fmt: skip
# Imported once a copy: every run of tests is forked from there, since these imports are most of its time. None of them
# is ours, so that a mutant is imported anew.
PRELOAD = ("torch", "pandas", "matplotlib.figure", "hydra", "hypothesis", "scipy.optimize", "sklearn.datasets")
SERVER = """
import importlib, os, sys
import pytest
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except ImportError:
        pass
for line in sys.stdin:
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        said = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", *line.split()])
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
KILLED, SURVIVES, NO_MATCH = "killed", "SURVIVES", "does not apply"
BROKEN, UNUSABLE = "its tests fail without it", "its tests do not run"
PASSED, FAILED, EMPTY = 0, 1, 5  # exit codes of pytest; all others say that it could not run the tests


@dataclass(frozen=True)
class Mutant:
    """A mistake, and who should see it.

    Attributes:
        file: where it is made, from the root of the checkout.
        old: text that occurs once in the file.
        new: what takes its place.
        tests: what is run, each a file of tests or `file::test`.
        why: a sentence that says what is wrong then.
        equivalent: why no test can see it; empty for all others.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    why: str
    equivalent: str = ""

    def problem(self, root: Path) -> str:
        """Return why the mutant does not apply to the files below `root`, or nothing."""
        path = root / self.file
        if not path.is_file():
            return "the file is not there"
        text = path.read_text()
        if (count := text.count(self.old)) != 1:
            return f"{self.old!r} occurs {count} times in the file, not once"
        if self.old == self.new:
            return "it changes nothing"
        try:
            ast.parse(text.replace(self.old, self.new) if path.suffix == ".py" else "")
        except SyntaxError as error:
            return f"the file is no Python with it: {error}"
        return next((problem for test in self.tests if (problem := _missing(test, root))), "")


def _missing(test: str, root: Path) -> str:
    """Return why a test `file` or `file::test` is not there, or nothing."""
    file, *names = test.split("::")
    if not (root / file).is_file():
        return f"{file} is not there"
    source = (root / file).read_text()
    absent = [name for name in names if not re.search(rf"^ *(def|class) {re.escape(name)}\b", source, re.MULTILINE)]
    return f"{file} has no test {absent[0]}" if absent else ""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant."""

    mutant: Mutant
    outcome: str
    seconds: float = 0.0
    detail: str = ""

    @property
    def expected(self) -> bool:
        """Whether the mutant is killed, or survives as it must."""
        return self.outcome == (SURVIVES if self.mutant.equivalent else KILLED)

    def __str__(self) -> str:
        note = self.detail or (f"equivalent: {self.mutant.equivalent}" if self.mutant.equivalent else "")
        surprise = "; so it is not equivalent" if self.mutant.equivalent and self.outcome == KILLED else ""
        end = f" ({note}{surprise})" if note else ""
        return f"{self.outcome:<9} {self.seconds:5.1f} s  {self.mutant.file}: {self.mutant.why}{end}"


def read_mutants(folder: Path) -> list[Mutant]:
    """Return the mutants that the YAML files of a folder list.

    Raises:
        InputError: an entry that lacks a key, or has one that is not known.
    """
    found = []
    needed, known = {"file", "old", "new", "tests", "why"}, {f.name for f in fields(Mutant)}
    for path in sorted(folder.glob("*.yaml")):
        entries: Any = read_part(path)
        for entry in entries:
            if not needed <= set(entry) <= known:
                raise InputError(f"{path.name}: a mutant has the keys {', '.join(sorted(needed))}, got {entry}")
            found.append(Mutant(**{**entry, "tests": tuple(entry["tests"])}))
    return found


def matches(mutants: Sequence[Mutant], only: str) -> list[Mutant]:
    """Return the mutants whose file, text or reason contains `only`.

    Raises:
        InputError: there is none.
    """
    found = [m for m in mutants if only.lower() in f"{m.file} {m.old} {m.new} {m.why}".lower()]
    if not found:
        raise InputError(f"only must be part of a mutant's file, text or reason, got {only!r}")
    return found


class Copy:
    """A copy of a checkout, with a commit of its own, whose tests import the copy's packages.

    Args:
        root: the checkout; what git tracks or would track is copied as it is now.
        folder: where to; it is made.
        preload: packages that the tests import.
    """

    def __init__(self, root: Path, folder: Path, preload: Sequence[str] = PRELOAD):
        self.folder, self._said = folder, folder.with_suffix(".log")
        listed = _run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        for name in filter(None, listed.stdout.split("\0")):
            if (root / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, folder / name)
        # Tests ask git for the commit of the code.
        _run(["git", "-C", str(folder), "init", "--quiet"])
        _run(["git", "-C", str(folder), "add", "--all"])
        identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
        _run(["git", "-C", str(folder), *identity, "commit", "--quiet", "--allow-empty", "--message", "copy"])
        path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))
        environment = {"OMP_NUM_THREADS": "1", **git_environment(), "PYTHONPATH": path}
        for package in folder.glob("*/__init__.py"):
            name = package.parent.name
            code = f"import importlib.util; print(importlib.util.find_spec({name!r}).origin)"
            origin = _run([sys.executable, "-c", code], cwd=folder, env=environment).stdout.strip()
            if Path(origin).resolve() != package.resolve():
                raise InputError(f"a copy of the checkout must import its own {name}, got {origin}")
        command, pipe = [sys.executable, "-c", SERVER, str(self._said), *preload], subprocess.PIPE
        self._server = subprocess.Popen(command, cwd=folder, env=environment, stdin=pipe, stdout=pipe, text=True)

    def test(self, tests: Sequence[str]) -> tuple[int, str]:
        """Run tests until one fails; return pytest's exit code, and which failed or the last lines it wrote."""
        assert self._server.stdin
        assert self._server.stdout
        print(*tests, file=self._server.stdin, flush=True)
        code = int(self._server.stdout.readline())
        text = self._said.read_text(errors="replace")
        failed = re.findall(r"^(?:FAILED|ERROR) (.*?)(?: - .*)?$", text, re.MULTILINE)
        return code, failed[0] if code == FAILED and failed else " / ".join(text.strip().splitlines()[-2:])

    def close(self) -> None:
        """End the process that runs the tests."""
        self._server.communicate()

    def judge(self, mutant: Mutant) -> Verdict:
        """Put the mutant in, run its tests and take it out again."""
        path = self.folder / mutant.file
        whole = path.read_text()
        started = time.monotonic()
        try:
            _write(path, whole.replace(mutant.old, mutant.new))
            code, said = self.test(mutant.tests)
        finally:
            _write(path, whole)
        outcome = {PASSED: SURVIVES, FAILED: KILLED}.get(code, UNUSABLE)
        return Verdict(mutant, outcome, time.monotonic() - started, "" if outcome == SURVIVES else said)


def judge_all(
    mutants: Sequence[Mutant], root: Path, jobs: int, say: Callable[[str], None], preload: Sequence[str] = PRELOAD
) -> list[Verdict]:
    """Judge every mutant on copies of the checkout `root`, `jobs` at a time.

    The tests are run without any mutant first; a mutant whose tests fail then is not judged.
    """
    problems = {m: m.problem(root) for m in mutants}
    verdicts = [Verdict(m, NO_MATCH, detail=problem) for m, problem in problems.items() if problem]
    left = [m for m in mutants if not problems[m]]
    tests = sorted({test for m in left for test in m.tests})
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [Copy(root, Path(folder) / str(k), preload) for k in range(min(jobs, max(1, len(left))))]
        clock = _Clock(len(tests) + len(left))
        broken = {}
        for test, (code, said) in _spread(copies, tests, lambda copy, test: (test, copy.test([test]))):
            if code not in (PASSED, EMPTY):  # a file of slow tests alone sees nothing, and is no fault
                broken[test] = said
            say(f"{clock.tick()} {f'FAILS ({said})' if test in broken else 'passes'} without mutants: {test}")
        judged = [m for m in left if not broken.keys() & set(m.tests)]
        verdicts += [Verdict(m, BROKEN) for m in left if m not in judged]
        for verdict in _spread(copies, judged, Copy.judge):
            say(f"{clock.tick()} {verdict}")
            verdicts.append(verdict)
        for copy in copies:
            copy.close()
    return verdicts


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return the score, and the mutants that were not what they should be."""
    counted = [v for v in verdicts if not v.mutant.equivalent]
    killed = sum(v.outcome == KILLED for v in counted)
    lines = [f"score: {killed} of {len(counted)} mutants killed; {len(verdicts) - len(counted)} said to be equivalent"]
    return "\n".join(lines + [f"  {v}" for v in verdicts if not v.expected])


class _Clock:
    """Says how much is done and how long the rest will take."""

    def __init__(self, total: int):
        self._total, self._done, self._started = total, 0, time.monotonic()

    def tick(self) -> str:
        self._done += 1
        left = (time.monotonic() - self._started) / self._done * (self._total - self._done)
        return f"[{self._done}/{self._total}, {left / 60:.1f} min left]"


def _spread(copies: Sequence[Copy], tasks: Iterable[Any], do: Callable[[Copy, Any], Any]) -> Iterator[Any]:
    """Yield `do(copy, task)` of every task as they end, each copy at work on one at a time."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def one(task: Any) -> Any:
        copy = free.get()
        try:
            return do(copy, task)
        finally:
            free.put(copy)

    with ThreadPoolExecutor(len(copies)) as pool:
        try:
            for future in as_completed([pool.submit(one, task) for task in tasks]):
                yield future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _write(path: Path, text: str) -> None:
    """Write a file and forget its compiled form, which looks fresh if size and second of both are the same."""
    path.write_text(text)
    for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
        compiled.unlink()


def _run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    options = {"env": git_environment(), **options}  # a hook's GIT_DIR would be what is copied, and committed to
    return subprocess.run(command, capture_output=True, text=True, check=True, **options)


def judge_listed(given: Args, listed: Sequence[Mutant]) -> None:
    """Judge mutants as the words of a command say, and print each verdict; exit with 1 if one is not as expected."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the copies are removed
    jobs = given.count("jobs") or len(os.sched_getaffinity(0))
    verdicts = judge_all(matches(listed, given.get("only", "")), ROOT, jobs, lambda line: print(line, flush=True))
    print(summary(verdicts))
    if not all(v.expected for v in verdicts):
        sys.exit(1)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        judge_listed(parse_args(argv, KEYS, __doc__), read_mutants(MUTANTS))


if __name__ == "__main__":
    main()
