"""Drug-target pairs: encoders and one-hot strings, groups of proteins of Davis and KIBA, years of DTI."""

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.errors import InputError
from datasets.common.affinity import (
    DRUG_SYMBOLS,
    PROTEIN_SYMBOLS,
    DrugProteinInputs,
    PairTable,
    balanced_groups,
    encode,
    families,
)
from datasets.dti import DTI, FOLDER
from datasets.dti_davis import DTIDavis
from datasets.dti_kiba import DTIKiba

PARTS = ("train", "val", "test")

# ---- encoders


def test_encoding_cuts_fills_and_replaces() -> None:
    codes = encode(["CN", "C@N\u00e9OCC", ""], DRUG_SYMBOLS, 5)
    assert codes.dtype == torch.uint8
    decoded = ["".join(DRUG_SYMBOLS[k] for k in row) for row in codes.tolist()]
    assert decoded == ["CN???", "C?N?O", "?????"]


def test_pairs_are_one_hot_strings_channel_by_channel() -> None:
    drugs = encode(["CCO", "c1ccccc1@"], DRUG_SYMBOLS, 6)
    proteins = encode(["MKV", "ACDEF", "WJ"], PROTEIN_SYMBOLS, 4)
    drug, protein = torch.tensor([[0, 1, 1, 0], [2, 0, 1, 1]], dtype=torch.int32)
    x = DrugProteinInputs(drugs, proteins, drug, protein)
    assert (len(x), x.shape) == (4, (4, 63 * 6 + 26 * 4))
    index = torch.tensor([3, 0, 3])
    one_hot = [torch.eye(63)[drugs.long()[drug[index]]], torch.eye(26)[proteins.long()[protein[index]]]]
    torch.testing.assert_close(x[index], torch.cat([part.mT.flatten(1) for part in one_hot], dim=1))


# ---- groups of proteins


def test_forms_of_one_kinase_are_one_family() -> None:
    names = ["ABL1(T315I)p", "ABL1(T315I)", "ABL1p", "ABL2", "EGFR", "EGFR(L858R)", "p38"]
    sequences = ["MLE", "MLE", "MLE", "MGQ", "MRP", "MRPX", "MSQ"]
    family = families(names, sequences)
    assert len(set(family[:3])) == 1
    assert family[4] == family[5]
    assert len(set(family.tolist())) == 4


def test_groups_hold_whole_families_and_about_as_many_pairs() -> None:
    rng = np.random.default_rng(0)
    family = rng.integers(200, size=5000)
    group = balanced_groups(family, 10, np.random.default_rng(1))
    assert all(len(set(group[family == f])) == 1 for f in range(200))
    assert np.bincount(group, minlength=10) == pytest.approx(500, abs=60)
    assert (balanced_groups(family, 10, np.random.default_rng(1)) == group).all()
    assert (balanced_groups(family, 10, np.random.default_rng(2)) != group).any()


@pytest.mark.parametrize("dataset", [DTIDavis, DTIKiba])
def test_no_protein_is_in_two_splits(dataset: Any) -> None:
    data = dataset(synthetic=True).load(0)
    parts = [data.train, data.val, data.test]
    proteins = [set(split.x.protein.tolist()) for split in parts]
    assert sum(map(len, proteins)) == len(set.union(*proteins)) == 20
    assert sum(map(len, parts)) == 240
    assert [sorted(set(split.domain.tolist())) for split in parts] == [list(range(7)), [7], [8, 9]]
    assert any("not the paper's DTI" in note for note in data.notes)
    assert dataset(synthetic=True).load(5).train.y.equal(data.train.y)
    assert not dataset(split_seed=4, synthetic=True).load(0).train.y.equal(data.train.y)


