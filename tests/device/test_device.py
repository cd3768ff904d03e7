"""The tests of on_device.py in a process of their own: a backend that is registered stays."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("device", ["", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_everything_stays_on_the_device(device: str) -> None:
    """The pretended one, or CUDA."""
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-x", "--timeout", "580", "tests/device/on_device.py"],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=580,
        env={**os.environ, "PYTHONPATH": str(REPO), "CMIXUP_TEST_DEVICE": device},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
    assert " passed" in done.stdout
