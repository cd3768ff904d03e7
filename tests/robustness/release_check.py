"""Run a release's steps up to the upload: build twice, compare bytes, check, and try the wheel by itself.

Wheel and sdist are built from copies of the sources in two folders, with the time of the last commit in place of the
clock's. The two builds must have the same bytes. They are left in `out`, which a person uploads, or the release
workflow after a person's approval; this command uploads nothing.

Example: `python -m tests.robustness.release_check tag=v0.1.0`.
"""

import gzip
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import InputError
from scripts.config.arguments import parse_args
from scripts.driver.cli import user_errors
from tests.robustness.wheel_check import ROOT, SOURCES, check, run

KEYS = {
    "tag": "the tag of the release, which must be v and the version; default none",
    "out": "where wheel and sdist are left; default outputs/dist",
    "link": "1 links torch and numpy into the empty environment instead of installing them; default 0",
}
WITHOUT_GIT = 315532800  # seconds of 1 January 1980, the first time that a zip archive can hold
SDIST = "import sys, setuptools.build_meta as backend; print(backend.build_sdist(sys.argv[1]))"


def main(argv: Sequence[str] | None = None) -> None:
    """Build and check what a release uploads."""
    with user_errors(), tempfile.TemporaryDirectory() as name:
        given, folder = parse_args(argv, KEYS, __doc__), Path(name)
        check_tag(given.get("tag", ""))
        epoch = commit_time()
        first, second = (build_both(folder / one, epoch) for one in ("first", "second"))
        check_bytes(first, second)
        run([sys.executable, "-m", "twine", "check", "--strict", *map(str, first)], folder)
        print("twine check: passed")
        (wheel,) = (path for path in first if path.suffix == ".whl")
        print(check(sys.executable, wheel, folder / "environment", link=given.switch("link")))
        out = Path(given.get("out", "outputs/dist"))
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        for path in first:
            shutil.copy(path, out)
            print(f"{digest(path)}  {out / path.name}")


def check_tag(tag: str) -> None:
    """Raise `InputError` unless a tag is empty or names the version of pyproject.toml."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    if tag not in ("", f"v{version}"):
        raise InputError(f"tag must be v{version}, the version of pyproject.toml, got {tag!r}")


def commit_time() -> int:
    """Return the time of the last commit in seconds, or of the year 1980 where there is no git."""
    command = ["git", "log", "-1", "--format=%ct"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else WITHOUT_GIT


def build_both(folder: Path, epoch: int) -> list[Path]:
    """Return wheel and sdist, built below `folder`, which is made, from a copy of the sources."""
    source, made = folder / "source", folder / "made"
    made.mkdir(parents=True)
    for name in SOURCES:
        target = source / name
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            target.parent.mkdir(exist_ok=True)
            shutil.copy(ROOT / name, target)
    for path in source.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)  # whatever the umask of this machine
    dated = ["env", f"SOURCE_DATE_EPOCH={epoch}", sys.executable]
    run([*dated, "-c", SDIST, str(made)], source)
    wheel = ["-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", str(made)]
    run([*dated, *wheel, str(source)], folder)
    (sdist,) = made.glob("*.tar.gz")
    write_dated(sdist, epoch)
    return sorted(made.iterdir())


def write_dated(sdist: Path, epoch: int) -> None:
    """Write a .tar.gz anew with sorted members, one time for all and no owner: setuptools takes these from the disk."""
    packed = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda one: one.name):
            member.mtime, member.uid, member.gid, member.uname, member.gname = epoch, 0, 0, "", ""
            member.mode, member.pax_headers = 0o755 if member.isdir() else 0o644, {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    sdist.write_bytes(gzip.compress(packed.getvalue(), mtime=epoch))


def check_bytes(first: Sequence[Path], second: Sequence[Path]) -> None:
    """Print that two builds have the same files of the same bytes, or raise `InputError` with what differs."""
    one, other = ({path.name: digest(path) for path in paths} for paths in (first, second))
    if one != other:
        names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        raise InputError(f"two builds must have the same bytes, got other ones for {', '.join(names)}")
    print(f"built twice, same bytes: {', '.join(sorted(one))}")


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
