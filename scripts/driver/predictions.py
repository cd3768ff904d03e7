"""Predictions on disk: what every published score can be computed from again.

An HDF5 file holds those of one run: below `val` and `test` lie `target` and `prediction`, both `(N, d_y)` float32, and
`domain: (N,)`. Predictions of a method's other predictors are called `prediction_<name>`. Published cells are kept in
another form (`scripts.records.prediction_store`).
"""

from __future__ import annotations

import io
from pathlib import Path

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


def write_predictions(path: Path, parts: Parts) -> None:
    """Write the predictions of a run, whole or not at all."""
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for part, one in parts.items():
            arrays = {f"{PREDICTION}_{name}" if name else PREDICTION: values for name, values in one.prediction.items()}
            for name, values in {"target": one.target, "domain": one.domain, **arrays}.items():
                file.create_dataset(f"{part}/{name}", data=values, chunks=values.shape, **COMPRESSION)
    write_atomically(path, buffer.getvalue())


def read_predictions(path: Path) -> dict[str, Scored]:
    """Return what `write_predictions` wrote.

    Raises:
        InputError: the file is not one of these, or is damaged by what its run's `DONE` says.
    """
    import h5py

    parts = {}
    with naming(path, "a file of predictions"), h5py.File(checked(path)) as file:
        for part in ("val", "test"):
            if part in file:
                arrays = {name: values[:] for name, values in file[part].items()}
                names = [name for name in arrays if name.startswith(PREDICTION)]
                prediction = {name.removeprefix(PREDICTION).removeprefix("_"): arrays[name] for name in names}
                parts[part] = Scored(prediction, arrays["target"], arrays["domain"])
    return parts
