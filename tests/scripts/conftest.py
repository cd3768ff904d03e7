"""Settings that tests of the commands share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scripts.driver import execute as run_module
from scripts.machine import provenance


@pytest.fixture
def no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking git and the packages for their versions is most of a tiny run's time."""
    monkeypatch.setattr(run_module, "run_environment", lambda device: {"device": str(device)})


@pytest.fixture(autouse=True, scope="session")
def made_up_commit() -> Iterator[None]:
    """The commit of made-up runs counts as one of this checkout, so that they can be published."""
    asked = provenance.code_at
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(provenance, "code_at", lambda commit, *code: "" if commit == "c0ffee" else asked(commit, *code))
        yield
