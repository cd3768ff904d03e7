"""Benchmark partner sampling: set-up, draws and memory over N, against the original's way.

Every case has a fresh process with one thread. Airfoil and Exchange-Rate are read from $CMIXUP_MIRROR and left out
without it.

Example: python -m scripts.bench sampling
"""

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np

from cmixup import PartnerSampler
from cmixup.sampling.choice import DEFAULT_BUDGET_BYTES
from datasets.airfoil import Airfoil
from datasets.exchange_rate import ExchangeRate
from scripts.bench.clock import SHORT, SPEED, store_rows, stored_rows, with_machine
from scripts.config.arguments import Args
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table

ORIGINAL = "original (one KernelDensity a row)"
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
KEYS = SHORT
COLUMNS = {"setup_s": "set-up, s", "epoch_s": "epoch, s", "ns_per_draw": "ns a draw", "peak_mb": "peak, MB"}


def run(args: Args) -> None:
    """Measure all cases, the largest in about 3 GB; each has a process of its own, whose memory is measured."""
    rows = []
    os.environ |= ONE_THREAD
    for case in list_cases(1000 if args.switch("short") else 10**8):
        print(f"{case['case']}: {case.get('method', 'auto')}", file=sys.stderr)
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            rows.append({**case, **process.submit(run_case, case).result()})
    columns = list(dict.fromkeys(key for row in rows for key in row))
    rounded = [{k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows]
    store_rows(args, "sampling", rounded, columns)


def list_cases(largest: int) -> list[dict[str, Any]]:
    """Return the cases of at most `largest` rows; `kind` says how the labels of one are made."""
    cases: list[dict[str, Any]] = [
        *({"case": f"normal, N = 1e{e}", "kind": "normal", "n": 10**e} for e in range(3, 9)),
        *({"case": f"normal, N = {n}", "kind": "normal", "n": n, "method": ORIGINAL} for n in (1000, 10_000)),
    ]
    if os.environ.get("CMIXUP_MIRROR"):
        cases += [{"case": "Airfoil", "kind": "airfoil"}, {"case": "Exchange-Rate", "kind": "exchange_rate"}]
    wide = {"case": "15,591 x 321", "kind": "electricity", "n": 15_591, "method": "sparse"}
    cases += [wide, wide | {"case": "15,591 x 321, 1/7 of the memory", "budget": 139 << 20}]
    return [case for case in cases if case.get("n", 0) <= largest]


class Original:
    """The released code's way: a KernelDensity fit and a row of probabilities a label, `choice` for each draw."""

    method = "original"

    def __init__(self, labels: Any, bandwidth: float) -> None:
        from sklearn.neighbors import KernelDensity

        column = labels[:, None]
        densities = (KernelDensity(bandwidth=bandwidth).fit(column[i : i + 1]) for i in range(len(labels)))
        table = np.array([np.exp(density.score_samples(column)) for density in densities])
        self.rows = table / table.sum(axis=1, keepdims=True)

    def epoch(self, rng: np.random.Generator) -> Any:
        """Return a partner for every row."""
        return np.array([rng.choice(len(row), p=row) for row in self.rows])


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    """Measure one case in this process: first memory, on a cold start, then times."""
    labels, bandwidth = make_labels(case["kind"], case.get("n", 0))
    options = {"method": case.get("method", "auto"), "memory_budget": case.get("budget", DEFAULT_BUDGET_BYTES)}
    make_sampler: Any = Original if case.get("method") == ORIGINAL else partial(PartnerSampler, **options)
    rng, n = np.random.default_rng(1), len(labels)
    make_sampler(labels[:64], bandwidth).epoch(rng)  # load everything before memory is counted
    base = peak_bytes(reset=True)
    start = time.perf_counter()
    sampler = make_sampler(labels, bandwidth)
    setup = time.perf_counter() - start
    sampler.epoch(rng)
    peak = peak_bytes() - base
    epoch = call_seconds(lambda: sampler.epoch(rng))
    if setup < 2:
        setup = call_seconds(lambda: make_sampler(labels, bandwidth))
    return {
        "n": n, "d": 1 if labels.ndim == 1 else labels.shape[1], "bandwidth": bandwidth, "used": sampler.method,
        "setup_s": setup, "epoch_s": epoch, "ns_per_draw": epoch / n * 1e9, "peak_mb": peak / 1e6,
    }  # fmt: skip


def make_labels(kind: str, n: int) -> tuple[Any, float]:
    """Return labels and bandwidth of a case."""
    rng = np.random.default_rng(0)
    if kind == "normal":
        return rng.normal(size=n), 0.25  # Airfoil's bandwidth is 0.25 standard deviations
    if kind == "electricity":  # a few daily and weekly rhythms and noise, as hourly loads have; made up
        rhythms = np.cumsum(rng.normal(size=(15_591, 6)), axis=0) / 60 + np.sin(np.arange(15_591)[:, None] / 24)
        return (rhythms @ rng.normal(size=(6, 321)) + rng.normal(size=(15_591, 321))) / 8, 0.5
    if kind == "airfoil":
        return Airfoil("all").load(0).train.y[:, 0].double().numpy(), 1.75
    return ExchangeRate().load(0).train.y.double().numpy(), 0.05


def call_seconds(action: Callable[[], object]) -> float:
    """Return the seconds of a call, the median of three repeats of a fifth of a second or a call at least."""
    timer = Timer(action)
    number, _ = timer.autorange()
    return float(np.median(timer.repeat(3, number))) / number


def peak_bytes(*, reset: bool = False) -> int:
    """Return the peak of resident memory since it was last `reset` to what is resident (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


@fills
def sampling_table() -> dict[str, dict[str, str]]:
    """Return the table of cases."""
    body = [[r["case"], r["used"], *(f"{float(r[key]):.3g}" for key in COLUMNS)] for r in stored_rows("sampling")]
    return {SPEED: {"sampling": with_machine(markdown_table(["case", "method", *COLUMNS.values()], body), "sampling")}}
