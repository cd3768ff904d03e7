"""Settings that tests of the commands share."""

from __future__ import annotations

import pytest

from scripts.driver import job as run_module


@pytest.fixture
def no_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking git and the packages for their versions is most of a tiny run's time."""
    monkeypatch.setattr(run_module, "environment", lambda device: {"device": str(device)})
