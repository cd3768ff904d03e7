"""Predictions of published runs: an HDF5 file for each experiment and dataset, which h5py alone opens.

<results>/predictions/<experiment>/<dataset>.h5      a group for each cell/seed/part

A part has the arrays of a run's own predictions.h5 (`scripts.stats.scored`). Labels and domains of equal rows are
stored once: the others are links. Predictions are rounded to steps (`in_steps`) before scores are computed of them.
"""

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cmixup.files import write_atomically
from cmixup.training.losses import mean_names
from datasets.common.damaged import naming
from scripts.stats.scored import Parts, Scored, read_parts, write_parts

Cells = dict[str, dict[int, dict[str, Scored]]]  # by name of the cell, seed and split
READERS = "v110"  # of HDF5, from 1.10 on; an older format takes four times the room for small arrays
SPREAD = 16  # steps that the standard deviation of predictions must have
MANTISSA = 2**24  # steps that a float32 can count


def step_sizes(target: np.ndarray) -> np.ndarray:
    """Return the step that predictions of some rows are rounded to, `(d_y,)`, powers of two.

    It is at most 1/500 of the labels' standard deviation, and less for few rows. Rounding changes a mean over n rows
    by about n^-1/2 of a step, so scores keep as many digits for any n. A step of 0 rounds nothing: labels that do not
    vary have it, and labels that are more steps than float32 can count.
    """
    std = target.astype(np.float64).std(axis=0) if len(target) else np.zeros(target.shape[1])
    if not ((std > 1e-30).all() and (std < 1e30).all()):
        return np.zeros(target.shape[1])
    sizes: np.ndarray = 2.0 ** np.floor(np.log2(min(2.55e-5 * len(target) ** 0.5, 2e-3) * std))
    return sizes if (np.abs(target) <= MANTISSA * sizes).all() else np.zeros(target.shape[1])


def in_steps(values: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return predictions `(n, d_y)` rounded to whole steps, float32, or unchanged where rounding would lose too much.

    It would where a prediction is not finite or is more steps than float32 can count. It also would where the standard
    deviation of predictions is below `SPREAD` steps: their correlation would be that of the rounding.
    """
    if not (sizes.all() and np.isfinite(values).all()):
        return values
    steps: np.ndarray = np.rint(values.astype(np.float64) / sizes)
    fits = (steps.std(axis=0) >= SPREAD).all() and np.abs(steps).max(initial=0) <= MANTISSA
    return (steps * sizes).astype(np.float32) if fits else values


def rounded(parts: Parts) -> Parts:
    """Return rounded predictions; those with standard deviations stay, since their scores are no means of errors."""
    return {
        part: Scored({name: in_steps(v, step_sizes(scored.target)) for name, v in scored.prediction.items()},
                     scored.target, scored.domain)
        if len(mean_names(scored.prediction)) == len(scored.prediction) else scored
        for part, scored in parts.items()
    }  # fmt: skip


def write_cells(path: Path, cells: Mapping[str, Mapping[int, Parts]]) -> None:
    """Write the predictions of some cells, whole or not at all; equal cells give equal bytes."""
    import h5py

    buffer, places = io.BytesIO(), dict[bytes, str]()
    with h5py.File(buffer, "w", libver=READERS) as file:
        for name, seeds in sorted(cells.items()):
            for seed, parts in sorted(seeds.items()):
                write_parts(file.create_group(f"{name}/{seed}"), parts, places, fletcher32=True)
    write_atomically(path, buffer.getvalue())


def read_cells(path: Path) -> Cells:
    """Return the predictions of cells by name, seed and split; nothing if there is no file."""
    import h5py

    if not path.is_file():
        return {}
    with naming(path, "a file of predictions"), h5py.File(path) as file:
        return {name: {int(seed): read_parts(group) for seed, group in cell.items()} for name, cell in file.items()}
