"""Every room has one rule, and the rooms have an order: a file imports from its own room and from rooms before it."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from cmixup.pairing.base import Pairing
from cmixup.pairing.support import SupportPairing
from datasets.common.base import Dataset

REPO = Path(__file__).resolve().parent.parent
PACKAGES = ("cmixup", "datasets", "models", "scripts")
#: From the ground up. A file may import from its own room and from every room before it; `datasets` and `models` stand
#: on the library and not on each other.
ROOMS = (
    "cmixup.ground",
    "cmixup.sampling",
    "cmixup.mixing",
    "cmixup.pairing",
    "cmixup.methods",
    "cmixup.training",
    "cmixup.adapters",
    "cmixup",
    "cmixup.sklearn",
    "models",
    "datasets.common",
    "datasets",
    "scripts.driver",
    "scripts.records",
    "scripts.plan",
    "scripts.claims",
    "scripts.report",
    "scripts.measure",
    "scripts.theory",
    "scripts.study",
    "scripts.bench",
    "scripts",
)
#: `wilds` imports torchvision, whose import beside a CPU build of PyTorch needs the help that models/vision.py gives.
EXCEPTIONS = {("datasets.poverty_map", "models.vision")}
FILES = sorted(path for package in PACKAGES for path in (REPO / package).rglob("*.py"))


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__")


NAMES = {name_of(path): path for path in FILES}


def room(name: str) -> str:
    """The room of a module; the files at the top of cmixup/ are its ground floor, but for the package itself."""
    first, *rest = name.split(".")
    if first == "cmixup":
        if not rest:
            return "cmixup"
        return f"cmixup.{rest[0]}" if f"cmixup.{rest[0]}" in ROOMS else "cmixup.ground"
    return f"{first}.{rest[0]}" if rest and f"{first}.{rest[0]}" in ROOMS else first


@cache
def nodes(name: str) -> list[ast.AST]:
    """Everything in a module's source."""
    return list(ast.walk(ast.parse(NAMES[name].read_text())))


@cache
def imports(name: str) -> frozenset[str]:
    """Our modules that a module imports anywhere, in functions and in blocks for types, too."""
    found = set()
    for node in nodes(name):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {module if module in NAMES else str(node.module) for module in modules}
    return frozenset(module for module in found if module in NAMES and module != name)


def test_no_circle_of_imports() -> None:
    order = list(TopologicalSorter({name: imports(name) for name in NAMES}).static_order())
    assert set(order) == set(NAMES)


def arrows() -> list[tuple[str, str]]:
    """Every import of one of our modules by another, but for the exceptions."""
    return [(name, other) for name in NAMES for other in imports(name) if (name, other) not in EXCEPTIONS]


def test_imports_do_not_climb_back_up() -> None:
    climbing = [(name, other) for name, other in arrows() if ROOMS.index(room(other)) > ROOMS.index(room(name))]
    assert climbing == []


def test_every_file_of_methods_is_run_by_a_configuration() -> None:
    texts = [path.read_text() for path in (REPO / "configs" / "method").rglob("*.yaml")]
    used = {name for text in texts for name in re.findall(r"_target_: (\S+)\.\w+", text)}
    while more := {other for name in used for other in imports(name)} - used:
        used |= more
    assert {name for name in NAMES if room(name) == "cmixup.methods"} - used == {"cmixup.methods"}


def test_no_import_is_hidden_behind_types() -> None:
    for name in NAMES:
        tests = [node.test for node in nodes(name) if isinstance(node, ast.If)]
        assert not any("TYPE_CHECKING" in ast.unparse(test) for test in tests), name


def test_datasets_and_models_do_not_know_each_other() -> None:
    tops = [(name.split(".")[0], other.split(".")[0], name) for name, other in arrows()]
    assert [name for one, other, name in tops if {one, other} == {"datasets", "models"}] == []


@pytest.mark.parametrize("name", [name for name in NAMES if room(name) == "scripts" and name != "scripts"])
def test_a_command_has_a_main_and_nothing_imports_it(name: str) -> None:
    defined = {node.name for node in ast.parse(NAMES[name].read_text()).body if isinstance(node, ast.FunctionDef)}
    assert "main" in defined
    assert not {other for other in NAMES if name in imports(other)}


def classes_in(name: str) -> list[type]:
    module = importlib.import_module(name)
    return [value for value in vars(module).values() if inspect.isclass(value) and value.__module__ == name]


@pytest.mark.parametrize("name", [name for name in NAMES if room(name) == "datasets" and name != "datasets"])
def test_a_file_of_datasets_is_a_dataset_with_a_config(name: str) -> None:
    stem = name.rpartition(".")[2]
    (kind,) = [kind for kind in classes_in(name) if issubclass(kind, Dataset)]
    assert kind.name == stem  # type: ignore[type-abstract]
    assert (REPO / "configs" / "dataset" / f"{stem}.yaml").is_file()


@pytest.mark.parametrize("name", [name for name in NAMES if room(name) == "cmixup.pairing"])
def test_a_file_of_pairing_is_a_pairing_or_helps_those(name: str) -> None:
    helpers = {"cmixup.pairing", "cmixup.pairing.base", "cmixup.pairing.flat", "cmixup.pairing.decay"}
    assert name in helpers or any(issubclass(kind, (Pairing, SupportPairing)) for kind in classes_in(name))


@pytest.mark.parametrize("name", [name for name in NAMES if room(name) == "cmixup.adapters"])
def test_adapters_know_sampling_and_mixing_and_no_method(name: str) -> None:
    known = {"cmixup.ground", "cmixup.sampling", "cmixup.mixing", "cmixup.adapters"}
    assert {room(other) for other in imports(name)} <= known


def test_engine_and_driver_know_no_method_dataset_or_model_by_name() -> None:
    contracts = {"cmixup.methods.base", "datasets.common.base", "datasets.common.damaged", "datasets.common.fetch"}
    for name in NAMES:
        if room(name) in ("cmixup.training", "scripts.driver"):
            parts = {i for i in imports(name) if room(i) in ("cmixup.methods", "datasets", "datasets.common", "models")}
            assert parts <= contracts, name
