"""The map: every table, figure and theorem of the paper with its command, whether it reproduces, and what is missing.

results/artefacts.yaml lists them; states are computed from the published records, by `scripts.report.verdicts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from scripts.config.compose import part_file
from scripts.plan.selection import selected_methods
from scripts.records import names
from scripts.records.experiment import RESULTS
from scripts.report.evidence import Evidence, experiment_of, published_evidence
from scripts.report.register import fills
from scripts.report.result_table import markdown_rows
from scripts.report.verdicts import (
    DIFFERS,
    IDLE,
    OPEN,
    REPRODUCES,
    UNKNOWN,
    Artefact,
    Finding,
    find_all,
    load_artefacts,
    recorded_query,
)
from scripts.stats.intervals import interval_text

HEAD = ("in the paper", "what it shows", "command", "state", "decided by", "not run", "see")
SHORT_HEAD = ("the paper says", "on", "paper's effect (standard error)", "ours, with its 95 % interval", "state")
LEGEND = (
    "**State** of each statement of the paper on a dataset, tried in this order. It **reproduces** if the 95 % t "
    "interval of our paired difference excludes 0 on the published side; equivalence if two one-sided tests (5 % each) "
    "put the difference within half of the gain over ERM that the paper prints for C-Mixup on that dataset (Table 1's "
    "or Table 3's). It **differs** if the 95 % interval of our difference minus the paper's excludes 0 (the paper's "
    "standard error is that of two unpaired means, from the standard deviations that it prints, and 0 where it prints "
    "none; degrees of freedom by Welch and Satterthwaite), or, where the paper prints no number, if ours excludes 0 on "
    "the other side. Else it is **inconclusive**. **Incomplete** is what has fewer seeds than the file of its "
    "experiment plans. Intervals of an option's values are corrected by Bonferroni for how many there are on a "
    "dataset, no others. Runs in which every row is its own partner mix nothing and are **degenerate** (equal ERM). "
    "Numbers beside the paper's are in the tables."
)
ORDER = (REPRODUCES, DIFFERS, UNKNOWN, OPEN, IDLE)
NO_MIXING = "equals ERM: every row is its own partner"


@fills
def map_parts() -> dict[str, dict[str, str]]:
    """Return the map, and the short table of README."""
    evidence = published_evidence()
    return {
        f"{RESULTS.name}/README.md": {"map": map_lines(evidence)},
        "README.md": {"reproduces": short_lines(evidence)},
    }


def state_words(findings: Sequence[Finding]) -> str:
    """Return the states in words, each with what it is of: a dataset, its preset, or how many of its comparisons."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.where, []).append(finding)
    parts = []
    for word in ORDER:
        about = [text for where, mine in groups.items() for text in _state_places(where, mine, word)]
        text = f"{word}** ({NO_MIXING})" if word == IDLE else f"{word}**"
        if about:
            parts.append(f"**{text}: {', '.join(about)}")
    return "; ".join(parts) or "not run"


def _state_places(where: str, mine: Sequence[Finding], word: str) -> list[str]:
    """Return how the state of some of the findings of one place is said, or nothing if none has it."""
    held = [f for f in mine if f.state == word]
    if not held or len(held) == len(mine):
        return [where] if held else []
    presets = {f.preset for f in held}
    if all(f.state == word for f in mine if f.preset in presets):
        return [f"{where} ({', '.join(dict.fromkeys(f.preset for f in held))})"]
    return [f"{where} ({len(held)} of {len(mine)})"]


def decided_by(artefact: Artefact, findings: Sequence[Finding]) -> str:
    """Return what decides on an artefact: the methods compared and how many seeds, or what its entry says."""
    seconds: dict[str, list[str]] = {}
    for first, second in [*artefact.gain, *artefact.level]:
        seconds.setdefault(names.method_title(first), []).append(names.method_title(second))
    pairs = [f"{first} minus {' and '.join(others)}" for first, others in seconds.items()]
    counts = ", ".join(map(str, sorted({f.n for f in findings}, reverse=True)))
    return f"{artefact.decides or '; '.join(pairs)} (n = {counts})" if findings else "—"


