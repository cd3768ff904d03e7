"""What each change of a preset does to the scores, with one thing changed at a time, over the same seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from scripts.driver.compose import compose_train
from scripts.records import names
from scripts.records.curves import Curve
from scripts.records.experiment import RESULTS, Experiment, paper_rows
from scripts.records.records import by_seed, read_csv, select
from scripts.records.stats import paired, summarise
from scripts.records.tables import markdown_rows
from scripts.records.variants import Variant, identity, variants
from scripts.report.figures import Sweep


def to_markdown(experiment: Experiment, records: pd.DataFrame, curves: Sequence[Curve]) -> str:
    """Return a table a dataset, and what another selection of the checkpoint would have given."""
    records = select(records, experiment=experiment.name)
    parts = [
        (
            "Mean ± standard deviation over n seeds. Change: paired difference of the test "
            f"{names.metric_title(experiment.metrics[0])} to the method's first row over shared seeds, mean [95 % t "
            f"interval]; minus {names.method_title(experiment.methods[0])}: to it with the same change. "
            "Partners: effective partners as a share of the training rows; 1 is mixup, 0 is ERM."
        ),
    ]
    for dataset in experiment.datasets:
        mine = [v for v in variants(experiment) if v.dataset == dataset]
        table = [line for v in mine if (line := _line(experiment, records, v, mine))]
        if table:
            rival = names.method_title(experiment.methods[0])
            shown = [names.metric_title(metric) for metric in experiment.metrics]
            head = [
                names.dataset_title(dataset),
                "changed",
                "n",
                *shown,
                "change",
                f"minus {rival}",
                "partners",
            ]
            parts += ["", *markdown_rows(head, [*_paper(experiment, dataset), *_authors(dataset), *table])]
            parts += ["", *_selection(experiment, [c for c in curves if c.dataset == dataset])]
    return "\n".join(parts)


def _values(records: pd.DataFrame, experiment: Experiment, variant: Variant, metric: str) -> dict[int, float]:
    return by_seed(records, metric=metric, **identity(experiment.name, variant))


def _line(experiment: Experiment, records: pd.DataFrame, variant: Variant, mine: Sequence[Variant]) -> list[str] | None:
    first, *others = experiment.metrics
    values = _values(records, experiment, variant, first)
    if not values:
        return None
    scores = [summarise(list(_values(records, experiment, variant, m).values())) for m in (first, *others)]
    base = next(v for v in mine if v.method == variant.method)
    change = paired(values, _values(records, experiment, base, first)) if variant != base else None
    # The same change of the first method, or its first row where there is none.
    plain = [v for v in mine if v.method == experiment.methods[0]]
    rival = next((v for v in plain if v.label == variant.label), plain[0])
    lead = paired(values, _values(records, experiment, rival, first)) if variant.method != rival.method else None
    where = identity(experiment.name, variant)
    fractions = select(records, metric="effective_fraction", **where)["value"].tolist()
    return [
        names.method_title(variant.method),
        variant.label,
        str(len(values)),
        *(f"{s.mean:.3f} ± {s.std:.3f}" for s in scores),
        *(f"{i.mean:+.3f} [{i.low:+.3f}, {i.high:+.3f}]" if i else "—" for i in (change, lead)),
        f"{statistics.fmean(fractions):.3g}" if fractions else "—",
    ]


def _paper(experiment: Experiment, dataset: str) -> list[list[str]]:
    lines = []
    for method in experiment.methods:
        found = {
            r["metric"]: f"{r['mean']} ± {r['std']}"
            for r in paper_rows(experiment)
            if (r["dataset"], r["method"]) == (dataset, method)
        }
        scores = [found[metric] for metric in experiment.metrics]
        lines.append([names.method_title(method), "the paper", "3", *scores, *"———"])
    return lines


def _authors(dataset: str, results: Path = RESULTS) -> list[list[str]]:
    """Return a row for every configuration of the authors' own code, run by us (results/paper/original_rerun.csv)."""
    runs: dict[tuple[str, str], list[dict[str, str]]] = {}
    for r in read_csv(results / "paper" / "original_rerun.csv"):
        if r["dataset"] == dataset:
            runs.setdefault((r["method"], r["bandwidth"]), []).append(r)
    lines = []
    for (method, bandwidth), seeds in sorted(runs.items()):
        label = f"the authors' code, bandwidth {float(bandwidth):g}" if bandwidth else "the authors' code"
        scores = [summarise([float(r[column]) for r in seeds]) for column in ("test_rmse", "worst_rmse")]
        lines.append([names.method_title(method), label, str(len(seeds)),
                      *(f"{s.mean:.3f} ± {s.std:.3f}" for s in scores), *"———"])  # fmt: skip
    return lines


def _selection(experiment: Experiment, curves: Sequence[Curve]) -> list[str]:
    """Return a sentence a method and preset: the score of the selected, the last and the best epoch."""
    sentences = []
    for preset in sorted({c.preset for c in curves}):
        for method in experiment.methods:
            mine = [c for c in curves if (c.method, c.preset) == (method, preset)]
            tests = [c.columns[f"test_{experiment.metrics[0]}"] for c in mine]
            if mine:
                selected = statistics.fmean(test[c.best_epoch - 1] for c, test in zip(mine, tests, strict=True))
                last, least = statistics.fmean(test[-1] for test in tests), statistics.fmean(map(min, tests))
                sentences.append(
                    f"{names.method_title(method)}, preset {preset}: {selected:.3f} at the epoch chosen on "
                    f"validation, {last:.3f} at the last, {least:.3f} at the best on test (which nobody may choose); "
                    f"n = {len(mine)}."
                )
    return sentences


def sweeps(experiment: Experiment, records: pd.DataFrame) -> list[Sweep]:
    """Return a panel a dataset: C-Mixup over the bandwidth, beside ERM and what it becomes at an endless bandwidth."""
    found = []
    metric = experiment.metrics[0]
    records = records[records["experiment"].isin([experiment.name, "table3"])]
    for dataset in experiment.datasets:
        mine = [v for v in variants(experiment) if v.dataset == dataset]
        where = identity(experiment.name, next(v for v in mine if v.method == "cmixup"))
        cell = {name: where[name] for name in ("experiment", "dataset", "preset")}
        points: dict[float, list[float]] = {}
        for r in select(records, split="test", metric=metric, method="cmixup", **cell).itertuples():
            # A bandwidth such as ["std", 0.3] is another one for each seed and has no place on this axis.
            number = isinstance(r.options.get("method.bandwidth", 0.0), (int, float))
            if number and set(r.options) <= {"method.bandwidth", "train.track"}:
                points.setdefault(float(r.bandwidth), []).append(float(r.value))
        if not points:
            continue
        table3 = {"experiment": "table3", "preset": "paper", "options": {}, "dataset": dataset, "metric": metric}
        levels = {
            f"{names.method_title(m)} (Table 3)": statistics.fmean(values)
            for m in ("erm", "mixup", "manifold_mixup")
            if (values := by_seed(records, method=m, **table3).values())
        }
        marks = {
            f"preset {preset}": float(compose_train([f"dataset={dataset}", f"preset={preset}"]).method.bandwidth)
            for preset in ("paper", "released")
        }
        title, axis = names.dataset_title(dataset), f"test {names.metric_title(metric)}"
        found.append(Sweep(title, axis, points, levels, marks))
    return found
