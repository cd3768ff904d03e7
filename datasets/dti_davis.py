"""Davis: kinase inhibitors, another task for DTI's network."""

import numpy as np

from datasets.common.affinity import MatrixDrugTarget
from datasets.common.fetch import raw_files


class DTIDavis(MatrixDrugTarget):
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
    """

    name = "dti_davis"
    files = raw_files("dti_davis")
    unit = "pKd = 9 - log10(Kd / nM)"
    rows = 68 * 442

    def labels(self, matrix: np.ndarray) -> np.ndarray:
        return 9.0 - np.log10(matrix)
