"""A report says where its numbers come from: packages, files, seeds; and every seed is a run of its own.

What it says of the code is in test_commit.py.
"""

import calendar
import hashlib
import platform
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.seeding import Streams, torch_seed
from datasets import airfoil
from datasets.common.fetch import RawFile
from models.fcn3 import FCN3
from scripts.driver.execute import execute_job, make_run
from scripts.driver.provenance import run_environment
from tests.helpers import assert_states_equal, states_differ
from tests.scripts.jobs import planned, report_of

CPU = torch.device("cpu")
#: What changes numbers from one release to the next: the arithmetic, the data that packages hold or build, and Hydra.
PACKAGES = ("torch", "numpy", "scikit-learn", "hydra-core", "torchvision", "wilds", "PyTDC")


# ---- every seed is a run of its own


def test_every_seed_starts_from_the_weights_of_its_own_stream(tmp_path: Path) -> None:
    job = planned(tmp_path, "seeds=0..2")
    models = [make_run(job, seed).model for seed in (0, 1, 2)]
    for seed, model in enumerate(models):
        with torch_seed(Streams(seed).init):
            assert_states_equal(model.state_dict(), FCN3((7,), 1).state_dict())
    assert all(states_differ(models[a].state_dict(), models[b].state_dict()) for a, b in ((0, 1), (0, 2), (1, 2)))


def test_every_seed_has_its_own_split_and_streams(tmp_path: Path) -> None:
    job = planned(tmp_path, "dataset=airfoil", "seeds=0..1")
    one, other = (make_run(job, seed) for seed in (0, 1))
    assert not torch.equal(one.data.test.y, other.data.test.y)
    assert (one.streams.seed, other.streams.seed) == (0, 1)


# ---- the machine


@pytest.fixture
def threads() -> Iterator[int]:
    torch.set_num_threads(3)
    yield 3
    torch.set_num_threads(1)


def test_versions_are_those_of_the_packages_installed() -> None:
    installed = {found.metadata["Name"]: found.version for found in metadata.distributions()}
    expected = {name: installed[name] for name in PACKAGES if name in installed}
    assert len(set(expected.values())) >= 4
    assert run_environment(CPU)["versions"] == {"python": platform.python_version(), **expected}


# ---- the report


def test_a_report_holds_the_description_of_the_code_as_it_is(tmp_path: Path) -> None:
    before = int(time.time())
    job = planned(tmp_path, "train.epochs=3", "train.lr=1e-30")  # the weights stay, so the first epoch is the best
    (folder,) = execute_job(job)
    report = report_of(folder)
    assert {name: report[name] for name in run_environment(CPU)} == run_environment(CPU)
    assert before <= calendar.timegm(time.strptime(report["started"], "%Y-%m-%dT%H:%M:%SZ")) <= time.time()
    assert (report["best_epoch"], report["epochs"]) == (1, 3)
    assert (report["unit"], report["selection"]) == (job.dataset.unit, job.dataset.selection)


@pytest.mark.usefixtures("no_git")
def test_checksums_are_those_of_the_files_that_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = np.random.default_rng(0).random((1503, 6))
    (tmp_path / "data" / "airfoil").mkdir(parents=True)
    np.savetxt(tmp_path / "data" / "airfoil" / "noise.dat", made)
    content = (tmp_path / "data" / "airfoil" / "noise.dat").read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    file = RawFile("airfoil/noise.dat", digest, len(content), urls=(), page="", licence="")
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(airfoil, "FILE", file)
    monkeypatch.setattr(airfoil.Airfoil, "files", ((file,),))
    job = planned(tmp_path / "out", "dataset=airfoil", "dataset.synthetic=false", "train.epochs=1")
    (folder,) = execute_job(job)
    assert report_of(folder)["checksums"] == {"airfoil/noise.dat": digest}
    assert report_of(folder)["notes"] == []


@pytest.mark.usefixtures("no_git")
def test_seeds_that_trained_one_by_one_name_themselves_alone(tmp_path: Path) -> None:
    found = [report_of(folder) for folder in execute_job(planned(tmp_path, "method=rc_mixup", "seeds=[3,5]"))]
    assert [(r["stack"], r["stack_seeds"]) for r in found] == [(1, [3]), (1, [5])]
