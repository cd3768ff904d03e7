"""What holds for the whole project: who may import whom, what the wheel ships, where the pages lead."""

import ast
import importlib
import inspect
import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
import zipfile
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
import yaml

import cmixup
from cmixup import sklearn

REPO = Path(__file__).resolve().parents[1]
PACKAGES = ("cmixup", "datasets", "models", "scripts")
MODULES = {
    ".".join(path.relative_to(REPO).with_suffix("").parts).removesuffix(".__init__"): path
    for package in PACKAGES for path in sorted((REPO / package).rglob("*.py"))
}  # fmt: skip
PAGES = sorted([*REPO.glob("*.md"), *REPO.glob("docs/*.md"), *REPO.glob("results/**/*.md")])
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text())["project"]


@cache
def imports(name: str) -> frozenset[str]:
    """What a module imports anywhere in its source, by dotted name: modules of the project and packages of others."""
    imported = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text())):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name}: relative import"
            modules = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= {module if module in MODULES else str(node.module) for module in modules}
    return frozenset(imported - {name})


def test_no_circle_of_imports() -> None:
    order = TopologicalSorter({name: imports(name) & MODULES.keys() for name in MODULES}).static_order()
    assert set(order) == MODULES.keys()
    assert not any("if TYPE_CHECKING" in path.read_text() for path in MODULES.values())


#: The longest chain of imports between the folders of a package and the files at its top (the commands of scripts).
FLOORS = {"cmixup": 8, "datasets": 3, "scripts": 6}


@pytest.mark.parametrize("package", FLOORS)
def test_folders_have_few_floors_and_no_circle(package: str) -> None:
    def folder(name: str) -> str:
        inside = name.count(".") > 1 or MODULES[name].name == "__init__.py"
        return name.split(".")[1] if inside or package != "scripts" else "commands"

    ours = [name for name in MODULES if name.startswith(f"{package}.")]
    folders: dict[str, set[str]] = {folder(name): set() for name in ours}
    for name in ours:
        folders[folder(name)] |= {folder(other) for other in imports(name) if other in ours} - {folder(name)}
    height = dict[str, int]()  # the length of each folder's longest chain of imports; a circle raises
    for one in TopologicalSorter(folders).static_order():
        height[one] = 1 + max((height[below] for below in folders[one]), default=0)
    assert max(height.values()) <= FLOORS[package], height
    commands = {name for name in ours if folder(name) == "commands"}
    assert not any(imports(name) & commands for name in MODULES)


def test_public_methods_have_docstrings_or_override_one_that_has() -> None:
    modules = [importlib.import_module(name) for name in MODULES if not name.startswith("scripts.")]
    for kind in {kind for module in modules for kind in vars(module).values() if isinstance(kind, type)}:
        for name, value in vars(kind).items() if kind.__module__ in MODULES else ():
            if name[0] != "_" and (inspect.isroutine(value) or isinstance(value, property)):
                assert inspect.getdoc(getattr(kind, name)), f"{kind.__name__}.{name}"


#: Modules and packages that a package of the project must not import; engine and driver know no method and no dataset.
FORBIDDEN = {
    "cmixup": ("datasets", "models", "scripts"), "datasets": ("models", "scripts"), "models": ("datasets", "scripts"),
    "cmixup.adapters": ("cmixup.methods", "cmixup.training.trainer"), "cmixup.training": ("cmixup.methods",),
    "scripts.driver": ("models", "cmixup.methods", *(n for n in MODULES if re.match(r"datasets\.(?!common)", n))),
}  # fmt: skip


@pytest.mark.parametrize("package", FORBIDDEN)
def test_parts_know_only_what_is_below_them(package: str) -> None:
    wrong = {
        (name, other) for name in MODULES if f"{name}.".startswith(f"{package}.") for other in imports(name)
        if any(f"{other}.".startswith(f"{forbidden}.") for forbidden in FORBIDDEN[package])
    }  # fmt: skip
    assert wrong == set()


