"""Every write, fsync, rename and close of a small run fails in turn, below Python: a library comes before that of C.

The library is loaded by LD_PRELOAD into a process of its own, which forks a
command for every call. Calls count on files below the run's folder alone. What C's own streams write inside libc is not
seen.
"""

import ctypes
import errno
import json
import mmap
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from scripts.driver.locks import LOCKS
from tests.robustness.base import MOST, Trial, note_progress
from tests.robustness.commands import Command, content, differences, half_files, import_all, start_again, tail, words

WHAT = (
    "a small run in which the n-th write, fsync, rename or close fails, for every n: it ends with one line and status "
    "2 (or with 0 and nothing lost, but never after a failed fsync), leaves no half file, and ends as undisturbed once "
    "it is started again"
)
CALLS = ("write", "fsync", "rename", "close")
ERRORS = (errno.EIO, errno.ENOSPC, errno.EDQUOT)  # in turn
ANSWER = "answer.json"
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char folder[PATH_MAX];
static int kind = -1, number;
static long at, *counts;

void fail_nth(const char *where, int which, long n, int error, long *shared) {
    strncpy(folder, where, PATH_MAX - 1);
    kind = which; at = n; number = error; counts = shared;
}

static int below(const char *path) {
    size_t n = strlen(folder);
    return n && !strncmp(path, folder, n) && path[n] == '/';
}

static int open_below(int fd) {
    char link[64], path[PATH_MAX];
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    errno = before;
    if (n < 0) return 0;
    path[n] = 0;
    return below(path);
}

static int fails(int which) {
    long k = __sync_add_and_fetch(&counts[which], 1);
    if (which != kind || k != at) return 0;
    errno = number;
    return 1;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, name)
#define ON_FILE(which, fd) (folder[0] && open_below(fd) && fails(which))

