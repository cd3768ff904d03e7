"""Benchmark partner sampling: set-up, draws and memory over N, against the original's way.

Every case has a fresh process with one thread. Airfoil and Exchange-Rate are read from $CMIXUP_MIRROR and left out
without it.

Example: python -m scripts.bench sampling huge=1
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scripts.bench.clock import PAGE, SHORT, store_rows, stored_rows, with_machine
from scripts.bench.sampling_case import FEATURES, ORIGINAL
from scripts.config.arguments import Args
from scripts.report.figures import COLOURS, GREY
from scripts.report.register import draws, fills
from scripts.report.result_table import markdown_rows

ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
KEYS = SHORT | {"huge": "1 measures N = 1e8, too, which takes about 3 GB; default 0"}
SHOWN = {
    "setup_s": "set-up, s",
    "epoch_s": "epoch, s",
    "ns_per_draw": "ns a draw",
    "state_mb": "held, MB",
    "peak_setup_mb": "peak in set-up, MB",
    "peak_mb": "peak, MB",
}


def run(given: Args) -> None:
    """Measure all cases."""
    rows = []
    for case in list_cases(1000 if given.switch("short") else 10**7, given.switch("huge")):
        print(f"{case['case']}: {case.get('method', 'auto')}", file=sys.stderr)
        rows.append(in_fresh_process(case))
    columns = list(dict.fromkeys(key for row in rows for key in row))
    rounded = [{k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    store_rows(given, "sampling", rounded, columns)


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
            {"case": f"{name}, N = {n}", "kind": kind, "n": n, "method": method}
            for name, kind, method in (
                ("label distance, d = 1", "normal", "auto"),
                ("label distance, d = 1", "normal", "cdf"),
                (f"feature distance, d = {FEATURES}", "features", "cdf"),
            )
        ]
    return cases


def in_fresh_process(case: dict[str, Any]) -> dict[str, Any]:
    """Run one case in a process of its own, with one thread."""
    command = [sys.executable, "-m", "scripts.bench.sampling_case", json.dumps(case)]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, check=True, text=True)
    return {**case, **json.loads(done.stdout)}


@fills
def sampling_table() -> dict[str, dict[str, str]]:
    """Return the table of all cases."""
    body = [[r["case"], r["used"], *(f"{float(r[key]):.3g}" for key in SHOWN)] for r in stored_rows("sampling")]
    return {PAGE: {"sampling": with_machine(markdown_rows(["case", "method", *SHOWN.values()], body), "sampling")}}


@draws
def sampling_figure() -> dict[str, Figure]:
    """Return the figure of growth with N, by its path below results/."""
    return {"benchmarks/sampling.png": plot_growth(stored_rows("sampling"))}


def plot_growth(rows: list[dict[str, Any]]) -> Figure:
    """Draw set-up and draw time over N, log-log, ours and the original's (dashed where extrapolated)."""
    figure = Figure(figsize=(10, 4), layout="constrained")
    for axes, key, power, label in zip(
        figure.subplots(1, 2), ("setup_s", "ns_per_draw"), (2, 1), ("set-up, seconds", "a draw, nanoseconds"),
        strict=True,
    ):  # fmt: skip
        ends = []
        for curve, colour in (("cells", COLOURS["cmixup"]), (ORIGINAL, GREY)):
            n, value = curve_of(rows, curve, key)
            axes.loglog(n, value, "o-", color=colour, label="ours (cells)" if curve == "cells" else curve)
            ends.append(f"{value[-1]:.3g} at N = {n[-1]:.0e}".replace("e+0", "e"))
        far = np.array([n[-1], max(float(r["n"]) for r in rows)])
        axes.loglog(far, value[-1] * (far / n[-1]) ** power, "--", color=GREY, label="original, extrapolated")
        axes.set(xlabel="N, rows of the table", ylabel=label)
        axes.set_title(f"ours {ends[0]}; original {ends[1]}", fontsize=10)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
    return figure


def curve_of(rows: list[dict[str, Any]], curve: str, key: str) -> tuple[Any, Any]:
    """Return N and the values of one curve."""
    points = [(r["n"], r[key]) for r in rows if r.get("curve") == curve]
    return tuple(np.array(points, dtype=float).T)
