"""Airfoil Self-Noise."""

import numpy as np

from datasets.common.base import Indices, RawTable, TabularDataset, permuted, smooth_labels
from datasets.common.fetch import raw_files


class Airfoil(TabularDataset):
    """Noise of NACA 0012 airfoil blades in a wind tunnel.

    Origin: NASA, UCI Machine Learning Repository, dataset 291.
    y: scaled sound pressure level in dB, 103.380 to 140.987. x: frequency (Hz), angle of attack (degrees), chord
    length (m), free-stream velocity (m/s), suction side displacement thickness (m).
    Shapes: x (N, 5), y (N, 1); 1503 rows, split 1003 / 300 / 200 anew for every run seed, with the permutation of
    the released code. No domains.
    Licence: CC BY 4.0. Citation: Brooks, Pope and Marcolini, "Airfoil self-noise and prediction", NASA RP-1218, 1989.
    """

    name = "airfoil"
    files = raw_files("airfoil")
    unit = "dB (scaled sound pressure level)"
    x_shape = (5,)
    rows = 1503
    split_sizes = (1003, 300, 200)
    columns = ("frequency", "angle_of_attack", "chord_length", "velocity", "displacement_thickness")
    label = "sound_pressure_level"

    def read(self) -> RawTable:
        ((file, path),) = self.fetch()
        values = np.loadtxt(path)
        return RawTable(values[:, :5], values[:, 5:], np.zeros(self.rows), {file.path: file.sha256})

    def synthetic_rows(self, rng: np.random.Generator) -> RawTable:
        low, high = np.array([200, 0, 0.0254, 31.7, 0.0004]), np.array([20000, 22.2, 0.3048, 71.3, 0.0584])
        x = rng.uniform(low, high, (self.rows, 5))
        return RawTable(x, smooth_labels(x, rng, 124.8, 6.9), np.zeros(self.rows), {})

    def split(self, table: RawTable, seed: int) -> Indices:
        """Permute the rows by seed as the released code's seeded NumPy does, then 1003 / 300 / 200."""
        return permuted(np.random.RandomState(seed).permutation(len(table.x)), self.split_sizes)
