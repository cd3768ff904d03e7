"""Claims that the paper makes in words, judged by the rules of results/claims.yaml, whose head has them."""

import contextlib
import functools
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from scripts.config.compose import part_file, read_part
from scripts.config.parts import check_part
from scripts.records import names
from scripts.records.csv_rows import to_csv
from scripts.records.experiment import RESULTS
from scripts.records.rescored import table_runs
from scripts.report.ablation import find_sweeps
from scripts.report.evidence import (
    Evidence,
    Query,
    Sample,
    Unsupported,
    experiment_of,
    published_evidence,
    sample_difference,
    sample_of,
)
from scripts.report.paper.verdicts import SELF, recorded_query
from scripts.report.rendering import fills, writes
from scripts.report.result_table import markdown_table
from scripts.stats.best_of import drawn_gains, gain_over_best
from scripts.stats.intervals import HIGHER, LOWER, Interval, interval_text, paired_or_none

FILE, PRESETS = "claims.yaml", ("paper", "released")
HOLDS, FAILS, OPEN = "holds", "fails", "inconclusive"
SEED = 2022  # of the bootstrap
OPTIONS: dict[str, dict[str, Any]] = {"table_noise": {"dataset.label_noise": 0.3}}
COLUMNS = ("claim", "says", "where", "preset", "rule", "for", "against", "undecided", "verdict", "gain", "low", "high",
           "published", "priors")  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """An entry of results/claims.yaml, whose head explains each key."""

    says: str
    where: str
    rule: str
    datasets: list
    metrics: list
    pairs: list = field(default_factory=list)
    experiment: str = ""
    curves: str = ""
    tasks: str = ""
    divergence: str = ""
    sweep: str = ""
    priors: list = field(default_factory=list)
    percent: float = 0.0


#: A method minus another of a claim: the method, 1 where that is decided for the claim, -1 against it, 0 if open, and
#: the difference.
Comparison = tuple[str, int, Interval]


def load_claims() -> dict[str, Claim]:
    """Read and check results/claims.yaml."""
    nodes = read_part(RESULTS / FILE)
    return {name: Claim(**check_part(f"{FILE}: {name}", node, function=Claim).kwargs) for name, node in nodes.items()}


def comparisons(claim: Claim, preset: str, e: Evidence) -> Iterator[Comparison]:
    """Yield what our runs of a preset say of each comparison; those without runs are left out."""
    if claim.sweep:
        yield from _sweep_comparisons(claim, preset, e)
        return
    experiments = claim.experiment.split() or [""]
    for experiment, dataset, metric, pair in itertools.product(experiments, claim.datasets, claim.metrics, claim.pairs):
        first, second = pair
        try:
            second = _same_place(experiment, dataset, preset, e) if second == "same_place" else second
            place = experiment, dataset, preset
            difference = sample_difference(*(_sample(claim, place, metric, m, e) for m in (first, second)))
        except Unsupported:
            continue
        if difference:
            margin = _margin(dataset, e) if claim.experiment.startswith("table_batch") else 0.0
            side = _within(difference, margin) if margin else _side(difference, lower=metric not in ("r", "worst_r"))
            yield first, side, difference


def _side(difference: Interval, *, lower: bool = True) -> int:
    side = {LOWER: 1, HIGHER: -1}.get(difference.side, 0)
    return side if lower else -side


def _within(difference: Interval, margin: float) -> int:
    """Return 1 where an interval lies within a margin, -1 where it lies outside."""
    inside, outside = -margin < difference.low and difference.high < margin, difference.low > margin
    return int(inside) - int(outside or difference.high < -margin)


def _margin(dataset: str, e: Evidence) -> float:
    """Return half of the gain over ERM that the paper prints."""
    table = "table1" if dataset in experiment_of("table1").datasets else "table3"
    ours, erm = (e.paper(table, dataset, method) for method in ("cmixup", "erm"))
    return abs(ours.mean - erm.mean) / 2


