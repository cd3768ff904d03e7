"""The library stands alone: what it imports, and what its wheel ships."""

import ast
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parent.parent
LIBRARY = sorted((REPO / "cmixup").rglob("*.py"))
HEAVY = ("pandas", "hydra", "omegaconf", "wandb", "rich", "scipy", "matplotlib", "sklearn", "requests", "h5py")
OURS = ("datasets", "models", "scripts", "tests", "configs")


def modules_after(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"],
        cwd=REPO, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name.partition(".")[0] for name in json.loads(done.stdout.splitlines()[-1])}


def test_import_needs_numpy_and_torch_only() -> None:
    everything = "\n".join(
        f"import {'.'.join(path.relative_to(REPO).with_suffix('').parts).removesuffix('.__init__')}"
        for path in LIBRARY
        if path.parent.name not in ("sklearn", "tables")  # which need more, and are imported when they are asked for
    )
    loaded = modules_after(everything)
    assert {"cmixup", "numpy", "torch"} <= loaded
    assert not loaded & {*HEAVY, *OURS}


def imports(path: Path) -> set[str]:
    """Top-level packages that a file imports anywhere, in functions, too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: str(path.relative_to(REPO)))
def test_the_library_imports_neither_datasets_nor_models(path: Path) -> None:
    assert not imports(path) & set(OURS)


DISTRIBUTIONS = {
    "sklearn": "scikit-learn", "hydra": "hydra-core", "yaml": "PyYAML", "PIL": "Pillow", "tdc": "PyTDC",
    "mpl_toolkits": "matplotlib",
}  # fmt: skip


def test_every_package_that_is_imported_is_declared() -> None:
    project = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]
    optional = project["optional-dependencies"]
    extras = (optional[name] for name in ("repro", "splits", "tables", "sklearn"))
    required = [*project["dependencies"], *(one for extra in extras for one in extra)]
    declared = {re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower() for requirement in required}
    used = set().union(*(imports(path) for folder in OURS[:3] for path in (REPO / folder).rglob("*.py")))
    used |= set().union(*map(imports, LIBRARY))
    third_party = used - set(sys.stdlib_module_names) - {*OURS, "cmixup"}
    assert {DISTRIBUTIONS.get(name, name).lower() for name in third_party} <= declared


def test_the_public_names_are_there() -> None:
    import cmixup

    assert {"Beta", "CMixup", "InputError", "PairDataset", "PartnerSampler", "mix", "mixing_at"} <= set(cmixup.__all__)
    assert all(hasattr(cmixup, name) for name in cmixup.__all__)


@pytest.mark.slow
def test_import_is_quick() -> None:
    """Less than 0.1 s of processor time beyond torch, the best of three."""
    code = "import time, torch; s = time.process_time(); import cmixup; print(time.process_time() - s)"
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=True).stdout for _ in range(3)]
    assert min(map(float, runs)) < 0.1


@pytest.mark.slow
def test_the_wheel_ships_the_library_alone(tmp_path: Path) -> None:
    """Built from a copy, so that nothing is left in the checkout; needs no network."""
    source = tmp_path / "source"
    ignore = shutil.ignore_patterns("__pycache__", ".git", "*.egg-info", "build", "outputs", "data", ".venv", "wandb")
    shutil.copytree(REPO, source, ignore=ignore)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(tmp_path / "dist"), str(source)], check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    shipped = zipfile.ZipFile(wheel).namelist()
    top = {name.partition("/")[0] for name in shipped if ".dist-info/" not in name}
    assert top == {"cmixup"}
    expected = {str(path.relative_to(REPO)) for path in LIBRARY}
    assert {name for name in shipped if name.endswith(".py")} == expected
    assert "cmixup/py.typed" in shipped
    assert any(name.endswith("licenses/LICENSE") for name in shipped)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_runs_beside_numpy_and_torch_alone() -> None:
    """In an empty environment with links to torch and numpy; `make wheel-check` installs them, on every Python."""
    command = [sys.executable, "-m", "tests.robustness.wheel_check", "link=1"]
    done = subprocess.run(command, cwd=REPO, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "README's first lines run" in done.stdout
