"""The files `on_device_*.py`, each suite in a process of its own: a backend that is registered stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[1]


def check_suite(files: list[str], marks: str, device: str = "", timeout: int = 580) -> None:
    """Run some of the files with pytest; its words are the failure."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "-m", marks, "--timeout", str(timeout),
         *(str(HERE / f"on_device_{name}.py") for name in files)],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=timeout,
        env={**os.environ, "PYTHONPATH": str(REPO), "CMIXUP_TEST_DEVICE": device},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


@pytest.mark.timeout(600)
def test_everything_stays_on_a_pretended_device() -> None:
    check_suite(["training", "samplers"], "not slow")


@pytest.mark.gpu
@pytest.mark.timeout(590)
def test_everything_runs_on_cuda() -> None:
    check_suite(["training", "samplers"], "not slow", "cuda", timeout=580)
