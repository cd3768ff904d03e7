"""What our runs say of every statement of the paper that results/artefacts.yaml lists, and the map of these on pages.

"First is better than second" is judged twice by 95 % intervals: the direction by that of our difference, the magnitude
by that of ours minus the paper's. "Both are equivalent" has no direction, and a margin for its magnitude.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cmixup.metrics import metric_of
from scripts.config.arguments import parse_seeds
from scripts.config.compose import read_part
from scripts.config.parts import check_part
from scripts.plan.selection import points_of, recorded_under, selected_seeds, swept_option
from scripts.records import names
from scripts.records.experiment import RESULTS, stands_for
from scripts.report.evidence import Evidence, Query, Sample, experiment_of, published_evidence, sample_difference
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import Difference, Interval, interval_text, of_interval, unpaired_difference

FILE = "artefacts.yaml"
SELF = 0.99  # every row is its own partner where more of the draws than this are the row itself
SAME, OPPOSITE, UNKNOWN = "same", "opposite", "inconclusive"  # directions; the last is a magnitude, too
COMPATIBLE, SMALLER, LARGER, EQUIVALENT = "compatible", "smaller", "larger", "equivalent"
OPEN = "incomplete"  # fewer seeds than the experiment plans
IDLE = "degenerate"  # equals ERM: every row is its own partner
REPRODUCES, SMALL = "reproduces", f"direction {UNKNOWN}, {SMALLER}"  # outcomes


@dataclass(frozen=True)
class Artefact:
    """A table, figure or theorem of the paper: an entry of results/artefacts.yaml, whose head says what each key is."""

    paper: str
    what: str
    command: str
    experiment: str = ""
    presets: list = field(default_factory=list)
    options: dict = field(default_factory=dict)
    gain: list = field(default_factory=list)
    equivalent: list = field(default_factory=list)
    margin: str = ""
    worst: bool = False
    sweep: str = ""
    compare: list = field(default_factory=list)
    decides: str = ""
    words: str = ""
    stand_in: list = field(default_factory=list)
    links: dict = field(default_factory=dict)
    says: str = ""

    @property
    def number(self) -> str:
        """Return which table or figure it is, without its labels in the paper's source."""
        return self.paper.partition(" (")[0]


def load_artefacts(results: Path = RESULTS) -> list[Artefact]:
    """Read and check results/artefacts.yaml, in its order."""
    nodes = read_part(results / FILE)
    return [Artefact(**check_part(f"{FILE}: {name}", node, function=Artefact).given) for name, node in nodes.items()]


def judge_gain(ours: Difference, paper: Difference | None, *, lower: bool) -> tuple[str, str]:
    """Return direction and magnitude of "first is better than second", of our difference and the published one.

    The direction is inconclusive where the interval of ours holds 0. The magnitude is smaller or larger where that of
    ours minus the paper's excludes 0, inconclusive where it holds both 0 and what no effect would give, and empty
    without a published difference.
    """
    better = -1 if lower else 1
    direction = (UNKNOWN, SAME, OPPOSITE)[better * _side_of_zero(ours)]
    if paper is None:
        return direction, ""
    apart = ours.minus(paper)
    low, high = apart.ends()
    if side := better * _side_of_zero(apart):
        return direction, LARGER if side > 0 else SMALLER
    return direction, UNKNOWN if low <= -paper.mean <= high else COMPATIBLE


def judge_equivalence(ours: Difference, margin: float) -> str:
    """Return the magnitude of "both are equivalent": on which side of `margin` the 95 % interval of ours lies."""
    low, high = ours.ends()
    if -margin < low and high < margin:
        return EQUIVALENT
    return LARGER if low > margin or high < -margin else UNKNOWN


def _side_of_zero(effect: Difference) -> int:
    """Return 1 where the whole 95 % interval lies above 0, -1 below, and 0 where it contains it."""
    low, high = effect.ends()
    return int(low > 0) - int(high < 0)


