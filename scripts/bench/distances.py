"""Benchmark the rows of P by distance: labels, inputs and representations, over the number of training rows N.

    python -m scripts.bench.distances

An epoch is N draws. By labels and inputs that is set-up (once a run) and draws; by representations it is encoding and
choosing in every step, for an FCN3 of 128 units, batches of 64 and 4 candidates a row. Runs on one thread and writes
distances.md and distances.csv into results/benchmarks.
"""

from __future__ import annotations

import argparse
import os
import platform
import time
from pathlib import Path

import numpy as np
import torch

from cmixup.batch import read_rows
from cmixup.data import Split
from cmixup.files import write_atomically
from cmixup.order import EpochBatches, shuffled
from cmixup.pairing.base import Pairing
from cmixup.pairing.inputs import InputDistance
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.representation import RepresentationDistance
from models.fcn3 import FCN3
from scripts.records.records import to_csv
from scripts.records.tables import markdown_rows

SIZES, INPUTS, BATCH = (1_000, 4_000, 16_000), 32, 64
COLUMNS = ("distance", "n", "setup_seconds", "epoch_seconds")


def main() -> None:
    """Measure every case and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = [measure(name, n) for n in SIZES for name in CASES]
    write_atomically(given.out / "distances.csv", to_csv(rows, COLUMNS))
    write_atomically(given.out / "distances.md", as_markdown(rows))
    print((given.out / "distances.md").read_text())


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
    started = time.process_time()
    pairing.fit(train)
    setup = time.process_time() - started
    order = shuffled(n, BATCH, rng, drop_last=False)
    return {"distance": name, "n": n, "setup_seconds": round(setup, 4),
            "epoch_seconds": round(min(epoch(pairing, model, train, order, rng) for _ in range(3)), 4)}  # fmt: skip


def epoch(pairing: Pairing, model: FCN3, train: Split, order: EpochBatches, rng: np.random.Generator) -> float:
    """Return the CPU seconds that the partners of an epoch take."""
    started = time.process_time()
    draws = pairing.draws(order, rng)
    if pairing.in_step:
        at = 0
        for rows in order.batches():
            part, at = slice(at, at + len(rows)), at + len(rows)
            batch = read_rows(train, rows)
            pool = read_rows(train, draws["candidates"][part].reshape(-1))
            level = torch.from_numpy(draws["level"][part])
            pairing.with_partners(model, type(batch)(batch.x, batch.y, batch.domain, None, {"level": level}, pool))
    return time.process_time() - started


def as_markdown(rows: list[dict[str, object]]) -> str:
    """Return the report."""
    cells = [[r["distance"], *_seconds(rows, r["distance"])] for r in rows if r["n"] == SIZES[0]]
    head = ["distance", *(f"N = {n}: {what}" for n in SIZES for what in ("set-up", "epoch"))]
    lines = markdown_rows(head, [[str(cell) for cell in row] for row in cells])
    about = (
        "Seconds of one thread (CPU time): set-up once a run, epoch for N draws, the best of three. Sigma^2 is 0.1 "
        f"times the median distance; inputs have {INPUTS} features. By representations an epoch is N / {BATCH} steps, "
        f"each of encoding a batch of {BATCH} and its {4 * BATCH} candidates with an FCN3 and choosing among them. "
        "The table of d(x) takes 8 N^2 bytes. `make bench-distances` measures again."
    )
    machine = f"Machine: {platform.machine()}, {os.cpu_count()} cores, PyTorch {torch.__version__}."
    return "\n".join(["# The cost of partners by distance", "", about, "", *lines, "", machine, ""])


def _seconds(rows: list[dict[str, object]], name: object) -> list[str]:
    found = [r for r in rows if r["distance"] == name]
    return [f"{r[key]:.3f}" for r in found for key in ("setup_seconds", "epoch_seconds")]


if __name__ == "__main__":
    main()
