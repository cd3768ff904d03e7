"""A small finished run to predict with."""

import functools
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from cmixup.done import DONE, done_text
from cmixup.saved_run import MODEL, PREPROCESSING, WEIGHTS, model_json
from cmixup.tables.preprocessing import fit
from models.fcn3 import FCN3


def frame() -> pd.DataFrame:
    """Return a table of numbers, a category and a target."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": rng.normal(size=30), "b": rng.integers(0, 9, 30), "c": list("xyz") * 10, "y": rng.normal(size=30)},
        index=pd.RangeIndex(1, 31),
    )


@functools.cache
def make_run() -> Path:
    """Write a finished run on that table, untrained, and return its folder; it is made once a process."""
    folder = Path(tempfile.mkdtemp(prefix="saved-run-"))
    table = frame()
    made = fit(
        table.drop(columns="y"),
        ("y",),
        "",
        frozenset({"c"}),
        keep=(),
        log_target=False,
        rare=0.0,
        scaling="standard",
        source="trial",
    )
    width = made.apply(table, "trial").shape[1]
    model = FCN3((width,), 1)
    torch.save(model.state_dict(), folder / WEIGHTS)
    node = {"_target_": "models.fcn3.FCN3", "name": "fcn3"}
    (folder / MODEL).write_text(model_json(node, (width,), 1, tasks=False))
    (folder / PREPROCESSING).write_text(made.to_json())
    (folder / DONE).write_text(done_text(folder / name for name in (WEIGHTS, MODEL, PREPROCESSING)))
    return folder
