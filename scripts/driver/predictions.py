"""Predictions on disk: what every published score can be computed from again.

One HDF5 file holds those of one run, or of all seeds of a published cell. `seeds: (E,)` lists them; below `val` and
`test` lie `rows: (E,)`, how many rows each seed has there, and, seed after seed, `target` and `prediction`, both `(M,
d_y)` float32, and `domain: (M,)`. Predictions of a method's other predictors are called `prediction_<name>`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cmixup.data import RegressionData, Split
from cmixup.done import checked
from cmixup.files import write_atomically
from cmixup.training.trainer import RunResult
from datasets.common.damaged import naming

PREDICTIONS = "predictions.h5"
COMPRESSION = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
OWN = "prediction"
BINS = 10  # of the calibration: as many rows in each


@dataclass(frozen=True)
class Scored:
    """What the scores of one split are computed from.

    Attributes:
        prediction: `(N, d_y)` float32 by the predictor's name; "" is the method's own.
        target: `(N, d_y)` float32.
        domain: `(N,)` integers.
    """

    prediction: Mapping[str, np.ndarray]
    target: np.ndarray
    domain: np.ndarray


Parts = Mapping[str, Scored]  # by split


def scored(data: RegressionData, result: RunResult) -> dict[str, Scored]:
    """Return the predictions of a run with the labels and domains of their rows."""
    found = {}
    for part, each in result.predictions.items():
        split: Split = getattr(data, part)
        values = {name: prediction.numpy() for name, prediction in each.items()}
        found[part] = Scored(values, split.y.numpy(), split.domain.numpy())
    return found


def write_predictions(path: Path, seeds: Mapping[int, Parts]) -> None:
    """Write the predictions of some seeds of one configuration, whole or not at all."""
    import h5py

    buffer, order = io.BytesIO(), sorted(seeds)
    with h5py.File(buffer, "w") as file:
        file["seeds"] = np.array(order, dtype=np.int64)
        for part in seeds[order[0]]:
            each = [seeds[seed][part] for seed in order]
            group = file.create_group(part)
            group["rows"] = np.array([len(one.target) for one in each], dtype=np.int64)
            arrays = {"target": [one.target for one in each], "domain": [_small(one.domain) for one in each]}
            for name in each[0].prediction:
                arrays[f"{OWN}_{name}" if name else OWN] = [one.prediction[name] for one in each]
            for name, values in arrays.items():
                # One chunk: repeated labels, the same for every seed, compress well.
                whole = np.concatenate(values)
                group.create_dataset(name, data=whole, chunks=whole.shape, **COMPRESSION)
    write_atomically(path, buffer.getvalue())


def read_predictions(path: Path) -> dict[int, dict[str, Scored]]:
    """Return what `write_predictions` wrote, by seed.

    Raises:
        InputError: the file is not one of these, or is damaged by what its run's `DONE` says.
    """
    import h5py

    found: dict[int, dict[str, Scored]] = {}
    with naming(path, "a file of predictions"), h5py.File(checked(path)) as file:
        seeds = file["seeds"][:].tolist()
        for part in (name for name in file if name != "seeds"):
            group = file[part]
            cuts = np.cumsum(group["rows"][:])[:-1]
            pieces = {name: np.split(group[name][:], cuts) for name in group if name != "rows"}
            names = {name: name.removeprefix(OWN).removeprefix("_") for name in pieces if name.startswith(OWN)}
            for k, seed in enumerate(seeds):
                prediction = {short: pieces[name][k] for name, short in names.items()}
                found.setdefault(seed, {})[part] = Scored(prediction, pieces["target"][k], pieces["domain"][k])
    return found


def _small(values: np.ndarray) -> np.ndarray:
    """Return whole numbers in the smallest type that holds them."""
    return values.astype(np.result_type(np.min_scalar_type(values.min()), np.min_scalar_type(values.max())))


def calibration(target: np.ndarray, prediction: np.ndarray, bins: int = BINS) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean prediction and the mean truth of rows that are predicted alike.

    A regressor is calibrated where both are equal: `E[y | prediction] = prediction`. A slope of truth over prediction
    above 1 says that predictions are drawn to the mean, as mixing labels does.

    Args:
        target, prediction: `(N,)`.
        bins: the rows are sorted by prediction and cut into this many parts, or N if that is less.

    Returns:
        Mean predictions and mean truths, `(bins,)` each, ascending by prediction.
    """
    order = np.argsort(prediction, kind="stable")
    parts = np.array_split(order, min(bins, len(order)))
    return tuple(np.array([values[part].mean() for part in parts]) for values in (prediction, target))  # type: ignore[return-value]