def _trained_preset(experiment: str, dataset: str, preset: str, e: Evidence) -> str:
    """Return the preset, or `cpu` where an experiment has nothing, or no C-Mixup, under others on a dataset."""
    there = [cell for cell, _ in e.cells(experiment=experiment, dataset=dataset)]
    mixed = {cell["preset"] for cell in there if cell["method"] == "cmixup"}
    return "cpu" if {"cpu"} in (mixed, {cell["preset"] for cell in there}) else preset


def _sample(
    claim: Claim, place: tuple[str, str, str], metric: str, method: str, e: Evidence, *, split: str = "test"
) -> Sample:
    """Return the scores of a method in an experiment, dataset and preset; `Unsupported` where there are none.

    There are none either where every row is its own partner, so that mixing is ERM.
    """
    experiment, dataset, preset = place
    if claim.curves:
        last = e.frame(e.results / f"curves/{claim.curves}/{dataset}/{method}.csv").groupby("seed").last()
        gap = last["test_rmse"] - (last["train_rmse"] if metric == "gap" else 0.0)
        return sample_of(gap.to_dict(), f"seeds of {dataset}")
    if claim.tasks:
        return e.rows(f"task_errors/{claim.tasks}.csv", method, cluster="object")
    if dataset not in experiment_of(experiment).datasets:
        raise Unsupported(f"{experiment} has no {dataset}")
    preset = PRESETS[0] if claim.divergence else _trained_preset(experiment, dataset, preset, e)
    cell = recorded_query(experiment, {"dataset": dataset, "preset": preset, "method": method})
    query: Query = {**cell, "options": OPTIONS.get(experiment, {})}
    idle = e.find({**query, "split": "train", "metric": "self_probability"})
    if idle and idle.mean > SELF:
        raise Unsupported(f"{cell['method']} equals ERM on {dataset}: every row is its own partner")
    if claim.divergence:
        where = {key: cell[key] for key in ("preset", "dataset", "method")}
        return e.rows("invariance.csv", "value", split="train", domains="all", **where)
    return e.sample({**query, "split": split, "metric": metric})


def _same_place(experiment: str, dataset: str, preset: str, e: Evidence) -> str:
    """Return which of mixup and Manifold Mixup mixes where C-Mixup does."""
    preset = _trained_preset(experiment, dataset, preset, e)
    same = {"experiment": experiment, "dataset": dataset, "preset": preset, "options": ""}
    layers = {cell["method"]: cell["layer"] for cell, _ in e.cells(**same)}
    for method in ("mixup", "manifold_mixup"):
        if "cmixup" in layers and layers.get(method) == layers["cmixup"]:
            return method
    raise Unsupported(f"no mixup at C-Mixup's place on {dataset}")


def _sweep_comparisons(claim: Claim, preset: str, e: Evidence) -> Iterator[Comparison]:
    """Yield C-Mixup at every value of a swept option, beside ERM, or beside itself at the published value."""
    (first, second), mixed = claim.pairs[0], table_runs().query(f"not train_self_probability > {SELF}")
    for dataset in claim.datasets:
        trained_preset = _trained_preset(claim.sweep, dataset, preset, e)
        for sweep in find_sweeps(replace(experiment_of(claim.sweep), datasets=[dataset]), mixed, trained_preset):
            published = part_file("dataset", dataset)["presets"][trained_preset].get(sweep.option.rpartition(".")[2])
            published_scores = next((point.scores for point in sweep.points if point.value == published), {})
            base = published_scores if first == second else sweep.lines.get(second, {})
            for point in sweep.points:
                difference = paired_or_none(point.scores, base) if point.scores is not base else None
                if difference:
                    side = _side(difference) if first != second else _within(difference, _margin(dataset, e))
                    yield f"{first} {point.value:g}", side, difference


