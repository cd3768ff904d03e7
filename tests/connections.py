"""A plugin of pytest: no test reaches another machine, nor does what it starts; raw files are for tests marked `data`.

The guard itself is `tests/guard/sitecustomize.py`. A test that sets PYTHONPATH for a process keeps what is on it.
"""

import importlib
import os
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

GUARD = Path(__file__).resolve().parent / "guard"
FOLDER = pytest.StashKey[tempfile.TemporaryDirectory]()
MIRROR = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    """Watch this process and all that it starts, and hide the raw files."""
    folder = config.stash[FOLDER] = tempfile.TemporaryDirectory(prefix="tests-")
    mirror = os.environ.pop("CMIXUP_MIRROR", "")
    # A worker of pytest-xdist starts in the environment of the process that has hidden it.
    config.stash[MIRROR] = getattr(config, "workerinput", {}).get("mirror", mirror)
    os.environ["CMIXUP_DATA"] = f"{folder.name}/nothing"
    os.environ["TESTS_ASKED"] = f"{folder.name}/asked"
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(GUARD), *(p for p in before if p and p != str(GUARD))])
    importlib.import_module("tests.guard.sitecustomize")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker where the raw files are."""
    node.workerinput["mirror"] = node.config.stash[MIRROR]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take the temporary folder away."""
    config.stash[FOLDER].cleanup()


@pytest.fixture(autouse=True)
def raw_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Show the mirror to a test marked `data`; skip it where there is none."""
    if request.node.get_closest_marker("data"):
        if not request.config.stash[MIRROR]:
            pytest.skip("CMIXUP_MIRROR is not set")
        monkeypatch.setenv("CMIXUP_MIRROR", request.config.stash[MIRROR])
        monkeypatch.setenv("CMIXUP_DATA", f"{request.config.stash[FOLDER].name}/raw")


def asked_nobody() -> Generator[None, object, object]:
    """Fail the step of a test in which something was asked for, whatever else becomes of it."""
    try:
        return (yield)
    finally:
        asked = Path(os.environ["TESTS_ASKED"])
        if asked.exists():
            said = asked.read_text()
            asked.unlink()
            pytest.fail(f"asked for another machine:\n{said}", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Watch what fixtures ask for."""
    return (yield from asked_nobody())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Watch what the test asks for."""
    return (yield from asked_nobody())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Watch what fixtures ask for at their end."""
    return (yield from asked_nobody())
