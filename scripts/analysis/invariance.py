"""Measure learned invariance, as the paper calls it, on the finished runs of Table 3, and draw it.

results/invariance.csv has for every run the mean divergence of its representation between training domains, given the
label. From that results/figures/invariance_<preset>.png is drawn. Rows of other runs stay as they are.

Example: python -m scripts.analysis invariance preset=paper datasets=crime,skillcraft
"""

import functools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.preprocessing import StandardScaler
from torch import Tensor

from cmixup.backbone import Backbone
from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.saved_run import load_run
from cmixup.training.loader import BatchLoader, predict
from scripts.analysis.runs import KEYS as COMMON
from scripts.analysis.runs import Report, dataset_of, merge_rows, results_of, runs_of, write_analysis
from scripts.config.arguments import Args
from scripts.driver.job import pick_device
from scripts.records import names
from scripts.records.csv_rows import to_csv
from scripts.records.experiment import RESULTS, load_experiment
from scripts.report.figures import method_looks, new_subplots
from scripts.report.rendering import draws

BINS, COMPONENTS = 10, 2  # C, and the principal components: densities in more dimensions need far more points
MIN_POINTS = 5  # of a cell (bin, domain); pairs with a smaller one are left out of the mean
# Densities are at least exp of this, in units of the kernel's coordinates.
MIN_LOG_DENSITY = math.log(1e-12)
# A spread below this fraction of the largest spread counts as none.
MIN_RELATIVE_SPREAD = 1e-8


class Invariance(NamedTuple):
    """The mean divergence over the pairs of cells that have enough points."""

    value: float  # in nats; an estimate may be slightly negative where domains agree, and is NaN if no pair is valid
    pairs: int  # ordered ones (bin, e, e') of which it is the mean; those of a domain with itself count, and are 0
    valid_fraction: float  # `pairs` divided by the number of all pairs, C E^2


