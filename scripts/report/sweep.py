"""Scores over the values of one option, or of several (the ablation grid): their runs, and tables of them."""

from __future__ import annotations

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cmixup.errors import InputError
from scripts.config.compose import part_file
from scripts.plan.selection import recorded_under, selected_methods, shared_options
from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.report.result_table import markdown_rows, mean_text
from scripts.stats.intervals import Interval, clustered_interval, interval_text, paired_or_none, summarise_values

Report = Mapping[str, Any]


@dataclass(frozen=True)
class Point:
    """The runs of one value of an option.

    Attributes:
        value: of the option.
        scores: test score by seed.
        on_val: mean of the same score on validation; NaN where validation has no such score.
        fraction: mean over seeds of the effective-partner fraction; NaN where the method has none.
        verdict: of the bandwidth doctor, the most frequent over seeds.
        erm: test score by seed of ERM with all other options the same, where a user's runs have it.
    """

    value: Any
    scores: dict[int, float]
    on_val: float = math.nan
    fraction: float = math.nan
    verdict: str = ""
    erm: Mapping[int, float] = field(default_factory=dict)

    @property
    def interval(self) -> Interval:
        """The mean over seeds with its 95 % t interval; with one seed all three are its score."""
        return seed_interval(self.scores)


@dataclass(frozen=True)
class Sweep:
    """Scores over an option, of a dataset beside methods that do not have the option, or of a user's runs.

    Attributes:
        title: the dataset's, or what tells the runs from others.
        option, metric: over which, and which score.
        points: in ascending order of their values.
        lines: test scores by seed of the other methods, by name.
        published: the preset's own value.
    """

    title: str
    option: str
    metric: str
    points: list[Point]
    lines: dict[str, dict[int, float]] = field(default_factory=dict)
    published: Any = None


def seed_interval(scores: Mapping[int, float]) -> Interval:
    """Return the mean over seeds with its 95 % t interval; with one seed all three are its score."""
    interval = clustered_interval(list(scores.values()), list(scores))
    mean = summarise_values(list(scores.values())).mean
    return interval or Interval(mean, mean, mean, len(scores))


def option_value(report: Report, option: str) -> Any:
    """Return the value that a run had for an option such as `method.bandwidth`; of a part, its name.

    Raises:
        InputError: the run's configuration has no such option.
    """
    node = report["config"]
    for word in option.split("."):
        if not isinstance(node, Mapping) or word not in node:
            raise InputError(f"option {option!r} is not in the configuration of {report['run']}")
        node = node[word]
    return node.get("name") if isinstance(node, Mapping) else node


def scores_by_seed(reports: Iterable[Report], metric: str) -> dict[int, float]:
    """Return the test scores of runs by seed.

    Raises:
        InputError: two runs of one seed, or a run without such a score.
    """
    runs: dict[int, Report] = {}
    for report in sorted(reports, key=lambda r: r["seed"]):
        if metric not in (scores := report["scores"]["test"]):
            raise InputError(f"metric must be one of {', '.join(scores)} for {report['dataset']}, got {metric!r}")
        other = runs.setdefault(int(report["seed"]), report)
        if other is not report:
            both = f"{other['run']} and {report['run']}"
            raise InputError(f"seed {report['seed']} is there twice with the same options: {both}")
    return {seed: float(report["scores"]["test"][metric]) for seed, report in runs.items()}


def sweep_points(reports: Sequence[Report], option: str, metric: str) -> list[Point]:
    """Return a point a value of the option, numbers in ascending order before words; lists become tuples."""
    groups: dict[Any, list[Report]] = {}
    for report in sorted(reports, key=lambda r: r["seed"]):
        value = option_value(report, option)
        groups.setdefault(tuple(value) if isinstance(value, list) else value, []).append(report)
    return [_make_point(value, groups[value], metric) for value in sorted(groups, key=_value_order)]


def _make_point(value: Any, reports: Sequence[Report], metric: str) -> Point:
    on_val = [float(r["scores"]["val"].get(metric, math.nan)) for r in reports]
    fractions = [r["facts"].get("effective_fraction", math.nan) for r in reports]
    (verdict, _), *_ = Counter(r["verdict"] for r in reports).most_common(1)
    return Point(value, scores_by_seed(reports, metric), statistics.fmean(on_val), statistics.fmean(fractions), verdict)


