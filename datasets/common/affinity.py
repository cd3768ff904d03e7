"""Affinity of drugs and proteins: strings kept as indices, made one-hot when a batch asks for them.

Pairs come from a table (DTI), or from a drug x protein matrix, with groups of proteins held out (Davis and KIBA).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import ClassVar

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from cmixup.data import RegressionData
from cmixup.errors import check_count, check_seed
from datasets.common.base import SPLITS, Indices, StoredDataset

# The symbols that DeepDTA's encoders know (mims-harvard/TDC examples/multi_pred/dti_dg), '?' for all others and for
# places after the end of a string. Their order is ours: any will do when training from scratch.
DRUG_SYMBOLS = "?#%()+-.0123456789=ABCDEFGHIKLMNOPRSTUVWYZ[]_abcdefghilmnorstuy"
PROTEIN_SYMBOLS = "?ABCDEFGHIKLMNOPQRSTUVWXYZ"
N_GROUPS, TRAIN_GROUPS, VAL_GROUPS = 10, 7, 1


def encode(strings: Sequence[str], symbols: str, length: int) -> Tensor:
    """Return the symbols of `strings` as indices into `symbols`, `(N, length)` uint8; cut or filled up with '?'."""
    table = np.full(128, symbols.index("?"), dtype=np.uint8)
    table[[ord(symbol) for symbol in symbols]] = np.arange(len(symbols))
    text = "".join(string[:length].ljust(length, "?") for string in strings).encode("ascii", "replace")
    return torch.from_numpy(table[np.frombuffer(text, np.uint8)].reshape(len(strings), length))


@dataclass(frozen=True)
class PairTable:
    """Drug-protein pairs as the files hold them, neither split nor encoded."""

    drugs: list[str]  # SMILES, each once
    proteins: list[str]  # amino acids, each string once
    drug: np.ndarray  # (N,) the number of each pair's drug in its list, and
    protein: np.ndarray  # of its protein
    y: np.ndarray  # (N,) affinities
    domain: np.ndarray  # (N,)
    checksums: dict[str, str]


class DrugProteinInputs:
    """One-hot strings of drug-protein pairs, made when they are asked for: 129 kB a pair in place of 8 bytes.

    `drugs` and `proteins` are `(., length)` uint8 of `encode`, `drug` and `protein` `(N,)` int32 rows of these.
    """

    def __init__(self, drugs: Tensor, proteins: Tensor, drug: Tensor, protein: Tensor):
        self.drugs, self.proteins, self.drug, self.protein = drugs, proteins, drug, protein
        self._drug_width = len(DRUG_SYMBOLS) * drugs.shape[1]
        self.shape = torch.Size((len(drug), self._drug_width + len(PROTEIN_SYMBOLS) * proteins.shape[1]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return `(B, 63 * drug length + 26 * protein length)` float32 for `index: (B,)` int64, channel by channel."""
        x = torch.zeros(len(index), self.shape[1])
        start = 0
        for codes, pair_rows in ((self.drugs, self.drug), (self.proteins, self.protein)):
            length = codes.shape[1]
            symbols = codes.index_select(0, pair_rows[index]).long()
            x.scatter_(1, symbols.mul_(length).add_(torch.arange(start, start + length)), 1.0)
            start = self._drug_width
        return x


