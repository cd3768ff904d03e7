"""Sea level: common models with the defaults of their packages, fitted on the splits of protocol 2."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections.abc import Mapping, Sequence
from importlib import metadata
from typing import Any

import numpy as np
import torch

from cmixup.errors import InputError
from scripts.driver.predictions import Scored
from scripts.driver.provenance import environment
from scripts.study.cell import PARTS, Load
from scripts.study.protocols import SeaLevel
from scripts.study.rules import StudyCell


def check_packages(cells: Sequence[StudyCell], rules: SeaLevel) -> None:
    """Refuse cells whose package is not installed.

    Raises:
        InputError: there is one.
    """
    for method in dict.fromkeys(cell.method for cell in cells):
        package = rules.methods[method]["model"].partition(".")[0]
        if importlib.util.find_spec(package) is None:
            raise InputError(
                f"methods has {method}, whose package is not installed: pip install {package}, or leave it out"
            )


def fit_cell(
    cell: StudyCell, rules: SeaLevel, load: Load, std: np.ndarray
) -> tuple[dict[str, Any], list[Mapping[str, Scored]]]:
    """Fit the model of a cell on every split.

    Args:
        cell: what to fit.
        rules: of the sea level.
        load: of the cell's table and condition.
        std: standard deviation of every target over the whole table, `(d_y,)` float64.

    Returns:
        A record as that of a cell of networks, without trials; and the predictions on validation and test.
    """
    started, about = time.perf_counter(), rules.methods[cell.method]
    package, _, kind = about["model"].rpartition(".")
    make, rows, kept = getattr(importlib.import_module(package), kind), [], list[Mapping[str, Scored]]()
    for run in (run for tuning in rules.tunings(cell) for run in tuning.finals):
        data = load(run.split)
        x, labels = np.asarray(data.train.x), data.train.y.numpy().T
        models = [make(**about.get("fixed", {})).fit(x, label) for label in labels]
        parts = {}
        for part in PARTS:
            own = getattr(data, part)
            each = np.column_stack([model.predict(np.asarray(own.x)) for model in models]).astype(np.float32)
            parts[part] = rules.kept(Scored({"": each}, own.y.numpy(), own.domain.numpy()))
        row: dict[str, Any] = {"seed": run.seed, "split": run.split, "options": [about["model"]], "best_epoch": 0}
        for part, one in parts.items():
            found = rules.scores(one, std, grouped=cell.condition.grouped)
            row |= {name.replace("nrmse", part, 1): value for name, value in found.items()}
        rows.append(row)
        kept.append(parts)
    made_by = environment(torch.device("cpu"))
    distribution = metadata.packages_distributions()[package.partition(".")[0]][0]
    record = {
        "table": cell.table.name, "condition": cell.condition.name, "method": cell.method, "seeds": rows, "trials": [],
        "train_rows": len(data.train), "val_rows": len(data.val), "std": std.tolist(), "rules": rules.checksum,
        "checksums": dict(data.checksums), "seconds": time.perf_counter() - started, **made_by,
        "versions": {**made_by["versions"], distribution: metadata.version(distribution)},
    }  # fmt: skip
    return record, kept
