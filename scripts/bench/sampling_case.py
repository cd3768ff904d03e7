"""One case of the sampling benchmark, in a process of its own, whose memory is measured."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cmixup import PartnerSampler
from cmixup.sampling.choice import DEFAULT_BUDGET_BYTES
from datasets.airfoil import Airfoil
from datasets.exchange_rate import ExchangeRate

ORIGINAL = "original (one KernelDensity a row)"
FEATURES = 168 * 8  # an Exchange-Rate input window


class Original:
    """The released code's way: a KernelDensity fit and a row of probabilities a label, `choice` for each draw."""

    method = "original"

    def __init__(self, labels: Any, bandwidth: float) -> None:
        from sklearn.neighbors import KernelDensity

        column, table = labels[:, None], []
        for i in range(len(labels)):
            density = KernelDensity(kernel="gaussian", bandwidth=bandwidth).fit(column[i : i + 1])
            row = np.exp(density.score_samples(column))
            table.append(row / row.sum())
        self.rows = np.array(table)
        self.nbytes = self.rows.nbytes

    def epoch(self, rng: np.random.Generator) -> Any:
        """Return a partner for every row."""
        return np.array([rng.choice(len(row), p=row) for row in self.rows])


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """Measure one case in this process: first memory, on a cold start, then times (medians of repeats)."""
    labels, bandwidth = make_labels(case["kind"], case.get("n", 0))
    asked = {"method": case.get("method", "auto"), "memory_budget": case.get("budget", DEFAULT_BUDGET_BYTES)}
    way: Any = Original if case.get("method") == ORIGINAL else partial(PartnerSampler, **asked)
    rng, n = np.random.default_rng(1), len(labels)
    way(labels[:64], bandwidth).epoch(rng)  # load everything before memory is counted
    base = reset_peak()
    start = time.perf_counter()
    sampler = way(labels, bandwidth)
    setups = [time.perf_counter() - start]
    peak_setup = peak_bytes() - base
    sampler.epoch(rng)
    peak = peak_bytes() - base
    epoch = float(np.median(repeated_seconds(lambda: sampler.epoch(rng))))
    if setups[0] < 2:
        setups = repeated_seconds(lambda: way(labels, bandwidth))
    return {
        "n": n, "d": 1 if labels.ndim == 1 else labels.shape[1], "bandwidth": bandwidth, "used": sampler.method,
        "setup_s": float(np.median(setups)), "epoch_s": epoch, "ns_per_draw": epoch / n * 1e9,
        "draws_per_s": n / epoch, "state_mb": sampler.nbytes / 1e6, "peak_setup_mb": peak_setup / 1e6,
        "peak_mb": peak / 1e6,
    }  # fmt: skip


def make_labels(kind: str, n: int) -> tuple[Any, float]:
    """Return labels and bandwidth of a case."""
    rng = np.random.default_rng(0)
    if kind == "normal":
        return rng.normal(size=n), 0.25  # Airfoil's bandwidth is 0.25 standard deviations
    if kind == "float32":
        return rng.standard_normal(n, dtype=np.float32), 0.25
    if kind == "features":
        return rng.normal(size=(n, FEATURES)) @ np.diag(1 / np.arange(1.0, FEATURES + 1)), 0.3
    if kind == "electricity":  # a few daily and weekly rhythms and noise, as hourly loads have; made up
        rhythms = np.cumsum(rng.normal(size=(15_591, 6)), axis=0) / 60 + np.sin(np.arange(15_591)[:, None] / 24)
        return (rhythms @ rng.normal(size=(6, 321)) + rng.normal(size=(15_591, 321))) / 8, 0.5
    if kind == "airfoil":
        return Airfoil("all").load(0).train.y[:, 0].double().numpy(), 1.75
    return ExchangeRate().load(0).train.y.double().numpy(), 0.05


def repeated_seconds(action: Any) -> list[float]:
    """Return the seconds of each call: at least 3 calls, more while they take less than half a second in all."""
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < 0.5 and len(seconds) < 200):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return seconds


def reset_peak() -> int:
    """Forget the peak of resident memory (Linux), and return the bytes that are resident now."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_bytes()


def peak_bytes() -> int:
    """Return the peak of resident memory since `reset_peak`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    print(json.dumps(run_case(json.loads(sys.argv[1]))))
