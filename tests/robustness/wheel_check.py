"""Build the wheel, install it into empty environments beside numpy and torch alone, and run README's first lines there.

Each interpreter gets a new environment in a temporary folder; pip installs the wheel and its requirements there, in the
versions of constraints.txt. Then pandas and Hugging Face's `datasets` come, too, and a saved run on a table predicts
there what it predicts in the checkout, to the last bit.
Example: `python -m tests.robustness.wheel_check pythons=python3.12,python3.13`.
"""

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import pandas as pd

from cmixup.errors import InputError
from cmixup.saved_run import load_run
from scripts.config.arguments import parse_args
from scripts.driver.cli import user_errors

ROOT = Path(__file__).resolve().parents[2]
KEYS = {
    "pythons": "interpreters, separated by commas; default the running one",
    "link": "1 fetches nothing: packages are links to those of this interpreter, `datasets` is an empty one; default 0",
}
SOURCES = ("cmixup", "pyproject.toml", "README.md", "LICENSE")
# Runs in the new environment, outside the checkout. The time is printed for a reader; what is checked are modules.
CHECK = """
import importlib.metadata, sys, time
import torch
before, start = set(sys.modules), time.perf_counter()
import cmixup
seconds = time.perf_counter() - start
new = {name.partition(".")[0] for name in set(sys.modules) - before}
strange = {name for name in new if "cython" not in name}  # which are parts of numpy.random
strange -= {"cmixup", "numpy", "torch", *sys.stdlib_module_names}
assert not strange, f"import cmixup imports {sorted(strange)}"
tops = {str(file).partition("/")[0] for file in importlib.metadata.files("cmixup") if not str(file).startswith("..")}
assert {top for top in tops if not top.endswith(".dist-info")} == {"cmixup"}, tops
assert "site-packages" in cmixup.__file__, cmixup.__file__
space = {}
exec(BLOCK, space)
assert space["loss"].item() >= 0
version = ".".join(map(str, sys.version_info[:3]))
print(f"Python {version}, torch {torch.__version__}: README's first lines run; "
      f"import cmixup takes {seconds:.3f} s beyond torch and imports {len(set(sys.modules) - before)} modules")
"""

#: A table, and rows of the same columns.
TABLE = "size;state;price\n" + "".join(f"{k % 13};{'abc'[k % 3]};{k % 7 + 1}\n" for k in range(60))
ROWS = {"size": [1, 2, 40], "state": ["a", "c", "d"]}
PREDICT = """
import datasets, pandas, cmixup
assert "site-packages" in cmixup.__file__ and "site-packages" in datasets.__file__, datasets.__file__
found = cmixup.load_run(RUN).predict(pandas.DataFrame(ROWS))
assert found.to_numpy().tobytes().hex() == EXPECTED, found
print("a saved run predicts to the last bit beside datasets", getattr(datasets, "__version__", "(empty)"))
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Check the wheel with every interpreter that is asked for."""
    with user_errors(), tempfile.TemporaryDirectory() as folder:
        given = parse_args(argv, KEYS, __doc__)
        link = given.switch("link")
        wheel = build(Path(folder))
        pythons = [python for python in given.get("pythons", "").split(",") if python] or [sys.executable]
        if link and pythons != [sys.executable]:
            raise InputError(f"pythons must be left out with link=1, got {pythons}")
        for number, python in enumerate(pythons):
            start = time.monotonic()
            said = check(python, wheel, Path(folder) / f"environment{number}", link=link)
            print(f"{said} (environment and check: {time.monotonic() - start:.0f} s)", flush=True)


def build(folder: Path) -> Path:
    """Return the wheel, built below `folder` from a copy of the sources, so that nothing is left in the checkout."""
    source = folder / "source"
    source.mkdir()
    run(["cp", "-r", *(str(ROOT / name) for name in SOURCES), str(source)], ROOT)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    run([*command, "-w", str(folder), str(source)], folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


def check(python: str, wheel: Path, environment: Path, *, link: bool) -> str:
    """Install the wheel into a new environment, run the check there and return what it printed."""
    saved, expected = trained(environment.parent / f"{environment.name}-run")
    run([python, "-m", "venv", "--without-pip", str(environment)], environment.parent)
    new = str(environment / "bin" / "python")
    install = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", new, "install"]
    if link:
        (site,) = environment.glob("lib/python*/site-packages")
        link_packages(("torch", "numpy"), site)
        run([*install, "--no-index", str(wheel)], environment)
    else:
        run([*install, "-c", str(ROOT / "constraints.txt"), str(wheel)], environment)
    said = run([new, "-I", "-c", f"BLOCK = {first_lines()!r}\n{CHECK}"], environment).strip()
    if link:
        link_packages(("pandas",), site)
        (site / "datasets").mkdir()
        (site / "datasets" / "__init__.py").write_text("")
    else:
        run([*install, "-c", str(ROOT / "constraints.txt"), "pandas", "datasets"], environment)
    given = f"RUN, ROWS, EXPECTED = {str(saved)!r}, {ROWS!r}, {expected!r}\n"
    return f"{said}; {run([new, '-I', '-c', given + PREDICT], environment).strip()}"


def trained(folder: Path) -> tuple[Path, str]:
    """Train a run on a table; return its folder and the bits of what it predicts here for `ROWS`."""
    folder.mkdir()
    (folder / "table.csv").write_text(TABLE)
    words = [f"table={folder / 'table.csv'}", "target=price", "method=cmixup", "train.epochs=2", "train.batch_size=12"]
    run([sys.executable, "-m", "scripts.train", *words, "logger=none", f"out={folder / 'out'}"], ROOT)
    (done,) = (folder / "out" / "runs").rglob("DONE")
    return done.parent, load_run(done.parent).predict(pd.DataFrame(ROWS)).to_numpy().tobytes().hex()


def link_packages(names: tuple[str, ...], site: Path) -> None:
    """Link installed distributions and all that they require into another `site-packages`."""
    pending, met = list(names), set()
    while pending:
        name = pending.pop()
        try:
            found = metadata.distribution(name)
        except metadata.PackageNotFoundError:  # required on other platforms only, or by an extra
            continue
        if found.name.lower() in met:
            continue
        met.add(found.name.lower())
        pending += [re.split(r"[^\w.-]", required, maxsplit=1)[0] for required in found.requires or ()]
        for top in {Path(str(file)).parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            place = Path(str(found.locate_file(top)))
            if place.exists() and not (site / top).exists():
                (site / top).symlink_to(place)


def first_lines() -> str:
    """Return README's first block of Python."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)[0]


def run(command: list[str], folder: Path) -> str:
    """Run a command and return what it printed, or raise `InputError` with its last lines."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " | ".join((done.stderr or done.stdout).strip().splitlines()[-3:])
        raise InputError(f"{' '.join(command)[:80]} must end well, got exit status {done.returncode}: {said}")
    return done.stdout


if __name__ == "__main__":
    main()
