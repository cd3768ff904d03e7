"""One case of the partners benchmark, in its own process; it needs the library alone, so it measures older commits."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import cmixup.sampling.sparse as sparse_rows
from cmixup import CMixup, PartnerSampler

EPOCHS, LONGEST = 100, 0.3  # epochs of a training; seconds that a way may take to be called again
BUILT = 1 << 26  # pairs of the set-up of "sparse" that are measured; it takes as long for all others


def make_labels(law: str, n: int, d: int) -> np.ndarray:
    """Return labels (n, d) float64 of a law: normal, clustered, heavy (Student's t, 2 degrees) or duplicates."""
    rng = np.random.default_rng(0)
    if law == "clustered":
        return rng.normal(size=(12, d))[rng.integers(12, size=n)] * 3 + 0.1 * rng.normal(size=(n, d))
    if law == "heavy":
        return rng.standard_t(2, size=(n, d))
    return np.round(rng.normal(size=(n, d)), 1 if law == "duplicates" else 12)


class FirstRows(sparse_rows.SparseRows):
    """Builds the first rows alone, and says how long all would have taken more than these."""

    left, rows = 0.0, 0

    def __init__(self, labels: Any, kernel: Any, memory_budget: int) -> None:
        n = len(labels)
        own = min(n, BUILT // n)
        with patch.object(sparse_rows, "range", lambda start, _, step: range(start, own, step), create=True):
            _, taken = clocked_call(partial(super().__init__, labels, kernel, memory_budget))
        FirstRows.left, FirstRows.rows = taken * (n / own - 1), own


def run_sampler(case: dict[str, Any]) -> dict[str, Any]:
    """Measure a sampler: CPU seconds of its set-up and of `EPOCHS` epochs, of which some rows are drawn."""
    labels = make_labels(case["law"], case["n"], case["d"])
    bandwidth = case["bandwidth"] * float(labels.std())
    way = partial(PartnerSampler, labels, bandwidth, method=case["method"])
    PartnerSampler(labels[:64], bandwidth)
    with patch.object(sparse_rows, "SparseRows", FirstRows):
        sampler, setup = clocked_call(way)
        if setup < LONGEST:
            setup = min(setup, *(clocked_call(way)[1] for _ in range(3)))
    rng = np.random.default_rng(1)
    rows = rng.permutation(case["n"])
    if sampler.method == "sparse":
        setup, rows = setup + FirstRows.left, rows[rows < FirstRows.rows]
    count = min(len(rows), 64)
    while True:  # more rows, until they take long enough to be measured
        _, taken = clocked_call(partial(sampler.draw, rows[:count], rng))
        if taken > LONGEST or count == len(rows):
            break
        count = min(len(rows), count * 4)
    if taken < LONGEST:
        taken = min(taken, *(clocked_call(partial(sampler.draw, rows[:count], rng))[1] for _ in range(3)))
    return {"used": sampler.method, "setup": setup, "seconds": setup + EPOCHS * taken * case["n"] / count}


def run_batch(case: dict[str, Any]) -> dict[str, Any]:
    """Measure a call of `CMixup`, or the dense form in PyTorch: B x B weights, and a multinomial draw for every row."""
    rng = torch.Generator().manual_seed(0)
    y, x = torch.randn(case["n"], case["d"], generator=rng), torch.randn(case["n"], 8, generator=rng)
    mixing = CMixup(bandwidth="auto", seed=0)
    mixing(x, y)
    s = float(mixing.bandwidth or 1.0)

    def dense() -> Any:
        weights = torch.exp(-torch.cdist(y, y).square() / (2 * s * s))
        j = torch.multinomial(weights, 1, generator=rng)[:, 0]
        lam = torch.from_numpy(np.random.default_rng(0).beta(2, 2, (len(y), 1))).float()
        return lam * x + (1 - lam) * x[j], lam * y + (1 - lam) * y[j]

    way = dense if case["method"] == "dense" else lambda: mixing(x, y)
    taken = [clocked_call(way)[1] for _ in range(3)]
    taken += [clocked_call(way)[1] for _ in range(min(200, int(LONGEST / min(taken))))]
    return {"used": case["method"], "setup": 0.0, "seconds": min(taken)}


def clocked_call(way: Callable[[], Any]) -> tuple[Any, float]:
    """Return what a way returns, and the CPU seconds it took."""
    start = time.process_time()
    made = way()
    return made, time.process_time() - start


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for asked in json.loads(sys.argv[1]):
        way = run_batch if asked["law"] == "batch" else run_sampler
        cases = [{**asked, "method": method} for method in asked["method"]]
        print(json.dumps([{**case, **way(case)} for case in cases]), flush=True)
