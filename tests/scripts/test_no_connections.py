"""Nothing connects anywhere that the user did not ask for, and no name is looked up.

`tests/conftest.py` fails a test whose own process asks for another machine; what is run here need only end well.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
DEFAULT = ("-m", "scripts.train", "dataset=no2", "dataset.synthetic=true", "train.epochs=1")


def far(trace: str) -> list[str]:
    """Return the lines of a trace that name an address or port of another machine, or look a name up."""
    lines = [line for line in trace.splitlines() if re.search(r"sin6?_port", line)]
    ours = re.compile(r'inet_addr\("127\.|"::1"|sin6?_port=htons\(0\)')
    return [line for line in lines if not ours.search(line) or "htons(53)" in line]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("more", [(), ("logger=none",)])
def test_no_process_of_the_default_command_connects(tmp_path: Path, more: tuple[str, ...]) -> None:
    """The guard sees Python alone; wandb's own process is another program."""
    trace = tmp_path / "trace"
    tracing = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=connect,sendto,sendmsg,sendmmsg"]
    if subprocess.run([*tracing, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("WANDB_", "CMIXUP_"))}
    places = {f"CMIXUP_{name.upper()}": str(tmp_path / name) for name in ("out", "data")}
    done = subprocess.run(
        [*tracing, sys.executable, *DEFAULT, *more], cwd=REPO, capture_output=True, text=True, check=False,
        env={**kept, **places, "PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert far(trace.read_text()) == []
