"""Two processes under `torchrun` take the steps of one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.adapters.distributed import EPOCHS, RANKS, ROWS, train

REPO = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("workers", [0, 1])
def test_two_ranks_take_the_steps_of_one_process(workers: int) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={RANKS}"]
    done = subprocess.run(
        [*command, "-m", "tests.adapters.distributed", str(workers)],
        cwd=REPO, capture_output=True, text=True, check=False, timeout=500,
        env={**os.environ, "PYTHONPATH": str(REPO), "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    first, second = json.loads(done.stdout.splitlines()[-1])
    alone = train(workers=0)
    assert len(alone["losses"]) == EPOCHS * ROWS // 12
    both = torch.tensor([first["losses"], second["losses"]], dtype=torch.float64)
    torch.testing.assert_close(both.mean(0), torch.tensor(alone["losses"], dtype=torch.float64), rtol=1e-5, atol=1e-6)
    assert first["weights"] == second["weights"]
    torch.testing.assert_close(torch.tensor(first["weights"]), torch.tensor(alone["weights"]), rtol=1e-5, atol=1e-6)
    assert first["losses"] != second["losses"]  # of different rows
    assert first["lam"] != second["lam"]  # `CMixup` with one seed draws apart on each rank
