"""The real files: `CMIXUP_MIRROR=<folder or URL> pytest -m data`."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData
from datasets import no2 as no2_module
from datasets.airfoil import FILE, Airfoil
from datasets.fetch import fetch, sha256_of
from datasets.no2 import CSV, NO2, TSV

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("CMIXUP_MIRROR"), reason="CMIXUP_MIRROR is not set"),
]


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    return tmp_path


def labels(data: RegressionData) -> torch.Tensor:
    return torch.cat([data.train.y, data.val.y, data.test.y])


@pytest.mark.parametrize("file", [FILE, CSV, TSV], ids=lambda file: file.path)
def test_checksum_and_size(file: object, root: Path) -> None:
    _, path = fetch(file)
    assert path.stat().st_size == file.size
    assert sha256_of(path) == file.sha256


@pytest.mark.parametrize("scaling", ["train", "all"])
def test_airfoil(scaling: str) -> None:
    data = Airfoil(scaling).load(0)
    assert (len(data.train), len(data.val), len(data.test)) == (1003, 300, 200)
    y = labels(data).double()
    assert y.min().item() == pytest.approx(103.380, abs=1e-5)
    assert y.max().item() == pytest.approx(140.987, abs=1e-5)
    assert data.train.y.std().item() == pytest.approx(7.05, abs=0.3)
    assert data.checksums == {FILE.path: FILE.sha256}
    whole = torch.cat([data.train.x, data.val.x, data.test.x])
    assert whole.min() == 0
    assert whole.max() == 1


def test_no2() -> None:
    data = NO2().load(0)
    assert (len(data.train), len(data.val), len(data.test)) == (200, 200, 100)
    y = labels(data)
    assert y.min().item() == pytest.approx(1.22378, abs=1e-5)
    assert y.max().item() == pytest.approx(6.39509, abs=1e-5)
    assert data.checksums == {CSV.path: CSV.sha256}


def test_no2_from_the_csv_and_from_pmlb_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    first = NO2().read()
    monkeypatch.setattr(NO2, "files", ((TSV,),))
    second = NO2().read()
    assert second.checksums == {TSV.path: TSV.sha256}
    np.testing.assert_allclose(first.y, second.y, atol=2.4e-7, rtol=0)
    np.testing.assert_allclose(first.x, second.x, atol=1.31e-5, rtol=0)
    assert first.x[:, 6].min() == 32  # the day number is the last feature
    assert first.x[:, 6].max() == 608


def test_no2_reads_pmlb_where_there_is_no_csv(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetch(TSV)
    monkeypatch.setenv("CMIXUP_MIRROR", str(root / "nowhere"))
    data = no2_module.NO2().load(0)
    assert data.checksums == {TSV.path: TSV.sha256}
    assert labels(data).max().item() == pytest.approx(6.39509, abs=1e-5)
