"""The paper against its released code: the options and results of each, and the main results beside ours."""

import math
from collections.abc import Sequence
from typing import Any

from scripts.config.compose import part_file
from scripts.records import names
from scripts.report.evidence import Evidence, Query, published_evidence, sample_difference
from scripts.report.paper.findings import enough_decimals
from scripts.report.paper.statements import published_statements
from scripts.report.paper.verdicts import recorded_query
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import Interval, interval_text

#: Options of presets, in words; of those that differ between the paper and the released code.
OPTIONS = {
    "alpha": "alpha of the Beta distribution", "lam_per": "lambda", "bandwidth": "bandwidth",
    "scaling": "features are scaled by", "shuffle": "rows reshuffled each epoch",
    "drop_last": "the last, smaller batch is left out", "layer": "C-Mixup mixes",
    "epochs": "epochs", "lr": "learning rate", "batch_size": "batch size",
}  # fmt: skip
DATASETS = ("airfoil", "no2", "exchange_rate", "rcf_mnist", "crime", "skillcraft")
WORDS = {True: "yes", False: "no", "train": "training rows", "all": "all rows, those of test too",
         "example": "one per example", "batch": "one per batch",
         "standard": "mean and deviation", "none": "nothing"}  # fmt: skip


@fills
def options_part() -> dict[str, dict[str, str]]:
    """Return the table of options that the paper prints and its code sets otherwise, rendered from the presets."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for dataset in DATASETS:
        presets = part_file("dataset", dataset)["presets"]
        printed, released = presets["paper"], presets["released"]
        for key, title in OPTIONS.items():
            if key in printed and printed[key] != released.get(key):
                row = title, _word(printed[key]), _word(released.get(key))
                rows.setdefault(row, []).append(names.dataset_title(dataset))
    every = ", ".join(map(names.dataset_title, DATASETS))
    body = [[title, one, other, ", ".join(on).replace(every, "all")] for (title, one, other), on in rows.items()]
    head = ("option", "the paper", "its code", "datasets")
    return {"results/README.md": {"paper_and_code": markdown_table(head, body, left=len(head))}}


def _word(value: Any) -> str:
    return WORDS.get(value, str(value)) if isinstance(value, (str, bool)) else f"{value:g}"


@fills
def difference_parts() -> dict[str, dict[str, str]]:
    """Return each established difference in the paper, in its code and in ours, and Airfoil's numbers for README."""
    e, body, powers = published_evidence(), [], list[float]()
    for f in published_statements():
        if not (f.established and f.ours) or f.last_epoch:
            continue
        theirs = _authors_gain(f.dataset, f.metric, e) if f.preset == "released" else "—"
        paper = Interval(f.paper.mean, *f.paper.ends(), 3)
        ours, published = (interval_text(d, enough_decimals(d, f.decimals)) for d in (f.ours, paper))
        row = f.name if "minus ERM" in f.comparison else f"{f.where} ({f.table}): {f.compared}"
        if f.n >= 100:
            powers.append(f.ours.power(f.paper.mean / 2))
        body.append([f"{row}, `{f.preset}`", published, theirs, ours, str(f.n), f.outcome])
    head = ("C-Mixup minus ERM or another method (below 0: better)", "the paper, n = 3", "the authors' code", "ours",
            "n", "outcome")  # fmt: skip
    power = f"{math.floor(100 * min(powers))} %"
    table = markdown_table(head, body)
    return {
        "results/README.md": {"three_columns": table, "power": power, "main_results": main_results(e)},
        "README.md": {"airfoil": airfoil_table(e)},
    }


def _authors_gain(dataset: str, metric: str, e: Evidence) -> str:
    query: Query = {"from": "authors", "dataset": dataset, "metric": metric}
    ours, erm = (e.find({**query, "method": method}) for method in ("cmixup", "erm"))
    d = sample_difference(ours, erm) if ours and erm else None
    return f"{interval_text(d, enough_decimals(d, 3))}, n = {d.n}" if d else "—"


def airfoil_table(e: Evidence) -> str:
    """Return Airfoil's errors in the paper, in its code and in ours."""
    sources: dict[str, Query] = {
        "the paper": {"from": "paper", "experiment": "table1"}, "the authors' code": {"from": "authors"},
        "our code, the paper's hyperparameters": {"experiment": "table1", "preset": "paper"},
    }  # fmt: skip
    erm, ours = ([e.sample({**query, "dataset": "airfoil", "method": method}) for query in sources.values()]
                 for method in ("erm", "cmixup"))  # fmt: skip
    seeds = (f"{title}, {sample.summary.n} seeds" for title, sample in zip(sources, erm, strict=True))
    body = [
        ["ERM", *(f"{sample.mean:.3f}" for sample in erm)],
        ["C-Mixup", *(f"{sample.mean:.3f}" for sample in ours)],
        ["C-Mixup minus ERM", *map(interval_text, map(sample_difference, ours, erm))],
    ]
    return markdown_table(["Airfoil, test RMSE in dB", *seeds], body)


MAIN = ("erm", "mixup", "cmixup")
TABLES: Sequence[tuple[str, str, str, str]] = (
    ("table1", "airfoil", "paper", "rmse"), ("table1", "no2", "paper", "rmse"),
    ("table1", "exchange_rate", "released", "rmse"), ("table3", "rcf_mnist", "paper", "rmse"),
    ("table3", "rcf_mnist", "cpu", "rmse"), ("table3", "crime", "paper", "rmse"),
    ("table3", "crime", "paper", "worst_rmse"),
    ("table3", "skillcraft", "released", "rmse"), ("table3", "skillcraft", "released", "worst_rmse"),
)  # fmt: skip


def main_results(e: Evidence) -> str:
    """Return the means of Tables 1 and 3 for ERM, mixup and C-Mixup, the paper's beside ours, and how ours compare."""
    body, gains = [], [f for f in published_statements() if "minus ERM" in f.comparison and not f.last_epoch]
    sides = {(f.dataset, f.preset, f.metric): f.direction for f in gains}
    for table, dataset, preset, metric in TABLES:
        cells, seeds = list[str](), list[int]()
        for method in MAIN:
            query = recorded_query(table, {"dataset": dataset, "preset": preset, "metric": metric, "method": method})
            paper, ours = e.find({**query, "experiment": table, "from": "paper"}), e.find({**query, "options": {}})
            decimals = paper.decimals if paper else 3
            cells += [f"{sample.mean:.{decimals}f}" if sample else "—" for sample in (paper, ours)]
            seeds += [ours.summary.n] if ours else []
        about = ", worst domain" * metric.startswith("worst")
        n = " to ".join(map(str, sorted({min(seeds), max(seeds)})))
        body.append([f"{names.dataset_title(dataset)}{about}, `{preset}`", n, *cells, sides[dataset, preset, metric]])
    whose = (f"{names.method_title(m)}, {source}" for m in MAIN for source in ("paper", "ours"))
    head = ("mean test RMSE", "n", *whose, "our C-Mixup against ERM")
    return markdown_table(head, body)