class DrugTarget(StoredDataset):
    """Pairs of a drug and a protein; scored by correlation.

    Args:
        drug_length, protein_length: positions of the strings that the network sees.
        synthetic: use synthetic data.
    """

    selection: ClassVar[str] = "r"
    worst: ClassVar[tuple[str, ...]] = ("r",)
    domains: ClassVar[bool] = True
    x_shape: ClassVar[tuple[int, ...]] = (len(DRUG_SYMBOLS) * 100 + len(PROTEIN_SYMBOLS) * 1000,)

    def __init__(self, drug_length: int = 100, protein_length: int = 1000, synthetic: bool = False):
        super().__init__(synthetic)
        self.drug_length = check_count("drug_length", drug_length, 1)
        self.protein_length = check_count("protein_length", protein_length, 1)

    @cached_property
    def _encoded(self) -> tuple[PairTable, Tensor, Tensor]:
        """The pairs, and the symbols of their strings."""
        table: PairTable = self.stored_rows()
        drugs = encode(table.drugs, DRUG_SYMBOLS, self.drug_length)
        return table, drugs, encode([p.upper() for p in table.proteins], PROTEIN_SYMBOLS, self.protein_length)

    def load(self, seed: int) -> RegressionData:
        table, drugs, proteins = self._encoded
        splits = []
        for part, rows in self.split(table, seed).items():
            drug, protein = (torch.from_numpy(index[rows].astype(np.int32)) for index in (table.drug, table.protein))
            x = DrugProteinInputs(drugs, proteins, drug, protein)
            splits.append(self.make_split(part, x, table.y[rows], table.domain[rows]))
        return self.assemble(seed, splits, table.checksums)


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
        return (*super().notes(), f"not the paper's DTI: another task, split by proteins with seed {self.split_seed}")

    def read(self) -> PairTable:
        fetched = self.fetch()
        drugs, proteins = (json.loads(path.read_text(encoding="utf-8")) for _, path in fetched[:2])
        matrix = self.labels(np.loadtxt(fetched[2][1]))
        return self.pairs([*drugs.values()], proteins, matrix, {file.path: file.sha256 for file, _ in fetched})

    def pairs(
        self, drugs: list[str], proteins: dict[str, str], matrix: np.ndarray, checksums: dict[str, str]
    ) -> PairTable:
        """Return the known entries of a matrix as pairs, with the group of each protein."""
        drug, protein = np.nonzero(~np.isnan(matrix))
        family = families(list(proteins), list(proteins.values()))
        group = balanced_groups(family[protein], N_GROUPS, np.random.default_rng([self.split_seed, N_GROUPS]))
        return PairTable(drugs, [*proteins.values()], drug, protein, matrix[drug, protein], group, checksums)

    def synthetic_rows(self, rng: np.random.Generator) -> PairTable:
        drugs = synthetic_strings(rng, 12, DRUG_SYMBOLS, 20, 90)
        proteins = {str(k): s for k, s in enumerate(synthetic_strings(rng, 20, PROTEIN_SYMBOLS, 60, 300))}
        drug, protein = zip(*product(drugs, proteins.values()), strict=True)
        y = synthetic_labels(drug, protein, rng)
        return self.pairs(drugs, proteins, 5 + y.reshape(12, 20), {})

    def split(self, table: PairTable, seed: int) -> Indices:
        """Groups 0 to 6 train, 7 is validation, 8 and 9 are testing; the same for every run seed."""
        part = np.digitize(table.domain, (TRAIN_GROUPS, TRAIN_GROUPS + VAL_GROUPS))
        return {name: np.flatnonzero(part == k) for k, name in enumerate(SPLITS)}


def balanced_groups(family: np.ndarray, n_groups: int, rng: np.random.Generator) -> np.ndarray:
    """Return a group for each pair: whole families (N,) in random order, about as many pairs in each group."""
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
    name_nodes = np.unique([name.partition("(")[0] for name in names], return_inverse=True)[1] + count
    sequence_nodes = np.unique(sequences, return_inverse=True)[1] + 2 * count
    edges = np.concatenate([proteins, proteins]), np.concatenate([name_nodes, sequence_nodes])
    graph = coo_array((np.ones(2 * count), edges), shape=(3 * count, 3 * count))
    return connected_components(graph, directed=False)[1][:count]


def synthetic_strings(rng: np.random.Generator, n: int, symbols: str, shortest: int, longest: int) -> list[str]:
    """Return `n` random strings, each with its own shares of the symbols."""
    letters = list(symbols[1:])
    shares = rng.dirichlet(np.full(len(letters), 0.3), n)
    lengths = rng.integers(shortest, longest, n)
    return ["".join(rng.choice(letters, size, p=p)) for size, p in zip(lengths, shares, strict=True)]


def synthetic_labels(drugs: Sequence[str], proteins: Sequence[str], rng: np.random.Generator) -> np.ndarray:
    """Return `(N,)` labels of about unit size that depend on which symbols the strings of each pair hold."""
    n_drug = np.array([sum(map(string.count, "CNO")) / len(string) for string in drugs])
    n_protein = np.array([sum(map(string.count, "KLED")) / len(string) for string in proteins])
    return 4 * n_drug + 4 * n_protein + 0.1 * rng.normal(size=len(n_drug))
