"""The seal of results/: every file with its size and SHA-256, and one root over all of them, in `results/SEAL`.

A line is `<sha256> <size> <path>`, sorted by path; the first line is `root <sha256>` of all lines below it. Pages that
people edit (README.md, which prints the root) and hidden files are outside. Commands that write there (`publish`,
`render`, `measure`, `bench`) seal what they write. A file that changed in any other way is refused and never sealed
again, unless somebody names it: `python -m scripts.verify seal new=PATH`.

Two branches that publish make a conflict in SEAL. Leave Git's conflict markers in the file: lines of both sides count,
a file may match either, and the next command that writes makes SEAL anew.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection
from pathlib import Path

from cmixup.errors import InputError
from cmixup.files import sha256_of, write_atomically

SEAL = "SEAL"
OUTSIDE = (SEAL, "README.md")
LINE = re.compile(r"([0-9a-f]{64}) (\d+) (\S.*)")
MARKERS = ("<<<<<<<", "=======", ">>>>>>>", "|||||||", "root ")
NAMED = 5  # files in a line that refuses them


def sealed_files(results: Path) -> dict[str, Path]:
    """Return the files of results/ that a seal lists, by their paths below it, sorted."""
    found = {path.relative_to(results).as_posix(): path for path in results.rglob("*") if path.is_file()}
    hidden = {name for name in found if any(part.startswith(".") for part in name.split("/"))}
    return {name: found[name] for name in sorted(found.keys() - hidden - set(OUTSIDE))}


def read_seal(results: Path) -> dict[str, set[tuple[str, int]]]:
    """Return checksum and size by path, more than one where two branches have sealed; nothing if there is no seal.

    Raises:
        InputError: a line that is none of a seal, or a root that is not that of its lines.
    """
    path = results / SEAL
    if not path.is_file():
        return {}
    lines = path.read_bytes().decode(errors="replace").removesuffix("\n").split("\n")
    found: dict[str, set[tuple[str, int]]] = {}
    for n, line in enumerate(lines, 1):
        if match := LINE.fullmatch(line):
            found.setdefault(match[3], set()).add((match[1], int(match[2])))
        elif not line.startswith(MARKERS):
            raise InputError(f"{path}, line {n}: no line of a seal")
    merged = any(line.startswith("<<<<<<<") for line in lines)
    if not merged and lines[:1] != [f"root {root_of(lines[1:])}"]:
        raise InputError(f"{path}, line 1: the root is not that of the lines below it")
    return found


def root_of(lines: Collection[str]) -> str:
    """Return the SHA-256 over the lines of a seal."""
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()


def broken_files(results: Path, written: Collection[str] = ()) -> list[str]:
    """Return what does not hold, a line each that begins with the file: changed, gone, or not sealed.

    Args:
        results: the folder results/.
        written: paths that may differ, as the caller has just written them.
    """
    sealed, found, wrong = read_seal(results), sealed_files(results), list[str]()
    for name, path in found.items():
        if name in written:
            continue
        if name not in sealed:
            wrong.append(f"{path} is not sealed: neither publish nor render wrote it")
        elif (sha256_of(path), path.stat().st_size) not in sealed[name]:
            wrong.append(f"{path} has other bytes than its seal: it changed without publish or render")
    gone = sorted(sealed.keys() - found.keys() - set(written))
    return wrong + [f"{results / name} is sealed and not there" for name in gone]


def check_seal(results: Path, written: Collection[str] = ()) -> None:
    """Do nothing if every file of results/ is what was sealed, but for those to be written; nothing without a seal.

    Raises:
        InputError: a file that changed, came or went without publish or render.
    """
    if (results / SEAL).is_file():
        _refuse_seal(broken_files(results, written))


def seal_files(results: Path, written: Collection[str] = (), *, first: bool = False) -> str:
    """Write the seal anew and return its root; where there is none, nothing is written but with `first`.

    Args:
        results: the folder results/.
        written: paths below it that the caller has written or removed; every other file must match its line.
        first: seal everything as it is.

    Raises:
        InputError: a file that changed, came or went in another way. The seal stays as it was.
    """
    if not first and not (results / SEAL).is_file():
        return ""
    if not first:
        _refuse_seal(broken_files(results, written))
    files = sealed_files(results)
    lines = [f"{sha256_of(path)} {path.stat().st_size} {name}" for name, path in files.items()]
    write_atomically(results / SEAL, "".join(f"{line}\n" for line in [f"root {root_of(lines)}", *lines]))
    return root_of(lines)


def root_line(results: Path) -> str:
    """Return the line of the seal that stands for all of results/: "root" and 64 digits."""
    return (results / SEAL).read_text().partition("\n")[0]


def seal_measured(results: Path, written: Collection[str]) -> None:
    """Seal what a measurement has just written; where another file does not hold, a line says so and nothing is sealed.

    Args:
        results: the folder results/.
        written: paths below it.
    """
    try:
        seal_files(results, written)
    except InputError as error:
        print(f"not sealed (python -m scripts.verify seal new={','.join(written)}): {error}", file=sys.stderr)


def _refuse_seal(wrong: list[str]) -> None:
    if wrong:
        more = f"; and {len(wrong) - NAMED} more" if len(wrong) > NAMED else ""
        raise InputError("; ".join(wrong[:NAMED]) + more)
