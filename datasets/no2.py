"""NO2 concentration beside a road."""

import numpy as np

from cmixup.errors import check_seed
from datasets.common.base import Indices, RawTable, TabularDataset, permuted, smooth_labels
from datasets.common.fetch import raw_files


class NO2(TabularDataset):
    """Hourly NO2 at a road in Oslo, explained by traffic and weather.

    Origin: StatLib (http://lib.stat.cmu.edu/datasets/NO2.dat), Norwegian Public Roads Administration, October 2001
    to August 2003. Read from a CSV copy, or from PMLB's file (same rows in the same order, labels equal to 2.4e-7).
    y: log of the NO2 concentration (particles), 1.22378 to 6.39509. x: log cars per hour, temperature (C), wind
    speed (m/s), temperature difference 25 m - 2 m (C), wind direction (degrees), hour, day number.
    Shapes: x (N, 7), y (N, 1); 500 rows, split 200 / 200 / 100. The paper's split files are not public. Ours is one
    split, drawn once with `split_seed` 0 (as the released code draws Airfoil's) and the same for every run seed; how
    much scores move from split to split was not measured. No domains.
    Licence: none stated. Citation: Aldrin, StatLib, 2004.

    Args:
        scaling: see `TabularDataset`.
        split_seed: seed of the one split.
        synthetic: use synthetic data.
    """

    name = "no2"
    files = raw_files("no2")
    unit = "log NO2 concentration"
    x_shape = (7,)
    rows = 500
    split_sizes = (200, 200, 100)
    columns = ("cars_per_hour", "temperature_at_2m", "wind_speed", "temperature_diff_2m_25m", "wind_direction",
               "hour_of_day", "day")  # fmt: skip
    label = "log_no2"

    def __init__(self, scaling: str = "train", split_seed: int = 0, synthetic: bool = False):
        super().__init__(scaling, synthetic)
        self.split_seed = check_seed("split_seed", split_seed)

    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), f"our split (split_seed {self.split_seed}): the paper's split files are not public")

    def read(self) -> RawTable:
        """Read whichever copy is at hand; the CSV has the label first, PMLB's file has it last."""
        ((file, path),) = self.fetch()
        delimiter, label = (",", 0) if path.suffix == ".csv" else ("\t", 7)
        values = np.loadtxt(path, delimiter=delimiter, skiprows=1)
        x, y = np.delete(values, label, axis=1), values[:, [label]]
        return RawTable(x, y, np.zeros(self.rows), {file.path: file.sha256})

    def synthetic_rows(self, rng: np.random.Generator) -> RawTable:
        low, high = np.array([4.1, -18.6, 0.3, -5.4, 2, 1, 32]), np.array([8.4, 21.1, 9.9, 4.3, 359, 24, 608])
        x = rng.uniform(low, high, (self.rows, 7))
        return RawTable(x, smooth_labels(x, rng, 3.7, 0.75), np.zeros(self.rows), {})

    def split(self, table: RawTable, seed: int) -> Indices:
        return permuted(np.random.RandomState(self.split_seed).permutation(len(table.x)), self.split_sizes)
