"""Each link of the chain of `make verify` is broken in a clone: the command names it, and so does its last line."""

import base64
import hashlib
import os
import py_compile
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from scripts.driver.provenance import CODE, git_environment
from tests.robustness.base import MOST, Trial, note_progress
from tests.robustness.bit_rot import flipped

WHAT = (
    "one link of the chain is broken in a clone: `make verify` ends with status 1 and a last line that names the link, "
    "and a line names the file; another version of PyTorch is said, and its status is 0"
)
RECORD, PREDICTIONS, FIGURE = "runs/table1/no2/erm.jsonl", "predictions/table1/no2/erm.xz", "figures/table1.png"
SOURCE, RAW = "cmixup/metrics.py", "no2/no2.csv"
TORCH = ("torch", "torchgen", "functorch")  # folders of the package
OTHER = "0.1"  # the version that PyTorch is said to have
Break = Callable[[Path, Path], dict[str, str]]  # of a clone, with a folder beside it; returns variables to set


def _flip(name: str) -> Break:
    def change(code: Path, _: Path) -> dict[str, str]:
        path = code / "results" / name
        path.write_bytes(flipped(path.read_bytes(), 4 * path.stat().st_size))
        return {}

    return change


def _other_rate(code: Path, _: Path) -> dict[str, str]:
    path = code / "results" / RECORD
    text = path.read_text()
    path.write_text(re.sub(r'"lr": ?0\.01', '"lr":0.02', text, count=1))
    assert path.read_text() != text
    return {}


def _edited(code: Path, _: Path) -> dict[str, str]:
    with (code / SOURCE).open("a") as stream:
        stream.write("EDITED = 1\n")
    return {}


def _stale(mode: py_compile.PycInvalidationMode) -> Break:
    """Compile an edited source, and put the committed one back with the time and size that the bytecode keeps."""

    def change(code: Path, _: Path) -> dict[str, str]:
        path = code / SOURCE
        text = path.read_text()
        path.write_text(f"{text[:3]}~{text[4:]}")  # another first letter of the docstring
        os.utime(path, (1e9, 1e9))
        py_compile.compile(str(path), invalidation_mode=mode)
        path.write_text(text)
        os.utime(path, (1e9, 1e9))
        return {}

    return change


def _torch(version: str = "") -> Break:
    """Put PyTorch's own files behind another list of them: with one other hash, or whole and of another version."""

    def change(_: Path, beside: Path) -> dict[str, str]:
        found = metadata.distribution("torch")
        site = Path(str(found.locate_file("")))
        about = next(site.glob("torch-*.dist-info"))
        copy = Path(shutil.copytree(about, beside / "site" / about.name))
        for name in TORCH:
            if (site / name).exists():
                (beside / "site" / name).symlink_to(site / name)
        lines = [line for line in (about / "RECORD").read_text().splitlines() if not line.startswith("..")]
        if version:
            path = copy / "METADATA"
            path.write_text(re.sub(r"^Version: .*$", f"Version: {version}", path.read_text(), count=1, flags=re.M))
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).rstrip(b"=").decode()
            lines = [f"{about.name}/METADATA,sha256={digest}," if "/METADATA," in line else line for line in lines]
        else:
            other = re.sub("sha256=.", "sha256=_", next(one for one in lines if one.startswith("torch/functional.py,")))
            lines = [other if line.startswith("torch/functional.py,") else line for line in lines]
        (copy / "RECORD").write_text("\n".join(lines) + "\n")
        return {"PYTHONPATH": str(beside / "site")}

    return change


def _raw(_: Path, beside: Path) -> dict[str, str]:
    (beside / "mirror" / RAW).parent.mkdir(parents=True)
    (beside / "mirror" / RAW).write_text("other,rows\n1,2\n")
    return {"CMIXUP_MIRROR": str(beside / "mirror")}


#: The link that does not hold then, the end of the file that is named, and what is done.
WAYS: dict[str, tuple[str, str, Break]] = {
    "a flipped bit in a record": ("seal", RECORD, _flip(RECORD)),
    "a flipped bit in predictions": ("seal", PREDICTIONS, _flip(PREDICTIONS)),
    "a flipped bit in a figure": ("seal", FIGURE, _flip(FIGURE)),
    "an edited learning rate": ("seal", RECORD, _other_rate),
    "an edited source": ("code", "", _edited),
    "bytecode with an unchecked hash": ("code", ".pyc", _stale(py_compile.PycInvalidationMode.UNCHECKED_HASH)),
    "bytecode of another source": ("code", ".pyc", _stale(py_compile.PycInvalidationMode.TIMESTAMP)),
    "a PyTorch that is not its RECORD's": ("packages", "torch/functional.py", _torch()),
    "another raw file": ("data", RAW, _raw),
    "another version of PyTorch": ("", "", _torch(OTHER)),
}


def attempt(name: str, code: Path) -> str:
    """Break a clone, check it and mend it; return what was wrong, or an empty text."""
    link, file, change = WAYS[name]
    beside = code.parent / "beside"
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir()
    environment = {**git_environment(), **change(code, beside)}
    command = [sys.executable, "-m", "scripts.verify", "all" if link else "packages"]
    done = subprocess.run(command, cwd=code, env=environment, capture_output=True, text=True, check=False)
    for words in (("checkout", "--quiet", "."), ("clean", "-fdxq")):
        subprocess.run(["git", "-C", str(code), *words], check=True, env=git_environment())
    said = done.stderr.splitlines()
    if link:
        held = done.returncode == 1 and said[-1:] == [f"the link `{link}` does not hold"]
        held = held and any(line.startswith("DIFFERS ") and file in line for line in said)
    else:
        held = done.returncode == 0 and done.stdout.startswith(f"packages: other: torch {OTHER} (lock: ")
    if held and "Traceback" not in done.stderr:
        return ""
    return f"{name}: ended with {done.returncode}: {' | '.join([*done.stdout.splitlines(), *said][-3:])}"


def run(count: int, seed: int, folder: Path) -> Trial:
    """Break the clone `count` times, in turns over all ways."""
    began, names, failures = time.perf_counter(), list(WAYS), list[str]()
    folder.mkdir(parents=True, exist_ok=True)
    clone = ["git", "clone", "--quiet", "--shared", str(CODE), str(folder / "code")]
    subprocess.run(clone, check=True, env=git_environment())
    for k in range(count):
        failures += filter(None, [attempt(names[(k + seed) % len(names)], folder / "code")])
        note_progress(folder, k + 1, count)
    notes = f"in turns: {', '.join(names)}"
    return Trial("tampering", WHAT, count, count - len(failures), tuple(failures[:MOST]),
                 time.perf_counter() - began, notes)  # fmt: skip
