"""Benchmark partner sampling: set-up, draws and memory over N, against the original's way.

Every case has a fresh process with one thread. Airfoil and Exchange-Rate are read from $CMIXUP_MIRROR and left out
without it. sampling.md, sampling.csv, sampling.png and sampling_distance.png go into results/benchmarks.

Example: python -m scripts.bench sampling huge=1
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from scripts.bench.clock import SHORT, put, store
from scripts.bench.sampling_case import FEATURES, ORIGINAL
from scripts.bench.sampling_report import as_csv, figures, report
from scripts.driver.words import Words
from scripts.records.experiment import RESULTS
from scripts.report.figures import write_figures

KEYS = SHORT | {"huge": "1 measures N = 1e8, too, which takes about 3 GB; default 0"}


def run(given: Words) -> None:
    """Measure all cases and write the report."""
    rows = []
    for case in list_cases(1000 if given.switch("short") else 10**7, given.switch("huge")):
        print(f"{case['case']}: {case.get('method', 'auto')}", file=sys.stderr)
        rows.append(in_fresh_process(case))
        print(f"    {rows[-1]}", file=sys.stderr)
    store(given, "sampling.csv", as_csv(rows))
    put(given, "sampling", "Partner sampling: speed and memory", report(rows))
    if not given.switch("short"):
        write_figures(figures(rows), RESULTS / "benchmarks")


def list_cases(largest: int, huge: bool) -> list[dict[str, Any]]:
    """Return the cases; `kind` says how the labels of one are made."""
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
    if largest > 10**5:
        wide = {"case": "15,591 x 321", "kind": "electricity"}
        cases += [wide | {"method": m} for m in ("auto", "cdf", "sparse")]
        cases += [wide | {"case": "15,591 x 321, 1/7 of the memory", "method": "sparse", "budget": 139 << 20}]
    for n in [n for n in (1000, 2000, 4000, 8000) if n <= largest]:
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
    command = [sys.executable, "-m", "scripts.bench.sampling_case", json.dumps(case)]
    done = subprocess.run(command, env={**os.environ, **one}, stdout=subprocess.PIPE, check=True, text=True)
    return {**case, **json.loads(done.stdout)}
