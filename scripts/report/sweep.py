"""Scores over the values of one option, or of several (the ablation grid): their runs, and tables of them."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cmixup.errors import InputError
from scripts.config.compose import part_file
from scripts.plan.selection import grid_points, recorded_under, selected_methods, shared_options
from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.report.result_table import bullets, markdown_page, markdown_table, mean_text, missing_part
from scripts.stats.intervals import Interval, clustered_interval, interval_text, paired_or_none, summarise_values

Report = Mapping[str, Any]
ERM = "erm"


@dataclass(frozen=True)
class Point:
    """The runs of one value of an option.

    Attributes:
        value: of the option.
        scores: test score by seed.
        on_val: mean of the same score on validation; NaN where validation has no such score.
        fraction: mean over seeds of the effective-partner fraction; NaN where the method has none.
        verdict: of `cmixup.diagnose`, the most frequent over seeds.
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
        naive: test scores of predictions that need no training, by name, where all runs have the same.
    """

    title: str
    option: str
    metric: str
    points: list[Point]
    lines: dict[str, dict[int, float]] = field(default_factory=dict)
    published: Any = None
    naive: dict[str, float] = field(default_factory=dict)

    @property
    def short_option(self) -> str:
        """The option's last word."""
        return self.option.rpartition(".")[2]


def seed_interval(scores: Mapping[int, float]) -> Interval:
    """Return the mean over seeds with its 95 % t interval; with one seed all three are its score."""
    interval = clustered_interval(list(scores.values()), list(scores))
    mean = summarise_values(list(scores.values())).mean
    return interval or Interval(mean, mean, mean, len(scores))


def option_value(report: Report, option: str) -> Any:
    """Return the value that a run had for an option such as `method.bandwidth`; of a part, its name."""
    node = report["config"]
    for word in option.split("."):
        if not isinstance(node, Mapping) or word not in node:
            raise InputError(f"option {option!r} is not in the configuration of {report['run']}")
        node = node[word]
    return node.get("name") if isinstance(node, Mapping) else tuple(node) if isinstance(node, list) else node


def scores_by_seed(reports: Iterable[Report], metric: str) -> dict[int, float]:
    """Return the test scores of runs by seed; two runs of one, or one without such a score, are an `InputError`."""
    runs: dict[int, Report] = {}
    for report in sorted(reports, key=lambda r: r["seed"]):
        if metric not in (scores := report["scores"]["test"]):
            raise InputError(f"metric must be one of {', '.join(scores)} for {report['dataset']}, got {metric!r}")
        if (other := runs.setdefault(int(report["seed"]), report)) is not report:
            both = f"{other['run']} and {report['run']}"
            raise InputError(f"seed {report['seed']} is there twice with the same options: {both}")
    return {seed: float(report["scores"]["test"][metric]) for seed, report in runs.items()}


def sweep_points(reports: Iterable[Report], option: str, metric: str) -> list[Point]:
    """Return a point a value of the option, numbers in ascending order before words; lists become tuples."""
    groups: dict[Any, list[Report]] = {}
    for report in reports:
        groups.setdefault(option_value(report, option), []).append(report)
    points = []
    for value, runs in groups.items():
        on_val = statistics.fmean(float(r["scores"]["val"].get(metric, math.nan)) for r in runs)
        fraction = statistics.fmean(r["facts"].get("effective_fraction", math.nan) for r in runs)
        ((verdict, _),) = Counter(r["verdict"] for r in sorted(runs, key=lambda r: r["seed"])).most_common(1)
        points.append(Point(value, scores_by_seed(runs, metric), on_val, fraction, verdict))
    numbers = {value: option_number(value) for value in groups}
    return sorted(points, key=lambda p: (numbers[p.value] is None, numbers[p.value] or 0.0, str(p.value)))


def option_number(value: Any) -> float | None:
    """Return a value as a number, infinity written as a word too, or None if it is none."""
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def value_text(value: Any) -> str:
    """Return a value of an option as it is printed."""
    if isinstance(value, tuple):
        return " ".join(map(value_text, value))
    return f"{value:g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def find_sweeps(experiment: Experiment, reports: Sequence[Report], preset: str) -> list[Sweep]:
    """Return the sweep of every dataset that has runs of a preset, from reports of any runs."""
    option, method, metric = experiment.sweep["option"], experiment.sweep["method"], experiment.metrics[0]
    shared, sweeps = shared_options(experiment), []
    runs: dict[tuple[str, str, str], list[Report]] = {}
    for r in reports:
        if r["preset"] == preset and {k: v for k, v in r["options"].items() if k != option} in ({}, shared):
            runs.setdefault((r["dataset"], r["experiment"], r["method"]), []).append(r)
    for dataset in experiment.datasets:
        swept = sweep_points(runs.get((dataset, experiment.name, method), ()), option, metric)
        if len(swept) < 2:
            continue
        lines, seeds = {}, {seed for point in swept for seed in point.scores}  # others' means are of the same seeds
        for other in selected_methods(experiment, dataset, [m for m in experiment.methods if m != method]):
            beside = runs.get((dataset, recorded_under(experiment, other, dataset), other), ())
            if beside := [r for r in beside if option not in r["options"] and r["seed"] in seeds]:
                lines[other] = scores_by_seed(beside, metric)
        published = part_file("dataset", dataset)["presets"].get(preset, {}).get(option.rpartition(".")[2])
        sweeps.append(Sweep(names.dataset_title(dataset), option, metric, swept, lines, published))
    return sweeps


