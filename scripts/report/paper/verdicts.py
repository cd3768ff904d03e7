"""Verdicts of our runs on the published differences of results/artefacts.yaml.

"First is better than second" is judged twice by 95 % intervals: the direction by that of our difference, the magnitude
by that of ours minus the paper's.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cmixup.metrics import metric_of
from scripts.config.compose import read_part
from scripts.config.parts import check_part
from scripts.plan.selection import recorded_under
from scripts.records import names
from scripts.records.experiment import RESULTS, stands_for
from scripts.report.evidence import Evidence, Query, Sample, experiment_of, sample_difference
from scripts.stats.intervals import Difference, Interval, of_interval, unpaired_difference

FILE = "artefacts.yaml"
SELF = 0.99  # every row is its own partner where more of the draws than this are the row itself
BETTER, WORSE, UNDECIDED = "better", "worse", "undecided"  # how the first method of a difference compares
COMPATIBLE, SMALLER, LARGER, UNKNOWN = "compatible", "smaller", "larger", "inconclusive"  # magnitudes
IDLE = "degenerate"  # equals ERM: every row is its own partner
PAPER, REDUCED, RENDERED = "paper", "reduced", "rendered"  # networks; a reduced one is narrower, or trains shorter


@dataclass(frozen=True)
class Artefact:
    """A table of the paper beside our runs: an entry of results/artefacts.yaml, whose head explains each key."""

    paper: str
    decides: str
    experiment: str = ""
    presets: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    gain: list = field(default_factory=list)
    worst: bool = False
    compare: dict = field(default_factory=dict)


def load_artefacts(results: Path = RESULTS) -> list[Artefact]:
    """Read and check results/artefacts.yaml, in its order."""
    nodes = read_part(results / FILE)
    return [Artefact(**check_part(f"{FILE}: {name}", node, function=Artefact).kwargs) for name, node in nodes.items()]


def judge_gain(ours: Difference, paper: Difference, *, lower: bool) -> tuple[str, str]:
    """Return direction and magnitude of "first is better than second", of our difference and the published one.

    The direction is undecided where the interval of ours holds 0. The magnitude is smaller or larger where that of
    ours minus the paper's excludes 0. It is inconclusive where that holds 0 and the opposite of the paper's difference.
    """
    better = -1 if lower else 1
    direction = (UNDECIDED, BETTER, WORSE)[better * ours.side]
    gap = ours.minus(paper)
    low, high = gap.ends()
    if side := better * gap.side:
        return direction, LARGER if side > 0 else SMALLER
    return direction, UNKNOWN if low <= -paper.mean <= high else COMPATIBLE


NO_DIFFERENCE = Difference(0.0)


@dataclass(frozen=True)
class Finding:
    """A published difference between two methods, first minus second, and what our runs say of it."""

    title: str  # the table or figure of the paper, with its label
    comparison: str  # which difference, in words
    where: str  # a dataset's title, or what the statement is about
    label: str = ""  # which comparison, where there are several of one `where`
    preset: str = ""  # whose runs
    direction: str = UNDECIDED  # `BETTER`, `WORSE` or `UNDECIDED`; `IDLE` where nothing is judged
    magnitude: str = ""  # `COMPATIBLE`, `SMALLER`, `LARGER` or `UNKNOWN`; empty where nothing is judged
    n: int = 0  # seeds or clusters
    ours: Interval | None = None  # None of fewer than two seeds
    paper: Difference = NO_DIFFERENCE
    decimals: int = 3  # that the paper prints
    dataset: str = ""  # of our runs
    metric: str = ""  # of these, where it is a score
    samples: tuple[Sample, ...] = ()  # our numbers of first and second

    @property
    def network(self) -> str:
        """`PAPER`, `REDUCED` or `RENDERED`: whose network our runs train, and on whose data."""
        return RENDERED if "rendering" in self.where else REDUCED if self.preset == "cpu" else PAPER

    @property
    def established(self) -> bool:
        """Whether Welch's 95 % interval of the published difference, whose seeds are not paired, excludes 0."""
        return self.paper.side != 0

    @property
    def last_epoch(self) -> bool:
        """Whether it scores the last epoch of runs that another statement scores at the best: no count has both."""
        return self.title.endswith("RCF-MNIST")

    @property
    def name(self) -> str:
        """The difference on a page, such as "Airfoil" or "RCF-MNIST, CutMix"."""
        return ", ".join(filter(None, (self.where, self.label, "last epoch" * self.last_epoch)))

    @property
    def compared(self) -> str:
        """What is subtracted from what."""
        return self.comparison.format(self.label)

    @property
    def table(self) -> str:
        """The paper's table, such as "Table 1"."""
        return self.title.partition(" (")[0]

    @property
    def key(self) -> tuple[str, str, str]:
        """What tells it from others."""
        return self.title, self.name, self.preset

    @property
    def outcome(self) -> str:
        """How the first method compares, and how its gain does with the published one where that is decided."""
        sizes = {COMPATIBLE: "as published", LARGER: "larger than published", SMALLER: "smaller than published"}
        decided = self.direction == BETTER and self.magnitude in sizes
        return f"{self.direction}; {sizes[self.magnitude]}" if decided else self.direction


