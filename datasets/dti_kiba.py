"""KIBA: kinase inhibitor bioactivities, another task for DTI's network."""

from datasets.common.affinity import MatrixDrugTarget
from datasets.common.fetch import raw_files


class DTIKiba(MatrixDrugTarget):
    """Combined bioactivity of kinase inhibitors; domains are groups of kinases.

    Origin: Tang et al. 2014, filtered by He et al. 2017, as in the repository of DeepDTA. Not in the paper: another
    task than its DTI, so results on it never enter the paper's column.
    y: KIBA score, 0 to 17.2, which combines Ki, Kd and IC50; higher binds better. x: two one-hot strings, flat: SMILES
    (63 symbols, 100 positions), then amino acids (26 symbols, 1000 positions).
    Shapes: x (N, 32300), y (N, 1); 118254 known pairs of 2111 drugs x 229 proteins. The proteins are dealt out to ten
    groups by `split_seed`: seven train, one is validation, two are testing, the same for every run seed. Worst domain:
    the test group with the lower R.
    Licence: none stated. Citation: Tang et al., "Making sense of large-scale kinase inhibitor bioactivity data sets",
    J. Chem. Inf. Model. 54, 2014; Ozturk et al., "DeepDTA", Bioinformatics 34, 2018.
    """

    name = "dti_kiba"
    files = raw_files("dti_kiba")
    unit = "KIBA score"
    rows = 118_254
