"""The map: every table, figure and theorem of the paper with its command, whether it reproduces, and what is missing.

results/artefacts.yaml lists them; states are computed from the published records and from the claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cmixup.metrics import lower_is_better
from scripts.claims.check import Verdict
from scripts.claims.evidence import Absent, Evidence, Query, Sample, difference, experiment_of
from scripts.driver.compose import part_file
from scripts.driver.words import parse_seeds
from scripts.records import names
from scripts.records.artefacts import Artefact, load
from scripts.records.experiment import RESULTS
from scripts.records.stats import Interval
from scripts.records.tables import markdown_rows

HEAD = ("in the paper", "what it shows", "command", "state", "seeds", "not run", "see")
LEGEND = (
    "**State**: whether what the paper shows is found in our runs, dataset by dataset. A gain is found if the "
    "95 % interval of the paired difference excludes 0 on the published side, levelness if it contains 0; one seed "
    "decides nothing, nor do fewer than the experiment plans (open). Numbers beside the paper's are in the tables."
)


@dataclass(frozen=True)
class Finding:
    """What our runs say of one statement of the paper.

    Attributes:
        about: a dataset's title, or what a claim is about.
        holds: None where it cannot be decided: one seed, or fewer than the experiment plans.
        n: how many seeds.
    """

    about: str
    holds: bool | None
    n: int = 0


def findings(artefact: Artefact, evidence: Evidence, verdicts: Mapping[str, Verdict]) -> list[Finding]:
    """Return what our runs say, a finding for every dataset with runs, and one for every claim."""
    found = [
        Finding(about, says if verdicts[name].holds else None)
        for says, claims in ((True, artefact.claims), (False, artefact.against))
        for about, name in claims.items()
        if name in verdicts
    ]
    if not artefact.experiment:
        return found
    experiment = experiment_of(artefact.experiment)
    for dataset in dict.fromkeys([*experiment.datasets, *artefact.stand_in]):
        title = names.dataset_title(dataset) + (" (not the paper's)" if dataset in artefact.stand_in else "")
        of = {query["preset"]: _finding(artefact, query, evidence, title) for query in _queries(artefact, dataset)}
        known = {preset: finding for preset, finding in of.items() if finding}
        alike = len({finding.holds for finding in known.values()}) == 1
        for preset, finding in known.items():
            shown = finding.about if alike else f"{finding.about} ({preset})"
            found.append(Finding(shown, finding.holds, finding.n))
            if alike:
                break
    return found


def _finding(artefact: Artefact, query: Query, evidence: Evidence, title: str) -> Finding | None:
    """Return what the runs of one dataset and preset say, or None without runs."""
    held, counts = [], []
    for first, second, better in _pairs(artefact):
        samples = [_sample(artefact, query, method, evidence) for method in (first, second)]
        if samples[0] and samples[1]:
            counts.append(len(set(samples[0].values) & set(samples[1].values)))
            held.append(_holds(difference(samples[0], samples[1]), query["metric"], better=better))
    if not held:
        return None
    experiment = experiment_of(artefact.experiment)
    planned = experiment.seeds_for(query["dataset"], parse_seeds(experiment.seeds))
    if min(counts) < len(planned) or all(h is None for h in held):
        return Finding(title, None, min(counts))
    several = f"{title}, {sum(h is True for h in held)} of {len(held)}" if len(held) > 1 else title
    return Finding(several, all(h is not False for h in held), min(counts))


def state(found: Sequence[Finding]) -> str:
    """Return the state in words: what holds where, what does not, and what is open."""
    groups = {True: "reproduces", False: "differs", None: "open"}
    parts = []
    for holds, word in groups.items():
        about = [f.about for f in found if f.holds is holds]
        if about:
            parts.append(f"**{word}**: {', '.join(about)}")
    return "; ".join(parts) or "not run"


def missing(artefact: Artefact, evidence: Evidence) -> list[str]:
    """Return the datasets of the paper's artefact without runs, each with the reason in brackets."""
    if not artefact.experiment:
        return []
    experiment = experiment_of(artefact.experiment)
    lines = []
    for dataset in (d for d in experiment.datasets if d not in artefact.stand_in):
        methods = experiment.methods_for(dataset, experiment.methods)
        queries = _queries(artefact, dataset)
        if not any(_sample(artefact, query, method, evidence) for query in queries for method in methods):
            lines.append(f"{names.dataset_title(dataset)} ({reason(dataset)})")
    return lines


def reason(dataset: str) -> str:
    """Return why a dataset has no runs, in a word or two: its files, or the time that a run takes."""
    about = part_file("dataset", dataset)
    if "absent" in about:
        return "files"
    minutes = about.get("cpu_minutes")
    minutes = minutes if isinstance(minutes, int | float) else about["presets"]["paper"].get("cpu_minutes", "?")
    return f"time: {minutes} min a run"


def map_lines(evidence: Evidence, verdicts: Sequence[Verdict], results: Path = RESULTS) -> str:
    """Return the map as Markdown."""
    by_name = {verdict.claim.name: verdict for verdict in verdicts}
    body = []
    for artefact in load(results):
        found = findings(artefact, evidence, by_name)
        counts = sorted({f.n for f in found if f.n}, reverse=True)
        body.append([
            artefact.paper, artefact.what, f"`make {artefact.command}`",
            artefact.words or state(found), ", ".join(map(str, counts)) or "—",
            ", ".join(missing(artefact, evidence)) or "—",
            ", ".join(f"[{text}]({link})" for text, link in artefact.links.items()),
        ])  # fmt: skip
    rows = [row.replace("---:", "---") for row in markdown_rows(HEAD, body)]
    return "\n".join([*rows, "", LEGEND])


def short_lines(evidence: Evidence, verdicts: Sequence[Verdict], results: Path = RESULTS) -> str:
    """Return the map of the artefacts that README names: what the paper says and what our runs say, as Markdown."""
    by_name = {verdict.claim.name: verdict for verdict in verdicts}
    body = [
        [f"{artefact.says} ({artefact.paper.partition(' (')[0]})", state(findings(artefact, evidence, by_name))]
        for artefact in load(results)
        if artefact.says
    ]
    return "\n".join(row.replace("---:", "---") for row in markdown_rows(("the paper says", "our runs"), body))


def _pairs(artefact: Artefact) -> list[tuple[str, str, bool]]:
    return [(*pair, True) for pair in artefact.gain] + [(*pair, False) for pair in artefact.level]


def _queries(artefact: Artefact, dataset: str) -> list[Query]:
    """Return what is asked for of a dataset, one query a preset, without its method."""
    experiment = experiment_of(artefact.experiment)
    metric = (experiment.metrics_of.get(dataset, experiment.metrics) or ["rmse"])[0]
    same = {"dataset": dataset, "metric": metric, "options": artefact.options}
    return [{**same, "preset": preset} for preset in artefact.presets]


def _sample(artefact: Artefact, query: Query, method: str, evidence: Evidence) -> Sample | None:
    experiment, dataset = experiment_of(artefact.experiment), query["dataset"]
    ours = experiment.stands_for(dataset, method)
    try:
        return evidence.sample({**query, "method": ours, "experiment": experiment.recorded_under(ours, dataset)})
    except Absent:
        return None


def _holds(found: Interval | None, metric: str, *, better: bool) -> bool | None:
    """Return whether a difference, first minus second, is what the paper says; None with a single seed."""
    if found is None:
        return None
    if not better:
        return found.low <= 0 <= found.high
    return found.high < 0 if lower_is_better(metric) else found.low > 0
