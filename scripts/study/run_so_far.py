"""How far each part of the study is run: on how many tables every method of a setting is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scripts.protocol.protocols import Protocol2, load_protocol2, rules_named
from scripts.protocol.published import read_store
from scripts.protocol.rules import BASE
from scripts.records.tables import markdown_rows
from scripts.study.evidence import TITLES

#: The title of each part by its rules, and the methods that count; all of the rules where none is named.
PARTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "no_search": ("No search", ()),
    "more_splits": ("20 more splits, ERM and C-Mixup", (BASE, "cmixup")),
    "network_wide": ("A wide network", ()),
    "network_realmlp": ("RealMLP", ()),
    "network_tabm": ("TabM", ()),
    "likelihood": ("Likelihood", ()),
}
NOISE, NOISY = "Input noise, tuned", "feature_noise"  # the entry of protocol 2 that is that noise
NOISE_SETTINGS = ("random", "grouped")
HEAD = ("part", "rules", "setting", "tables with all methods", "cells")


class Progress(NamedTuple):
    """How far one setting of a part is run.

    Attributes:
        part: its title.
        rules: its file of configs/study.
        setting: in words.
        tables, of: how many have all methods, and how many the rules have.
        cells, planned: how many are published, and how many the rules have.
    """

    part: str
    rules: str
    setting: str
    tables: int
    of: int
    cells: int
    planned: int


def progress_of(part: str, rules: Protocol2, settings: Sequence[str], methods: Sequence[str]) -> Iterator[Progress]:
    """Yield how far each setting of a part is run.

    Args:
        part: its title.
        rules: of it.
        settings: names of conditions.
        methods: which count; all of a setting where none is named.
    """
    there = {(r["table"], r["condition"], r["method"]) for r in read_store(rules, entries=True)}
    for condition in (each for each in rules.conditions if each.name in settings):
        wanted = tuple(methods) or condition.methods
        tables = [cell.table.name for cell in rules.cells(conditions=[condition.name], methods=[BASE])]
        each = [sum((table, condition.name, method) in there for method in wanted) for table in tables]
        yield Progress(
            part, rules.name, TITLES[condition.name], sum(n == len(wanted) for n in each), len(tables), sum(each),
            len(tables) * len(wanted),
        )  # fmt: skip


def all_progress() -> list[Progress]:
    """Return how far each setting of every part is run."""
    found: list[Progress] = []
    for name, (title, methods) in PARTS.items():
        rules = rules_named(name)
        found += progress_of(title, rules, [each.name for each in rules.conditions], methods)
    return [*found, *progress_of(NOISE, load_protocol2(), NOISE_SETTINGS, (NOISY,))]


def state_text(every: Sequence[Progress], part: str) -> str:
    """Return how far a part is run, in words."""
    own = [each for each in every if each.part == part]
    if all(each.tables == each.of for each in own):
        return "answered"
    return "; ".join(f"{each.setting}: {each.tables} of {each.of} tables" for each in own)


def progress_rows(every: Sequence[Progress]) -> list[str]:
    """Return a row for each setting of each part."""
    body = [
        [one.part, f"[{one.rules}](../../configs/study/{one.rules}.yaml)", one.setting, f"{one.tables} of {one.of}",
         f"{one.cells} of {one.planned}"] for one in every
    ]  # fmt: skip
    return markdown_rows(HEAD, body)
