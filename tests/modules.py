"""The modules of the project and of its tests, and which imports which, as their sources say."""

import ast
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
PACKAGES = ("cmixup", "datasets", "models", "scripts")


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__")


#: The file of every module by its dotted name, tests last.
EVERY = {name_of(path): path for package in (*PACKAGES, "tests") for path in sorted((REPO / package).rglob("*.py"))}
NAMES = {name: path for name, path in EVERY.items() if not name.startswith("tests")}


@cache
def statements(name: str) -> list[ast.AST]:
    """Every statement in a module's source, those in functions and blocks, too; no expression."""
    found: list[ast.AST] = [ast.parse(EVERY[name].read_text())]
    for node in found:
        found += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
    return found


@cache
def imports(name: str) -> frozenset[str]:
    """The modules of `EVERY` that a module imports anywhere, in functions and in blocks for types, too."""
    found = set()
    for node in statements(name):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {module if module in EVERY else str(node.module) for module in modules}
    return frozenset(module for module in found if module in EVERY and module != name)