def judge(rule: str, every: Sequence[Comparison]) -> str:
    """Return the verdict of a rule on comparisons."""
    sides = [side for _, side, _ in every]
    if rule == "every":
        return FAILS if -1 in sides else HOLDS if sides and min(sides) > 0 else OPEN
    if rule == "most":
        return HOLDS if 2 * sides.count(1) > len(sides) else FAILS if 2 * sides.count(-1) > len(sides) else OPEN
    methods = {method: [side for name, side, _ in every if name == method] for method, _, _ in every}
    if any(min(method_sides) > 0 for method_sides in methods.values()):
        return FAILS
    return HOLDS if methods and all(-1 in method_sides for method_sides in methods.values()) else OPEN


def percent_gain(claim: Claim, preset: str, e: Evidence, *, choose: str = "test") -> dict[str, Any]:
    """Return the mean percent by which C-Mixup is better than the best prior method, with its bootstrap interval.

    `choose` is the split whose mean score picks the best prior: "test", as the paper does, or "val".
    """
    rng, parts, priors = np.random.default_rng(SEED), list[Any](), list[str]()
    for dataset in claim.datasets:
        if frames := _score_frames(claim, dataset, preset, choose, e):
            scores, chosen = (frame.to_numpy() for frame in frames)
            best, *gains = drawn_gains(scores, None if choose == "test" else chosen, rng)
            parts.append(gains)
            priors.append(f"{dataset}: {frames[0].columns[best]}")
    if not parts:
        return {}
    gain, low, high = gain_over_best(parts)
    return {"gain": gain, "low": low, "high": high, "priors": "; ".join(priors)}


def _score_frames(
    claim: Claim, dataset: str, preset: str, choose: str, e: Evidence
) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Return the scores of C-Mixup and the priors, a column each, by seed or object, of test and of `choose`."""
    metric = claim.metrics[0]
    if metric == "mse":  # over the objects of test tasks
        if choose != "test":
            return None
        frame = e.frame(e.results / f"task_errors/{dataset}_cpu.csv")
        means = frame.groupby("object")[["cmixup_meta", *claim.priors]].mean()
        return means, means

    def scores(split: str) -> pd.DataFrame:
        columns, place = {}, (claim.experiment, dataset, preset)
        for method in ("cmixup", *claim.priors):
            with contextlib.suppress(Unsupported):
                columns[method] = _sample(claim, place, metric, method, e, split=split).values
        return pd.DataFrame(columns)

    test = scores("test")
    if "cmixup" not in test or len(test.columns) < 3:
        return None
    test = test[test["cmixup"].notna()]
    return test, scores(choose).reindex(index=test.index, columns=list(test))


@functools.cache
def all_comparisons() -> dict[tuple[str, str], list[Comparison]]:
    """Return the comparisons of each claim and preset."""
    e, claims = published_evidence(), load_claims().items()
    return {(name, preset): list(comparisons(claim, preset, e)) for name, claim in claims for preset in PRESETS}


@functools.cache
def claim_rows() -> list[dict[str, Any]]:
    """Return a row a claim and preset, as of results/claims.csv."""
    e, rows = published_evidence(), []
    for name, claim in load_claims().items():
        fixed = claim.curves or claim.tasks or claim.divergence or claim.metrics == ["mse"]
        for preset in PRESETS[:1] if fixed else PRESETS:
            row = {"claim": name, "says": claim.says, "where": claim.where, "rule": claim.rule}
            row["preset"] = "" if fixed else preset
            if claim.rule == "gain":
                for choose in ("test", "val"):
                    if estimate := percent_gain(claim, preset, e, choose=choose):
                        verdict = HOLDS if estimate["low"] > 0 else FAILS if estimate["high"] < 0 else OPEN
                        numbers = {key: round(float(estimate[key]), 2) for key in ("gain", "low", "high")}
                        choice = {"rule": f"gain, best prior by {choose}", "priors": estimate["priors"]}
                        rows.append({**row, **choice, **numbers, "published": claim.percent, "verdict": verdict})
                continue
            if every := all_comparisons()[name, preset]:
                sides = [side for _, side, _ in every]
                counts = {"for": sides.count(1), "against": sides.count(-1), "undecided": sides.count(0)}
                rows.append({**row, **counts, "verdict": judge(claim.rule, every)})
    return rows


@writes
def claims_file() -> dict[str, str]:
    """Return results/claims.csv."""
    return {"claims.csv": to_csv(claim_rows(), COLUMNS)}


HEAD = ("the paper says", "printed hyperparameters", "the authors' code's")


@fills
def claims_part() -> dict[str, dict[str, str]]:
    """Return the table of claims, a row a claim."""
    rows, body = claim_rows(), []
    for (name, claim), by_validation in itertools.product(load_claims().items(), (False, True)):
        texts = {row["preset"]: _verdict_text(row) for row in rows
                 if row["claim"] == name and row["rule"].endswith("by val") == by_validation}  # fmt: skip
        if texts:
            says = "the same, with the prior approach chosen by validation" if by_validation else claim.says
            body.append([says, *(texts.get(p, texts.get("", "—")) for p in PRESETS)])
    return {"results/findings.md": {"claims": markdown_table(HEAD, body, left=len(HEAD))}}


def _verdict_text(row: Mapping[str, Any]) -> str:
    if "gain" in row:
        gain = interval_text(Interval(row["gain"], row["low"], row["high"], 1), 1)
        return f"**{row['verdict']}**: {gain} %"
    counted = ", ".join(f"{row[side]} {side}" for side in ("for", "against", "undecided") if row[side])
    return f"**{row['verdict']}**: {counted}"


def claim_counts() -> str:
    """How many claims in the paper's words hold with the printed hyperparameters."""
    verdicts = [row["verdict"] for row in claim_rows() if row["preset"] != PRESETS[1] and "val" not in row["rule"]]
    counts = f"{verdicts.count(HOLDS)} hold, {verdicts.count(FAILS)} fail, {verdicts.count(OPEN)} are {OPEN}"
    return f"Of {len(verdicts)} claims in words, {counts}"


