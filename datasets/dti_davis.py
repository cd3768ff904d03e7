"""Davis: kinase inhibitors, another task for DTI's network."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import ClassVar

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
FILES = (
    ("ligands_can.txt", "141094d99510a52091d2ea1b05be7c1f66b2c5fcaeeeb261eaf4cbf2128bde6d", 5306),
    ("proteins.txt", "187cedeee10cd3b58af915a2861a5ed0c4ff42a2d728f4dea5e0b47e3d75b291", 355211),
    (
        "drug-target_interaction_affinities_Kd__Davis_et_al.2011v1.txt",
        "e2c3d003d49aff61f70be24feafd8d084b0df9404d919338088855828e252d88",
        164306,
    ),
)
N_GROUPS, TRAIN_GROUPS, VAL_GROUPS = 10, 7, 1


class DTIDavis(DrugTarget):
    """Binding of kinase inhibitors to kinases; domains are groups of kinases.

    Origin: Davis et al. 2011, as in the repository of DeepDTA. Not in the paper: another task than its DTI, so results
    on it never enter the paper's column.
    y: pKd = 9 - log10(Kd in nM), 5 to 10.8; two thirds of the pairs are at 5, the weakest that was measured. x: two
    one-hot strings, flat: SMILES (63 symbols, 100 positions), then amino acids (26 symbols, 1000 positions).
    Shapes: x (N, 32300), y (N, 1); 68 drugs x 442 proteins = 30056 pairs. Mutants and forms of one kinase stay in one
    family. Families are dealt out to ten groups by `split_seed`. Seven train, one is validation, two are testing, the
    same for every run seed. Worst domain: the test group with the lower R.
    Licence: none stated. Citation: Davis et al., "Comprehensive analysis of kinase inhibitor selectivity", Nature
    Biotechnology 29, 2011; Ozturk et al., "DeepDTA", Bioinformatics 34, 2018.

    Args:
        split_seed: deals the families out; the same for every run seed.
        drug_length, protein_length, synthetic: see `DrugTarget`.
    """

    name: ClassVar[str] = "dti_davis"
    files: ClassVar[tuple[tuple[RawFile, ...], ...]] = tuple(
        (RawFile(f"dti/davis/{name}", sha256, size, (f"{RAW}/davis/{name}",), PAGE, "none stated"),)
        for name, sha256, size in FILES
    )
    unit: ClassVar[str] = "pKd = 9 - log10(Kd / nM)"
    rows: ClassVar[int] = 68 * 442

    def __init__(
        self, split_seed: int = 0, drug_length: int = 100, protein_length: int = 1000, synthetic: bool = False
    ):
        super().__init__(drug_length, protein_length, synthetic)
        self.split_seed = check_seed("split_seed", split_seed)

    def notes(self) -> tuple[str, ...]:
        """Say that this is not the paper's dataset."""
        return (*super().notes(), f"not the paper's DTI: another task, split by proteins with seed {self.split_seed}")

    def read(self) -> PairTable:
        """Read drugs, proteins, and the matrix of Kd in nM, whose labels are pKd."""
        fetched = self.fetch()
        drugs, proteins = (json.loads(path.read_text(encoding="utf-8")) for _, path in fetched[:2])
        matrix = 9.0 - np.log10(np.loadtxt(fetched[2][1]))
        return self.pairs(drugs, proteins, matrix, {file.path: file.sha256 for file, _ in fetched})

    def pairs(
        self, drugs: dict[str, str], proteins: dict[str, str], matrix: np.ndarray, checksums: dict[str, str]
    ) -> PairTable:
        """Return the entries of a matrix, drugs x proteins, as pairs, with the group of each protein."""
        drug, protein = (which.ravel() for which in np.indices(matrix.shape))
        family = families(list(proteins), list(proteins.values()))
        group = balanced_groups(family[protein], N_GROUPS, np.random.default_rng([self.split_seed, N_GROUPS]))
        return PairTable(list(drugs.values()), list(proteins.values()), drug, protein, matrix.ravel(), group, checksums)

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