@dataclass(frozen=True)
class Finding:
    """What our runs say of one statement of the paper.

    Attributes:
        where: a dataset's title, or what the statement is about.
        direction: `SAME`, `OPPOSITE` or `UNKNOWN`; `OPEN` or `IDLE` where nothing is judged; empty of equivalence.
        magnitude: `COMPATIBLE`, `SMALLER`, `LARGER`, `EQUIVALENT` or `UNKNOWN`; empty without a published number.
        n: how many seeds or clusters.
        label: which comparison, where there are several of one `where`.
        preset: whose runs; empty where no preset decides.
        ours, paper: the effects, first minus second.
        decimals: how many the paper prints.
        dataset, metric: names of those of our runs, where the comparison is of one dataset or score.
        samples: our numbers of first and second.
    """

    where: str
    direction: str = UNKNOWN
    magnitude: str = ""
    n: int = 0
    label: str = ""
    preset: str = ""
    ours: Interval | None = None
    paper: Difference | None = None
    decimals: int = 3
    dataset: str = ""
    metric: str = ""
    samples: tuple[Sample, Sample] | None = None

    @property
    def outcome(self) -> str:
        """Both in a few words; what reproduces has the same direction and a compatible magnitude."""
        if self.direction == SAME:
            size = {COMPATIBLE: REPRODUCES, "": "same direction", UNKNOWN: "same direction, size inconclusive"}
            return size.get(self.magnitude, f"same direction, {self.magnitude}")
        if self.direction == UNKNOWN and self.magnitude in (SMALLER, LARGER):
            return f"direction {UNKNOWN}, {self.magnitude}"
        return "opposite direction" if self.direction == OPPOSITE else self.direction or self.magnitude


def find_all(artefact: Artefact, evidence: Evidence) -> list[Finding]:
    """Return what our runs say: a finding for every comparison, dataset and preset with runs."""
    findings = [one for node in artefact.compare for one in _of_comparison(evidence, **node)]
    name = artefact.experiment or artefact.sweep
    datasets = dict.fromkeys([*experiment_of(name).datasets, *artefact.stand_in]) if name else ()
    for dataset, preset in itertools.product(datasets, artefact.presets):
        title = names.dataset_title(dataset) + (" (not the paper's)" if dataset in artefact.stand_in else "")
        of_one = _of_sweep if artefact.sweep else _of_methods
        findings += of_one(artefact, dataset, Finding(title, preset=preset), evidence)
    return [one for one in findings if one]


def _of_comparison(
    evidence: Evidence, *, where: str, of: Query, first: Query, second: Query, paper: Sequence[Query] = (),
    runs: Query | None = None,
) -> Iterator[Finding | None]:  # fmt: skip
    """Yield the findings of an entry of `compare`, whose keys these arguments are; lower is better in all of them.

    `first` and `second` change the query `of`, a list in `second` in a comparison for each of its values; `runs` are
    behind `first`, and their seeds are held to the experiment's plan.
    """
    planned = _planned_seeds(runs["experiment"], runs["dataset"]) if runs else 0
    lists = {key: value for key, value in second.items() if isinstance(value, list)}
    for values in itertools.product(*lists.values()):
        other = {**of, **second, **dict(zip(lists, values, strict=True))}
        about = Finding(where, label=", ".join(map(str, values)))
        yield _judge(about, evidence, [{**of, **first}, other], [runs] if runs else [], planned, paper=paper)


def _of_methods(artefact: Artefact, dataset: str, about: Finding, evidence: Evidence) -> Iterator[Finding | None]:
    """Yield the finding of every pair of methods and score of one dataset and preset."""
    experiment = experiment_of(artefact.experiment)
    score = (experiment.metrics_of.get(dataset, experiment.metrics) or ["rmse"])[0]
    pairs, planned = [*artefact.gain, *artefact.equivalent], _planned_seeds(artefact.experiment, dataset)
    for metric, (first, second) in itertools.product([score, *[f"worst_{score}"] * artefact.worst], pairs):
        same = {"dataset": dataset, "preset": about.preset, "metric": metric, "options": artefact.options}
        ours = [recorded_query(artefact.experiment, {**same, "method": method}) for method in (first, second)]
        paper = [{**query, "experiment": experiment.name, "from": "paper"} for query in ours]
        where = about.where if metric == score else f"worst domain of {about.where}"
        label = names.method_title(second) if len(pairs) > 1 else ""
        margin = None
        if [first, second] not in artefact.gain:
            # Half of the gain over ERM that the paper prints for C-Mixup; 0 where it prints none.
            query = {"from": "paper", "experiment": artefact.margin, "dataset": dataset, "metric": metric}
            cmixup, erm = (evidence.find({**query, "method": method}) for method in ("cmixup", "erm"))
            margin = abs(cmixup.mean - erm.mean) / 2 if cmixup and erm else 0.0
        yield _judge(replace(about, where=where, label=label), evidence, ours, ours, planned, paper=paper,
                     margin=margin)  # fmt: skip


def _of_sweep(artefact: Artefact, dataset: str, about: Finding, evidence: Evidence) -> Iterator[Finding | None]:
    """Yield the finding of every value of a swept option against ERM."""
    experiment = experiment_of(artefact.sweep)
    method, _ = swept_option(experiment)
    same = {"dataset": dataset, "preset": about.preset, "metric": experiment.metrics[0]}
    erm = recorded_query(experiment.name, {**same, "method": "erm", "options": {}})
    ours = {}
    for point in points_of(experiment, dataset, method):
        query = recorded_query(experiment.name, {**same, "method": method, "options": point.options})
        ours[point.label] = query if evidence.find(query) else {**query, "options": {}}  # the preset's own value
    planned = _planned_seeds(experiment.name, dataset)
    for label, query in ours.items():
        yield _judge(replace(about, label=label), evidence, [query, erm], [query], planned)


