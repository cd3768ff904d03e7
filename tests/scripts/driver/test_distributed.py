"""One run over several processes: `torchrun` with gloo on the CPU against one process."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup import distributed
from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.order import EpochBatches
from cmixup.training import share
from cmixup.training.trainer import train
from scripts.driver.runs import read_report
from tests.helpers import make_run, settings

REPO = Path(__file__).resolve().parents[3]


def of(rank: int, world: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (distributed, share):
        monkeypatch.setattr(module, "distributed_place", lambda: (rank, world))


def test_shares_are_equal_disjoint_and_all_of_each_batch_but_for_what_does_not_divide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = EpochBatches(np.arange(23), np.array([9, 9, 4, 1]))
    shares = []
    for rank in range(2):
        of(rank, 2, monkeypatch)
        mine = share.share_of(order)
        assert mine.sizes.tolist() == [4, 4, 2]
        shares.append([rows.tolist() for rows in mine.batches()])
    assert shares == [[[0, 1, 2, 3], [9, 10, 11, 12], [18, 19]], [[4, 5, 6, 7], [13, 14, 15, 16], [20, 21]]]


def test_what_cannot_be_shared_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    of(0, 2, monkeypatch)
    with pytest.raises(InputError, match="batch_size must be a multiple of the 2 processes, got 15"):
        train([make_run(ERM())], settings(batch_size=15))


@pytest.mark.parametrize("method", ["mixrl", "maml", "drnn", "local_mixup"])
def test_methods_whose_steps_are_more_than_a_mean_train_in_one_process(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from scripts.config.compose import compose_train
    from scripts.driver.job import plan_job

    dataset = {"maml": "pascal1d_rendered", "drnn": "crime"}.get(method, "no2")
    job = plan_job(compose_train([f"dataset={dataset}", f"method={method}", "logger=none"]))
    of(0, 2, monkeypatch)
    with pytest.raises(InputError, match="trains in one process: its steps are no mean over rows; got 2 processes"):
        share.check_share(job.make_method(), job.settings, saves=False)


def launch(out: Path, processes: int, *words: str) -> tuple[dict, list[Path]]:
    """Train NO2's stand-in in so many processes; return the report, and every folder of a run."""
    command = ["-m", "scripts.train", "dataset=no2", "dataset.synthetic=true", "preset=default", "seed=3",
               "train.epochs=3", "train.batch_size=32", "train.drop_last=true", "device=cpu", "logger=none",
               f"out={out}", *words]  # fmt: skip
    start = [sys.executable]
    if processes > 1:
        start += ["-m", "torch.distributed.run", f"--nproc-per-node={processes}", "--master-port=0",
                  "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]  # fmt: skip
    done = subprocess.run(
        [*start, *command], cwd=REPO, env=os.environ | {"OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    folders = [path.parent for path in out.rglob("DONE")]
    return read_report(folders[0]), folders


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_two_processes_train_erm_as_one_does_and_write_once(tmp_path: Path) -> None:
    one, _ = launch(tmp_path / "one", 1, "method=erm")
    two, folders = launch(tmp_path / "two", 2, "method=erm")
    assert len(folders) == 1
    assert two["scores"]["test"]["rmse"] == pytest.approx(one["scores"]["test"]["rmse"], rel=1e-4)
    weights = [torch.load(path, weights_only=True) for path in sorted(tmp_path.rglob("checkpoint.pt"))]
    for name, value in weights[0].items():
        torch.testing.assert_close(value, weights[1][name], rtol=1e-3, atol=1e-5)