def find_all(artefact: Artefact, evidence: Evidence) -> list[Finding]:
    """Return what our runs say: a finding for every comparison, dataset and preset with runs."""
    about = Finding(artefact.paper, artefact.decides, "")
    findings = list[Finding | None]()
    if comparison := artefact.compare:
        sides = [{**comparison["of"], **comparison[side]} for side in ("first", "second")]
        finding = replace(about, where=comparison["where"], preset=artefact.presets[0])
        findings = [_judge(finding, evidence, sides, [comparison["runs"]], comparison["paper"])]
    datasets = experiment_of(artefact.experiment).datasets if artefact.gain else ()
    for dataset, preset in itertools.product(datasets, artefact.presets):
        findings += _method_findings(artefact, dataset, replace(about, preset=preset), evidence)
    return [finding for finding in findings if finding]


def scores_of(artefact: Artefact, dataset: str) -> list[str]:
    """Return the scores of a table that are judged on a dataset: the first, and the worst domain's where it is, too."""
    experiment = experiment_of(artefact.experiment)
    score = (experiment.metrics_of.get(dataset, experiment.metrics) or ["rmse"])[0]
    return [score, *[f"worst_{score}"] * artefact.worst]


def _method_findings(artefact: Artefact, dataset: str, about: Finding, evidence: Evidence) -> Iterator[Finding | None]:
    """Yield the finding of every pair of methods and score of one dataset and preset."""
    experiment, scores = experiment_of(artefact.experiment), scores_of(artefact, dataset)
    for metric, (first, second) in itertools.product(scores, artefact.gain):
        same = {"dataset": dataset, "preset": about.preset, "metric": metric, "options": artefact.options}
        ours = [recorded_query(artefact.experiment, {**same, "method": method}) for method in (first, second)]
        paper = [{**query, "experiment": experiment.name, "from": "paper"} for query in ours]
        where = "worst domain of " * (metric != scores[0]) + names.dataset_title(dataset)
        label = names.method_title(second) if len(artefact.gain) > 1 else ""
        yield _judge(replace(about, where=where, label=label), evidence, ours, ours, paper)


def _judge(
    about: Finding, evidence: Evidence, sides: Sequence[Query], runs: Sequence[Query], paper: Sequence[Query]
) -> Finding | None:
    """Return `about` with what is judged; None where a side has no runs or the paper no number. `runs` gave `sides`."""
    one, other, printed, beside = map(evidence.find, (*sides, *paper))
    if not (one and other and printed and beside):
        return None
    theirs = unpaired_difference(printed.summary, beside.summary)
    ours, shared = sample_difference(one, other), len(set(one.values) & set(other.values))
    idle = (evidence.find({**query, "split": "train", "metric": "self_probability"}) for query in runs)
    judged: tuple[str, str] = UNDECIDED, ""
    if any(sample.mean > SELF for sample in idle if sample):
        judged = IDLE, ""
    elif ours:
        # A column that is no score is better if lower.
        lower = "metric" not in sides[0] or metric_of(sides[0]["metric"]).lower_is_better
        judged = judge_gain(of_interval(ours), theirs, lower=lower)
    return replace(
        about, direction=judged[0], magnitude=judged[1], n=ours.n if ours else shared, ours=ours, paper=theirs,
        decimals=printed.decimals, dataset=runs[0]["dataset"], metric=sides[0].get("metric", ""), samples=(one, other),
    )  # fmt: skip


def recorded_query(name: str, query: Query) -> Query:
    """Return the query of our runs that an experiment's row of a method is about."""
    experiment, dataset = experiment_of(name), query["dataset"]
    ours = stands_for(experiment, dataset, query["method"])
    return {**query, "method": ours, "experiment": recorded_under(experiment, ours, dataset)}
