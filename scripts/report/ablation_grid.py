"""The ablation grid: every method with every combination of training options, and which of them a gain comes from.

A gain is split among the options that change and the method as Shapley values: what each adds, averaged over all orders
in which they can change. The parts of a seed sum exactly to its gain, and intervals are over seeds.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.records.tables import interval_text, markdown_rows, mean_text
from scripts.report.sweep import decimals_for, option_value, scores_by_seed
from scripts.stats.intervals import Interval, clustered_interval, paired_or_none

Report = Mapping[str, Any]
Point = tuple[Any, ...]  # a value of each option of the grid
Scores = dict[tuple[str, Point], dict[int, float]]  # test score by seed, of a method at a point
BASE, METHOD = "erm", "method"


def scores_of(experiment: Experiment, reports: Iterable[Report], dataset: str, preset: str) -> Scores:
    """Return the test scores by seed of every method and point of a dataset that has runs.

    Raises:
        InputError: two runs of one seed, as where a further option was changed.
    """
    runs: dict[tuple[str, Point], list[Report]] = defaultdict(list)
    for report in reports:
        if (report["experiment"], report["dataset"], report["preset"]) == (experiment.name, dataset, preset):
            runs[report["method"], tuple(option_value(report, option) for option in experiment.grid)].append(report)
    return {key: scores_by_seed(members, experiment.metrics[0]) for key, members in runs.items()}


def shapley_parts(value: Callable[[frozenset[str]], float], factors: Sequence[str]) -> dict[str, float]:
    """Return what each factor adds to `value` of the set of factors that have changed, averaged over all orders.

    The parts sum to `value(all) - value(none)`.
    """
    n, parts = len(factors), dict.fromkeys(factors, 0.0)
    for factor in factors:
        others = [other for other in factors if other != factor]
        for size in range(n):
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            for chosen in map(frozenset, itertools.combinations(others, size)):
                parts[factor] += weight * (value(chosen | {factor}) - value(chosen))
    return parts


def account_gain(
    scores: Scores, options: Sequence[str], method: str, start: Point, goal: Point
) -> dict[str, Interval | None] | None:
    """Return the change of the score from ERM at `start` to `method` at `goal`, and each factor's part of it.

    Args:
        scores: of all methods and points.
        options: names of the options that a point has values of.
        method: where the change leads.
        start, goal: points.

    Returns:
        Intervals over the seeds that all corners share, by the option's name, "method" and "total"; None for fewer than
        two seeds. Without runs at one of the corners there is no account.
    """
    changed = [option for option, a, b in zip(options, start, goal, strict=True) if a != b]
    factors = [*changed, METHOD]

    def corner(chosen: frozenset[str]) -> tuple[str, Point]:
        point = tuple(b if option in chosen else a for option, a, b in zip(options, start, goal, strict=True))
        return (method if METHOD in chosen else BASE), point

    corners = [frozenset(c) for size in range(len(factors) + 1) for c in itertools.combinations(factors, size)]
    if any(corner(chosen) not in scores for chosen in corners):
        return None
    seeds = sorted(set.intersection(*(set(scores[corner(chosen)]) for chosen in corners)))
    by_seed = [shapley_parts(lambda chosen, s=seed: scores[corner(chosen)][s], factors) for seed in seeds]  # type: ignore[misc]
    totals = [math.fsum(parts.values()) for parts in by_seed]
    values = {factor: [parts[factor] for parts in by_seed] for factor in factors} | {"total": totals}
    return {name: clustered_interval(v, seeds) if len(seeds) > 1 else None for name, v in values.items()}


def grid_page(experiment: Experiment, reports: Sequence[Report], preset: str, missing: Sequence[str] = ()) -> str:
    """Return the page: a block a dataset, then the account."""
    legend = (
        f"Test {names.metric_title(experiment.metrics[0])}: ERM's mean ± standard deviation over n seeds, and each "
        "method minus ERM in the same row over shared seeds, mean [95 % t interval], none corrected for how many."
    )
    parts = [f"## {experiment.title}, preset {preset}", "", legend]
    for dataset in experiment.datasets:
        if scores := scores_of(experiment, reports, dataset, preset):
            parts += ["", f"### {names.dataset_title(dataset)}", "", *_grid_block(experiment, scores)]
    about = experiment.account
    if about and (scores := scores_of(experiment, reports, about["dataset"], preset)):
        parts += _account_lines(experiment, scores)
    for note in experiment.notes:
        parts += ["", note]
    if missing:
        parts += ["", "### Not in this table", "", *(f"- {line.splitlines()[0]}" for line in missing)]
    return "\n".join(parts) + "\n"


def _grid_block(experiment: Experiment, scores: Scores) -> list[str]:
    methods = [m for m in experiment.methods if m != BASE and any(method == m for method, _ in scores)]
    decimals = decimals_for(value for by_seed in scores.values() for value in by_seed.values())
    points = sorted(
        {point for _, point in scores}, key=lambda p: [_value_place(experiment, k, v) for k, v in enumerate(p)]
    )
    body = []
    for point in points:
        erm = scores.get((BASE, point), {})
        minus = [interval_text(paired_or_none(scores.get((m, point), {}), erm), decimals) for m in methods]
        body.append([*map(str, point), str(len(erm)), mean_text(erm, decimals), *minus])
    head = [*(_short_option(option) for option in experiment.grid), "n", names.method_title(BASE)]
    return markdown_rows([*head, *(f"{names.method_title(m)} minus" for m in methods)], body)


def _account_lines(experiment: Experiment, scores: Scores) -> list[str]:
    about, options = experiment.account, list(experiment.grid)
    start, body = tuple(about["start"]), []
    decimals = decimals_for(value for by_seed in scores.values() for value in by_seed.values())
    for method, goals in about["goals"].items():
        published = f"{about['published'][method] - about['reference']:+.{decimals}f}"
        for goal in map(tuple, goals):
            parts = account_gain(scores, options, method, start, goal)
            if parts:
                cells = [interval_text(parts[o], decimals) if o in parts else "" for o in ("total", *options, METHOD)]
                body.append([names.method_title(method), ", ".join(map(str, goal)), published, *cells])
    if not body:
        return []
    title = names.dataset_title(about["dataset"])
    text = (
        f"From ERM at {', '.join(map(str, start))} to each method at its goal on {title}: the change of the score, and "
        "the part of every option and of the method, averaged over all orders of changing them (Shapley values), mean "
        f"[95 % t interval over seeds]. Published: the method's printed score minus {about['reference']}."
    )
    head = ["method", "goal", "published", "here", *(_short_option(option) for option in options), METHOD]
    return ["", "### Where the gains come from", "", text, "", *markdown_rows(head, body)]


def _short_option(option: str) -> str:
    return option.rpartition(".")[2].replace("_", " ")


def _value_place(experiment: Experiment, k: int, value: Any) -> int:
    """Return the place of a value among those of the k-th option; others come last."""
    values = list(experiment.grid.values())[k]
    return values.index(value) if value in values else len(values)
