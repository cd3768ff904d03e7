"""DTI: drug-target interactions of patents by year."""

import numpy as np
import pandas as pd

from cmixup.errors import InputError
from datasets.common.affinity import (
    DRUG_SYMBOLS,
    PROTEIN_SYMBOLS,
    DrugTarget,
    PairTable,
    synthetic_labels,
    synthetic_strings,
)
from datasets.common.base import Indices
from datasets.common.damaged import naming
from datasets.common.fetch import raw_folder, sha256_of

FOLDER = raw_folder("dti")
TRAIN_YEARS, TEST_YEARS = tuple(range(2013, 2019)), (2019, 2020)
KEPT = 0.8  # of a year's rows: training, the others are validation; of a test year's: testing
ROWS_PER_BATCH, MAX_BATCHES = 64, 100
MAX_LABEL = 40.0  # ln(nM); the affinities themselves reach 1e7 and more


class DTI(DrugTarget):
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
        whole_test: all rows of 2019 and 2020, whatever `subsample`, instead of the 80 % that the released code keeps.
        drug_length, protein_length, synthetic: see `DrugTarget`.
    """

    name = "dti"
    folders = (FOLDER,)
    unit = "ln(nM), binding affinity"

    def __init__(
        self, subsample: bool = True, *, whole_test: bool = False, drug_length: int = 100, protein_length: int = 1000,
        synthetic: bool = False,
    ):  # fmt: skip
        super().__init__(drug_length, protein_length, synthetic)
        self.subsample, self.whole_test = subsample, whole_test

    def read(self) -> PairTable:
        """Read both files through PyTDC, which would save an error page in their place: it may not download."""
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
        drugs = synthetic_strings(rng, 60, DRUG_SYMBOLS, 20, 90)
        proteins = synthetic_strings(rng, 20, PROTEIN_SYMBOLS, 60, 300)
        year = np.repeat(np.arange(2013, 2022), 20)
        drug, protein = rng.integers(60, size=len(year)), rng.integers(20, size=len(year))
        labels = synthetic_labels([drugs[k] for k in drug], [proteins[k] for k in protein], rng)
        return PairTable(drugs, proteins, drug, protein, 5 + labels, year, {})

    def split(self, table: PairTable, seed: int) -> Indices:
        """Cut every year as PyTDC does, and make the years equally large if asked to."""
        rng = np.random.default_rng([seed, 2013])
        parts: dict[str, list[np.ndarray]] = {"train": [], "val": [], "test": []}
        for year in (*TRAIN_YEARS, *TEST_YEARS):
            rows = np.flatnonzero(table.domain == year)
            kept = np.random.RandomState(seed).rand(len(rows)) < KEPT  # PyTDC's create_group_split: as for other years
            if year in TRAIN_YEARS:
                parts["train"].append(rows[kept])
                parts["val"].append(rows[~kept])
            else:
                parts["test"].append(rows if self.whole_test else rows[kept])
        if self.subsample:
            for part, years in parts.items():
                if part == "test" and self.whole_test:
                    continue
                smallest = min(map(len, years))
                count = min(MAX_BATCHES, smallest // ROWS_PER_BATCH) * ROWS_PER_BATCH or smallest
                parts[part] = [rng.choice(rows, count, replace=part == "train") for rows in years]
        chosen = {part: np.concatenate(years) for part, years in parts.items()}
        # As in the released code: a run that does not shuffle every epoch must not see one year after another.
        return {**chosen, "train": rng.permutation(chosen["train"])}
