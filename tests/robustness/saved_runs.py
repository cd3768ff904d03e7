"""A small finished run to predict with, and hostile calls of `load_run`."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import cmixup
from cmixup.done import DONE
from cmixup.saved_run import MODEL, PREPROCESSING, WEIGHTS, model_json
from datasets.common.table.preprocessing import fit
from models.fcn3 import FCN3
from tests.robustness.hostile import ANYTHING, NUMBERS, Draws


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
    (folder / DONE).write_text("")
    return folder


def load_run_call(d: Draws) -> None:
    """`load_run` of a run, and predictions of hostile rows."""
    folder = make_run()
    run = cmixup.load_run(
        d.give("folder", lambda: folder, (folder.parent, folder / MODEL, "", "\0", "/", *ANYTHING)),
        d.give("device", lambda: "cpu", ("cud", "cuda:7", "meta", *ANYTHING)),
    )
    table, width = frame(), run.in_shape[0]

    def wrong_rows() -> Any:
        spoilt = table.astype(object)
        spoilt.iat[3, d.rnd.randrange(3)] = d.rnd.choice((*NUMBERS, "text", None, [1], {}))
        return d.choose(
            spoilt,
            table[["a"]],
            table.iloc[:0],
            table.T,
            table["a"],
            table.rename(columns={"a": "b"}),
            torch.zeros(2, width + 1),
            torch.full((2, width), torch.nan),
            d.bad_labels(3, width),
        )

    rows = d.give("rows", lambda: d.choose(table, table[::-1], torch.zeros(3, width), np.ones((2, width))), wrong_rows)
    found = run.predict(rows, d.give("batch_size", lambda: d.choose(1, 7, 4096)))
    if len(found) != len(rows):
        raise AssertionError(f"{len(found)} predictions of {len(rows)} rows")
    if isinstance(rows, pd.DataFrame) and not d.hostile:
        assert run.table is not None
        again = run.predict(torch.from_numpy(run.table.apply(rows))).numpy()
        if not np.allclose(found.to_numpy(), again, atol=1e-6):
            raise AssertionError("a frame and its inputs give different predictions")
