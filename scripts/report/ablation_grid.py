"""The ablation grid: every method with every combination of training options, each beside ERM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.records.tables import interval_text, markdown_rows, mean_text
from scripts.report.sweep import decimals_for, option_value, scores_by_seed
from scripts.stats.intervals import paired_or_none

Report = Mapping[str, Any]
Point = tuple[Any, ...]  # a value of each option of the grid
Scores = dict[tuple[str, Point], dict[int, float]]  # test score by seed, of a method at a point
BASE = "erm"


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
