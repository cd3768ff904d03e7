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

import numpy as np
from matplotlib.figure import Figure

from scripts.bench.clock import ONE_THREAD, SHORT, put_page, store_figures, store_file
from scripts.bench.sampling_case import FEATURES, ORIGINAL
from scripts.config.arguments import Args
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv, to_csv
from scripts.records.register import draws
from scripts.records.tables import markdown_rows
from scripts.report.palette import BLUE, COLOURS, GREEN, GREY

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
    """Measure all cases and write the report."""
    rows = []
    for case in list_cases(1000 if given.switch("short") else 10**7, given.switch("huge")):
        print(f"{case['case']}: {case.get('method', 'auto')}", file=sys.stderr)
        rows.append(in_fresh_process(case))
        print(f"    {rows[-1]}", file=sys.stderr)
    store_file(given, "sampling.csv", as_csv(rows))
    put_page(given, "sampling", "Partner sampling: speed and memory", report_page(rows))
    if not given.switch("short"):
        store_figures(published_figures())


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
    command = [sys.executable, "-m", "scripts.bench.sampling_case", json.dumps(case)]
    done = subprocess.run(command, env={**os.environ, **ONE_THREAD}, stdout=subprocess.PIPE, check=True, text=True)
    return {**case, **json.loads(done.stdout)}


def as_csv(rows: list[dict[str, Any]]) -> str:
    """Return all measurements, one line a case."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    return to_csv([{k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows], columns)


def report_page(rows: list[dict[str, Any]]) -> list[str | list[str]]:
    """Return the report: how it was measured, all cases, and the figures that compare with the original's way."""
    body = [[r["case"], r["used"], *(f"{r[key]:.3g}" for key in SHOWN)] for r in rows]
    about = (
        "Each case in a fresh process with one thread. Times are medians of repeated calls (set-ups above 2 s: one "
        "call). Memory is resident memory beside the labels: peak in set-up, and with an epoch's N int64 partners. "
        "Small tables reuse memory that the process had freed, so that a peak can read below what is held. The "
        "15,591 x 321 labels are made up (a few rhythms and noise). Every number, and bandwidths: `sampling.csv`. "
        "`make bench-sampling` measures again."
    )
    return [
        about,
        markdown_rows(["case", "method", *SHOWN.values()], body),
        "![growth with N](sampling.png)",
        "![label and feature distance](sampling_distance.png)",
    ]


def sampling_figures(rows: list[dict[str, Any]]) -> dict[str, Figure]:
    """Return the figures of measurements, also of those that were read from the CSV, by the names of their files."""
    return {"sampling.png": plot_growth(rows), "sampling_distance.png": plot_distance(rows)}


@draws("results/benchmarks/sampling.csv")
def published_figures() -> dict[str, Figure]:
    """Return the figures of the published measurements, by their paths below results/."""
    found = sampling_figures(read_csv(RESULTS / "benchmarks" / "sampling.csv"))
    return {f"benchmarks/{name}": figure for name, figure in found.items()}


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


def plot_distance(rows: list[dict[str, Any]]) -> Figure:
    """Draw the cost of the first epoch (set-up and draws) on labels and on features over N, log-log."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.subplots()
    for curve, label, colour in (
        ("label, cells", "label distance, d = 1, cells", COLOURS["cmixup"]),
        ("label, rows", "label distance, d = 1, all N x N rows", BLUE),
        ("features, rows", f"feature distance, d = {FEATURES}, all N x N rows", GREEN),
    ):
        n, setup = curve_of(rows, curve, "setup_s")
        axes.loglog(n, setup + curve_of(rows, curve, "epoch_s")[1], "o-", color=colour, label=label)
    axes.set(xlabel="N, rows of the table", ylabel="set-up and one epoch of draws, seconds")
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def curve_of(rows: list[dict[str, Any]], curve: str, key: str) -> tuple[Any, Any]:
    """Return N and the values of one curve."""
    points = [(r["n"], r[key]) for r in rows if r.get("curve") == curve]
    return tuple(np.array(points, dtype=float).T)