ssize_t write(int fd, const void *bytes, size_t n) {
    REAL(ssize_t, "write", int, const void *, size_t);
    return ON_FILE(0, fd) ? -1 : real(fd, bytes, n);
}
ssize_t pwrite(int fd, const void *bytes, size_t n, off_t place) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    return ON_FILE(0, fd) ? -1 : real(fd, bytes, n, place);
}
ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t place) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return ON_FILE(0, fd) ? -1 : real(fd, bytes, n, place);
}
ssize_t writev(int fd, const struct iovec *parts, int n) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    return ON_FILE(0, fd) ? -1 : real(fd, parts, n);
}
int fsync(int fd) {
    REAL(int, "fsync", int);
    return ON_FILE(1, fd) ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    return ON_FILE(1, fd) ? -1 : real(fd);
}
int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    return below(from) && fails(2) ? -1 : real(from, to);
}
int renameat(int one, const char *from, int other, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return below(from) && fails(2) ? -1 : real(one, from, other, to);
}
int close(int fd) { /* as in Linux, a file is closed even where close fails */
    REAL(int, "close", int);
    int failed = ON_FILE(3, fd), before = errno, done = real(fd);
    if (!failed) return done;
    errno = before;
    return -1;
}
"""


def compiled(folder: Path) -> Path:
    """Return the library, compiled in a folder.

    Raises:
        OSError: there is no compiler here.
        subprocess.CalledProcessError: it cannot compile this.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fail_nth.c").write_text(SOURCE)
    library = folder / "fail_nth.so"
    command = ["cc", "-O1", "-shared", "-fPIC", str(folder / "fail_nth.c"), "-o", str(library), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def command(out: Path, failing: tuple[ctypes.CDLL, int, int, int] | None = None) -> Command:
    """Return the run's command.

    Args:
        out: its folder.
        failing: the library, which of `CALLS` fails, at which call, and address of its counts; nothing fails at 0.
    """
    given = words("dataset=no2", "method=cmixup", "train.epochs=2", "seeds=0..1", out=out)

    def arm() -> None:
        if failing:
            library, which, at, counts = failing
            library.fail_nth(str(out).encode(), which, ctypes.c_long(at), ERRORS[at % 3], ctypes.c_void_p(counts))

    return Command("scripts.train", given, arm)


def attempts(library: ctypes.CDLL, count: int, seed: int, folder: Path) -> Iterator[tuple[str, int]]:
    """Let one call fail after the other; yield what was wrong, or an empty text, and how many calls there are."""
    import_all()
    shared = mmap.mmap(-1, 8 * len(CALLS))
    counted = (ctypes.c_long * len(CALLS)).from_buffer(shared)
    place = ctypes.addressof(counted)
    whole = folder / "undisturbed" / "out"
    if code := command(whole, (library, 0, 0, place)).run(folder / "undisturbed" / "log"):
        raise RuntimeError(f"the undisturbed command ended with {code}: {tail(folder / 'undisturbed' / 'log')}")
    reference, totals = content(whole), list(counted)
    every = [(which, at) for which, total in enumerate(totals) for at in range(1, total + 1)]
    tried = min(count, len(every))
    for which, at in (every[(k * len(every) // tried + seed) % len(every)] for k in range(tried)):
        shutil.rmtree(folder / "failing", ignore_errors=True)
        out, log = folder / "failing" / "out", folder / "failing" / "log"
        counted[:] = [0] * len(CALLS)
        code = command(out, (library, which, at, place)).run(log)
        lines = [line for line in log.read_text().splitlines() if line.startswith("error: ")]
        wrong = [] if counted[which] >= at else [f"only {counted[which]} calls"]
        if "Traceback" in log.read_text():
            wrong.append(f"a traceback: {tail(log)}")
        if code not in (0, 2) or (code == 2 and len(lines) != 1) or (code == 0 and CALLS[which] == "fsync"):
            wrong.append(f"ended with {code} and {len(lines)} lines: {tail(log)}")
        wrong += [f"half a file: {path}" for path in half_files(out)]
        if not code:
            # A lock's file may stay where its close fails: the kernel holds the lock, and the next start removes it.
            found = [name for name in differences(content(out), reference) if not name.startswith(LOCKS)]
            wrong += [f"not as undisturbed: {name}" for name in found]
        wrong += start_again(command(out), out, log, reference)
        text = f"{CALLS[which]} {at} of {totals[which]} ({os.strerror(ERRORS[at % 3])}): {'; '.join(wrong)}"
        yield text if wrong else "", tried
    (folder / "totals").write_text(", ".join(f"{n} of {name}" for name, n in zip(CALLS, totals, strict=True)))


def run(count: int, seed: int, folder: Path) -> Trial:
    """Let `count` calls fail, spread over all there are, or all of them."""
    began = time.perf_counter()
    try:
        library = compiled(folder)
    except (OSError, subprocess.CalledProcessError) as error:
        return Trial("nth_call", WHAT, 0, 0, (), time.perf_counter() - began, f"not tried: no C compiler ({error})")
    inside = [sys.executable, "-m", "tests.robustness.nth_call", str(folder), str(count), str(seed)]
    subprocess.run(inside, check=True, env={**os.environ, "LD_PRELOAD": str(library)})
    failures = json.loads((folder / ANSWER).read_text())
    wrong = [line for line in failures if line]
    notes = f"calls of the undisturbed run: {(folder / 'totals').read_text()}; EIO, ENOSPC and EDQUOT in turn"
    return Trial("nth_call", WHAT, len(failures), len(failures) - len(wrong), tuple(wrong[:MOST]),
                 time.perf_counter() - began, notes)  # fmt: skip


def main(folder: Path, count: int, seed: int) -> None:
    """Do the attempts in this process, into which the library was loaded, and leave the answer in the folder."""
    os.environ.pop("LD_PRELOAD", None)  # not for what the commands start
    found = list[str]()
    for line, tried in attempts(ctypes.CDLL(str(folder / "fail_nth.so")), count, seed, folder):
        found.append(line)
        note_progress(folder, len(found), tried)
    (folder / ANSWER).write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
