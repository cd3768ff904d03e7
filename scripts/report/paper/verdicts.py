"""Verdicts of our runs on the published differences of results/artefacts.yaml, and the map of artefacts on pages.

"First is better than second" is judged twice by 95 % intervals: the direction by that of our difference, the magnitude
by that of ours minus the paper's.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cmixup.metrics import metric_of
from scripts.config.arguments import parse_seeds
from scripts.config.compose import read_part
from scripts.config.parts import check_part
from scripts.plan.selection import recorded_under, selected_seeds
from scripts.records import names
from scripts.records.experiment import RESULTS, stands_for
from scripts.report.evidence import Evidence, Query, Sample, experiment_of, sample_difference
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import Difference, Interval, of_interval, unpaired_difference

FILE = "artefacts.yaml"
SELF = 0.99  # every row is its own partner where more of the draws than this are the row itself
SAME, OPPOSITE, UNKNOWN = "same", "opposite", "inconclusive"  # directions; the last is a magnitude, too
COMPATIBLE, SMALLER, LARGER = "compatible", "smaller", "larger"
OPEN = "incomplete"  # fewer seeds than the experiment plans
IDLE = "degenerate"  # equals ERM: every row is its own partner
REPRODUCES, SMALL = "reproduces", f"direction {UNKNOWN}, {SMALLER}"  # outcomes


@dataclass(frozen=True)
class Artefact:
    """A table, figure or theorem of the paper: an entry of results/artefacts.yaml, whose head explains each key."""

    paper: str
    what: str
    command: str
    experiment: str = ""
    presets: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    gain: list = field(default_factory=list)
    worst: bool = False
    compare: dict = field(default_factory=dict)
    decides: str = ""
    words: str = ""
    links: dict = field(default_factory=dict)


def load_artefacts(results: Path = RESULTS) -> list[Artefact]:
    """Read and check results/artefacts.yaml, in its order."""
    nodes = read_part(results / FILE)
    return [Artefact(**check_part(f"{FILE}: {name}", node, function=Artefact).given) for name, node in nodes.items()]


def judge_gain(ours: Difference, paper: Difference, *, lower: bool) -> tuple[str, str]:
    """Return direction and magnitude of "first is better than second", of our difference and the published one.

    The direction is inconclusive where the interval of ours holds 0. The magnitude is smaller or larger where that of
    ours minus the paper's excludes 0, and inconclusive where it holds both 0 and what no effect would give.
    """
    better = -1 if lower else 1
    direction = (UNKNOWN, SAME, OPPOSITE)[better * _side_of_zero(ours)]
    apart = ours.minus(paper)
    low, high = apart.ends()
    if side := better * _side_of_zero(apart):
        return direction, LARGER if side > 0 else SMALLER
    return direction, UNKNOWN if low <= -paper.mean <= high else COMPATIBLE


def _side_of_zero(effect: Difference) -> int:
    """Return 1 where the whole 95 % interval lies above 0, -1 below, and 0 where it contains it."""
    low, high = effect.ends()
    return int(low > 0) - int(high < 0)


@dataclass(frozen=True)
class Finding:
    """The verdict of our runs on one statement of the paper: `ours` and `paper` are effects, first minus second."""

    where: str  # a dataset's title, or the subject of the statement
    direction: str = UNKNOWN  # `SAME`, `OPPOSITE` or `UNKNOWN`; `OPEN` or `IDLE` where nothing is judged
    magnitude: str = ""  # `COMPATIBLE`, `SMALLER`, `LARGER` or `UNKNOWN`; empty where nothing is judged
    n: int = 0  # seeds or clusters
    label: str = ""  # which comparison, where there are several of one `where`
    preset: str = ""  # whose runs; empty where no preset decides
    ours: Interval | None = None
    paper: Difference | None = None
    decimals: int = 3  # that the paper prints
    dataset: str = ""  # of our runs, where the comparison is of one; `metric`, too
    metric: str = ""
    samples: tuple[Sample, Sample] | None = None  # our numbers of first and second

    @property
    def outcome(self) -> str:
        """Both in a few words; "reproduces" is the same direction and a compatible magnitude."""
        if self.direction == SAME:
            size = {COMPATIBLE: REPRODUCES, UNKNOWN: "same direction, size inconclusive"}
            return size.get(self.magnitude, f"same direction, {self.magnitude}")
        if self.direction == UNKNOWN and self.magnitude in (SMALLER, LARGER):
            return f"direction {UNKNOWN}, {self.magnitude}"
        return "opposite direction" if self.direction == OPPOSITE else self.direction or self.magnitude


def find_all(artefact: Artefact, evidence: Evidence) -> list[Finding]:
    """Return a finding for every comparison, dataset and preset with runs."""
    findings = [_of_comparison(evidence, **artefact.compare)] if artefact.compare else []
    datasets = experiment_of(artefact.experiment).datasets if artefact.gain else ()
    for dataset, preset in itertools.product(datasets, artefact.presets):
        findings += _of_methods(artefact, dataset, Finding(names.dataset_title(dataset), preset=preset), evidence)
    return [one for one in findings if one]


def _of_comparison(
    evidence: Evidence, *, where: str, of: Query, first: Query, second: Query, paper: Sequence[Query], runs: Query
) -> Finding | None:
    """Return the finding of an entry of `compare`, whose keys these arguments are; lower is better.

    `first` and `second` change the query `of`; the seeds of `runs` are held to the experiment's plan.
    """
    planned = _planned_seeds(runs["experiment"], runs["dataset"])
    return _judge(Finding(where), evidence, [{**of, **first}, {**of, **second}], [runs], paper, planned=planned)


def _of_methods(artefact: Artefact, dataset: str, about: Finding, evidence: Evidence) -> Iterator[Finding | None]:
    """Yield the finding of every pair of methods and score of one dataset and preset."""
    experiment = experiment_of(artefact.experiment)
    score = (experiment.metrics_of.get(dataset, experiment.metrics) or ["rmse"])[0]
    planned = _planned_seeds(artefact.experiment, dataset)
    for metric, (first, second) in itertools.product([score, *[f"worst_{score}"] * artefact.worst], artefact.gain):
        same = {"dataset": dataset, "preset": about.preset, "metric": metric, "options": artefact.options}
        ours = [recorded_query(artefact.experiment, {**same, "method": method}) for method in (first, second)]
        paper = [{**query, "experiment": experiment.name, "from": "paper"} for query in ours]
        where = about.where if metric == score else f"worst domain of {about.where}"
        label = names.method_title(second) if len(artefact.gain) > 1 else ""
        yield _judge(replace(about, where=where, label=label), evidence, ours, ours, paper, planned=planned)


def _judge(
    about: Finding, evidence: Evidence, sides: Sequence[Query], runs: Sequence[Query], paper: Sequence[Query], *,
    planned: int,
) -> Finding | None:  # fmt: skip
    """Return `about` with what is judged, or None where a side has no runs or the paper no number.

    `sides`, `runs` (which gave them) and `paper` are queries; `planned` is how many seeds the experiment plans.
    """
    one, other, printed, beside = map(evidence.find, (*sides, *paper))
    if not (one and other and printed and beside):
        return None
    theirs = unpaired_difference(printed.summary, beside.summary)
    ours, shared = sample_difference(one, other), len(set(one.values) & set(other.values))
    judged: tuple[str, str] = UNKNOWN, ""
    if _is_idle(runs, evidence):
        judged = IDLE, ""
    elif min([shared, *(len(sample.values) for query in runs if (sample := evidence.find(query)))]) < planned:
        judged = OPEN, ""
    elif ours:
        # What is no score is better if lower.
        lower = "metric" not in sides[0] or metric_of(sides[0]["metric"]).lower_is_better
        judged = judge_gain(of_interval(ours), theirs, lower=lower)
    return replace(
        about, direction=judged[0], magnitude=judged[1], n=ours.n if ours else shared, ours=ours, paper=theirs,
        decimals=printed.decimals, dataset=runs[0]["dataset"], metric=sides[0].get("metric", ""), samples=(one, other),
    )  # fmt: skip


def _is_idle(runs: Sequence[Query], evidence: Evidence) -> bool:
    """Return whether every row is its own partner in some of the runs."""
    samples = (evidence.find({**query, "split": "train", "metric": "self_probability"}) for query in runs)
    return any(one.mean > SELF for one in samples if one)


def _planned_seeds(name: str, dataset: str) -> int:
    """Return how many seeds the file of an experiment plans on a dataset."""
    experiment = experiment_of(name)
    return len(selected_seeds(experiment, dataset, parse_seeds(experiment.seeds)))


def recorded_query(name: str, query: Query) -> Query:
    """Return the query of our runs that an experiment's row of a method is about."""
    experiment, dataset = experiment_of(name), query["dataset"]
    ours = stands_for(experiment, dataset, query["method"])
    return {**query, "method": ours, "experiment": recorded_under(experiment, ours, dataset)}


HEAD = ("in the paper", "what it shows", "command", "see")


@fills
def map_part() -> dict[str, dict[str, str]]:
    """Return the map: which command makes each table and figure of the paper, and where it stands."""
    rows = []
    for artefact in load_artefacts():
        what = f"{artefact.what}; {artefact.words}" if artefact.words else artefact.what
        links = ", ".join(f"[{text}]({link})" for text, link in artefact.links.items())
        rows.append([re.sub(r" \(tab:[^)]*\)", "", artefact.paper), what, f"`make {artefact.command}`", links])
    return {f"{RESULTS.name}/README.md": {"map": markdown_table(HEAD, rows, left=len(HEAD))}}