def learned_invariance(features: Tensor, y: Tensor, domain: Tensor, *, max_domains: int | None = None) -> Invariance:
    """Return the pairwise label-conditional divergence of a representation between domains.

    Args:
        features: `(N, D)`, the representation of every row, in evaluation mode.
        y: `(N,)` or `(N, 1)` float labels.
        domain: `(N,)` int64, the domain of every row.
        max_domains: number of domains looked at: those with most rows, and those as large as the last of them; all by
            default.

    Raises:
        InputError: features are not finite, or there is a single domain.
    """
    if not bool(torch.isfinite(features).all()):
        raise InputError("features has values that are not finite")
    h, labels, codes = (t.detach().cpu().double().numpy() for t in (features, y.reshape(-1), domain))
    if max_domains is not None:
        names, counts = np.unique(codes, return_counts=True)
        kept = np.isin(codes, names[counts >= np.sort(counts)[-max_domains:][0]])
        h, labels, codes = h[kept], labels[kept], codes[kept]
    names, codes = np.unique(codes, return_inverse=True)
    if len(names) < 2:
        raise InputError(f"domain must have two values or more, got {names.tolist()}")
    edges = np.quantile(labels, np.arange(1, BINS) / BINS)  # of equal counts, but equal labels share a bin
    cells = np.searchsorted(edges, labels, side="right") * len(names) + codes
    valid = np.bincount(cells, minlength=BINS * len(names)) >= MIN_POINTS
    pairs = int((valid.reshape(BINS, len(names)).sum(axis=1) ** 2).sum())
    if not pairs:
        return Invariance(math.nan, 0, 0.0)

    z = StandardScaler().fit_transform(h)
    z = z @ np.linalg.svd(z, full_matrices=False)[2][:COMPONENTS].T
    groups = {cell: z[cells == cell] for cell in np.flatnonzero(valid)}
    # Scott's rule takes the spread and the number of the points that a density is estimated from, those of a cell: the
    # spread over all cells would be too wide, since it also holds the part that the label explains.
    used = np.concatenate(list(groups.values()))
    spread = np.sqrt(sum(np.square(g - g.mean(axis=0)).sum(axis=0) for g in groups.values()) / len(used))
    floor = MIN_RELATIVE_SPREAD * np.sqrt(np.square(used).mean(axis=0)).max()
    scott = (len(used) / len(groups)) ** (-1 / (z.shape[1] + 4))
    unit = np.maximum(spread, floor if floor > 0 else 1.0) * scott
    log_norm = z.shape[1] * (0.5 * math.log(2 * math.pi) + math.log(scott))
    total = 0.0
    for c in range(BINS):
        of_bin = [points / unit for cell, points in groups.items() if cell // len(names) == c]
        for points in of_bin:
            log_within = _log_density(points, points, log_norm, left_out=1)
            others = [other for other in of_bin if other is not points]
            total += sum(float((log_within - _log_density(points, other, log_norm)).mean()) for other in others)
    return Invariance(total / pairs, pairs, pairs / (BINS * len(names) ** 2))


def _log_density(at: np.ndarray, points: np.ndarray, log_norm: float, left_out: int = 0) -> np.ndarray:
    """Return the log density of `points` (n, r) at `at` (m, r), in units of the kernel; each may leave itself out."""
    log_kernel = -0.5 * cdist(at, points, "sqeuclidean")
    if left_out:
        np.fill_diagonal(log_kernel, -math.inf)
    density = logsumexp(log_kernel, axis=1) - math.log(len(points) - left_out) - log_norm
    return np.maximum(density, MIN_LOG_DENSITY)


EXPERIMENT, FILE = "table3", "invariance.csv"
DATASETS = "crime,skillcraft"
KEYS = COMMON | {"datasets": f"of these runs; default {DATASETS}"}
INVARIANCE_COLUMNS = (
    "dataset", "method", "preset", "seed", "split", "domains", "components", "value", "valid_fraction", "pairs", "run",
)  # fmt: skip
ORDER = ("dataset", "preset", "domains", "method")  # of the rows; then by seed
LARGEST = 10  # domains, where a dataset has more


def measure_run(report: Report, out: Path, device: torch.device) -> list[dict[str, Any]]:
    """Return the rows of one run: over all domains, and over the largest ones where there are more than those."""
    train = _load_train(json.dumps(report["config"]["dataset"]), report["seed"])
    model = load_run(out / "runs" / report["run"], device).model
    assert isinstance(model, Backbone)
    loader = BatchLoader([train], device)
    h = predict(lambda _, x: model.features(x), model, loader, report["config"]["train"]["eval_batch_size"])
    several = len(set(train.domain.tolist())) > LARGEST
    rows = []
    for domains, limit in {"all": None, **({f"largest {LARGEST}": LARGEST} if several else {})}.items():
        divergence = learned_invariance(h, train.y, train.domain, max_domains=limit)
        rows.append(
            {name: report[name] for name in ("dataset", "method", "preset", "seed", "run")}
            | {"split": "train", "domains": domains, "components": COMPONENTS, "value": f"{divergence.value:.6g}",
               "valid_fraction": f"{divergence.valid_fraction:.4g}", "pairs": divergence.pairs}
        )  # fmt: skip
        print(f"{report['run']}, {domains} domains: {divergence.value:.3f}")
    return rows


@functools.lru_cache(maxsize=64)  # all methods share it, and reading it takes longest
def _load_train(config: str, seed: int) -> Split:
    return dataset_of(json.loads(config)).load(seed).train


def invariance_figure(rows: pd.DataFrame, order: Sequence[str]) -> Figure:
    """Draw, for each dataset and choice of domains, every method's divergence between domains.

    Seeds are dots with their mean ± standard deviation; a value below 0, which an estimate may have, is drawn at 0.

    Args:
        rows: of results/invariance.csv, of one preset.
        order: of the methods, from above; others follow, and the dotted line is at the first.
    """
    panels, methods = rows.groupby(["dataset", "domains"]), names.in_order(rows["method"], order)
    looks, size = method_looks(methods), (4.2 * panels.ngroups, 1.4 + 0.27 * len(methods))
    figure, axes = new_subplots(1, panels.ngroups, figsize=size, sharey=True)
    for axis, ((dataset, domains), panel) in zip(axes[0], panels, strict=True):
        values = {m: column for m in methods if len(column := panel["value"][panel["method"] == m].clip(lower=0))}
        for method, seeds in values.items():
            row, colour = methods.index(method), looks[method]["color"]
            axis.plot(seeds, [row + 0.2] * len(seeds), ".", color=colour, alpha=0.35)
            spread = seeds.std() if len(seeds) > 1 else None
            axis.errorbar(seeds.mean(), row - 0.1, xerr=spread, fmt="D", color=colour, capsize=3, markersize=5)
            if method == methods[0]:
                axis.axvline(seeds.mean(), color="black", linewidth=0.8, linestyle=":")
        suffix = "" if domains == "all" else f", {domains} domains"
        counts = "/".join(map(str, sorted(set(map(len, values.values())))))
        share = f"{100 * panel['valid_fraction'].iloc[0]:.0f} % of the pairs have enough points"
        axis.set_title(f"{names.dataset_title(dataset)}{suffix}\n{share}", fontsize=10)
        axis.set_xlabel(f"mean KL between domains (n = {counts})")
        axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].set_yticks(range(len(methods)), [names.method_title(m) for m in methods])
    axes[0][0].set_ylim(len(methods) - 0.4, -0.6)
    figure.suptitle(
        f"Divergence of representations given the label, preset {rows['preset'].iloc[0]}: seeds, mean ± std; "
        f"dotted: {names.method_title(methods[0])}", fontsize=10,
    )  # fmt: skip
    figure.tight_layout()
    return figure


@draws
def invariance_figures(results: Path = RESULTS) -> dict[str, Figure]:
    """Return the figure of every preset that `results/invariance.csv` holds, by its path below `results`."""
    presets, order = pd.read_csv(results / FILE).groupby("preset"), load_experiment(EXPERIMENT).methods
    return {f"figures/invariance_{preset}.png": invariance_figure(rows, order) for preset, rows in presets}


def run(args: Args) -> None:
    """Measure the runs of the datasets that follow the preset."""
    results, device, preset = results_of(args), pick_device(args.get("device", "auto")), args.get("preset", "paper")
    datasets = args.get("datasets") or DATASETS
    cells: list[tuple[Any, ...]] = [(dataset, preset, "") for dataset in datasets.split(",")]
    command = f"make reproduce-{EXPERIMENT} DATASETS={datasets} PRESET={preset} trains them"
    about = f"{EXPERIMENT} on {datasets}, preset {preset!r}; {command}"
    reports = runs_of(args, [EXPERIMENT], lambda r: (r["dataset"], r["preset"], r["options"]) in cells, about)
    new = [row for report in reports for row in measure_run(report, args.out, device)]
    rows = merge_rows(results / FILE, new, *ORDER, "seed")
    rows.sort(key=lambda r: ([str(r[c]) for c in ORDER], int(r["seed"])))
    write_analysis(args, {FILE: to_csv(rows, INVARIANCE_COLUMNS)})
    write_analysis(args, figures=invariance_figures(results))
