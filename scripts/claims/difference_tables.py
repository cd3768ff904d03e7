"""Tables of the differences that sentences rest on, a row each; `tables` of results/claims.yaml lists their rows.

A page has one between markers of its name, below sentences that say what it comes to.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cmixup.errors import InputError
from scripts.claims.check import Verdict, read_claims
from scripts.claims.prose import claim_sentence
from scripts.claims.statistic import Number
from scripts.records.tables import markdown_rows

HEAD = ("difference", "n", "mean", "95 % interval", "verdict")
PAPER = "the paper's"


@dataclass(frozen=True)
class Entry:
    """A number of a claim, whose combinations have a row each.

    Attributes:
        claim, number: whose and which.
        says: what the number is; the combination follows.
        digits: decimals.
        paper: the number of the same claim that the paper prints; "" if none.
    """

    claim: str
    number: str
    says: str
    digits: int = 3
    paper: str = ""


def claim_tables(verdicts: Sequence[Verdict], path: Path) -> dict[str, str]:
    """Return the tables that the file of claims lists, by name, over claims that were checked.

    Raises:
        InputError: an entry of a claim or number that there is not.
    """
    checked = {verdict.claim.name: verdict for verdict in verdicts}
    listed = read_claims(path).get("tables", {})
    return {name: _table([Entry(**entry) for entry in entries], checked) for name, entries in listed.items()}


def _table(entries: Sequence[Entry], checked: Mapping[str, Verdict]) -> str:
    with_paper = any(entry.paper for entry in entries)
    body = [row for entry in entries for row in _rows(entry, checked)]
    head = [*HEAD[:-1], *([PAPER] if with_paper else []), HEAD[-1]]
    return "\n".join(markdown_rows(head, [row if with_paper else [*row[:4], row[5]] for row in body]))


def _rows(entry: Entry, checked: Mapping[str, Verdict]) -> Iterator[list[str]]:
    verdict = checked.get(entry.claim)
    if verdict is None:
        raise InputError(f"a table of {entry.claim}, which is no claim")
    if not verdict.holds:
        yield [claim_sentence(verdict), *["—"] * 5]
        return
    paper = _numbers(verdict, entry.paper)[0][1] if entry.paper else None
    printed = f"{paper.mean:+.{entry.digits}f}" if paper else "—"
    for label, number in _numbers(verdict, entry.number):
        ends = ", ".join(f"{end:+.{entry.digits}f}" for end in (number.low, number.high))
        says = f"{entry.says}: {label}" if label else entry.says
        yield [says, str(number.n), f"{number.mean:+.{entry.digits}f}", f"[{ends}]", printed, verdict_word(number)]


def _numbers(verdict: Verdict, name: str) -> list[tuple[str, Number]]:
    """Return a claim's number by the label of its combination: of those that hold where the check counts them."""
    for check, cases in verdict.checks:
        if name in check.numbers:
            return [(case.label, case.numbers[name]) for case in cases if case.holds or not check.times]
    raise InputError(f"a table of {name}, which is no number of claim {verdict.claim.name}")


def verdict_word(number: Number) -> str:
    """Return on which side of 0 an interval lies, or that it cannot be told."""
    if math.isnan(number.low):
        return "—"
    return "lower" if number.high < 0 else "higher" if number.low > 0 else "cannot be told"
