"""Predictions on disk: what every published score can be computed from again.

An HDF5 file holds those of one run. `seeds: (E,)` lists its seeds; below `val` and `test` lie `rows: (E,)`, how many
rows each seed has there, and, seed after seed, `target` and `prediction`, both `(M, d_y)` float32, and `domain: (M,)`.
Predictions of a method's other predictors are called `prediction_<name>`. A file of published cells holds a group of
this form for every cell, by its name; arrays that several of its cells share are kept once.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.data import RegressionData, Split
from cmixup.done import checked
from cmixup.files import write_atomically
from cmixup.training.trainer import RunResult
from datasets.common.damaged import naming
from scripts.driver.reads import note_read

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
    _write(path, lambda file: _put(file, seeds, {}))


def write_cells(path: Path, cells: Mapping[str, Mapping[int, Parts]]) -> None:
    """Write the predictions of some cells by name and seed, whole or not at all; the same cells give the same bytes."""

    def fill(file: Any) -> None:
        shared: dict[bytes, Any] = {}
        for name in sorted(cells):
            _put(file.create_group(name), cells[name], shared)

    _write(path, fill, ("v110", "v110"))  # whose groups are small


def _write(path: Path, fill: Callable[[Any], None], version: tuple[str, str] | None = None) -> None:
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w", libver=version) as file:
        fill(file)
    write_atomically(path, buffer.getvalue())


def _put(group: Any, seeds: Mapping[int, Parts], shared: dict[bytes, Any]) -> None:
    """Put the predictions of some seeds into a group; `shared` holds the arrays of its file by their content."""
    order = sorted(seeds)
    group["seeds"] = np.array(order, dtype=np.int64)
    for part in seeds[order[0]]:
        each = [seeds[seed][part] for seed in order]
        own = group.create_group(part)
        own["rows"] = np.array([len(one.target) for one in each], dtype=np.int64)
        arrays = {"target": [one.target for one in each], "domain": [_small(one.domain) for one in each]}
        for name in each[0].prediction:
            arrays[f"{OWN}_{name}" if name else OWN] = [one.prediction[name] for one in each]
        for name, values in arrays.items():
            whole = np.concatenate(values)
            content = hashlib.sha256(repr((whole.dtype, whole.shape)).encode() + whole.tobytes()).digest()
            if content in shared:
                own[name] = shared[content]  # a second name of the same data
            else:
                # One chunk: repeated labels, the same for every seed, compress well.
                shared[content] = own.create_dataset(name, data=whole, chunks=whole.shape, **COMPRESSION)


def read_predictions(path: Path) -> dict[int, dict[str, Scored]]:
    """Return what `write_predictions` wrote, by seed.

    Raises:
        InputError: the file is not one of these, or is damaged by what its run's `DONE` says.
    """
    import h5py

    with naming(path, "a file of predictions"), h5py.File(checked(path)) as file:
        return _get(file)


def read_cells(path: Path, names: Collection[str] = ()) -> dict[str, dict[int, dict[str, Scored]]]:
    """Return what `write_cells` wrote, by name and seed, all or those of some names; nothing if there is no file.

    Raises:
        InputError: the file is not one of these.
    """
    import h5py

    if not path.is_file():
        return {}
    note_read(path)
    with naming(path, "a file of predictions"), h5py.File(path) as file:
        return {name: _get(group) for name, group in file.items() if not names or name in names}


def _get(group: Any) -> dict[int, dict[str, Scored]]:
    found: dict[int, dict[str, Scored]] = {}
    seeds = group["seeds"][:].tolist()
    for part in (name for name in group if name != "seeds"):
        own = group[part]
        cuts = np.cumsum(own["rows"][:])[:-1]
        pieces = {name: np.split(own[name][:], cuts) for name in own if name != "rows"}
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
