"""What the pages say of methods that somebody has entered: a row each, and the verdict on the first, as printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scripts.effects.verdicts import VERDICTS, method_verdict, verdict_name
from scripts.protocol.protocols import Protocol2
from scripts.protocol.published import read_store
from scripts.protocol.rules import BASE
from scripts.records.experiment import RESULTS
from scripts.records.tables import interval_text, markdown_rows
from scripts.study.evidence import Record, Setting

NAME = "random"  # the setting in which methods are tried first, on the lite tables
NONE = "None is published yet."


def lite_records(rules: Protocol2, store: Path = RESULTS) -> list[Record]:
    """Return the records of all methods, entries among them, in the setting at random on the lite tables."""
    tables, every = rules.lite_tables(), read_store(rules, store, entries=True)
    return [record for record in every if record["condition"] == NAME and record["table"] in tables]


def entries_of(records: Sequence[Record], rules: Protocol2) -> list[Setting]:
    """Return a setting for each entry, by name: its records and those of ERM, on the tables that it has."""
    (condition,) = (each for each in rules.conditions if each.name == NAME)
    found = []
    for name in sorted({record["method"] for record in records} - rules.methods.keys()):
        tables = {record["table"] for record in records if record["method"] == name}
        own = [r for r in records if r["method"] in (BASE, name) and r["table"] in tables]
        found.append(Setting(replace(condition, methods=(BASE, name)), rules.lite, own))
    return found


def submission_rows(records: Sequence[Record], rules: Protocol2) -> str:
    """Return a row for each entry: on how many lite tables it gains and so on, the mean change and the file."""
    body = []
    for setting in entries_of(records, rules):
        (name,), own = setting.methods, setting.effect(setting.methods[0], rules)
        assert own is not None
        (entry,) = {record.get("entry", {}).get("file", "") for record in setting.records if record["method"] == name}
        file = f"[{entry}](../../examples/entries/{entry})" if entry else f"`method={name}`"
        told = map(str, own.counts().values())
        means = [interval_text(own.overall, 1), interval_text(own.plain, 1)]
        body.append([name, f"{len(setting.tables)} of {setting.of}", *told, *means, file])
    names = [verdict_name(kind, rules.equal) for kind in VERDICTS]
    head = ["entry", "tables", *names, "mean effect, %", "each table alike, %", "file"]
    return "\n".join(markdown_rows(head, body)) if body else NONE


def submission_output(records: Sequence[Record], rules: Protocol2) -> str:
    """Return what the command prints of the first entry that has a file, as a block of text."""
    for setting in entries_of(records, rules):
        if any("entry" in record for record in setting.records):
            own = [record for record in records if record["table"] in setting.tables]
            said = method_verdict(own, NAME, setting.methods[0], rules.level, rules.equal)
            return f"```text\n{said}\n```"
    return NONE