DISTRIBUTIONS = {"sklearn": "scikit-learn", "hydra": "hydra-core", "yaml": "pyyaml", "PIL": "pillow", "tdc": "pytdc",
                 "mpl_toolkits": "matplotlib"}  # fmt: skip


def test_every_package_that_is_imported_is_declared() -> None:
    optional = PROJECT["optional-dependencies"]
    required = [*PROJECT["dependencies"], *(one for name in optional for one in optional[name])]
    declared = {re.split(r"[^\w.-]", one, maxsplit=1)[0].lower() for one in required}
    used = {other.split(".")[0] for name in MODULES for other in imports(name)}
    others = used - set(sys.stdlib_module_names) - set(PACKAGES)
    assert {DISTRIBUTIONS.get(name, name).lower().replace("_", "-") for name in others} <= declared


def test_the_library_needs_numpy_and_torch_alone() -> None:
    """But for sklearn/ and tables/, which need more and are imported when something asks for them."""
    library = [name for name in MODULES if re.match(r"cmixup\b(?!\.sklearn|\.tables)", name)]
    code = f"import sys, {', '.join(library)}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert {"cmixup", "numpy", "torch"} <= loaded
    assert not loaded & {"pandas", "hydra", "omegaconf", "wandb", "scipy", "matplotlib", "sklearn",
                         "requests", "h5py", "datasets", "models", "scripts"}  # fmt: skip


@pytest.mark.slow
def test_the_wheel_ships_the_library_alone_and_runs_without_the_checkout(tmp_path: Path) -> None:
    """Built from a copy, so that nothing is left in the checkout; needs no network."""
    source, site = tmp_path / "source", tmp_path / "site"
    ignore = shutil.ignore_patterns("__pycache__", ".git", "*.egg-info", "build", "outputs", "data", ".venv", "wandb")
    shutil.copytree(REPO, source, ignore=ignore)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*command, "-w", str(tmp_path / "dist"), str(source)], check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        shipped = archive.namelist()
        archive.extractall(site)
    assert {name.partition("/")[0] for name in shipped if ".dist-info/" not in name} == {"cmixup"}
    ours = {str(path.relative_to(REPO)) for name, path in MODULES.items() if name.split(".")[0] == "cmixup"}
    assert {name for name in shipped if name.endswith(".py")} == ours
    assert "cmixup/py.typed" in shipped
    first = re.findall(r"^```python\n(.*?)^```", (REPO / "README.md").read_text(), re.DOTALL | re.MULTILINE)[0]
    place = f"sys.modules['cmixup'].__file__.startswith({str(site)!r})"
    code = f"import sys; sys.path.insert(0, {str(site)!r})\n{first}\nassert {place}"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True)


# ---- pages


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)]*))?\)", page.read_text()):
        target = (page.parent / link).resolve() if link else page
        assert target.exists(), link
        if anchor and target.suffix == ".md" and target.name != "api.md":  # whose anchors are of autodoc
            assert anchor in anchors(target), f"{link}#{anchor}"


@cache
def anchors(path: Path) -> set[str]:
    """Return the anchors of a page: those that a forge gives its headings, and those that are written."""
    text = path.read_text()
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads} | set(
        re.findall(r'\bid="([^"]+)"', text)
    )


def test_every_page_of_docs_is_in_the_navigation() -> None:
    site = runpy.run_path(str(REPO / "docs" / "conf.py"))
    listed = {page for pages in site["NAVIGATION"].values() for page in pages}
    assert {f"docs/{path.stem}" for path in (REPO / "docs").glob("*.md")} <= listed
    assert all((REPO / f"{page}.md").is_file() for page in listed)


