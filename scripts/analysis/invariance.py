"""Measure what the paper calls learned invariance on the finished runs of Table 3, and draw it.

For every run the mean divergence of its representation between training domains, given the label (`divergence.py`),
goes into results/invariance.csv, and from that results/figures/invariance_<preset>.png is drawn. Rows of other runs
stay as they are.

Example: python -m scripts.analysis invariance preset=paper datasets=crime,skillcraft
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from cmixup.backbone import Backbone
from cmixup.data import RegressionData
from cmixup.saved_run import load_run
from cmixup.training.loader import BatchLoader
from cmixup.training.predict import predict
from scripts.analysis.divergence import COMPONENTS, learned_invariance
from scripts.analysis.runs import KEYS as COMMON
from scripts.analysis.runs import (
    Report,
    dataset_of,
    replace_rows,
    results_of,
    run_folder,
    runs_of,
    stored_rows,
    write_analysis,
)
from scripts.config.arguments import Args
from scripts.driver.devices import pick_device
from scripts.records import names
from scripts.records.experiment import RESULTS, load_experiment
from scripts.records.records import to_csv
from scripts.records.register import draws
from scripts.report.figures import new_subplots
from scripts.report.palette import COLOURS, GREY
from scripts.stats.intervals import summarise_values

CPU = torch.device("cpu")
EXPERIMENT, FILE = "table3", "invariance.csv"
DATASETS = "crime,skillcraft"
KEYS = COMMON | {"datasets": f"of these runs; default {DATASETS}"}
INVARIANCE_COLUMNS = (
    "dataset", "method", "preset", "seed", "split", "domains", "components", "value", "valid_fraction", "pairs", "run",
)  # fmt: skip
ORDER = ("dataset", "preset", "domains", "method")  # of the rows; then by seed
LARGEST = 10  # domains, where a dataset has more


def measure_run(report: Report, out: Path, device: torch.device = CPU) -> list[dict[str, Any]]:
    """Return the rows of one run: over all domains, and over the largest ones where there are more than those.

    Args:
        report: of the run.
        out: folder of the runs.
        device: where the representation is computed.
    """
    train = _load_dataset(json.dumps(report["config"]["dataset"]), report["seed"]).train
    model = load_run(run_folder(report, out), device).model
    assert isinstance(model, Backbone)
    loader = BatchLoader([train], device)
    h = predict(lambda _, x: model.features(x), model, loader, report["config"]["train"]["eval_batch_size"])
    sizes: dict[str, int | None] = {"all": None}
    if len(set(train.domain.tolist())) > LARGEST:
        sizes[f"largest {LARGEST}"] = LARGEST
    rows = []
    for domains, largest in sizes.items():
        found = learned_invariance(h, train.y, train.domain, max_domains=largest)
        rows.append(
            {name: report[name] for name in ("dataset", "method", "preset", "seed", "run")}
            | {"split": "train", "domains": domains, "components": COMPONENTS, "value": f"{found.value:.6g}",
               "valid_fraction": f"{found.valid_fraction:.4g}", "pairs": found.pairs}
        )  # fmt: skip
    return rows


@functools.lru_cache(maxsize=64)
def _load_dataset(config: str, seed: int) -> RegressionData:
    """Load a dataset by the JSON of its configuration; all methods share it, and reading it takes longest."""
    return dataset_of(json.loads(config)).load(seed)


def merged_csv(old: Sequence[Report], rows: Sequence[Report]) -> str:
    """Return rows as CSV text beside the old ones, but for those of the same dataset and preset."""
    merged = replace_rows(old, rows, "dataset", "preset")
    return to_csv(sorted(merged, key=lambda r: ([str(r[c]) for c in ORDER], int(r["seed"]))), INVARIANCE_COLUMNS)


def invariance_figure(rows: Sequence[Mapping[str, str]], order: Sequence[str]) -> Figure:
    """Draw, for each dataset and choice of domains, every method's divergence between domains.

    Seeds are dots with their mean ± standard deviation; a value below 0, which an estimate may have, is drawn at 0.

    Args:
        rows: of results/invariance.csv, of one preset.
        order: of the methods, from above; others follow, and the dotted line is at the first.
    """
    panels = sorted({(r["dataset"], r["domains"]) for r in rows})
    methods = names.in_order((r["method"] for r in rows), order)
    height = 1.4 + 0.27 * len(methods)
    figure, axes = new_subplots(1, len(panels), figsize=(4.2 * len(panels), height), sharey=True)
    for axis, (dataset, domains) in zip(axes[0], panels, strict=True):
        mine = [r for r in rows if (r["dataset"], r["domains"]) == (dataset, domains)]
        for row, method in enumerate(methods):
            seeds = [max(float(r["value"]), 0.0) for r in mine if r["method"] == method]
            if not seeds:
                continue
            colour, title = COLOURS.get(method, GREY), names.method_title(method)
            axis.plot(seeds, [row + 0.2] * len(seeds), ".", color=colour, alpha=0.35, gid=title)
            spread = np.std(seeds, ddof=1) if len(seeds) > 1 else None
            axis.errorbar(np.mean(seeds), row - 0.1, xerr=spread, fmt="D", color=colour, capsize=3, markersize=5,
                          gid=title)  # fmt: skip
            if method == methods[0]:
                axis.axvline(np.mean(seeds), color="black", linewidth=0.8, linestyle=":")
        which = "" if domains == "all" else f", {domains} domains"
        counts = sorted({sum(r["method"] == m for r in mine) for m in methods} - {0})
        share = f"{100 * float(mine[0]['valid_fraction']):.0f} % of the pairs have enough points"
        axis.set_title(f"{names.dataset_title(dataset)}{which}\n{share}", fontsize=10)
        axis.set_xlabel(f"mean KL between domains (n = {'/'.join(map(str, counts))})")
        axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].set_yticks(range(len(methods)), [names.method_title(m) for m in methods])
    axes[0][0].set_ylim(len(methods) - 0.4, -0.6)
    figure.suptitle(
        f"Divergence of representations given the label, preset {rows[0]['preset']}: seeds, mean ± std; "
        f"dotted: {names.method_title(methods[0])}", fontsize=10,
    )  # fmt: skip
    figure.tight_layout()
    return figure


@draws
def invariance_figures(results: Path = RESULTS) -> dict[str, Figure]:
    """Return the figure of every preset that `results/invariance.csv` holds, by its path below `results`."""
    rows, order = stored_rows(results / FILE), load_experiment(EXPERIMENT).methods
    return {
        f"figures/invariance_{preset}.png": invariance_figure([r for r in rows if r["preset"] == preset], order)
        for preset in sorted({r["preset"] for r in rows})
    }


def is_of_cell(cell: tuple[Any, ...], report: Report) -> bool:
    """Return whether a run is of a dataset, preset and options."""
    return (report["dataset"], report["preset"], report["options"]) == cell


def run(given: Args) -> None:
    """Measure the runs of the datasets, one dataset and method after another."""
    results, device, preset = results_of(given), pick_device(given.get("device", "auto")), given.get("preset", "paper")
    reports, rows = list[Report](), list[dict[str, Any]]()
    for dataset in filter(None, given.get("datasets", DATASETS).split(",")):
        make = f"make reproduce-{EXPERIMENT} DATASETS={dataset} PRESET={preset} trains them"
        about = f"{EXPERIMENT} on {dataset}, preset {preset!r}; {make}"
        cell: tuple[Any, ...] = (dataset, preset, {})
        reports += runs_of(given, [EXPERIMENT], functools.partial(is_of_cell, cell), about)
    for (dataset, method), group in groupby(reports, key=lambda r: (r["dataset"], r["method"])):
        new = [row for r in group for row in measure_run(r, given.out, device)]
        rows += new
        for domains in dict.fromkeys(row["domains"] for row in new):
            found = summarise_values([float(row["value"]) for row in new if row["domains"] == domains])
            print(f"{dataset} {method}, {domains} domains: {found.mean:.3f} ± {found.std:.3f} (n = {found.n})")
    write_analysis(results, {FILE: merged_csv(stored_rows(results / FILE), rows)})
    write_analysis(results, {}, invariance_figures(results))
