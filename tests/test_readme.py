"""README and docs/ name files and names that exist; tests/test_blocks.py runs their code."""

import json
import re
import runpy
import tomllib

import pytest
import yaml

from scripts.config.compose import CONFIG_DIR

ROOT = CONFIG_DIR.parent
README = (ROOT / "README.md").read_text()
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / "README.md", *DOCS)}
MAKEFILE = (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", PAGES[page]):
        assert (ROOT / page).parent.joinpath(link).exists(), link


def test_the_first_page_is_short():
    assert len(README.splitlines()) <= 110
    code = re.findall(r"^```python\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    assert [line for block in code for line in block.splitlines() if len(line) > 88] == []


def test_every_page_is_in_the_navigation():
    site = runpy.run_path(str(ROOT / "docs" / "conf.py"))
    named = [page for pages in site["NAVIGATION"].values() for page in pages]
    assert sorted(f"{page}.md" for page in named if page.startswith("docs/")) == [f"docs/{path.name}" for path in DOCS]
    assert all((ROOT / f"{page}.md").is_file() for page in named)


def test_the_api_page_has_every_public_name():
    import cmixup
    from cmixup import sklearn

    named = set(re.findall(r"^\.\. auto\w+:: cmixup\.(\w+)$", PAGES["docs/api.md"], re.MULTILINE))
    assert named == set(cmixup.__all__)
    named = set(re.findall(r"^\.\. auto\w+:: cmixup\.sklearn\.(\w+)$", PAGES["docs/api.md"], re.MULTILINE))
    assert named == set(sklearn.__all__)


def workflow_runs():
    """Every command of the workflow, with the job's name."""
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    return [(name, step["run"]) for name, job in jobs.items() for step in job["steps"] if "run" in step]


def test_the_workflow_runs_the_door_and_make_targets():
    runs = workflow_runs()
    assert runs.pop(0) == ("quickstart", "bash .ci/run")
    assert {"lint", "types", "test", "wheel-check"} <= {word for _, run in runs for word in run.split()}
    for name, run in runs:
        if name == "platforms":  # Windows has no make
            continue
        make, *targets = run.split()
        assert make == "make", f"{name}: {run}"
        for target in (word for word in targets if "=" not in word):
            assert re.search(rf"^{target}:.*## ", MAKEFILE, re.MULTILINE), f"{name}: {target}"


def test_library_and_a_training_run_on_every_platform():
    job = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]["platforms"]
    assert [name.partition("-")[0] for name in job["strategy"]["matrix"]["os"]] == ["ubuntu", "macos", "windows"]
    _, tests, trained = [step["run"] for step in job["steps"] if "run" in step]
    assert all((ROOT / word).exists() for word in tests.split() if word.startswith("tests/"))
    assert trained.startswith("python -m scripts.train dataset=airfoil dataset.synthetic=true ")


def test_the_workflow_tests_every_python_that_is_declared():
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    assert jobs["test"]["strategy"]["matrix"]["python"] == listed
    assert f">={listed[0]}" == project["requires-python"]


def test_workflows_name_actions_by_commit():
    used = [line.strip() for path in (ROOT / ".github/workflows").glob("*.yml")
            for line in path.read_text().splitlines() if "uses:" in line]  # fmt: skip
    pinned = re.compile(r"(- )?uses: actions/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
    assert len(used) > 20
    assert [line for line in used if not pinned.fullmatch(line)] == []
    assert len({line.removeprefix("- ") for line in used}) == 7  # one commit of each


def test_commit_hooks_call_what_make_calls():
    """The hooks are local: style and types as `make lint types` has them, with the environment's own versions."""
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert repo["repo"] == "local"
    called = {re.sub(r"^\.venv/bin/python -m ", "", hook["entry"]) for hook in repo["hooks"]}
    recipes = re.findall(r"^\t\$\(PY\) -m ((?:ruff|mypy).*)$", MAKEFILE, re.MULTILINE)
    assert called == {recipe.strip() for recipe in recipes}
    assert all(hook["pass_filenames"] is False and hook["language"] == "system" for hook in repo["hooks"])


def test_no_file_of_the_forge_names_a_package_registry():
    files = (
        ".github/workflows/ci.yml",
        ".github/workflows/release.yml",
        ".pre-commit-config.yaml",
        "docs/conf.py",
        "CITATION.cff",
        "pyproject.toml",
    )
    for name in files:
        assert not re.search(r"pypi|index-url|pythonhosted|conda-forge", (ROOT / name).read_text()), name


def test_the_citation_names_the_version_and_the_paper():
    import cmixup

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert citation["version"] == cmixup.__version__
    assert citation["license"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["license"]
    paper = citation["preferred-citation"]
    assert paper["title"] in " ".join(README.split())
    assert [author["family-names"] for author in paper["authors"]] == ["Yao", "Wang", "Zhang", "Zou", "Finn"]


def test_an_archive_gets_what_the_citation_says():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    archive = json.loads((ROOT / ".zenodo.json").read_text())
    assert archive["license"] == citation["license"]
    assert [one["name"] for one in archive["creators"]] == [author["name"] for author in citation["authors"]]
    paper = citation["preferred-citation"]
    assert [one["identifier"] for one in archive["related_identifiers"]] == [paper["identifiers"][0]["value"]]


def test_only_the_job_that_a_person_approves_may_publish():
    release = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    build, publish = release["jobs"]["build"], release["jobs"]["publish"]
    assert release[True] == {"push": {"tags": ["v*"]}}  # YAML reads `on` as true
    assert release["permissions"] == {"contents": "read"}
    assert "permissions" not in build
    assert publish["needs"] == "build"
    assert publish["environment"] == "release"
    assert publish["permissions"] == {"id-token": "write", "attestations": "write", "contents": "read"}
    assert [step["run"] for step in build["steps"] if "run" in step] == ["make check", "make release-check"]
    uploads = [step["run"] for job in (build, publish) for step in job["steps"] if " upload " in step.get("run", "")]
    assert uploads == ["python -m twine upload --non-interactive dist/*"]


@pytest.mark.parametrize(
    "form", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_a_form_of_an_issue_has_what_a_forge_needs(form):
    given = yaml.safe_load(form.read_text())
    assert {"name", "description", "body"} <= set(given)
    fields = [field for field in given["body"] if field["type"] != "markdown"]
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
