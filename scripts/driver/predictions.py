"""Predictions on disk: what every published score can be computed from again.

An HDF5 file holds those of one run. `seeds: (E,)` lists its seeds; below `val` and `test` lie `rows: (E,)`, how many
rows each seed has there, and, seed after seed, `target` and `prediction`, both `(M, d_y)` float32, and `domain: (M,)`.
Predictions of a method's other predictors are called `prediction_<name>`. Published cells are kept in another form
(`scripts.records.prediction_store`).
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cmixup.data import RegressionData, Split
from cmixup.done import checked
from cmixup.files import write_atomically
from cmixup.training.trainer import RunResult
from datasets.common.damaged import naming
from scripts.stats.scored import Parts, Scored

PREDICTIONS = "predictions.h5"
COMPRESSION = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
PREDICTION = "prediction"


def scored_predictions(data: RegressionData, result: RunResult) -> dict[str, Scored]:
    """Return the predictions of a run with the labels and domains of their rows."""
    parts = {}
    for part, predictions in result.predictions.items():
        split: Split = getattr(data, part)
        values = {name: prediction.numpy() for name, prediction in predictions.items()}
        parts[part] = Scored(values, split.y.numpy(), split.domain.numpy())
    return parts


def write_predictions(path: Path, seeds: Mapping[int, Parts]) -> None:
    """Write the predictions of some seeds of one configuration, whole or not at all."""
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        order = sorted(seeds)
        file["seeds"] = np.array(order, dtype=np.int64)
        for part in seeds[order[0]]:
            runs = [seeds[seed][part] for seed in order]
            group = file.create_group(part)
            group["rows"] = np.array([len(run.target) for run in runs], dtype=np.int64)
            arrays = {"target": [run.target for run in runs], "domain": [run.domain for run in runs]}
            for name in runs[0].prediction:
                arrays[f"{PREDICTION}_{name}" if name else PREDICTION] = [run.prediction[name] for run in runs]
            for name, values in arrays.items():
                whole = np.concatenate(values)
                # One chunk: repeated labels, the same for every seed, compress well.
                group.create_dataset(name, data=whole, chunks=whole.shape, **COMPRESSION)
    write_atomically(path, buffer.getvalue())


def read_predictions(path: Path) -> dict[int, dict[str, Scored]]:
    """Return what `write_predictions` wrote, by seed.

    Raises:
        InputError: the file is not one of these, or is damaged by what its run's `DONE` says.
    """
    import h5py

    with naming(path, "a file of predictions"), h5py.File(checked(path)) as file:
        by_seed: dict[int, dict[str, Scored]] = {}
        seeds = file["seeds"][:].tolist()
        for part in (name for name in file if name != "seeds"):
            cuts = np.cumsum(file[part]["rows"][:])[:-1]
            pieces = {name: np.split(values[:], cuts) for name, values in file[part].items() if name != "rows"}
            predictors = [name for name in pieces if name.startswith(PREDICTION)]
            for k, seed in enumerate(seeds):
                of_seed = {name.removeprefix(PREDICTION).removeprefix("_"): pieces[name][k] for name in predictors}
                by_seed.setdefault(seed, {})[part] = Scored(of_seed, pieces["target"][k], pieces["domain"][k])
        return by_seed
