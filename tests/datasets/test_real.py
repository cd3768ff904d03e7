"""The real files: `CMIXUP_MIRROR=<folder> pytest -m data`, which `make test-data` does."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData
from datasets.airfoil import Airfoil
from datasets.common.base import TabularDataset
from datasets.common.domain_table import DomainTable
from datasets.crime import Crime
from datasets.dti_davis import DTIDavis
from datasets.dti_kiba import DTIKiba
from datasets.exchange_rate import ExchangeRate
from datasets.no2 import NO2
from datasets.rcf_mnist import RCFMNIST
from datasets.skillcraft import SkillCraft
from tests.datasets.samples import parts

pytestmark = pytest.mark.data


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    return tmp_path


def labels(data: RegressionData) -> torch.Tensor:
    return torch.cat([split.y for split in parts(data)])


#: By dataset: the label's smallest and largest value and its deviation in training, and the domains of each split.
FACTS: dict[type[TabularDataset], tuple[float, float, float, list[list[int]]]] = {
    Airfoil: (103.380, 140.987, 6.9, [[0], [0], [0]]),
    NO2: (1.22378, 6.39509, 0.74, [[0], [0], [0]]),
    SkillCraft: (24.0936, 176.3721, 18.6, [[1, 2, 3, 4], [5], [6, 7, 8]]),
    Crime: (0.0, 1.0, 0.245, [[], [40, 41, 42, 44, 45, 46], [47, 48, 49, 50, 51, 53, 54, 55, 56]]),
}


@pytest.mark.parametrize("dataset", FACTS)
def test_a_table_is_what_its_card_says(dataset: type[TabularDataset]) -> None:
    low, high, std, domains = FACTS[dataset]
    data, y = dataset().load(0), labels(dataset().load(0))
    assert (y.min().item(), y.max().item()) == pytest.approx((low, high), abs=1e-4)
    assert data.train.y.std().item() == pytest.approx(std, rel=0.05)
    assert data.checksums == {dataset.files[0][0].path: dataset.files[0][0].sha256}
    for split, size, ids in zip(parts(data), dataset.split_sizes, domains, strict=True):
        assert split.x.shape == (size, *dataset.x_shape)
        assert torch.isfinite(split.x).all()
        assert split.x.min() >= 0
        assert split.x.max() <= 1  # a million hours of a validation row of SkillCraft, too
        assert ids in ([], split.domain.unique().tolist())


@pytest.mark.parametrize("seed", [0, 3])
@pytest.mark.parametrize(
    ("dataset", "header", "domain", "x", "y"),
    [  # as src/data/communities_and_crime.py and src/data/skillcraft.py have them; the former leaves column 3 out
        (Crime, 0, 0, [*range(5, 127)], 127), (SkillCraft, 1, 1, [*range(2, 13), *range(14, 20)], 13),
    ],
)  # fmt: skip
def test_a_domain_table_under_released_has_the_arrays_of_the_authors_loader(
    dataset: type[DomainTable], header: int, domain: int, x: list[int], y: int, *, seed: int
) -> None:
    """Read and ordered as they say, step by step, every array equals theirs row by row, as float32."""
    lines = [line.split(",") for line in dataset().fetch()[0][1].read_text().replace('"', "").splitlines()[header:]]
    raw = np.array([[-1.0 if line[k] == "?" else float(line[k]) for k in (*x, y)] for line in lines])
    raw = np.where(raw >= -0.5, raw, [column[column >= -0.5].mean() for column in raw.T])
    raw[:, :-1] -= raw[:, :-1].min(axis=0)
    raw[:, :-1] /= raw[:, :-1].max(axis=0)
    group = np.array([int(line[domain]) for line in lines])
    ids = sorted(set(group.tolist()))
    sums = np.cumsum([(group == d).sum() for d in ids])
    first = next(k for k in range(len(ids)) if sums[k] >= int(0.7 * len(raw)))
    second = next(k for k in range(len(ids)) if sums[k] >= sums[first] + int(0.1 * len(raw)))
    data = dataset("all", "released").load(seed)
    np.random.seed(seed)  # noqa: NPY002 - what the authors do
    for split, chosen in zip(parts(data), (ids[:first], ids[first:second], ids[second:]), strict=True):
        rows = np.concatenate([np.flatnonzero(group == d) for d in chosen])
        rows = rows[np.random.permutation(len(rows))]  # noqa: NPY002
        np.testing.assert_array_equal(torch.cat([split.x, split.y], dim=1), raw[rows].astype(np.float32))


def test_no2_from_the_csv_and_from_pmlb_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    first = NO2().read()
    (_, tsv), *_ = NO2.files
    monkeypatch.setattr(NO2, "files", ((tsv,),))
    second = NO2().read()
    assert second.checksums == {tsv.path: tsv.sha256}
    np.testing.assert_allclose(first.y, second.y, atol=2.4e-7, rtol=0)
    np.testing.assert_allclose(first.x, second.x, atol=1.31e-5, rtol=0)
    assert first.x[:, 6].min() == 32  # the day number is the last feature
    assert first.x[:, 6].max() == 608


def test_exchange_rate() -> None:
    data, ((file, path),) = ExchangeRate().load(0), ExchangeRate().fetch()
    assert (len(data.train), len(data.val), len(data.test)) == (4373, 1518, 1518)
    assert data.train.x.shape == (4373, 168, 8)
    assert data.checksums == {file.path: file.sha256}
    raw = np.loadtxt(path, delimiter=",")
    assert (raw.min(), raw.max()) == (0.006254, 2.109)
    scaled = torch.from_numpy(raw / np.abs(raw).max(axis=0)).float()
    assert torch.equal(labels(data), scaled[179:])
    for split, start in ((data.train, 0), (data.val, 4552 - 179), (data.test, 6070 - 179)):
        for row in (0, 1, len(split) - 1):
            assert torch.equal(split.x[torch.tensor([row])][0], scaled[start + row : start + row + 168])


def test_rcf_mnist() -> None:
    data = RCFMNIST().load(0)
    assert [len(split) for split in parts(data)] == [40_000, 10_000, 10_000]
    assert torch.bincount(data.train.domain).tolist() == [32_000, 8_000]
    assert data.checksums == {RCFMNIST.files[0][0].path: RCFMNIST.files[0][0].sha256}
    assert data.train.y.std().item() == pytest.approx(1 / 12**0.5, abs=0.003)
    for split, wanted in zip(parts(data), (0.6, 0.0, -0.6), strict=True):
        rho = split.x.rho
        assert np.corrcoef(rho, split.y[:, 0])[0, 1] == pytest.approx(wanted, abs=0.03)
    assert sum(int((split.x.grey > 5).sum()) for split in parts(data)) > 60_000 * 100


@pytest.mark.parametrize(
    ("dataset", "sizes", "low", "high", "std"),
    [(DTIDavis, (21_012, 3_060, 5_984), 5, 10.7959, 0.927), (DTIKiba, (82_625, 12_085, 23_544), 0, 17.2002, 0.846)],
)
def test_davis_and_kiba(dataset: type, sizes: tuple[int, ...], low: float, high: float, std: float) -> None:
    data = dataset().load(0)
    y = labels(data)
    assert len(y) == {DTIDavis: 30_056, DTIKiba: 118_254}[dataset]
    assert tuple(map(len, parts(data))) == sizes
    assert (y.min().item(), y.max().item()) == pytest.approx((low, high), abs=1e-4)
    assert data.train.y.std().item() == pytest.approx(std, abs=1e-3)
    proteins = [set(split.x.protein.tolist()) for split in parts(data)]
    codes = data.train.x.proteins
    sequences = [{tuple(codes[k].tolist()) for k in rows} for rows in proteins]
    assert sum(map(len, proteins)) == len(set.union(*proteins))
    assert len(data.checksums) == 3
    assert data.train.x[torch.tensor([0])].sum() == 1100
    if dataset is DTIDavis:  # mutants share the sequence of their kinase in this file
        assert sum(map(len, sequences)) == len(set.union(*sequences)) < 442
