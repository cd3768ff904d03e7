"""Renew constraints.txt: the newest versions that go together, where the whole suite passes and no page changes.

They are installed into an environment of their own, so that nothing changes here unless the tests pass there; on a
machine with a GPU whose tests need one, run those beside it. Example: `python -m tests.renew keep=torch,torchvision`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from cmixup.files import write_atomically
from scripts.driver.arguments import parse_args
from scripts.driver.cli import user_errors

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
    "what misleads in pictures": "tests.robustness.pictures",
}
KEYS = {"keep": "packages that stay at their versions, separated by commas; default none"}


def renewed(text: str, installed: Mapping[str, str], date: str) -> str:
    """Return constraints with the versions that are installed, and their date; ranges and what is not there stay."""

    def line(found: re.Match[str]) -> str:
        name, version = found.groups()
        return f"{name}=={versions.get(_plain(name), version)}"

    versions = {_plain(name): version.partition("+")[0] for name, version in installed.items()}
    return re.sub(r"as of \d{4}-\d\d-\d\d", f"as of {date}", PINNED.sub(line, text))


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point; exit status 1 if a check fails, and then nothing changes."""
    with user_errors(), tempfile.TemporaryDirectory(prefix="renew-") as folder:
        before = dict(PINNED.findall(CONSTRAINTS.read_text()))
        given = parse_args(argv, KEYS, __doc__)
        kept = given.listed("keep", list(before)) if "keep" in given else []
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
        print(f"{CONSTRAINTS.name} renewed")


if __name__ == "__main__":
    main()