def decimals_for(scores: Iterable[float]) -> int:
    """Return how many decimals tell scores of this size apart."""
    return 4 if max(map(abs, scores)) < 0.1 else 3


def sweep_page(experiment: Experiment, sweeps: Sequence[Sweep], preset: str, missing: Sequence[str] = ()) -> str:
    """Return the table of a sweep, a block a dataset."""
    about = f" ({experiment.about_preset[preset]})" if preset in experiment.about_preset else ""
    legend = (
        "Test score, mean ± standard deviation over n seeds. Minus: differences paired by seed, mean [95 % t "
        "interval], none corrected for how many there are. Partners: effective partners as a share of the training "
        "rows (1 is mixup); bold is the preset's own value."
    )
    parts = [f"# {experiment.title}, preset {preset}{about}", legend]
    for sweep in sweeps:
        d = decimals_for(p.interval.mean for p in sweep.points)
        rows = [[names.method_title(m), "", "", str(len(s)), mean_text(s, d), *[""] * len(sweep.lines)]
                for m, s in sweep.lines.items()]  # fmt: skip
        for p in sweep.points:
            value = f"**{value_text(p.value)}**" if p.value == sweep.published else value_text(p.value)
            differences = [interval_text(paired_or_none(p.scores, line), d) for line in sweep.lines.values()]
            partners = "" if math.isnan(p.fraction) else f"{p.fraction:.3g}"
            rows.append([value, partners, p.verdict, str(len(p.scores)), mean_text(p.scores, d), *differences])
        head = [sweep.short_option, "partners", "verdict", "n", names.metric_title(sweep.metric)]
        head += [f"minus {names.method_title(m)}" for m in sweep.lines]
        parts += [f"## {sweep.title}", markdown_table(head, rows)]
    return markdown_page(*parts, *missing_part(missing), *([bullets(experiment.notes)] if experiment.notes else []))


def grid_page(experiment: Experiment, reports: Iterable[Report], preset: str, missing: Sequence[str] = ()) -> str:
    """Return the page of an ablation grid: a block a dataset, each method minus ERM in a row a point."""
    runs: dict[tuple[Any, ...], list[Report]] = {}
    for r in reports:
        if (r["experiment"], r["preset"]) == (experiment.name, preset):
            point = tuple(option_value(r, option) for option in experiment.grid)
            runs.setdefault((r["dataset"], r["method"], point), []).append(r)
    scores = {key: scores_by_seed(mine, experiment.metrics[0]) for key, mine in runs.items()}
    legend = (
        f"Test {names.metric_title(experiment.metrics[0])}: ERM's mean ± standard deviation over n seeds, and each "
        "method minus ERM in the same row, paired by seed, mean [95 % t interval], none corrected for how many."
    )
    parts = [f"## {experiment.title}, preset {preset}", legend]
    for dataset in experiment.datasets:
        here = {key[1:]: mine for key, mine in scores.items() if key[0] == dataset}
        if not here:
            continue
        methods = [m for m in experiment.methods if m != ERM and m in {method for method, _ in here}]
        d, body = decimals_for(value for mine in here.values() for value in mine.values()), []
        for point in (tuple(values.values()) for values in grid_points(experiment, dataset)):
            erm, *others = (here.get((m, point), {}) for m in (ERM, *methods))
            if erm or any(others):
                minus = [interval_text(paired_or_none(other, erm), d) for other in others]
                body.append([*map(str, point), str(len(erm)), mean_text(erm, d), *minus])
        head = [*(option.rpartition(".")[2].replace("_", " ") for option in experiment.grid), "n"]
        head += [names.method_title(ERM), *(f"{names.method_title(m)} minus" for m in methods)]
        parts += [f"### {names.dataset_title(dataset)}", markdown_table(head, body)]
    return markdown_page(*parts, *experiment.notes, *missing_part([line.splitlines()[0] for line in missing]))