@fills
def gains_part() -> dict[str, dict[str, str]]:
    """Return the count of claims, and the table of the abstract's gains as differences of errors, beside ours."""
    e, claims, body = published_evidence(), load_claims(), []
    # Of two presets the second: with the printed bandwidth, C-Mixup is ERM on SkillCraft. Findings has both.
    rows = (row for row in claim_rows() if row["rule"] == "gain, best prior by test" and row["preset"] != PRESETS[0])
    for row in rows:
        claim, datasets = claims[row["claim"]], [prior.partition(":")[0] for prior in row["priors"].split("; ")]
        where = f"{row['says'].partition('approach ')[2]}: {', '.join(map(names.dataset_title, datasets))}"
        best, gain = _paper_gain(claim, datasets, e)
        if not row["preset"]:  # on new tasks, of one dataset
            sides = map(names.method_title, (best, row["priors"].partition(": ")[2]))
            leads = "{} in the paper, {} in our runs".format(*sides)
        ours = interval_text(Interval(-row["gain"], -row["high"], -row["low"], 1), 1)
        body.append([where, f"{-claim.percent:+.1f}", f"{-gain:+.1f}", ours])
    head = ("C-Mixup minus the best prior method, % (below 0: better)", "the abstract, all datasets",
            "the paper, these datasets", "ours, these datasets")  # fmt: skip
    parts = {"gains": markdown_table(head, body), "claim_counts": claim_counts(), "best_prior": leads}
    return {"results/README.md": parts}


def _paper_gain(claim: Claim, datasets: Sequence[str], e: Evidence) -> tuple[str, float]:
    """Return the best prior method of the last dataset, and the mean gain over the best in percent, by the paper."""
    gains = []
    for dataset in datasets:
        printed = dataset.removesuffix("_rendered")
        query = {"from": "paper", "experiment": claim.experiment, "dataset": printed, "metric": claim.metrics[0]}
        ours = e.find({**query, "method": "cmixup_meta" if claim.metrics == ["mse"] else "cmixup"})
        priors = {method: sample.mean for method in claim.priors if (sample := e.find({**query, "method": method}))}
        best = min(priors, key=priors.__getitem__)
        assert ours
        gains.append(100 * (priors[best] - ours.mean) / priors[best])
    return best, float(np.mean(gains))
