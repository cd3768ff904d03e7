"""Renew constraints.txt: the newest versions that go together, where the whole suite passes and no page changes.

They are installed into an environment of their own, so that nothing changes here unless the tests pass there; on a
machine with a GPU whose tests need one, run those beside it. constraints.lock is made anew with them: uv finds every
package that is needed and the hashes of its files, and pip adds those of the files that it takes here, such as a build
of PyTorch for CPUs. Examples: `python -m tests.renew keep=torch,torchvision`, `python -m tests.renew lock=1`.
"""

import json
import re
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from cmixup.files import write_atomically
from scripts.config.arguments import parse_args
from scripts.driver.cli import user_errors
from scripts.machine.packages import CUDA, LOCK, Locked, parse_lock, plain_name, requirements_of
from scripts.setup import EXTRAS as LOCKED_EXTRAS

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
EXTRAS = "repro,splits,docs,dev"
PINNED = re.compile(r"(?m)^([\w.-]+)==(\S+)$")
CHECKS = {
    "style": "ruff check .",
    "form": "ruff format --check .",
    "types": "mypy",
    "the suite": "pytest -n 2 --dist loadfile",
    "what is rendered": "scripts.render check=1",
}
KEYS = {
    "keep": "packages that stay at their versions, separated by commas; default none",
    "lock": "1 makes constraints.lock anew for the versions of constraints.txt, and tries nothing; default 0",
}
HEAD = """# The files of all packages that make setup installs on Linux, x86-64 and CPython 3.11, by SHA-256.
# `make renew` makes it; `make setup` installs it. Those of CUDA are for PyTorch's own builds alone.
"""


def renewed(text: str, installed: Mapping[str, str], date: str) -> str:
    """Return constraints with the versions that are installed, and their date; ranges and what is not there stay."""

    def line(found: re.Match[str]) -> str:
        name, version = found.groups()
        return f"{name}=={versions.get(plain_name(name), version)}"

    versions = {plain_name(name): version.partition("+")[0] for name, version in installed.items()}
    return re.sub(r"as of \d{4}-\d\d-\d\d", f"as of {date}", PINNED.sub(line, text))


def fits_here(file: str) -> bool:
    """Return whether a wheel of this name is for Linux on x86-64 with glibc and CPython 3.11."""
    pythons, abis, platforms = (part.split(".") for part in file.removesuffix(".whl").split("-")[-3:])
    stable = "abi3" in abis and any(re.fullmatch(r"cp3[0-9]{1,2}", one) and int(one[3:]) <= 11 for one in pythons)
    return (
        (stable or bool({"py3", "cp311"} & {*pythons}))
        and bool({"none", "abi3", "cp311"} & {*abis})
        and any(one == "any" or re.fullmatch(r"(many)?linux.*x86_64", one) for one in platforms)
    )


def lock_of(found: Mapping[str, object], taken: Mapping[str, Locked]) -> str:
    """Return the text of a lock.

    Args:
        found: what uv resolved, as a pylock.toml (PEP 751): wheels that fit are locked, or else the source.
        taken: the files that pip takes here, which are locked, too.
    """
    lock = {}
    for package in found["packages"]:  # type: ignore[attr-defined]
        wheels = [one for one in package.get("wheels", ()) if fits_here(one["url"].rpartition("/")[2])]
        files = wheels or [package["sdist"]]
        name = plain_name(package["name"])
        more = taken[name].hashes if name in taken and taken[name].version == package["version"] else ()
        lock[name] = Locked(package["version"], tuple(sorted({*(one["hashes"]["sha256"] for one in files), *more})))
    return HEAD + requirements_of(lock, lock)


def make_lock(python: Sequence[str], folder: Path) -> str:
    """Return a lock for the versions of constraints.txt.

    Args:
        python: the command that runs modules in an environment, into which uv is installed.
        folder: for what is in between.
    """
    subprocess.run([*python, "pip", "install", "--quiet", "uv"], check=True)
    extras = [word for extra in LOCKED_EXTRAS for word in ("--extra", extra)]
    asked = ["--python-version", "3.11", "--python-platform", "x86_64-manylinux_2_28", "-c", str(CONSTRAINTS)]
    out = ["--format", "pylock.toml", "--quiet", "--output-file", str(folder / "pylock.toml")]
    words = ["uv", "pip", "compile", "--native-tls", str(ROOT / "pyproject.toml"), *extras, *asked, *out]
    subprocess.run([*python, *words], check=True)
    found = tomllib.loads((folder / "pylock.toml").read_text())
    pins = [f"{one['name']}=={one['version']}\n" for one in found["packages"] if not CUDA.fullmatch(one["name"])]
    (folder / "pins.txt").write_text("".join(pins))
    report = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--report", str(folder / "taken.json")]
    subprocess.run([*python, "pip", "install", *report, "-r", str(folder / "pins.txt")], check=True)
    taken = {}
    for one in json.loads((folder / "taken.json").read_text())["install"]:
        version = one["metadata"]["version"].partition("+")[0]
        taken[plain_name(one["metadata"]["name"])] = Locked(
            version, (one["download_info"]["archive_info"]["hashes"]["sha256"],)
        )
    return lock_of(found, taken)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point; exit status 1 if a check fails, and then nothing changes."""
    with user_errors(), tempfile.TemporaryDirectory(prefix="renew-") as folder:
        before = dict(PINNED.findall(CONSTRAINTS.read_text()))
        given = parse_args(argv, KEYS, __doc__)
        kept = given.listed("keep", list(before)) if "keep" in given else []
        if given.switch("lock"):
            venv.create(folder, with_pip=True)
            write_atomically(LOCK, make_lock([f"{folder}/bin/python", "-m"], Path(folder)))
            print(f"{LOCK.name}: {len(parse_lock(LOCK.read_text()))} packages")
            return
        (Path(folder) / "kept.txt").write_text("".join(f"{name}=={before[name]}\n" for name in kept))
        venv.create(folder, with_pip=True)
        python = [f"{folder}/bin/python", "-m"]
        subprocess.run(
            [*python, "pip", "install", "--quiet", "-c", f"{folder}/kept.txt", f"{ROOT}[{EXTRAS}]"], check=True
        )
        subprocess.run([*python, "pip", "uninstall", "--quiet", "--yes", "cmixup"], check=True)  # the checkout is tried
        listed = subprocess.run([*python, "pip", "list", "--format", "json"], check=True, capture_output=True).stdout
        installed = {one["name"]: one["version"] for one in json.loads(listed)}
        after = renewed(CONSTRAINTS.read_text(), installed, time.strftime("%Y-%m-%d"))
        changes = [f"{name} {version}" for name, version in PINNED.findall(after) if before[name] != version]
        print(f"newer: {', '.join(changes) or 'nothing'}", flush=True)
        failed = [
            what
            for what, words in CHECKS.items()
            if subprocess.run([*python, *words.split()], cwd=ROOT, check=False).returncode
        ]
        if failed:
            print(f"{' and '.join(failed)} fail with these: {CONSTRAINTS.name} stays as it is", file=sys.stderr)
            raise SystemExit(1)
        write_atomically(CONSTRAINTS, after)
        write_atomically(LOCK, make_lock(python, Path(folder)))
        print(f"{CONSTRAINTS.name} and {LOCK.name} renewed")


if __name__ == "__main__":
    main()