def test_the_api_page_has_every_public_name() -> None:
    page = (REPO / "docs/api.md").read_text()
    assert set(re.findall(r"^\.\. auto\w+:: cmixup\.(\w+)$", page, re.MULTILINE)) == set(cmixup.__all__)
    assert set(re.findall(r"^\.\. auto\w+:: cmixup\.sklearn\.(\w+)$", page, re.MULTILINE)) == set(sklearn.__all__)
    assert all(hasattr(cmixup, name) for name in cmixup.__all__)
    listed = " ".join(page.partition("```")[0].split())
    for name, arguments in re.findall(r"- `(\w+)(\(.*?\))`: ", listed):
        whole = inspect.signature(getattr(cmixup, name, None) or getattr(sklearn, name))
        plain = [one.replace(annotation=one.empty) for one in whole.parameters.values()]
        assert arguments == str(whole.replace(parameters=plain, return_annotation=whole.empty)), name
    classes = re.findall(r"^\.\. autoclass:: ([\w.]+)\.(\w+)\n\s+:members: (.+)$", page, re.MULTILINE)
    for module, name, members in classes:
        assert all(hasattr(getattr(sys.modules[module], name), member) for member in members.split(", ")), name


# ---- the forge


def test_the_citation_and_the_archive_agree_with_the_project() -> None:
    citation = yaml.safe_load((REPO / "CITATION.cff").read_text())
    archive = json.loads((REPO / ".zenodo.json").read_text())
    assert citation["version"] == cmixup.__version__ == PROJECT["version"]
    assert citation["license"] == PROJECT["license"] == archive["license"]
    assert citation["preferred-citation"]["title"] in " ".join((REPO / "README.md").read_text().split())


def test_ci_tests_every_python_that_is_declared() -> None:
    jobs = yaml.safe_load((REPO / ".github/workflows/ci.yml").read_text())["jobs"]
    listed = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    assert jobs["test"]["strategy"]["matrix"]["python"] == listed
    assert f">={listed[0]}" == PROJECT["requires-python"]


def test_workflows_name_actions_by_commit_and_call_make() -> None:
    text = "".join(path.read_text() for path in (REPO / ".github/workflows").glob("*.yml"))
    assert re.findall(r"uses: (?!actions/[\w-]+@[0-9a-f]{40}  # v)(.*)", text) == []
    targets = set(re.findall(r"^([a-z0-9-]+):", (REPO / "Makefile").read_text(), re.MULTILINE))
    assert set(" ".join(re.findall(r"run: make (.*)", text)).split()) <= targets


def test_no_file_names_the_host_of_a_package_registry() -> None:
    files = [*REPO.glob("*.*"), *REPO.glob(".github/**/*.yml"), REPO / "Makefile", REPO / ".ci/run", *PAGES]
    hosts = re.compile(
        r"pypi[.]or[g]|pythonhoste[d]|index-url(?! https://download[.]pytorch[.]org)|conda-forge|anaconda[.]or[g]"
    )
    assert [str(path) for path in files if path.is_file() and hosts.search(path.read_text(errors="replace"))] == []


def test_only_the_job_that_a_person_approves_may_publish() -> None:
    release = yaml.safe_load((REPO / ".github/workflows/release.yml").read_text())
    build, publish = release["jobs"]["build"], release["jobs"]["publish"]
    assert release["permissions"] == {"contents": "read"}
    assert "permissions" not in build
    assert (publish["needs"], publish["environment"]) == ("build", "release")


@pytest.mark.parametrize(
    "page", ["README.md", "docs/index.md", "docs/own_data.md", "docs/scikit_learn.md", "results/README.md"]
)
def test_front_pages_are_read_in_short_cells_and_sentences(page: str) -> None:
    text = re.sub(r"^```.*?^```", "", (REPO / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)|<[^>]*>", r"\1", text)
    cells = [cell for line in text.splitlines() if line.startswith("|") for cell in line.strip("|").split("|")]
    prose = [re.sub(r"^\s*(?:- |\d+\. )", "", line) for line in text.splitlines() if not line.startswith(("|", "#"))]
    blocks = re.split(r"\n\s*\n|\n(?=\s*- )", "\n".join(prose))
    sentences = [one for block in blocks for one in re.split(r"(?<=[.!?:;])\s+(?=[\w`*(])", " ".join(block.split()))]
    assert {cell for cell in cells if len(cell.split()) > 15} == set()
    assert {one for one in sentences if len(one.split()) > 25} == set()
