"""The choice of the sampling algorithm against every one of them, and `CMixup` in a batch against the dense form.

One thread; CPU seconds. The cells of the grid that have N and outputs in common share a process. `before=` names a
checkout of an older commit, which is measured in turn with this one: git worktree add ../before COMMIT. Cells of the
grid that partners.csv in results/benchmarks has are not measured again; remove it to measure all.

Example: python -m scripts.bench partners before=../before
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from cmixup.errors import InputError
from scripts.bench import partners_case
from scripts.bench.clock import ONE_THREAD, SHORT, put_page, store_file
from scripts.config.arguments import Args
from scripts.machine.provenance import head_commit
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv, to_csv
from scripts.records.tables import markdown_rows

KEYS = SHORT | {
    "before": "a checkout of an older commit to compare with; default none",
    "sizes": "N of the grid; default all",
    "turns": "of the comparison; default 3",
    "note": "a sentence on the machine, which the page prints; default none",
}
SIZES, OUTPUTS, BANDWIDTHS = (1000, 10_000, 100_000, 1_000_000), (1, 2, 5, 8), (0.05, 0.42, 3.0)
LAWS = ("normal", "clustered", "heavy", "duplicates")
TABLES = 16_000  # rows up to which a table of all pairs fits the budget of a sampler
KEPT = RESULTS / "benchmarks" / "partners.csv"
COMPARED = [(2000, 2, 0.42), (20_000, 2, 0.42), (100_000, 2, 0.42), (10_000, 5, 0.67)]
BATCHES = [(n, d) for d in (1, 8) for n in (64, 256, 511, 1024, 4096)]


def run(given: Args) -> None:
    """Measure the grid and the comparison, and write the page."""
    short, before = given.switch("short"), given.get("before", "")
    if before and not (Path(before) / "cmixup").is_dir():
        raise InputError(f"before must be a checkout of this repository, got {before!r}")
    sizes = [int(float(n)) for n in given.get("sizes", "").split(",") if n] or list(SIZES[:1] if short else SIZES)
    kept = [] if short or not KEPT.is_file() else [row for row in read_csv(KEPT) if row["of"] == "grid"]
    numbers = {"n": int, "d": int, "bandwidth": float, "seconds": float}
    grid: list[dict[str, Any]] = [
        {**row, **{key: kind(str(row[key])) for key, kind in numbers.items()}} for row in kept
    ]
    known = {(row["n"], row["d"], row["bandwidth"], row["law"]) for row in grid}
    left = [cell for cell in grid_of(sizes) if cell not in known][: 2 if short else None]
    for (n, d), cells in itertools.groupby(left, key=lambda cell: cell[:2]):
        for rows in in_process([case_of(n, d, *cell[2:]) for cell in cells], Path()):
            grid += [{"of": "grid", **row} for row in rows]
            print(f"{describe(rows[0])}: {[(r['used'], round(r['seconds'], 3)) for r in rows]}", file=sys.stderr)
        store_file(given, KEPT.name, as_csv(grid))
    turns = 1 if short else given.count("turns", 3)
    compared = compare_commits(Path(before) if before else None, BATCHES[:1] if short else BATCHES, turns, short)
    store_file(given, KEPT.name, as_csv([*grid, *compared]))
    page = report_page(grid, compared, given.get("note", ""))
    put_page(given, "partners", "Partners: the choice of the algorithm, and batches", page)


def grid_of(sizes: Sequence[int]) -> Iterator[tuple[int, int, float, str]]:
    """Yield N, outputs, bandwidth and law of the cells; of large tables the laws that differ most."""
    for n in sizes:
        laws = LAWS if n <= TABLES else LAWS[:2] if n < SIZES[-1] else LAWS[:1]
        yield from itertools.product([n], OUTPUTS, BANDWIDTHS, laws)


def case_of(n: int, d: int, bandwidth: float, law: str) -> dict[str, Any]:
    """Return the case of a cell: its labels, and every algorithm that they allow."""
    table = "cdf" if n <= TABLES else "sparse"
    methods = ["auto", "uniform", "kd", *([table] if d > 1 else ["cells"]), "rows"]
    return {"law": law, "n": n, "d": d, "bandwidth": bandwidth, "method": methods}


def describe(row: Mapping[str, Any]) -> str:
    """Return the labels of a cell in words."""
    return f"{row['law']} {row['n']:,} x {row['d']}, {row['bandwidth']}"


def compare_commits(
    before: Path | None, batches: Sequence[tuple[int, int]], count: int, short: bool
) -> list[dict[str, Any]]:
    """Return the medians of cases over so many turns, of this commit ("now") and of another, in turn."""
    samplers = [{"law": "normal", "n": n, "d": d, "bandwidth": s, "method": ["auto"]} for n, d, s in COMPARED]
    cases = samplers[: 1 if short else None]
    cases += [{"law": "batch", "n": n, "d": d, "bandwidth": "auto", "method": ["cmixup", "dense"]} for n, d in batches]
    turns: dict[tuple[int, str, str], list[dict[str, Any]]] = {}
    for _ in range(count):
        for of, folder in (*([(head_commit(before)[:8], before)] if before else []), ("now", Path())):
            for k, rows in enumerate(in_process(cases, folder)):
                print(f"{of}: {describe(rows[0])}: {[(r['used'], r['seconds']) for r in rows]}", file=sys.stderr)
                for row in rows:
                    turns.setdefault((k, of, row["method"]), []).append(row)
    own = sorted(turns.items(), key=lambda pair: pair[0][0])
    return [{"of": of, **rows[0], "seconds": median(r["seconds"] for r in rows)} for (_, of, _), rows in own]


def in_process(cases: Sequence[dict[str, Any]], checkout: Path) -> Iterator[list[dict[str, Any]]]:
    """Yield what each case measures with the library of a checkout, in a process with one thread."""
    # As the Makefile sets them.
    kept = dict.fromkeys(("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"), str(1 << 29))
    command = [sys.executable, partners_case.__file__, json.dumps(cases)]
    environment = {**os.environ, **ONE_THREAD, **kept, "PYTHONPATH": str(checkout.resolve())}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield from map(json.loads, process.stdout)
    if process.returncode:
        raise RuntimeError(f"the process of {cases} ended with {process.returncode}")


def as_csv(rows: Sequence[dict[str, Any]]) -> str:
    """Return all measurements, one line a way and case."""
    columns = ("of", "law", "n", "d", "bandwidth", "method", "used", "seconds")
    return to_csv([{k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows], columns)


def ratios_of(grid: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each cell of the grid: what "auto" took, the best algorithm, and the ratio of their seconds."""
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in grid:
        cells.setdefault((row["n"], row["d"], row["bandwidth"], row["law"]), []).append(row)
    found = []
    for rows in cells.values():
        (auto,) = [row for row in rows if row["method"] == "auto"]
        best = min((row for row in rows if row["method"] != "auto"), key=lambda row: float(row["seconds"]))
        found.append({**auto, "best": best["used"], "ratio": float(auto["seconds"]) / float(best["seconds"])})
    return found


