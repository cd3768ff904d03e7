"""The map: every table, figure and theorem of the paper with its command, whether it reproduces, and what is missing.

results/artefacts.yaml lists them; verdicts are computed from the published records, by `scripts.report.verdicts`.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence

from scripts.config.compose import part_file
from scripts.plan.selection import selected_methods
from scripts.records import names
from scripts.records.experiment import RESULTS
from scripts.report.evidence import Evidence, experiment_of, published_evidence
from scripts.report.register import fills
from scripts.report.result_table import markdown_table
from scripts.report.verdicts import (
    EQUIVALENT,
    IDLE,
    INCOMPATIBLE,
    OPEN,
    SAME,
    UNKNOWN,
    Artefact,
    Finding,
    find_all,
    load_artefacts,
    recorded_query,
)
from scripts.stats.intervals import interval_text

HEAD = ("in the paper", "what it shows", "command", "verdict", "decided by", "not run", "see")
SHORT_HEAD = ("the paper says", "on", "paper's effect (standard error)", "ours, with its 95 % interval", "verdict")
LEGEND = (
    "**Verdict** on each statement of the paper on a dataset, tried in this order. It has the **same direction** if "
    "the 95 % t interval of our paired difference excludes 0 on the published side, whatever its size; it is "
    "**equivalent** if two one-sided tests (5 % each) put the difference within half of the gain over ERM that the "
    "paper prints for C-Mixup on that dataset (Table 1's or Table 3's). It is **incompatible** if the 95 % interval "
    "of our difference minus the paper's excludes 0 (the paper's standard error is that of two unpaired means, from "
    "the standard deviations that it prints, and 0 where it prints none; degrees of freedom by Welch and "
    "Satterthwaite), or, where the paper prints no number, if ours excludes 0 on the other side. Else it is "
    "**inconclusive**. **Incomplete** is what has fewer seeds than the file of its experiment plans. Intervals of an "
    "option's values are corrected by Bonferroni for how many there are on a dataset, no others. Runs in which every "
    "row is its own partner mix nothing and are **degenerate** (equal ERM). Numbers beside the paper's are in the "
    "tables."
)
ORDER = (SAME, EQUIVALENT, INCOMPATIBLE, UNKNOWN, OPEN, IDLE)


@fills
def map_parts() -> dict[str, dict[str, str]]:
    """Return the map, and the short table of README: the paper's effects beside ours, a line a dataset."""
    evidence, rows, short = published_evidence(), [], []
    for artefact in load_artefacts():
        findings = find_all(artefact, evidence)
        rows.append([
            artefact.paper, artefact.what, f"`make {artefact.command}`",
            artefact.words or verdict_words(findings), decided_by(artefact, findings),
            ", ".join(missing_datasets(artefact, evidence)) or "—",
            ", ".join(f"[{text}]({link})" for text, link in artefact.links.items()),
        ])  # fmt: skip
        if artefact.says:
            says = f"{artefact.says} ({artefact.paper.partition(' (')[0]})"
            lines = effect_lines(findings, artefact.decides)
            short += [[first, *line] for first, line in zip([says, *[""] * len(lines)], lines, strict=False)]
    return {
        f"{RESULTS.name}/README.md": {"map": f"{markdown_table(HEAD, rows, left=len(HEAD))}\n\n{LEGEND}"},
        "README.md": {"reproduces": markdown_table(SHORT_HEAD, short, left=len(SHORT_HEAD))},
    }


def verdict_words(findings: Sequence[Finding]) -> str:
    """Return the verdicts in words, each with what it is of: a dataset, its preset, or how many of its comparisons."""
    parts = []
    for word in ORDER:
        places = []
        for (where,), mine in _grouped(findings, "where").items():
            held = [f for f in mine if f.verdict == word]
            presets = dict.fromkeys(f.preset for f in held)
            whole = all(f.verdict == word for f in mine if f.preset in presets)
            which = "" if len(held) == len(mine) else ", ".join(presets) if whole else f"{len(held)} of {len(mine)}"
            places += [f"{where} ({which})" if which else where] if held else []
        parts += [f"{_verdict_text(word)}: {', '.join(places)}"] if places else []
    return "; ".join(parts) or "not run"


def decided_by(artefact: Artefact, findings: Sequence[Finding]) -> str:
    """Return what decides on an artefact: the methods compared and how many seeds, or what its entry says."""
    seconds: dict[str, list[str]] = {}
    for first, second in [*artefact.gain, *artefact.equivalent]:
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
        methods = selected_methods(experiment, dataset, experiment.methods)
        if not any(
            evidence.find(recorded_query(experiment.name, {**same, "preset": preset, "method": method}))
            for preset, method in itertools.product(artefact.presets, methods)
        ):
            about = part_file("dataset", dataset)
            minutes = about.get("cpu_minutes", about["presets"]["paper"].get("cpu_minutes", "?"))
            reason = "files" if "absent" in about else f"time: {minutes} min a run"
            lines.append(f"{names.dataset_title(dataset)} ({reason})")
    return lines


def effect_lines(findings: Sequence[Finding], decides: str = "") -> list[list[str]]:
    """Return the cells on a statement, a line for each dataset and pair of methods, with all its presets.

    Where the paper prints no number one line has all: what `decides`, how many intervals lie below 0, and the verdicts.
    """
    if not any(f.paper for f in findings):
        below = sum(bool(f.ours and f.ours.high < 0) for f in findings)
        counts = Counter(f.verdict for f in findings)
        verdicts = [f"**{word}**: {counts[word]}" for word in ORDER if counts[word]]
        return [[decides, "—", f"{below} of {len(findings)} intervals below 0", "; ".join(verdicts)]]
    body = []
    for key, mine in _grouped(findings, "where", "label").items():
        paper, decimals = mine[0].paper, mine[0].decimals
        theirs = f"{paper.mean:+.{decimals}f}" if paper else "—"
        theirs += f" ({paper.error:.{decimals}f})" if paper and paper.error else ""
        ours = {one.preset: interval_text(one.ours, one.decimals) for one in mine}
        verdict_of = {one.preset: _verdict_text(one.verdict) for one in mine}
        body.append([", ".join(filter(None, key)), theirs, _by_preset(ours), _by_preset(verdict_of)])
    return body


def _grouped(findings: Sequence[Finding], *by: str) -> dict[tuple[str, ...], list[Finding]]:
    groups: dict[tuple[str, ...], list[Finding]] = {}
    for one in findings:
        groups.setdefault(tuple(getattr(one, name) for name in by), []).append(one)
    return groups


def _by_preset(cells: Mapping[str, str]) -> str:
    """Return the cell of every preset behind its name, or the cell alone where all are alike."""
    alike = len(set(cells.values())) == 1
    return next(iter(cells.values())) if alike else "; ".join(f"{preset}: {cell}" for preset, cell in cells.items())


def _verdict_text(verdict: str) -> str:
    return f"**{verdict}**" + " (equals ERM: every row is its own partner)" * (verdict == IDLE)
