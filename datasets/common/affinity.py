"""Affinity of drugs and proteins: strings kept as indices, made one-hot when a batch asks for them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from cmixup.data import RegressionData, Split
from cmixup.errors import check_count
from datasets.common.base import SPLITS, Dataset, Indices

# The symbols that DeepDTA's encoders know (mims-harvard/TDC examples/multi_pred/dti_dg), '?' for all others and for
# what lies behind the end of a string. Their order is ours: any will do when training from scratch.
DRUG_SYMBOLS = "?#%()+-.0123456789=ABCDEFGHIKLMNOPRSTUVWYZ[]_abcdefghilmnorstuy"
PROTEIN_SYMBOLS = "?ABCDEFGHIKLMNOPQRSTUVWXYZ"


def encode(strings: Sequence[str], symbols: str, length: int) -> Tensor:
    """Return the symbols of `strings` as indices into `symbols`, `(N, length)` uint8; cut or filled up with '?'."""
    table = np.full(128, symbols.index("?"), dtype=np.uint8)
    table[[ord(symbol) for symbol in symbols]] = np.arange(len(symbols))
    whole = "".join(string[:length].ljust(length, "?") for string in strings).encode("ascii", "replace")
    return torch.from_numpy(table[np.frombuffer(whole, np.uint8)].reshape(len(strings), length))


@dataclass(frozen=True)
class PairTable:
    """Drug-protein pairs as the files hold them, neither split nor encoded.

    Args:
        drugs, proteins: each different string once: SMILES, and amino acids.
        drug, protein: `(N,)` the number of each pair's drug and protein in these lists.
        y: `(N,)` affinities.
        domain: `(N,)`.
        checksums: of the files.
    """

    drugs: list[str]
    proteins: list[str]
    drug: np.ndarray
    protein: np.ndarray
    y: np.ndarray
    domain: np.ndarray
    checksums: dict[str, str]


class DrugProteinInputs:
    """One-hot strings of drug-protein pairs, made when they are asked for: 129 kB a pair in place of 8 bytes.

    Args:
        drugs, proteins: `(., length)` uint8, see `encode`.
        drug, protein: `(N,)` int32 rows of these.
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
        for codes, which in ((self.drugs, self.drug), (self.proteins, self.protein)):
            length = codes.shape[1]
            mine = codes.index_select(0, which[index]).long()
            x.scatter_(1, mine.mul_(length).add_(torch.arange(start, start + length)), 1.0)
            start = self._drug_width
        return x


class DrugTarget(Dataset):
    """Pairs of a drug and a protein; scored by correlation.

    Args:
        drug_length, protein_length: positions of the strings that the network sees.
        synthetic: use the synthetic stand-in.
    """

    selection: ClassVar[str] = "r"
    worst: ClassVar[tuple[str, ...]] = ("r",)
    domains: ClassVar[bool] = True
    x_shape: ClassVar[tuple[int, ...]] = (len(DRUG_SYMBOLS) * 100 + len(PROTEIN_SYMBOLS) * 1000,)

    def __init__(self, drug_length: int = 100, protein_length: int = 1000, synthetic: bool = False):
        super().__init__(synthetic)
        self.drug_length = check_count("drug_length", drug_length, 1)
        self.protein_length = check_count("protein_length", protein_length, 1)
        self._read: tuple[PairTable, Tensor, Tensor] | None = None

    @abstractmethod
    def read(self) -> PairTable:
        """Return the pairs of the real files."""

    @abstractmethod
    def synthetic_rows(self, rng: np.random.Generator) -> PairTable:
        """Return the stand-in's few pairs, which have similar labels."""

    @abstractmethod
    def split(self, table: PairTable, seed: int) -> Indices:
        """Return the rows of "train", "val" and "test"."""

    def load(self, seed: int) -> RegressionData:
        """Return the splits; the pairs are read and encoded once, whatever the run seed."""
        if self._read is None:
            table = self.synthetic_rows(np.random.default_rng(0)) if self.synthetic else self.read()
            drugs = encode(table.drugs, DRUG_SYMBOLS, self.drug_length)
            proteins = encode([p.upper() for p in table.proteins], PROTEIN_SYMBOLS, self.protein_length)
            self._read = table, drugs, proteins
        table, drugs, proteins = self._read
        rows = self.split(table, seed)
        train, val, test = (self._split(table, drugs, proteins, rows[part], part) for part in SPLITS)
        return self.assemble(seed, train, val, test, table.checksums)

    def _split(self, table: PairTable, drugs: Tensor, proteins: Tensor, rows: np.ndarray, part: str) -> Split:
        drug, protein = (torch.from_numpy(which[rows].astype(np.int32)) for which in (table.drug, table.protein))
        x = DrugProteinInputs(drugs, proteins, drug, protein)
        return self.make_split(part, x, table.y[rows], table.domain[rows])


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
