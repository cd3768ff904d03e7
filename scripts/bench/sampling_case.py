"""One case of the sampling benchmark in a process of its own, which imports little: its memory is measured."""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

ORIGINAL = "original (one KernelDensity a row)"
FEATURES = 168 * 8  # an Exchange-Rate input window


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """Measure one case in this process: first memory, on a cold start, then times (medians of repeats)."""
    labels, bandwidth = make_labels(case["kind"], case.get("n", 0))
    if case.get("method") == ORIGINAL:
        return run_original(labels, bandwidth)
    from cmixup import PartnerSampler
    from cmixup.sampling.choice import DEFAULT_BUDGET_BYTES

    rng = np.random.default_rng(1)
    asked = {"method": case.get("method", "auto"), "memory_budget": case.get("budget", DEFAULT_BUDGET_BYTES)}
    PartnerSampler(labels[:64], bandwidth).epoch(rng)  # load everything before memory is counted
    base = reset_peak()
    start = time.perf_counter()
    sampler = PartnerSampler(labels, bandwidth, **asked)
    setups = [time.perf_counter() - start]
    peak_setup = peak_bytes() - base
    sampler.epoch(rng)
    peak = peak_bytes() - base
    epochs = repeated(lambda: sampler.epoch(rng))
    if setups[0] < 2:
        setups = repeated(lambda: PartnerSampler(labels, bandwidth, **asked))
    epoch = float(np.median(epochs))
    shape = {"n": len(labels), "d": 1 if labels.ndim == 1 else labels.shape[1], "bandwidth": bandwidth}
    times = {"used": sampler.method, "setup_s": float(np.median(setups)), **per_draw(epoch, len(labels))}
    memory = {"state_mb": sampler.nbytes / 1e6, "peak_setup_mb": peak_setup / 1e6, "peak_mb": peak / 1e6}
    return shape | times | memory


def per_draw(epoch: float, n: int) -> dict[str, float]:
    """Return what the seconds of an epoch of `n` draws say."""
    return {"epoch_s": epoch, "ns_per_draw": epoch / n * 1e9, "draws_per_s": n / epoch}


def run_original(labels: Any, bandwidth: float) -> dict[str, Any]:
    """Measure the released code's way: a KernelDensity fit and a row for each example, a `choice` for each draw."""
    from sklearn.neighbors import KernelDensity

    column, n = labels[:, None], len(labels)
    KernelDensity(bandwidth=bandwidth).fit(column[:1]).score_samples(column[:10])
    base = reset_peak()
    start = time.perf_counter()
    table = []
    for i in range(n):
        density = KernelDensity(kernel="gaussian", bandwidth=bandwidth).fit(column[i : i + 1])
        row = np.exp(density.score_samples(column))
        table.append(row / row.sum())
    rows = np.array(table)
    setup = time.perf_counter() - start
    peak = peak_bytes() - base
    draws = min(n, 2000)
    rng = np.random.default_rng(0)
    start = time.perf_counter()
    for i in range(draws):
        rng.choice(n, p=rows[i])
    epoch = (time.perf_counter() - start) / draws * n
    memory = {"state_mb": rows.nbytes / 1e6, "peak_setup_mb": peak / 1e6, "peak_mb": peak / 1e6}
    times = {"used": "original", "setup_s": setup, **per_draw(epoch, n)}
    return {"n": n, "d": 1, "bandwidth": bandwidth} | times | memory


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
    mirror = Path(os.environ["CMIXUP_MIRROR"])
    if kind == "airfoil":
        pressure = np.loadtxt(mirror / "airfoil" / "airfoil_self_noise.dat")[:, -1]
        return rng.permutation(pressure)[:1003].copy(), 1.75
    with gzip.open(mirror / "exchange_rate" / "exchange_rate.txt.gz") as file:
        rates = np.loadtxt(file, delimiter=",")
    return (rates / np.abs(rates).max(axis=0))[179 : 179 + 4373].copy(), 0.05


def repeated(action: Any) -> list[float]:
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
    return status_bytes("VmRSS")


def peak_bytes() -> int:
    """Return the peak of resident memory since `reset_peak`."""
    return status_bytes("VmHWM")


def status_bytes(field: str) -> int:
    """Return a field of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


if __name__ == "__main__":
    print(json.dumps(run_case(json.loads(sys.argv[1]))))
