"""Communities and Crime."""

import numpy as np

from datasets.common.base import RawTable, smooth_labels
from datasets.common.domain_table import DomainTable, number_or_unknown
from datasets.common.fetch import raw_files

# Names of the attributes, as communities.names has them.
ATTRIBUTES = """
    population householdsize racepctblack racePctWhite racePctAsian racePctHisp agePct12t21 agePct12t29 agePct16t24
    agePct65up numbUrban pctUrban medIncome pctWWage pctWFarmSelf pctWInvInc pctWSocSec pctWPubAsst pctWRetire
    medFamInc perCapInc whitePerCap blackPerCap indianPerCap AsianPerCap OtherPerCap HispPerCap NumUnderPov
    PctPopUnderPov PctLess9thGrade PctNotHSGrad PctBSorMore PctUnemployed PctEmploy PctEmplManu PctEmplProfServ
    PctOccupManu PctOccupMgmtProf MalePctDivorce MalePctNevMarr FemalePctDiv TotalPctDiv PersPerFam PctFam2Par
    PctKids2Par PctYoungKids2Par PctTeen2Par PctWorkMomYoungKids PctWorkMom NumIlleg PctIlleg NumImmig
    PctImmigRecent PctImmigRec5 PctImmigRec8 PctImmigRec10 PctRecentImmig PctRecImmig5 PctRecImmig8 PctRecImmig10
    PctSpeakEnglOnly PctNotSpeakEnglWell PctLargHouseFam PctLargHouseOccup PersPerOccupHous PersPerOwnOccHous
    PersPerRentOccHous PctPersOwnOccup PctPersDenseHous PctHousLess3BR MedNumBR HousVacant PctHousOccup
    PctHousOwnOcc PctVacantBoarded PctVacMore6Mos MedYrHousBuilt PctHousNoPhone PctWOFullPlumb OwnOccLowQuart
    OwnOccMedVal OwnOccHiQuart RentLowQ RentMedian RentHighQ MedRent MedRentPctHousInc MedOwnCostPctInc
    MedOwnCostPctIncNoMtg NumInShelters NumStreet PctForeignBorn PctBornSameState PctSameHouse85 PctSameCity85
    PctSameState85 LemasSwornFT LemasSwFTPerPop LemasSwFTFieldOps LemasSwFTFieldPerPop LemasTotalReq
    LemasTotReqPerPop PolicReqPerOffic PolicPerPop RacialMatchCommPol PctPolicWhite PctPolicBlack PctPolicHisp
    PctPolicAsian PctPolicMinor OfficAssgnDrugUnits NumKindsDrugsSeiz PolicAveOTWorked LandArea PopDens
    PctUsePubTrans PolicCars PolicOperBudg LemasPctPolicOnPatr LemasGangUnitDeploy LemasPctOfficDrugUn
    PolicBudgPerPop
"""
# Rows of the states by ascending code, so that synthetic data have the same splits.
COUNTS = np.array(
    [
        43, 3, 20, 25, 278, 25, 69, 1, 1, 90, 37, 7, 48, 20, 1, 26, 22, 17, 12, 121, 7, 19, 42, 5, 21, 211,
        10, 46, 46, 8, 109, 36, 31, 101, 26, 28, 9, 35, 156, 24, 4, 33, 40, 14, 60, 7,
    ]
)  # fmt: skip


class Crime(DomainTable):
    """Violent crime in communities of the United States; domains are states.

    Origin: UCI Machine Learning Repository, dataset 183 (1990 census, 1990 LEMAS, 1995 FBI UCR).
    y: violent crimes per population, normalised to [0, 1]. x: 122 normalised socio-economic and law-enforcement
    attributes, 22 of them unknown in 1675 rows. County, community code and name, and fold are dropped.
    Shapes: x (N, 122), y (N, 1); 1994 rows, split 1390 / 231 / 373: whole states by ascending code, 31 / 6 / 9 of them,
    the same for every run seed but for the order of the rows. Worst domain: the test state with the highest RMSE.
    Licence: CC BY 4.0. Citation: Redmond and Baveja, European Journal of Operational Research 141, 2002.
    """

    name = "crime"
    files = raw_files("crime")
    unit = "violent crimes per population, normalised to [0, 1]"
    x_shape = (122,)
    rows = 1994
    split_sizes = (1390, 231, 373)
    columns = tuple(ATTRIBUTES.split())
    label = "ViolentCrimesPerPop"

    def read(self) -> RawTable:
        """Read the comma-separated file: state first, label last, `?` unknown."""
        ((file, path),) = self.fetch()
        columns = [0, *range(5, 128)]
        values = np.loadtxt(path, delimiter=",", usecols=columns, converters=number_or_unknown, encoding="utf-8")
        return RawTable(values[:, 1:-1], values[:, -1:], values[:, 0], {file.path: file.sha256})

    def synthetic_rows(self, rng: np.random.Generator) -> RawTable:
        x = rng.random((self.rows, 122))
        y = np.clip(smooth_labels(x, rng, 0.24, 0.23), 0.0, 1.0)
        x[:1675, -22:] = np.nan
        return RawTable(x, y, rng.permutation(np.repeat(np.arange(len(COUNTS)), COUNTS)), {})
