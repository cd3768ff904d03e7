"""The map: every table, figure and theorem of the paper with its command, what our runs say of it, and what is missing.

results/artefacts.yaml lists them; what is said is computed from the published records, by `scripts.report.verdicts`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from scripts.records.experiment import RESULTS
from scripts.report.evidence import published_evidence
from scripts.report.register import fills
from scripts.report.result_table import markdown_table
from scripts.report.verdicts import IDLE, Finding, find_all, load_artefacts
from scripts.stats.intervals import interval_text

HEAD = ("in the paper", "what it shows", "command", "see")
SHORT_HEAD = ("the paper says", "settings", "our runs")
SETTINGS = {"paper": "printed in the paper", "released": "the authors' code", "cpu": "reduced for a CPU", "": "—"}
STATEMENT_HEAD = ("statement", "on", "paper's (standard error)", "ours, 95 % interval", "direction", "magnitude")


@fills
def map_parts() -> dict[str, dict[str, str]]:
    """Return the map, what our runs say of each statement, and both in short for README."""
    evidence, rows, statements, short = published_evidence(), [], [], []
    for artefact in load_artefacts():
        findings, number = find_all(artefact, evidence), artefact.paper.partition(" (")[0]
        what = f"{artefact.what}; {artefact.words}" if artefact.words else artefact.what
        rows.append([
            artefact.paper, what, f"`make {artefact.command}`",
            ", ".join(f"[{text}]({link})" for text, link in artefact.links.items()),
        ])  # fmt: skip
        seeds = ", ".join(map(str, sorted({one.n for one in findings}, reverse=True)))
        statements += statement_lines(findings, f"{number}, {artefact.what}: {artefact.decides} (n = {seeds})")
        says = f"{artefact.says} ({number})"
        for preset in dict.fromkeys(one.preset for one in findings) if artefact.says else ():
            short.append([says, SETTINGS[preset], outcome_words([one for one in findings if one.preset == preset])])
            says = ""
    return {
        f"{RESULTS.name}/README.md": {
            "map": markdown_table(HEAD, rows, left=len(HEAD)),
            "statements": markdown_table(STATEMENT_HEAD, statements, left=len(STATEMENT_HEAD)),
        },
        "README.md": {"reproduces": markdown_table(SHORT_HEAD, short, left=len(SHORT_HEAD))},
    }


def outcome_words(findings: Sequence[Finding]) -> str:
    """Return the outcomes of a preset in words, each with its datasets and what is compared on them.

    Where the paper prints no number they are counted.
    """
    parts, printed = [], any(one.paper for one in findings)
    for word in dict.fromkeys(one.outcome for one in findings):
        places = []
        for where in dict.fromkeys(one.where for one in findings):
            mine = [one for one in findings if one.where == where]
            held = [one for one in mine if one.outcome == word]
            which = [one.label for one in held]
            places += [f"{where} ({', '.join(which)})" if len(held) < len(mine) else where] if held else []
        count = sum(one.outcome == word for one in findings)
        what = ", ".join(places) if printed else f"{count} of {len(findings)}"
        parts.append(f"**{word}**{' (every row is its own partner)' * (word == IDLE)}: {what}")
    return "; ".join(parts) or "not run"


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