@pytest.mark.parametrize(
    ("dataset", "matrix", "expected"),
    [  # Kd of 10000 nM is pKd 5, 1 nM is 9; unknown entries are left out
        (DTIDavis, "10000 1 100\n.1 10000 1000\n", [[0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [5, 9, 7, 10, 5, 6]]),
        (DTIKiba, "11.1\tnan\t10\nnan\t3\t0\n", [[0, 0, 1, 1], [0, 2, 1, 2], [11.1, 10, 3, 0]]),
    ],
)
def test_a_matrix_becomes_its_known_pairs(
    dataset: Any, matrix: str, expected: list[list[float]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, text in (("0", '{"1": "CCO", "2": "CN"}'), ("1", '{"A": "MK", "B": "MV", "B(1)": "ML"}'), ("2", matrix)):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(dataset, "fetch", lambda _: [(f[0], tmp_path / str(k)) for k, f in enumerate(dataset.files)])
    table = dataset().read()
    np.testing.assert_allclose([table.drug, table.protein, table.y], expected)
    assert len(set(table.domain[table.protein > 0])) == 1  # B and its mutant
    assert len(table.checksums) == 3


# ---- DTI: years as domains, what PyTDC gives, and files that are not there or not right


def years(counts: dict[int, int]) -> PairTable:
    """DrugProteinInputs whose label is their row number."""
    year = np.repeat(list(counts), list(counts.values()))
    n = len(year)
    return PairTable(["C"], ["A"], np.zeros(n, int), np.zeros(n, int), np.arange(float(n)), year, {})


@pytest.mark.parametrize("seed", [0, 3])
def test_rows_are_held_out_as_tdc_does(seed: int) -> None:
    """`np.random.seed(seed); np.random.rand(n) < 0.8` again for each year."""
    table = years({2013 + k: 50 + k for k in range(9)})
    rows = DTI(subsample=False).split(table, seed)
    train, val, test = [], [], []
    for year in range(2013, 2021):
        mine = np.flatnonzero(table.domain == year)
        np.random.seed(seed)  # noqa: NPY002 - what PyTDC does
        kept = np.random.rand(len(mine)) < 0.8  # noqa: NPY002
        (train if year < 2019 else test).append(mine[kept])
        if year < 2019:
            val.append(mine[~kept])
    for part, expected in zip(PARTS, (train, val, test), strict=True):
        selected = np.sort(rows[part]) if part == "train" else rows[part]
        np.testing.assert_array_equal(selected, np.concatenate(expected))
    # No year comes after the other where epochs are not shuffled: training rows are in random order, by the run's seed.
    assert len(set(table.domain[rows["train"][:40]].tolist())) > 3
    np.testing.assert_array_equal(DTI(subsample=False).split(table, seed)["train"], rows["train"])
    assert not np.array_equal(DTI(subsample=False).split(table, seed + 1)["train"][:20], rows["train"][:20])
    whole = DTI(subsample=False, whole_test=True).split(table, seed)
    np.testing.assert_array_equal(whole["test"], np.flatnonzero((table.domain == 2019) | (table.domain == 2020)))


def test_subsampling_makes_years_equally_large() -> None:
    table = years({2013 + k: 400 + 100 * k for k in range(9)})
    rows = DTI().split(table, 0)
    for part, domains in (("train", range(2013, 2019)), ("val", range(2013, 2019)), ("test", (2019, 2020))):
        whole = DTI(subsample=False).split(table, 0)[part]
        smallest = min(int((table.domain[whole] == year).sum()) for year in domains)
        year, counts = np.unique(table.domain[rows[part]], return_counts=True)
        assert year.tolist() == list(domains)
        assert set(counts.tolist()) == {smallest // 64 * 64}
        assert set(rows[part]) <= set(whole)
        repeated = len(set(rows[part])) < len(rows[part])
        assert repeated == (part == "train")  # training rows are drawn with replacement
    every = DTI(whole_test=True).split(table, 0)["test"]
    assert sorted(every) == np.flatnonzero(np.isin(table.domain, (2019, 2020))).tolist()
    again = DTI().split(table, 0)
    assert all((again[part] == rows[part]).all() for part in PARTS)
    assert not np.array_equal(DTI().split(table, 1)["train"], rows["train"])


def write_tdc(root: Path, **changes: Any) -> None:
    """A tiny copy of TDC's folder; `changes` replace columns."""
    path = root / FOLDER.path
    path.mkdir(parents=True)
    for name, given in (("train_val", range(2013, 2019)), ("test", range(2019, 2022))):
        rows = [
            {"Drug_ID": 5.0 + k, "Drug": ["CCO", "c1ccccc1", "C[C@H](N)O"][k % 3], "Target_ID": "P1",
             "Target": ["mkvl", "ACDEFG"][k % 2], "Y": 0.1 * k + year - 2013, "Year": year} | changes
            for year in given for k in range(10)
        ]  # fmt: skip
        pd.DataFrame(rows).to_csv(path / f"{name}.csv", index=False)


@pytest.fixture
def _tdc(monkeypatch: pytest.MonkeyPatch) -> None:
    """What our reader uses of PyTDC, whose import takes seconds."""

    class Group:
        def __init__(self, path: str):
            self.path = Path(path) / "dti_dg_group" / "bindingdb_patent"

        def get(self, benchmark: str) -> dict[str, pd.DataFrame]:
            assert benchmark == "BindingDB_Patent"
            return {part: pd.read_csv(self.path / f"{part}.csv") for part in ("train_val", "test")}

    module = types.ModuleType("tdc.benchmark_group")
    module.dti_dg_group = Group  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tdc", types.ModuleType("tdc"))
    monkeypatch.setitem(sys.modules, "tdc.benchmark_group", module)


@pytest.mark.usefixtures("_tdc")
def test_dti_reads_what_tdc_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tdc(tmp_path)
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    data = DTI(drug_length=20, protein_length=30).load(0)
    assert set(data.checksums) == {f"{FOLDER.path}/train_val.csv", f"{FOLDER.path}/test.csv"}
    assert all(len(digest) == 64 for digest in data.checksums.values())
    whole = DTI(subsample=False, whole_test=True, drug_length=20, protein_length=30).load(0)
    assert len(whole.train) + len(whole.val) == 60
    assert len(whole.test) == 20
    assert len(whole.test.x.drugs) == 3  # every string once
    row = int(whole.test.y[:, 0].sub(0.4 + 6).abs().argmin())  # the fifth row of 2019
    drug, protein = whole.test.x[torch.tensor([row])][0].split([63 * 20, 26 * 30])
    assert "".join(DRUG_SYMBOLS[k] for k in drug.reshape(63, 20).argmax(dim=0)) == "c1ccccc1".ljust(20, "?")
    assert "".join(PROTEIN_SYMBOLS[k] for k in protein.reshape(26, 30).argmax(dim=0)) == "MKVL".ljust(30, "?")


@pytest.mark.usefixtures("_tdc")
def test_tables_that_are_not_dti_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for changes, message in (
        ({"Y": 1e5}, r"Y of .*bindingdb_patent reaches 100000, so it is no ln\(nM\)"),
        ({"Y": ""}, r"Y of .* reaches nan"),
        ({"Year": 2013}, "has no rows of 2014, 2015, 2016, 2017, 2018, 2019, 2020"),
    ):
        root = tmp_path / str(changes)
        write_tdc(root, **changes)
        monkeypatch.setenv("CMIXUP_DATA", str(root))
        with pytest.raises(InputError, match=message):
            DTI().load(0)
