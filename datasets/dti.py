"""DTI: drug-target interactions of patents by year; strings are kept as indices, and made one-hot for a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from cmixup.data import RegressionData
from cmixup.errors import InputError, check_count
from datasets.common.base import Dataset, Indices
from datasets.common.damaged import naming
from datasets.common.fetch import RawFolder, sha256_of

# No checksum of the zip could be found, so it is got by hand and the sums of its files enter the record.
FOLDER = RawFolder(
    path="dti/dti_dg_group/bindingdb_patent",
    mirror="dti/dti_dg_group/bindingdb_patent",
    needs=("train_val.csv", "test.csv"),
    page="https://tdcommons.ai/benchmark/dti_dg_group/bindingdb_patent/",
    licence="CC BY 4.0 (TDC); BindingDB CC BY 3.0",
    how=(
        "mkdir -p {root}/dti && curl -fL -o {root}/dti/group.zip "
        "https://dataverse.harvard.edu/api/access/datafile/4742443 && unzip {root}/dti/group.zip -d {root}/dti"
    ),
)
TRAIN_YEARS, TEST_YEARS = tuple(range(2013, 2019)), (2019, 2020)
KEPT = 0.8  # of a year's rows: training, the others are validation; of a test year's: testing
ROWS_PER_BATCH, MAX_BATCHES = 64, 100
MAX_LABEL = 40.0  # ln(nM); the affinities themselves reach 1e7 and more
# The symbols that DeepDTA's encoders know (mims-harvard/TDC examples/multi_pred/dti_dg), '?' for all others and for
# what lies behind the end of a string. Their order is ours: any will do when training from scratch.
DRUG_SYMBOLS = "?#%()+-.0123456789=ABCDEFGHIKLMNOPRSTUVWYZ[]_abcdefghilmnorstuy"
PROTEIN_SYMBOLS = "?ABCDEFGHIKLMNOPQRSTUVWXYZ"


class DTI(Dataset):
    """Binding affinity of drugs and proteins in patents; domains are years.

    Origin: BindingDB, patents granted 2013 to 2021; the benchmark dti_dg_group / BindingDB_Patent of Therapeutics Data
    Commons, read with its package.
    y: binding affinity as ln(nM). x: two one-hot strings, flat: the drug's SMILES (63 symbols, 100 positions), then the
    protein's amino acids (26 symbols, 1000 positions).
    Shapes: x (N, 32300), y (N, 1); of 2013 to 2018 a random 80 % of each year trains and the others are validation,
    anew for every run seed; 2019 and 2020 are testing. `subsample` makes all years equally large, as the released code
    does: at most 6400 rows a year. Worst domain: the test year with the lowest R.
    Licence: CC BY 4.0 (TDC), CC BY 3.0 (BindingDB). Citation: Huang et al., "Therapeutics Data Commons", NeurIPS
    Datasets and Benchmarks 2021; Liu et al., "BindingDB", Nucleic Acids Research 35, 2007.

    Args:
        subsample: every year gets as many rows as the smallest in whole batches of 64, at most 100 batches; drawn with
            replacement in training (released code). False uses every row once.
        whole_test: all rows of 2019 and 2020 instead of the 80 % that the released code keeps.
        drug_length, protein_length: positions of the strings that the network sees.
        synthetic: use the synthetic stand-in.
    """

    name: ClassVar[str] = "dti"
    folders: ClassVar[tuple[RawFolder, ...]] = (FOLDER,)
    unit: ClassVar[str] = "ln(nM), binding affinity"
    selection: ClassVar[str] = "r"
    worst: ClassVar[tuple[str, ...]] = ("r",)
    domains: ClassVar[bool] = True
    x_shape: ClassVar[tuple[int, ...]] = (len(DRUG_SYMBOLS) * 100 + len(PROTEIN_SYMBOLS) * 1000,)

    def __init__(
        self,
        subsample: bool = True,
        *,
        whole_test: bool = False,
        drug_length: int = 100,
        protein_length: int = 1000,
        synthetic: bool = False,
    ):
        super().__init__(synthetic)
        self.subsample, self.whole_test = subsample, whole_test
        self.drug_length = check_count("drug_length", drug_length, 1)
        self.protein_length = check_count("protein_length", protein_length, 1)

    @cached_property
    def _encoded(self) -> tuple[PairTable, Tensor, Tensor]:
        """The pairs and the symbols of their strings, whatever the run seed."""
        table = self.synthetic_rows(np.random.default_rng(0)) if self.synthetic else self.read()
        drugs = encode(table.drugs, DRUG_SYMBOLS, self.drug_length)
        return table, drugs, encode([p.upper() for p in table.proteins], PROTEIN_SYMBOLS, self.protein_length)

    def load(self, seed: int) -> RegressionData:
        """Return the splits; the pairs are read and encoded once."""
        table, drugs, proteins = self._encoded
        splits = []
        for part, rows in self.split(table, seed).items():
            drug, protein = (torch.from_numpy(which[rows].astype(np.int32)) for which in (table.drug, table.protein))
            x = DrugProteinInputs(drugs, proteins, drug, protein)
            splits.append(self.make_split(part, x, table.y[rows], table.domain[rows]))
        train, val, test = splits
        return self.assemble(seed, train, val, test, table.checksums)

    def read(self) -> PairTable:
        """Read both files through PyTDC.

        Raises:
            FetchError: they are not there; PyTDC would save an error page in their place, so it may not download.
            InputError: PyTDC is not installed, years are missing, or the labels are no logarithms.
        """
        path = FOLDER.find()
        try:
            from tdc.benchmark_group import dti_dg_group
        except ImportError as error:
            raise InputError(f"dti needs the package PyTDC 0.4.1 (pip install '.[splits]'): {error}") from None
        with naming(path, "BindingDB_Patent"):
            benchmark = dti_dg_group(path=str(path.parent.parent)).get("BindingDB_Patent")
            frame = pd.concat([benchmark["train_val"], benchmark["test"]])
            (drug, drugs), (protein, proteins) = (pd.factorize(frame[name].astype(str)) for name in ("Drug", "Target"))
            y, year = frame["Y"].to_numpy(np.float64), frame["Year"].to_numpy(np.int64)
        absent = sorted({*TRAIN_YEARS, *TEST_YEARS} - set(year.tolist()))
        if absent:
            raise InputError(f"{path} has no rows of {', '.join(map(str, absent))}")
        if not np.abs(y).max() <= MAX_LABEL:
            raise InputError(f"Y of {path} reaches {np.abs(y).max():g}, so it is no ln(nM)")
        checksums = {f"{FOLDER.path}/{member}": sha256_of(path / member) for member in FOLDER.needs}
        return PairTable(list(drugs), list(proteins), drug, protein, y, year, checksums)

    def synthetic_rows(self, rng: np.random.Generator) -> PairTable:
        """Return 20 pairs of every year, 2013 to 2021."""
        drugs, proteins = (
            synthetic_strings(rng, 60, DRUG_SYMBOLS, 20, 90),
            synthetic_strings(rng, 20, PROTEIN_SYMBOLS, 60, 300),
        )
        year = np.repeat(np.arange(2013, 2022), 20)
        drug, protein = rng.integers(60, size=len(year)), rng.integers(20, size=len(year))
        labels = synthetic_labels([drugs[k] for k in drug], [proteins[k] for k in protein], rng)
        return PairTable(drugs, proteins, drug, protein, 5 + labels, year, {})

    def split(self, table: PairTable, seed: int) -> Indices:
        """Cut every year as PyTDC does, and make the years equally large if asked to."""
        rng = np.random.default_rng([seed, 2013])
        parts: dict[str, list[np.ndarray]] = {"train": [], "val": [], "test": []}
        for year in TRAIN_YEARS:
            kept, others = holdout(np.flatnonzero(table.domain == year), seed)
            parts["train"].append(kept)
            parts["val"].append(others)
        for year in TEST_YEARS:
            rows = np.flatnonzero(table.domain == year)
            parts["test"].append(rows if self.whole_test else holdout(rows, seed)[0])
        if self.subsample:
            parts = {part: equalised(years, rng, replace=part == "train") for part, years in parts.items()}
        chosen = {part: np.concatenate(years) for part, years in parts.items()}
        # As in the released code: a run that does not shuffle every epoch must not see one year after another.
        return {**chosen, "train": rng.permutation(chosen["train"])}


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


def holdout(rows: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return about 80 % of a year's rows, and the others (PyTDC `create_group_split`: the same numbers each year)."""
    kept = np.random.RandomState(seed).rand(len(rows)) < KEPT
    return rows[kept], rows[~kept]


def equalised(years: list[np.ndarray], rng: np.random.Generator, *, replace: bool) -> list[np.ndarray]:
    """Draw equally many rows of each year: those of the smallest in whole batches of 64, at most 100 batches."""
    smallest = min(map(len, years))
    count = min(MAX_BATCHES, smallest // ROWS_PER_BATCH) * ROWS_PER_BATCH or smallest
    return [rng.choice(rows, count, replace=replace) for rows in years]


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
