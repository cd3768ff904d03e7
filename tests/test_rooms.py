"""Every room has one rule, and the rooms have an order: a file imports from its own room and from rooms before it."""

import ast
import importlib
import inspect
import re
from graphlib import TopologicalSorter

import pytest

from cmixup.pairing.base import Pairing
from cmixup.pairing.support import SupportPairing
from datasets.common.base import Dataset
from tests.modules import NAMES, REPO, imports, statements
from tests.tests_of import FILES, find_tests

#: From the ground up. A file may import from its own room and from every room before it; `datasets` and `models` stand
#: on the library and not on each other.
ROOMS = (
    "cmixup.ground",
    "cmixup.tables",
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
    "scripts.machine",
    "scripts.config",
    "scripts.driver",
    "scripts.records",
    "scripts.stats",
    "scripts.plan",
    "scripts.study",
    "scripts.report",
    "scripts.analysis",
    "scripts.bench",
    "scripts",
)
#: `wilds` imports torchvision, whose import beside a CPU build of PyTorch needs the help that models/vision.py gives.
EXCEPTIONS = {("datasets.poverty_map", "models.vision")}


def room(name: str) -> str:
    """The room of a module; the files at the top of cmixup/ are its ground floor, but for the package itself."""
    first, *rest = name.split(".")
    if first == "cmixup":
        if not rest:
            return "cmixup"
        return f"cmixup.{rest[0]}" if f"cmixup.{rest[0]}" in ROOMS else "cmixup.ground"
    return f"{first}.{rest[0]}" if rest and f"{first}.{rest[0]}" in ROOMS else first


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
        tests = [node.test for node in statements(name) if isinstance(node, ast.If)]
        assert not any("TYPE_CHECKING" in ast.unparse(test) for test in tests), name


def test_datasets_and_models_do_not_know_each_other() -> None:
    tops = [(name.split(".")[0], other.split(".")[0], name) for name, other in arrows()]
    assert [name for one, other, name in tops if {one, other} == {"datasets", "models"}] == []


@pytest.mark.parametrize("name", [name for name in NAMES if room(name) == "scripts" and name != "scripts"])
def test_a_command_has_a_main_and_nothing_imports_it(name: str) -> None:
    defined = {node.name for node in statements(name)[0].body if isinstance(node, ast.FunctionDef)}
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


def test_every_source_file_with_code_has_tests() -> None:
    with_code = {file for file, name in FILES.items() if len(statements(name)[0].body) > 1}
    assert {file for file in with_code if not find_tests(file)} == set()


def test_tests_are_found_by_name_mutant_import_and_target() -> None:
    assert find_tests("scripts/train.py")["tests/scripts/test_train.py"] == "has its name"
    assert find_tests("cmixup/methods/irm.py")["tests/methods/test_penalties.py"] == "kills its mutants"
    assert find_tests("cmixup/pairing/label.py")["tests/mixing/test_puzzlemix.py"] == "imports it"
    assert find_tests("cmixup/sampling/sparse.py")["tests/sampling/test_space.py"] == "imports it over 3 imports"
    assert find_tests("datasets/shapenet1d.py")["tests/datasets/test_datasets.py"] == "names it"
    assert find_tests("scripts/bench/train.py")["make bench-train"] == "runs it"
    assert find_tests("scripts/analysis/__init__.py") == {}