def report_page(
    grid: Sequence[dict[str, Any]], compared: Sequence[dict[str, Any]], note: str = ""
) -> list[str | list[str]]:
    """Return the page: the choice by N, its worst cells, and this commit against the one before."""
    cells = ratios_of(grid)
    by_size = []
    for n in sorted({cell["n"] for cell in cells}):
        mine = sorted(cell["ratio"] for cell in cells if cell["n"] == n)
        by_size.append([f"{n:,}", str(len(mine)), f"{median(mine):.2f}", f"{mine[-1]:.2f}",
                        str(sum(ratio > 2 for ratio in mine))])  # fmt: skip
    worst = sorted((cell for cell in cells if cell["ratio"] > 2), key=lambda cell: -cell["ratio"])
    lines = [[f"{c['law']}, {c['n']:,} x {c['d']}", f"{c['bandwidth']:g}", c["used"], c["best"], f"{c['seconds']:.3g}",
              f"{c['ratio']:.2f}"] for c in worst]  # fmt: skip
    about = (
        f"A training is the set-up of a sampler and {partners_case.EPOCHS} epochs of draws, in CPU seconds of a core; "
        'of large tables some rows are drawn, and `sparse` stores some. `method="auto"` is compared with the best '
        "algorithm that is asked for by name, and pays for its choice. Bandwidths are in standard deviations. Every "
        "number is in `partners.csv`."
    )
    head = ["N", "cells", "median ratio", "worst", "above 2"]
    parts: list[str | list[str]] = [f"{about} {note}".strip(), markdown_rows(head, by_size)]
    if lines:
        parts += ["The cells above 2:",
                  markdown_rows(["labels", "bandwidth", "auto took", "best", "auto, s", "ratio"], lines)]  # fmt: skip
    return [*parts, *comparison_table(compared)]


def comparison_table(compared: Sequence[dict[str, Any]]) -> list[str | list[str]]:
    """Return this commit against the other one and against the dense form."""
    cases: dict[tuple[Any, ...], dict[str, dict[str, Any]]] = {}
    for row in compared:
        way = "dense" if row["method"] == "dense" else str(row["of"])
        cases.setdefault((row["law"], row["n"], row["d"], row["bandwidth"]), {})[way] = row
    rows, others = [], {str(row["of"]) for row in compared} - {"now"}
    for (law, n, d, s), found in cases.items():
        now = float(found["now"]["seconds"])
        before = next((float(found[key]["seconds"]) for key in others if key in found), None)
        dense = float(found["dense"]["seconds"]) if "dense" in found else None
        what = f"`CMixup`, a batch of {n:,} x {d}" if law == "batch" else f"`PartnerSampler`, {n:,} x {d}, {s:g}"
        unit, scale = ("ms", 1e3) if law == "batch" else ("s", 1.0)
        shown = [f"{v * scale:.3g} {unit}" if v is not None else "-" for v in (before, now, dense)]
        shares = [f"{v / now:.1f}" if v is not None else "-" for v in (before, dense)]
        rows.append([what, *shown, *shares])
    turns = f"The commit {', '.join(sorted(others))} (before) and this one in turn. " if others else ""
    about = (
        f"{turns}The dense form computes all B x B weights in PyTorch and draws by `torch.multinomial`. A call of "
        "`CMixup` checks, draws and mixes."
    )
    return [about, markdown_rows(["case", "before", "now", "dense", "before / now", "dense / now"], rows)]