def option_number(value: Any) -> float | None:
    """Return a value as a number, infinity written as a word too, or None if it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _value_order(value: Any) -> tuple[int, float, str]:
    number = option_number(value)
    return (1, 0.0, str(value)) if number is None else (0, number, "")


def value_text(value: Any) -> str:
    """Return a value of an option as it is printed."""
    if isinstance(value, (list, tuple)):
        return " ".join(map(value_text, value))
    return f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def find_sweeps(experiment: Experiment, reports: Sequence[Report], preset: str) -> list[Sweep]:
    """Return the sweep of every dataset that has runs of a preset, from reports of any runs."""
    option, method, metric = experiment.sweep["option"], experiment.sweep["method"], experiment.metrics[0]
    shared = shared_options(experiment)
    sweeps = []
    for dataset in experiment.datasets:
        here = [r for r in reports if (r["dataset"], r["preset"]) == (dataset, preset)]
        mine = [r for r in here if (r["experiment"], r["method"]) == (experiment.name, method)]
        swept = sweep_points([r for r in mine if _without_option(option, r["options"]) in ({}, shared)], option, metric)
        if len(swept) < 2:
            continue
        lines, seeds = {}, {seed for point in swept for seed in point.scores}  # others' means are of the same seeds
        for other in selected_methods(experiment, dataset, [m for m in experiment.methods if m != method]):
            where = (recorded_under(experiment, other, dataset), other)
            runs = [r for r in here if (r["experiment"], r["method"]) == where and r["options"] in ({}, shared)]
            if runs := [r for r in runs if r["seed"] in seeds]:
                lines[other] = scores_by_seed(runs, metric)
        published = part_file("dataset", dataset)["presets"].get(preset, {}).get(option.rpartition(".")[2])
        sweeps.append(Sweep(names.dataset_title(dataset), option, metric, swept, lines, published))
    return sweeps


def _without_option(option: str, options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key != option}


def decimals_for(scores: Iterable[float]) -> int:
    """Return how many decimals tell scores of this size apart."""
    return 4 if max(map(abs, scores)) < 0.1 else 3


def sweep_page(experiment: Experiment, sweeps: Sequence[Sweep], preset: str, missing: Sequence[str] = ()) -> str:
    """Return the table of a sweep, a block a dataset."""
    about = f" ({experiment.about_preset[preset]})" if preset in experiment.about_preset else ""
    legend = (
        "Test score, mean ± standard deviation over n seeds. Minus: paired differences over shared seeds, mean [95 % t "
        "interval], none corrected for how many there are. Partners: effective partners as a share of the training "
        "rows (1 is mixup); bold is the preset's own value."
    )
    parts = [f"# {experiment.title}, preset {preset}{about}", "", legend]
    for sweep in sweeps:
        d = decimals_for(p.interval.mean for p in sweep.points)
        option = sweep.option.rpartition(".")[2]
        head = [option, "partners", "verdict", "n", names.metric_title(sweep.metric)]
        rows = [[names.method_title(m), "", "", str(len(s)), mean_text(s, d), *[""] * len(sweep.lines)]
                for m, s in sweep.lines.items()]  # fmt: skip
        for p in sweep.points:
            value = f"**{value_text(p.value)}**" if p.value == sweep.published else value_text(p.value)
            differences = [interval_text(paired_or_none(p.scores, line), d) for line in sweep.lines.values()]
            partners = "" if math.isnan(p.fraction) else f"{p.fraction:.3g}"
            rows.append([value, partners, p.verdict, str(len(p.scores)), mean_text(p.scores, d), *differences])
        head += [f"minus {names.method_title(m)}" for m in sweep.lines]
        parts += ["", f"## {sweep.title}", "", *markdown_rows(head, rows)]
        parts += ["", *(f"- {line}" for line in limit_lines(sweep))] if experiment.sweep.get("limits") else []
    parts += ["", "Not in this table:", "", *(f"- {line}" for line in missing)] if missing else []
    return "\n".join([*parts, *([""] + [f"- {note}" for note in experiment.notes] if experiment.notes else []), ""])


def limit_lines(sweep: Sweep) -> list[str]:
    """Return a line for each end of a sweep: its paired difference to the method that it should be."""
    lines = []
    ends = [("smallest", sweep.points[0]), ("largest", sweep.points[-1])]
    for (word, point), method in zip(ends, sweep.lines, strict=False):  # lines may be missing
        difference = paired_or_none(point.scores, sweep.lines[method])
        if difference is None:
            continue
        inside = "contains" if difference.low <= 0 <= difference.high else "excludes"
        verdict = f" ({point.verdict})" if point.verdict else ""
        text = interval_text(difference, decimals_for([point.interval.mean]))
        lines.append(
            f"Limit: the {word} {sweep.option.rpartition('.')[2]}, {value_text(point.value)}{verdict}, minus "
            f"{names.method_title(method)}: {text}, n = {difference.n}; the interval {inside} 0."
        )
    return lines


GridPoint = tuple[Any, ...]  # a value of each option of the grid
Scores = dict[tuple[str, GridPoint], dict[int, float]]  # test score by seed, of a method at a point
BASE = "erm"


def scores_of(experiment: Experiment, reports: Iterable[Report], dataset: str, preset: str) -> Scores:
    """Return the test scores by seed of every method and point of a dataset that has runs.

    Raises:
        InputError: two runs of one seed, as where a further option was changed.
    """
    runs: dict[tuple[str, GridPoint], list[Report]] = defaultdict(list)
    for report in reports:
        if (report["experiment"], report["dataset"], report["preset"]) == (experiment.name, dataset, preset):
            runs[report["method"], tuple(option_value(report, option) for option in experiment.grid)].append(report)
    return {key: scores_by_seed(members, experiment.metrics[0]) for key, members in runs.items()}


def grid_page(experiment: Experiment, reports: Sequence[Report], preset: str, missing: Sequence[str] = ()) -> str:
    """Return the page: a block a dataset."""
    legend = (
        f"Test {names.metric_title(experiment.metrics[0])}: ERM's mean ± standard deviation over n seeds, and each "
        "method minus ERM in the same row over shared seeds, mean [95 % t interval], none corrected for how many."
    )
    parts = [f"## {experiment.title}, preset {preset}", "", legend]
    for dataset in experiment.datasets:
        if scores := scores_of(experiment, reports, dataset, preset):
            parts += ["", f"### {names.dataset_title(dataset)}", "", *_grid_block(experiment, scores)]
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


def _short_option(option: str) -> str:
    return option.rpartition(".")[2].replace("_", " ")


def _value_place(experiment: Experiment, k: int, value: Any) -> int:
    """Return the place of a value among those of the k-th option; others come last."""
    values = list(experiment.grid.values())[k]
    return values.index(value) if value in values else len(values)