def _judge(
    about: Finding, evidence: Evidence, sides: Sequence[Query], runs: Sequence[Query], planned: int, *,
    paper: Sequence[Query] = (), margin: float | None = None,
) -> Finding | None:  # fmt: skip
    """Return `about` with what is judged, or None where one of two sides has no runs.

    `sides`, `runs` (those behind them) and `paper` are queries; `planned` is how many seeds the experiment plans,
    `margin` that of equivalence, None where the first is said to be better.
    """
    one, other = map(evidence.find, sides)
    if not (one and other):
        return None
    printed = [number for query in paper if (number := evidence.find(query))]
    theirs = unpaired_difference(printed[0].summary, printed[1].summary) if len(printed) == 2 else None
    ours, shared = sample_difference(one, other), len(set(one.values) & set(other.values))
    judged: tuple[str, str] = UNKNOWN, ""
    if _is_idle(runs, evidence):
        judged = IDLE, ""
    elif min([shared, *(len(sample.values) for query in runs if (sample := evidence.find(query)))]) < planned:
        judged = OPEN, ""
    elif ours and margin is not None:
        judged = "", judge_equivalence(of_interval(ours), margin)
    elif ours:
        # What is no score is better if lower.
        lower = "metric" not in sides[0] or metric_of(sides[0]["metric"]).lower_is_better
        judged = judge_gain(of_interval(ours), theirs, lower=lower)
    decimals, n = printed[0].decimals if theirs else about.decimals, ours.n if ours else shared
    direction, magnitude = judged
    return replace(
        about, direction=direction, magnitude=magnitude, n=n, ours=ours, paper=theirs, decimals=decimals,
        dataset=(runs[0] if runs else sides[0]).get("dataset", ""), metric=sides[0].get("metric", ""),
        samples=(one, other),
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
SETTINGS = {
    "paper": "printed settings",
    "released": "settings of the authors' code",
    "cpu": "reduced for a CPU",
    "": "—",
}
STATEMENT_HEAD = ("statement", "on", "paper's (standard error)", "ours, 95 % interval", "direction", "magnitude")


@fills
def map_parts() -> dict[str, dict[str, str]]:
    """Return the map, what our runs say of each statement, and both in short for README."""
    evidence, rows, statements = published_evidence(), [], []
    for artefact in load_artefacts():
        findings, number = find_all(artefact, evidence), artefact.number
        what = f"{artefact.what}; {artefact.words}" if artefact.words else artefact.what
        rows.append([
            artefact.paper, what, f"`make {artefact.command}`",
            ", ".join(f"[{text}]({link})" for text, link in artefact.links.items()),
        ])  # fmt: skip
        seeds = ", ".join(map(str, sorted({one.n for one in findings}, reverse=True)))
        statements += statement_lines(findings, f"{number}, {artefact.what}: {artefact.decides} (n = {seeds})")
    return {
        f"{RESULTS.name}/README.md": {
            "map": markdown_table(HEAD, rows, left=len(HEAD)),
        },
        f"{RESULTS.name}/findings.md": {
            "statements": markdown_table(STATEMENT_HEAD, statements, left=len(STATEMENT_HEAD)),
        },
    }


def statement_lines(findings: Sequence[Finding], title: str = "") -> list[list[str]]:
    """Return the cells on a statement, the first below its title: a dataset, preset and pair of methods each.

    Where the paper prints no number, a dataset and preset with several comparisons has one line that counts them.
    """
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault((one.where, one.preset, one.label if one.paper else ""), []).append(one)
    body: list[list[str]] = []
    for (where, preset, label), mine in groups.items():
        (one, *others), theirs = mine, "—"
        ours, direction = interval_text(one.ours, one.decimals), one.direction or "—"
        if one.paper:
            theirs = f"{one.paper.mean:+.{one.decimals}f}"
            theirs += f" ({one.paper.error:.{one.decimals}f})" if one.paper.error else ""
        elif others:
            below = sum(bool(each.ours and each.ours.high < 0) for each in mine)
            ours = f"{below} of {len(mine)} intervals below 0"
            counts = Counter(each.direction for each in mine)
            direction = ", ".join(f"{word}: {count}" for word, count in counts.items())
        on = ", ".join(filter(None, (where, label, preset and f"preset {preset}")))
        body.append(["" if body else title, on, theirs, ours, direction, one.magnitude or "—"])
    return body
