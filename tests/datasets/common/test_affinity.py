"""Drug-target pairs: encoders, one-hot strings made on demand, and the groups of proteins of Davis and KIBA."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from datasets.common.affinity import DRUG_SYMBOLS, PROTEIN_SYMBOLS, DrugProteinInputs, PairTable, encode
from datasets.common.affinity_matrix import balanced_groups, families, strings
from datasets.dti_davis import DTIDavis
from datasets.dti_kiba import DTIKiba

PARTS = ("train", "val", "test")

# ---- encoders


def test_encoding_cuts_fills_and_replaces() -> None:
    codes = encode(["CN", "C@N\u00e9OCC", ""], DRUG_SYMBOLS, 5)
    assert codes.dtype == torch.uint8
    decoded = ["".join(DRUG_SYMBOLS[k] for k in row) for row in codes.tolist()]
    assert decoded == ["CN???", "C?N?O", "?????"]


def dense(string: str, symbols: str, length: int) -> np.ndarray:
    """One-hot by definition, `(symbols, length)`."""
    padded = [s if s in symbols else "?" for s in string[:length].ljust(length, "?")]
    return np.array([[float(symbol == s) for s in padded] for symbol in symbols])


def test_pairs_are_one_hot_strings_channel_by_channel() -> None:
    drugs, proteins = ["CCO", "c1ccccc1@"], ["MKV", "ACDEF", "WJ"]
    x = DrugProteinInputs(
        encode(drugs, DRUG_SYMBOLS, 6), encode(proteins, PROTEIN_SYMBOLS, 4),
        torch.tensor([0, 1, 1, 0], dtype=torch.int32), torch.tensor([2, 0, 1, 1], dtype=torch.int32),
    )  # fmt: skip
    assert x.shape == (4, 63 * 6 + 26 * 4)
    assert len(x) == 4
    index = torch.tensor([3, 0, 3])
    expected = [
        np.concatenate([dense(drugs[d], DRUG_SYMBOLS, 6).ravel(), dense(proteins[p], PROTEIN_SYMBOLS, 4).ravel()])
        for d, p in ((0, 1), (0, 2), (0, 1))
    ]
    np.testing.assert_array_equal(x[index], np.stack(expected))
    assert x[index].dtype == torch.float32


def test_proteins_are_upper_cased(monkeypatch: pytest.MonkeyPatch) -> None:
    table = PairTable(["C"], ["mkv"], np.zeros(3, int), np.zeros(3, int), np.arange(3.0), np.arange(3), {})
    monkeypatch.setattr(DTIDavis, "read", lambda _: table)
    monkeypatch.setattr(DTIDavis, "split", lambda *_: {part: np.array([k]) for k, part in enumerate(PARTS)})
    data = DTIDavis(drug_length=1, protein_length=3).load(0)
    one_hot = data.train.x[torch.tensor([0])][0, 63:].reshape(26, 3)
    assert [PROTEIN_SYMBOLS[k] for k in one_hot.argmax(dim=0)] == ["M", "K", "V"]


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


def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dataset: Any, matrix: str, proteins: dict) -> None:
    (tmp_path / "drugs").write_text(json.dumps({"1": "CCO", "2": "CN"}))
    (tmp_path / "proteins").write_text(json.dumps(proteins))
    (tmp_path / "matrix").write_text(matrix)
    files = [(f[0], tmp_path / name) for f, name in zip(dataset.files, ("drugs", "proteins", "matrix"), strict=True)]
    monkeypatch.setattr(dataset, "fetch", lambda _: files)
    monkeypatch.setattr(dataset, "n_drugs", 2)
    monkeypatch.setattr(dataset, "n_proteins", 3)


PROTEINS = {"A": "MK", "B": "MV", "B(1)": "ML"}


def test_davis_labels_are_pkd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Kd of 10000 nM is pKd 5, 1 nM is 9."""
    small(monkeypatch, tmp_path, DTIDavis, "10000 1 100\n0.1 10000 1000\n", PROTEINS)
    table = DTIDavis().read()
    np.testing.assert_allclose(table.y, [5, 9, 7, 10, 5, 6])
    assert table.drug.tolist() == [0, 0, 0, 1, 1, 1]
    assert table.protein.tolist() == [0, 1, 2, 0, 1, 2]
    assert table.domain[1] == table.domain[2]  # B and its mutant
    assert len(table.checksums) == 3


def test_kiba_leaves_out_what_is_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small(monkeypatch, tmp_path, DTIKiba, "11.1\tnan\t10\nnan\tnan\t0\n", PROTEINS)
    table = DTIKiba().read()
    assert table.y.tolist() == [11.1, 10, 0]
    assert (table.drug.tolist(), table.protein.tolist()) == ([0, 0, 1], [0, 2, 2])


def test_a_matrix_of_another_shape_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    small(monkeypatch, tmp_path, DTIKiba, "1 2 3\n", PROTEINS)
    with pytest.raises(
        InputError, match=r"dti_kiba holds 2 drugs, 3 proteins and a matrix of shape .*expected \(2, 3\)"
    ):
        DTIKiba().read()
    for text, message in (("{", "is not JSON"), ('{"a": 1}', "is no JSON object of strings"), ("[]", "is no JSON")):
        (tmp_path / "drugs").write_text(text)
        with pytest.raises(InputError, match=message):
            strings(tmp_path / "drugs")
