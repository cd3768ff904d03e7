"""What our runs say of every statement of the paper that results/artefacts.yaml lists, from the published records.

Verdicts are tried in this order. "First is better than second" has the same direction where the interval of our
difference lies on the published side of 0; "equivalent" where two one-sided tests put the difference within a margin.
It is incompatible where the interval of ours minus the paper's excludes 0, or, where the paper prints no number, where
ours lies on the other side of 0. Else it is inconclusive.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cmixup.errors import InputError
from cmixup.metrics import lower_is_better
from scripts.config.arguments import parse_seeds
from scripts.config.compose import read_part
from scripts.config.parts import check_part
from scripts.plan.selection import recorded_under, selected_seeds, swept_values
from scripts.records import names
from scripts.records.experiment import RESULTS, stands_for
from scripts.report.evidence import Evidence, Query, experiment_of, sample_difference
from scripts.stats.intervals import LEVEL, Effect, Interval, of_interval, unpaired_effect

FILE = "artefacts.yaml"
SELF = 0.99  # every row is its own partner where more of the draws than this are the row itself
SAME, EQUIVALENT, INCOMPATIBLE, UNKNOWN = "same direction", "equivalent", "incompatible", "inconclusive"
OPEN = "incomplete"  # fewer seeds than the experiment plans
IDLE = "degenerate"  # equals ERM: every row is its own partner


@dataclass(frozen=True)
class Artefact:
    """A table, figure or theorem of the paper: an entry of results/artefacts.yaml, whose head says what each key is."""

    name: str
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


def load_artefacts(results: Path = RESULTS) -> list[Artefact]:
    """Read and check results/artefacts.yaml, in its order.

    Raises:
        InputError: an unknown key or wrong type, or an artefact that nothing decides.
    """
    nodes = read_part(results / FILE)
    artefacts = [
        Artefact(**check_part(f"{FILE}: {name}", node, function=Artefact).given, name=name)
        for name, node in nodes.items()
    ]
    for artefact in artefacts:
        if not (artefact.gain or artefact.equivalent or artefact.sweep or artefact.compare or artefact.words):
            raise InputError(f"{FILE}: {artefact.name} must have gain, equivalent, sweep, compare or words")
    return artefacts


def gain_verdict(ours: Effect, paper: Effect | None, *, lower: bool, level: float = LEVEL) -> str:
    """Return the verdict of "first is better than second".

    Args:
        ours: our difference.
        paper: the published one, if it is printed.
        lower: whether lower is better.
        level: confidence of the intervals.
    """
    side = _side_of_zero(ours, level) * (-1 if lower else 1)
    if side > 0:
        return SAME
    return INCOMPATIBLE if (side < 0 if paper is None else _side_of_zero(ours.minus(paper), level)) else UNKNOWN


def equivalence_verdict(ours: Effect, paper: Effect | None, margin: float) -> str:
    """Return the verdict of "both are equivalent".

    Args:
        ours: our difference.
        paper: the published one, if it is printed.
        margin: how far apart they may be: the 90 % interval must lie inside it, which is two one-sided tests at 5 %.

    Raises:
        InputError: a margin below 0.
    """
    if margin < 0:
        raise InputError(f"margin must not be below 0, got {margin}")
    low, high = ours.ends(2 * LEVEL - 1)
    if -margin < low and high < margin:
        return EQUIVALENT
    return INCOMPATIBLE if _side_of_zero(ours if paper is None else ours.minus(paper), LEVEL) else UNKNOWN


def _side_of_zero(effect: Effect, level: float) -> int:
    """Return 1 where the whole interval lies above 0, -1 below, and 0 where it contains it."""
    low, high = effect.ends(level)
    return int(low > 0) - int(high < 0)


@dataclass(frozen=True)
class Finding:
    """What our runs say of one statement of the paper.

    Attributes:
        where: a dataset's title, or what the statement is about.
        verdict: `SAME`, `EQUIVALENT`, `INCOMPATIBLE`, `UNKNOWN`, `OPEN` or `IDLE`.
        n: how many seeds or clusters.
        label: which comparison, where there are several of one `where`.
        preset: whose runs; empty where no preset decides.
        ours, paper: the effects, first minus second.
        decimals: how many the paper prints.
    """

    where: str
    verdict: str = UNKNOWN
    n: int = 0
    label: str = ""
    preset: str = ""
    ours: Interval | None = None
    paper: Effect | None = None
    decimals: int = 3


@dataclass(frozen=True)
class Pair:
    """What a statement compares.

    Attributes:
        about: the finding, without what is judged.
        first, second: the queries of both sides.
        paper: those of the paper's numbers; empty where it prints none.
        runs: those of the runs behind both sides.
        planned: how many seeds the experiment's file plans.
        margin: of equivalence; None where the first is said to be better.
        tests: among how many its interval is corrected.
    """

    about: Finding
    first: Query
    second: Query
    paper: Sequence[Query] = ()
    runs: Sequence[Query] = ()
    planned: int = 0
    margin: float | None = None
    tests: int = 1


def find_all(artefact: Artefact, evidence: Evidence) -> list[Finding]:
    """Return what our runs say: a finding for every comparison, dataset and preset with runs."""
    pairs = [pair for node in artefact.compare for pair in compare_queries(**node)]
    name = artefact.experiment or artefact.sweep
    datasets = dict.fromkeys([*experiment_of(name).datasets, *artefact.stand_in]) if name else ()
    for dataset, preset in itertools.product(datasets, artefact.presets):
        title = names.dataset_title(dataset) + (" (not the paper's)" if dataset in artefact.stand_in else "")
        about = Finding(title, preset=preset)
        if artefact.sweep:
            pairs += _of_sweep(artefact.sweep, dataset, about, evidence)
        else:
            pairs += _of_methods(artefact, dataset, about, evidence)
    return [finding for pair in pairs if (finding := _judge_pair(pair, evidence))]


def compare_queries(
    *, where: str, of: Query, first: Query, second: Query, paper: Sequence[Query] = (), runs: Query | None = None
) -> Iterator[Pair]:
    """Yield the pairs of an entry of `compare`, which has these arguments; lower is better in all of them.

    Args:
        where: what it is about, as a dataset's title.
        of: the query that both sides share, see `scripts.report.evidence`.
        first, second: what each changes of it; a list in `second` is one comparison for each of its values.
        paper: the queries of the paper's numbers of both, where it prints some.
        runs: the query of the runs behind `first`, whose seeds are held to the experiment's plan.
    """
    planned = _planned_seeds(runs["experiment"], runs["dataset"]) if runs else 0
    lists = {key: value for key, value in second.items() if isinstance(value, list)}
    for values in itertools.product(*lists.values()):
        other = {**of, **second, **dict(zip(lists, values, strict=True))}
        about = Finding(where, label=", ".join(map(str, values)))
        yield Pair(about, {**of, **first}, other, paper, [runs] if runs else (), planned)


def _of_methods(artefact: Artefact, dataset: str, about: Finding, evidence: Evidence) -> Iterator[Pair]:
    """Yield every pair of methods and score of one dataset and preset."""
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
        yield Pair(replace(about, where=where, label=label), ours[0], ours[1], paper, ours, planned, margin)


def _of_sweep(name: str, dataset: str, about: Finding, evidence: Evidence) -> list[Pair]:
    """Return every value of a swept option, its method against ERM; intervals are corrected for how many mix."""
    experiment = experiment_of(name)
    option, method = experiment.sweep["option"], experiment.sweep["method"]
    same = {"dataset": dataset, "preset": about.preset, "metric": experiment.metrics[0]}
    second = recorded_query(name, {**same, "method": "erm", "options": {}})
    pairs = []
    for value in swept_values(experiment, dataset, method):
        first = recorded_query(name, {**same, "method": method, "options": {option: value}})
        if not evidence.find(first):
            first = {**first, "options": {}}  # the preset's own value
        label = f"{option.rpartition('.')[2]} {value:g}"
        planned = _planned_seeds(name, dataset)
        pairs.append(Pair(replace(about, label=label), first, second, runs=[first], planned=planned))
    tests = max(sum(not _is_idle(pair, evidence) for pair in pairs), 1)
    return [replace(pair, tests=tests) for pair in pairs]


def _judge_pair(pair: Pair, evidence: Evidence) -> Finding | None:
    """Return the finding on a pair, or None where a side has no runs."""
    first, second = evidence.find(pair.first), evidence.find(pair.second)
    if not (first and second):
        return None
    printed = [one for query in pair.paper if (one := evidence.find(query))]
    paper = unpaired_effect(printed[0].summary, printed[1].summary) if len(printed) == 2 else None
    ours, shared = sample_difference(first, second), len(set(first.values) & set(second.values))
    runs = [len(one.values) for query in pair.runs if (one := evidence.find(query))]
    if _is_idle(pair, evidence):
        verdict = IDLE
    elif min([shared, *runs]) < pair.planned:
        verdict = OPEN
    elif ours is None:
        verdict = UNKNOWN
    elif pair.margin is not None:
        verdict = equivalence_verdict(of_interval(ours), paper, pair.margin)
    else:
        lower = "metric" not in pair.first or lower_is_better(pair.first["metric"])  # so it is of what is no score
        verdict = gain_verdict(of_interval(ours), paper, lower=lower, level=1 - 0.05 / pair.tests)
    decimals, n = printed[0].decimals if paper else pair.about.decimals, ours.n if ours else shared
    return replace(pair.about, verdict=verdict, n=n, ours=ours, paper=paper, decimals=decimals)


def _is_idle(pair: Pair, evidence: Evidence) -> bool:
    """Return whether every row is its own partner in the runs of one side."""
    samples = (evidence.find({**query, "split": "train", "metric": "self_probability"}) for query in pair.runs)
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
