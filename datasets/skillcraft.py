"""SkillCraft1 Master RawTable."""

from typing import Any

import numpy as np

from datasets.common.base import RawTable, smooth_labels
from datasets.common.domain_table import DomainTable, number_or_unknown
from datasets.common.fetch import raw_files

COUNTS = np.array([167, 347, 553, 811, 806, 621, 35, 55])  # rows of leagues 1 to 8
ATTRIBUTES = """
    Age HoursPerWeek TotalHours APM SelectByHotkeys AssignToHotkeys UniqueHotkeys MinimapAttacks MinimapRightClicks
    NumberOfPACs GapBetweenPACs ActionsInPAC TotalMapExplored WorkersMade UniqueUnitsMade ComplexUnitsMade
    ComplexAbilitiesUsed
"""


class SkillCraft(DomainTable):
    """Players of StarCraft II; domains are leagues.

    Origin: UCI Machine Learning Repository, dataset 272.
    y: mean latency from a shift of view to the first action, in milliseconds, 24.0936 to 176.3721. x: 17 attributes of
    the player and the game; Age, HoursPerWeek and TotalHours are unknown for all 55 rows of league 8, a test domain.
    One validation row has TotalHours 1,000,000: scaling fitted on train clips it.
    Shapes: x (N, 17), y (N, 1); 3395 rows, split 1878 / 806 / 711: leagues 1 to 4, 5, and 6 to 8, the same for every
    run seed but for the order of the rows. Worst domain: the test league with the highest RMSE.
    Licence: CC BY 4.0. Citation: Thompson, Blair, Chen and Henrey, PLOS ONE 8(9), 2013.
    """

    name = "skillcraft"
    files = raw_files("skillcraft")
    unit = "ms (action latency)"
    x_shape = (17,)
    rows = 3395
    split_sizes = (1878, 806, 711)
    columns = tuple(ATTRIBUTES.split())
    label = "ActionLatency"

    def read(self) -> RawTable:
        """Read the CSV by its header; `?` is unknown."""
        ((file, path),) = self.fetch()
        header = path.read_text(encoding="utf-8").partition("\n")[0].replace('"', "").split(",")
        columns = [header.index(name) for name in (*self.columns, self.label, "LeagueIndex")]
        form: Any = {"delimiter": ",", "quotechar": '"', "encoding": "utf-8"}
        values = np.loadtxt(path, skiprows=1, usecols=columns, converters=number_or_unknown, **form)
        return RawTable(values[:, :-2], values[:, -2:-1], values[:, -1], {file.path: file.sha256})

    def synthetic_rows(self, rng: np.random.Generator) -> RawTable:
        x = rng.random((self.rows, 17))
        y = smooth_labels(x, rng, 63.7, 19.0)
        x[-55:, :3] = np.nan
        return RawTable(x, y, np.repeat(np.arange(1, 9), COUNTS), {})
