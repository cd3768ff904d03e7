"""Benchmark partner sampling: set-up, draws and memory over N, against the original's way.

    python -m scripts.bench.sampling            # up to N = 1e7
    python -m scripts.bench.sampling --huge     # and N = 1e8 (about 3 GB)

Every case runs in a fresh process with one thread. Writes sampling.md, sampling.csv, sampling.png and
sampling_distance.png into results/benchmarks. Airfoil and Exchange-Rate are read from $CMIXUP_MIRROR and left
out without it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from scripts.bench.sampling_report import FEATURES, ORIGINAL, as_csv, as_markdown, figures


def main() -> None:
    """Run all cases and write the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--largest", type=float, default=1e7, help="largest N of the one-dimensional curve")
    parser.add_argument("--huge", action="store_true", help="also N = 1e8")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(run_case(json.loads(options.worker))))
        return
    from scripts.report.figure_files import write_figures  # not in the workers, whose memory is measured

    cases = list_cases(int(options.largest), options.huge)
    rows = []
    for i, case in enumerate(cases):
        print(f"[{i + 1}/{len(cases)}] {case['case']}: {case.get('method', 'auto')}", file=sys.stderr)
        rows.append(in_fresh_process(case))
        print(f"    {rows[-1]}", file=sys.stderr)
    options.out.mkdir(parents=True, exist_ok=True)
    write(options.out / "sampling.csv", as_csv(rows))
    write(options.out / "sampling.md", as_markdown(rows).encode())
    write_figures(figures(rows), options.out)


def list_cases(largest: int, huge: bool) -> list[dict[str, Any]]:
    """What to measure; `kind` says how labels are made."""
    sizes = [n for e in range(3, 8) for n in (10**e, 3 * 10**e) if n <= largest]
    cases = [
        {"case": f"normal, N = {n:.0e}".replace("e+0", "e"), "kind": "normal", "n": n, "curve": "cells"}
        for n in sizes + [10**8] * huge
    ]
    cases += [{"case": "float32, N = 1e7", "kind": "float32", "n": n} for n in sizes if n == 10**7]
    cases += [
        {"case": f"normal, N = {n}", "kind": "normal", "n": n, "method": ORIGINAL, "curve": ORIGINAL}
        for n in (300, 1000, 3000, 10_000)
        if n <= largest
    ]
    if "CMIXUP_MIRROR" in os.environ:
        cases += [{"case": "Airfoil", "kind": "airfoil"}, {"case": "Exchange-Rate", "kind": "exchange_rate"}]
    cases += [{"case": "15,591 x 321", "kind": "electricity", "method": m} for m in ("auto", "cdf", "sparse")]
    cases += [
        {
            "case": "15,591 x 321, 1/7 of the memory",
            "kind": "electricity",
            "method": "sparse",
            "budget": 139 << 20,
        }
    ]
    for n in (1000, 2000, 4000, 8000):
        cases += [
            {"case": f"{name}, N = {n}", "kind": kind, "n": n, "method": method, "curve": curve}
            for name, kind, method, curve in (
                ("label distance, d = 1", "normal", "auto", "label, cells"),
                ("label distance, d = 1", "normal", "cdf", "label, rows"),
                (f"feature distance, d = {FEATURES}", "features", "cdf", "features, rows"),
            )
        ]
    return cases


def in_fresh_process(case: dict[str, Any]) -> dict[str, Any]:
    """Run one case in a process of its own, with one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "scripts.bench.sampling", "--worker", json.dumps(case)]
    done = subprocess.run(command, env={**os.environ, **one}, stdout=subprocess.PIPE, check=True, text=True)
    return {**case, **json.loads(done.stdout)}


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
    return {
        "n": len(labels),
        "d": 1 if labels.ndim == 1 else labels.shape[1],
        "bandwidth": bandwidth,
        "used": sampler.method,
        "setup_s": float(np.median(setups)),
        "epoch_s": epoch,
        "ns_per_draw": epoch / len(labels) * 1e9,
        "draws_per_s": len(labels) / epoch,
        "state_mb": sampler.nbytes / 1e6,
        "peak_setup_mb": peak_setup / 1e6,
        "peak_mb": peak / 1e6,
    }


def run_original(labels: Any, bandwidth: float) -> dict[str, Any]:
    """The released code's way: a KernelDensity fit and a row for each example, a `choice` for each draw."""
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
    seconds = (time.perf_counter() - start) / draws
    return {
        "n": n,
        "d": 1,
        "bandwidth": bandwidth,
        "used": "original",
        "setup_s": setup,
        "epoch_s": seconds * n,
        "ns_per_draw": seconds * 1e9,
        "draws_per_s": 1 / seconds,
        "state_mb": rows.nbytes / 1e6,
        "peak_setup_mb": peak / 1e6,
        "peak_mb": peak / 1e6,
    }


def make_labels(kind: str, n: int) -> tuple[Any, float]:
    """Labels and bandwidth of a case."""
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
    """Seconds of each call: at least 3 calls, more while they take less than half a second in all."""
    seconds: list[float] = []
    while len(seconds) < 3 or (sum(seconds) < 0.5 and len(seconds) < 200):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return seconds


def reset_peak() -> int:
    """Forget the peak of resident memory (Linux); returns the bytes resident now."""
    Path("/proc/self/clear_refs").write_text("5")
    return status_bytes("VmRSS")


def peak_bytes() -> int:
    """Peak of resident memory since `reset_peak`."""
    return status_bytes("VmHWM")


def status_bytes(field: str) -> int:
    """A field of /proc/self/status in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all."""
    temporary = path.with_suffix(path.suffix + ".tmp")
    temporary.write_bytes(content)
    temporary.replace(path)


if __name__ == "__main__":
    main()
