"""Benchmark the rows of P by distance: labels, inputs and representations, over the number of training rows N.

An epoch is N draws. By labels and inputs that is set-up (once a run) and draws; by representations it is encoding and
choosing in every step, for an FCN3 of 128 units, batches of 64 and 4 candidates a row.

Example: python -m scripts.bench distances
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from cmixup.batch import read_rows
from cmixup.data import Split
from cmixup.order import EpochBatches, shuffled
from cmixup.pairing.base import Pairing
from cmixup.pairing.inputs import InputDistance
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.representation import RepresentationDistance
from models.fcn3 import FCN3
from scripts.bench.clock import SHORT, put, seconds, store
from scripts.driver.words import Words
from scripts.records.records import to_csv
from scripts.records.tables import markdown_rows

SIZES, INPUTS, BATCH = (1_000, 4_000, 16_000), 32, 64
KEYS = SHORT
COLUMNS = ("distance", "n", "setup_seconds", "epoch_seconds")


#: The width of the labels, and the pairing, of every row of the report.
CASES: dict[str, tuple[int, type[Pairing], dict]] = {
    "d(y), 1 label": (1, LabelDistance, {}),
    "d(y), 8 labels": (8, LabelDistance, {}),
    "d(x)": (1, InputDistance, {}),
    "d(x+y)": (1, InputDistance, {"labels": True}),
    "d(h) Euclidean": (1, RepresentationDistance, {}),
    "d(h) cosine": (1, RepresentationDistance, {"distance": "cosine"}),
    "d(h+y)": (1, RepresentationDistance, {"labels": True}),
}


def measure(name: str, n: int) -> dict[str, object]:
    """Return the CPU seconds of a case with N rows; the epoch's are the best of three."""
    width, kind, options = CASES[name]
    rng = np.random.default_rng(0)
    x, y = (torch.from_numpy(rng.standard_normal((n, d)).astype(np.float32)) for d in (INPUTS, width))
    train = Split(x, y, torch.zeros(n, dtype=torch.int64))
    pairing = kind(["median", 0.1], **options)
    model = FCN3((INPUTS,), width)
    setup = seconds(lambda: pairing.fit(train))
    order = shuffled(n, BATCH, rng, drop_last=False)
    taken = [seconds(lambda: epoch(pairing, model, train, order, rng)) for _ in range(3)]
    return {"distance": name, "n": n, "setup_seconds": round(setup, 4), "epoch_seconds": round(min(taken), 4)}


def epoch(pairing: Pairing, model: FCN3, train: Split, order: EpochBatches, rng: np.random.Generator) -> None:
    """Draw the partners of an epoch."""
    draws = pairing.named_draws(order, rng)
    if pairing.in_step:
        at = 0
        for rows in order.batches():
            part, at = slice(at, at + len(rows)), at + len(rows)
            batch = read_rows(train, rows)
            pool = read_rows(train, draws["candidates"][part].reshape(-1))
            level = torch.from_numpy(draws["level"][part])
            pairing.with_partners(model, replace(batch, draws={"level": level}, candidates=pool))


def run(given: Words) -> None:
    """Measure every case at every N."""
    sizes = SIZES[:1] if given.switch("short") else SIZES
    rows = [measure(name, n) for n in sizes for name in CASES]
    store(given, "distances.csv", to_csv(rows, COLUMNS))
    head = ["distance", *(f"N = {n}: {what}" for n in sizes for what in ("set-up", "epoch"))]
    body = [[name, *(f"{r[key]:.3f}" for r in rows if r["distance"] == name for key in COLUMNS[2:])] for name in CASES]
    about = (
        "Seconds of one thread (CPU time): set-up once a run, epoch for N draws, the best of three. Sigma^2 is 0.1 "
        f"times the median distance; inputs have {INPUTS} features. By representations an epoch is N / {BATCH} steps, "
        f"each of encoding a batch of {BATCH} and its {4 * BATCH} candidates with an FCN3 and choosing among them. "
        "The table of d(x) takes 8 N^2 bytes. `make bench-distances` measures again."
    )
    put(given, "distances", "The cost of partners by distance", [about, markdown_rows(head, body)])
