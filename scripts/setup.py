"""Install what the project needs into the environment that runs this; `make
setup` calls it.

On Linux, x86-64 and CPython 3.11 the packages of constraints.lock are
installed by their hashes, then the project without asking for anything more.
Anywhere else, or where an index serves other files, a line says so, and pip
installs by constraints.txt: a hash never stops a command.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

from scripts.machine.packages import (
    CUDA,
    LOCK,
    ROOT,
    lock_is_for_here,
    parse_lock,
    plain_name,
    requirements_of,
    write_receipt,
)

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-compile")
EXTRAS = ("repro", "dev")
BACKEND, TORCH = "setuptools", "torch"
CPU = "+cpu"  # how a build of PyTorch for CPUs ends its version
LONGEST = 200  # characters of pip's reason


class Refused(Exception):
    """The packages of the lock cannot be installed; the message says why in a line."""


def named_packages(project: str) -> set[str]:
    """Return the normalised names of what a pyproject.toml requires, for the library, `EXTRAS` and to be built."""
    given = tomllib.loads(project)
    wanted = [*given["build-system"]["requires"], *given["project"]["dependencies"]]
    wanted += [one for extra in EXTRAS for one in given["project"]["optional-dependencies"][extra]]
    return {plain_name(re.split(r"[^\w.-]", one, maxsplit=1)[0]) for one in wanted}


def install_locked(lock: str) -> None:
    """Install the packages of a lock by their hashes, then the project, and leave a receipt in the environment.

    Raises:
        Refused: pip fails, as where an index serves files of other hashes.
    """
    locked = parse_lock(lock)
    if lacking := sorted(named_packages((ROOT / "pyproject.toml").read_text()) - locked.keys()):
        raise Refused(f"it lacks {', '.join(lacking)} (python -m tests.renew lock=1 makes it anew)")
    torch = requirements_of(locked, [TORCH])
    backend = requirements_of(locked, [BACKEND])
    try:  # pip itself goes by hashes that an index tells, and so would pass over a file of a folder
        _install_by_hash(backend + torch.replace(" ", f"{CPU} ", 1))
    except Refused:
        _install_by_hash(backend + torch)
    cpu_build = metadata.version(TORCH).endswith(CPU)
    rest = [name for name in locked if name not in (BACKEND, TORCH) and not (cpu_build and CUDA.fullmatch(name))]
    _install_by_hash(requirements_of(locked, rest))
    _install_all("--no-deps", "--no-build-isolation", "-e", str(ROOT))
    write_receipt(lock, Path(sys.prefix))


def _install_by_hash(requirements: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        chosen = Path(folder) / "requirements.txt"
        chosen.write_text(requirements)
        _install_all("--require-hashes", "--no-deps", "--no-build-isolation", "-r", str(chosen))


def _install_all(*given: str) -> None:
    done = subprocess.run([*PIP, *given], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Refused(reason_of(done.stderr or done.stdout))


def reason_of(said: str) -> str:
    """Return why pip failed, in a line: the file whose hash is another one, or else its last error."""
    if "DO NOT MATCH THE HASHES" in said:
        named = re.search(r"(?m)^ +([\w.-]+==\S+)", said)
        return f"the index serves another file of {named[1] if named else 'a package'}"
    errors = [line.partition("ERROR: ")[2] for line in said.splitlines() if "ERROR: " in line]
    return (errors or said.strip().splitlines() or ["pip failed"])[-1][:LONGEST]


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point; the exit status is pip's where nothing can be installed."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given:
        print(__doc__ if "--help" in given else f"error: setup takes no arguments, got {given}")
        raise SystemExit(0 if "--help" in given else 2)
    if sys.prefix == sys.base_prefix:
        raise SystemExit("error: run this by the Python of a virtual environment, as make setup does")
    try:
        if here := lock_is_for_here():
            raise Refused(f"it is for Linux x86_64, CPython 3.11, and this is {here}")
        if not LOCK.is_file():
            raise Refused("there is none")
        install_locked(LOCK.read_text())
    except Refused as why:
        print(f"installing by constraints.txt, not by the hashes of {LOCK.name}: {why}", file=sys.stderr)
        command = [*PIP, "-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[{','.join(EXTRAS)}]"]
        raise SystemExit(subprocess.run(command, check=False).returncode) from None


if __name__ == "__main__":
    main()