def missing_datasets(artefact: Artefact, evidence: Evidence) -> list[str]:
    """Return the datasets of the paper's artefact without runs, each with the reason in brackets."""
    if not artefact.experiment:
        return []
    experiment = experiment_of(artefact.experiment)
    lines = []
    for dataset in (d for d in experiment.datasets if d not in artefact.stand_in):
        metric = (experiment.metrics_of.get(dataset, experiment.metrics) or ["rmse"])[0]
        same = {"dataset": dataset, "metric": metric, "options": artefact.options}
        queries = [
            recorded_query(experiment.name, {**same, "preset": preset, "method": method})
            for preset in artefact.presets
            for method in selected_methods(experiment, dataset, experiment.methods)
        ]
        if not any(evidence.find(query) for query in queries):
            lines.append(f"{names.dataset_title(dataset)} ({missing_reason(dataset)})")
    return lines


def missing_reason(dataset: str) -> str:
    """Return why a dataset has no runs, in a word or two: its files, or the time that a run takes."""
    about = part_file("dataset", dataset)
    if "absent" in about:
        return "files"
    minutes = about.get("cpu_minutes")
    minutes = minutes if isinstance(minutes, int | float) else about["presets"]["paper"].get("cpu_minutes", "?")
    return f"time: {minutes} min a run"


def map_lines(evidence: Evidence, results: Path = RESULTS) -> str:
    """Return the map as Markdown."""
    body = []
    for artefact in load_artefacts(results):
        findings = find_all(artefact, evidence)
        body.append([
            artefact.paper, artefact.what, f"`make {artefact.command}`",
            artefact.words or state_words(findings), decided_by(artefact, findings),
            ", ".join(missing_datasets(artefact, evidence)) or "—",
            ", ".join(f"[{text}]({link})" for text, link in artefact.links.items()),
        ])  # fmt: skip
    rows = [row.replace("---:", "---") for row in markdown_rows(HEAD, body)]
    return "\n".join([*rows, "", LEGEND])


def short_lines(evidence: Evidence, results: Path = RESULTS) -> str:
    """Return the artefacts that README names as Markdown: the paper's effects beside ours, a line a dataset."""
    body = []
    for artefact in load_artefacts(results):
        if artefact.says:
            says = f"{artefact.says} ({artefact.paper.partition(' (')[0]})"
            for line in effect_lines(find_all(artefact, evidence), artefact.decides):
                body.append([says, *line])
                says = ""
    return "\n".join(row.replace("---:", "---") for row in markdown_rows(SHORT_HEAD, body))


def effect_lines(findings: Sequence[Finding], decides: str = "") -> list[list[str]]:
    """Return the cells on a statement, a line for each dataset and pair of methods, with all its presets.

    Where the paper prints no number one line has all: what `decides`, how many intervals lie below 0, and the states.
    """
    if not any(f.paper for f in findings):
        below = sum(bool(f.ours and f.ours.high < 0) for f in findings)
        counts = {word: sum(f.state == word for f in findings) for word in ORDER}
        states = [f"**{word}**: {count}" for word, count in counts.items() if count]
        return [[decides, "—", f"{below} of {len(findings)} intervals below 0", "; ".join(states)]]
    lines: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        lines.setdefault((one.where, one.label), []).append(one)
    return [
        [
            ", ".join(filter(None, key)),
            _paper_effect(mine[0]),
            _by_preset(mine, _our_text),
            _by_preset(mine, _state_text),
        ]
        for key, mine in lines.items()
    ]


def _by_preset(mine: Sequence[Finding], cell: Callable[[Finding], str]) -> str:
    """Return the cell of every preset behind its name, or the cell alone where all are alike."""
    if len({cell(one) for one in mine}) == 1:
        return cell(mine[0])
    return "; ".join(f"{one.preset}: {cell(one)}" for one in mine)


def _our_text(one: Finding) -> str:
    return interval_text(one.ours, one.decimals)


def _state_text(one: Finding) -> str:
    return f"**{IDLE}** ({NO_MIXING})" if one.state == IDLE else f"**{one.state}**"


def _paper_effect(one: Finding) -> str:
    """Return the paper's effect with its standard error, if it prints a spread."""
    if one.paper is None:
        return "—"
    text = f"{one.paper.mean:+.{one.decimals}f}"
    return f"{text} ({one.paper.error:.{one.decimals}f})" if one.paper.error else text
