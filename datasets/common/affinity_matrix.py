"""Drug x protein matrices of affinities, with groups of proteins held out (Davis and KIBA)."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from cmixup.errors import check_seed
from datasets.common.affinity import (
    DRUG_SYMBOLS,
    PROTEIN_SYMBOLS,
    DrugTarget,
    PairTable,
    synthetic_labels,
    synthetic_strings,
)
from datasets.common.base import SPLITS, Indices
from datasets.common.fetch import RawFile

PAGE = "https://github.com/hkmztrk/DeepDTA/tree/a546a8433a6822e958f36171c4356ad6f414d623/data"
RAW = "https://raw.githubusercontent.com/hkmztrk/DeepDTA/a546a8433a6822e958f36171c4356ad6f414d623/data"
N_GROUPS, TRAIN_GROUPS, VAL_GROUPS = 10, 7, 1


def deepdta_files(name: str, *files: tuple[str, str, int]) -> tuple[tuple[RawFile, ...], ...]:
    """Return files of the folder `name` of DeepDTA's repository, given as (name, SHA-256, size)."""
    return tuple(
        (RawFile(f"dti/{name}/{path}", sha256, size, (f"{RAW}/{name}/{path}",), PAGE, "none stated"),)
        for path, sha256, size in files
    )


class MatrixDrugTarget(DrugTarget):
    """A drug x protein matrix of affinities; domains are groups of proteins, held out whole.

    Args:
        split_seed: deals the proteins' families out to ten groups; seven train, one is validation, two are testing.
        drug_length, protein_length, synthetic: see `DrugTarget`.
    """

    def __init__(
        self, split_seed: int = 0, drug_length: int = 100, protein_length: int = 1000, synthetic: bool = False
    ):
        super().__init__(drug_length, protein_length, synthetic)
        self.split_seed = check_seed("split_seed", split_seed)

    def labels(self, matrix: np.ndarray) -> np.ndarray:
        """Return the labels of a matrix as read; NaN stays."""
        return matrix

    def notes(self) -> tuple[str, ...]:
        """Say that this is not the paper's dataset."""
        return (*super().notes(), f"not the paper's DTI: another task, split by proteins with seed {self.split_seed}")

    def read(self) -> PairTable:
        """Read drugs, proteins and the matrix."""
        fetched = self.fetch()
        drugs, proteins = (json.loads(path.read_text(encoding="utf-8")) for _, path in fetched[:2])
        matrix = self.labels(np.loadtxt(fetched[2][1]))
        return self.pairs(drugs, proteins, matrix, {file.path: file.sha256 for file, _ in fetched})

    def pairs(
        self, drugs: dict[str, str], proteins: dict[str, str], matrix: np.ndarray, checksums: dict[str, str]
    ) -> PairTable:
        """Return the known entries of a matrix as pairs, with the group of each protein."""
        drug, protein = np.nonzero(~np.isnan(matrix))
        family = families(list(proteins), list(proteins.values()))
        group = balanced_groups(family[protein], N_GROUPS, np.random.default_rng([self.split_seed, N_GROUPS]))
        y = matrix[drug, protein]
        return PairTable(list(drugs.values()), list(proteins.values()), drug, protein, y, group, checksums)

    def synthetic_rows(self, rng: np.random.Generator) -> PairTable:
        """Return 12 pairs of each of 20 proteins."""
        drugs = {str(k): s for k, s in enumerate(synthetic_strings(rng, 12, DRUG_SYMBOLS, 20, 90))}
        proteins = {str(k): s for k, s in enumerate(synthetic_strings(rng, 20, PROTEIN_SYMBOLS, 60, 300))}
        rows = np.arange(240)
        y = synthetic_labels([drugs[str(k // 20)] for k in rows], [proteins[str(k % 20)] for k in rows], rng)
        return self.pairs(drugs, proteins, 5 + y.reshape(12, 20), {})

    def split(self, table: PairTable, seed: int) -> Indices:
        """Groups 0 to 6 train, 7 is validation, 8 and 9 are testing; the same for every run seed."""
        part = np.digitize(table.domain, (TRAIN_GROUPS, TRAIN_GROUPS + VAL_GROUPS))
        return {name: np.flatnonzero(part == k) for k, name in enumerate(SPLITS)}


def balanced_groups(family: np.ndarray, n_groups: int, rng: np.random.Generator) -> np.ndarray:
    """Return a group `(N,)` for each of `N` pairs: whole families in random order, about as many pairs in each group.

    Args:
        family: `(N,)` which family the protein of a pair belongs to.
        n_groups: number of groups.
        rng: orders the families.
    """
    ids, inverse, counts = np.unique(family, return_inverse=True, return_counts=True)
    order = rng.permutation(len(ids))
    middle = np.cumsum(counts[order]) - counts[order] / 2
    group = np.empty(len(ids), dtype=np.int64)
    group[order] = (n_groups * middle / len(family)).astype(np.int64)
    return group[inverse]


def families(names: Sequence[str], sequences: Sequence[str]) -> np.ndarray:
    """Return a family for each protein: those that share a sequence, or a name up to its first parenthesis, are one.

    Mutants and phosphorylated forms of one kinase, such as ABL1, ABL1(T315I) and ABL1(T315I)p, end in one family.
    """
    # A graph of proteins, then names and sequences: its components are numbered by their first protein.
    count, proteins = len(names), np.arange(len(names))
    kinases = np.unique([name.partition("(")[0] for name in names], return_inverse=True)[1] + count
    same = np.unique(sequences, return_inverse=True)[1] + 2 * count
    ends = np.concatenate([proteins, proteins]), np.concatenate([kinases, same])
    graph = coo_array((np.ones(2 * count), ends), shape=(3 * count, 3 * count))
    return connected_components(graph, directed=False)[1][:count]
