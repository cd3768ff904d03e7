"""The tables of results/study/cures.md: is C-Mixup biased where a function is curved, and does a cure undo it?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scripts.records import names
from scripts.records.stats import Interval, paired
from scripts.records.tables import interval_text, markdown_rows, mean_text
from scripts.study.published import FOLDER

RECORDS = FOLDER / "cures.jsonl"
#: Every cure with what it is to be better than.
CURES = {
    "mixup_unshrunk": "mixup",
    "cmixup_unshrunk": "cmixup",
    "cmixup_curved": "cmixup",
}
TITLES = {
    "mixup_unshrunk": "mixup, predictions un-shrunk",
    "cmixup_unshrunk": "C-Mixup, predictions un-shrunk",
    "cmixup_curved": "C-Mixup, alpha shrunk where curved",
}
BASE = "erm"
BIAS = "bias "  # begins the keys of a seed's biases by distance of the partners
DECIMALS = 4

Record = Mapping[str, Any]


def read() -> list[dict[str, Any]]:
    """Return the published records, none if there are none."""
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.is_file() else []


def parts(records: Sequence[Record]) -> dict[str, str]:
    """Return what is filled into the page, by its place: errors, the bias of mixing, and which cure is kept."""
    body, biases = [], []
    for table in dict.fromkeys(record["table"] for record in records):
        mine = {record["arm"]: record for record in records if record["table"] == table}
        for arm, record in mine.items():
            values, base = errors(record), CURES.get(arm)
            beside = interval_text(against(mine, arm, base), DECIMALS) if base else ""
            erm = interval_text(against(mine, arm, BASE), DECIMALS) if arm != BASE else ""
            first = [table_title(table), TITLES.get(arm, names.method_title(arm)), str(record["train_rows"])]
            body.append([*first, str(len(values)), mean_text(values, DECIMALS), erm, beside])
        seeds = mine[BASE]["seeds"] if BASE in mine else []
        means = {
            key: np.mean([row[key] for row in seeds]) for key in (seeds[0] if seeds else ()) if key.startswith(BIAS)
        }
        if means:
            level, (near, *_, far) = np.mean([row["test"] for row in seeds]), means.values()
            cells = [*means.values(), level]
            biases.append([table_title(table), *(f"{value:.3f}" for value in cells), f"{100 * near / far:.0f} %"])
            widths = [f"{key.removeprefix(BIAS)} std".replace("any std", "any partner") for key in means]
    kept = [_verdict(cure, records) for cure in CURES if any(record["arm"] == cure for record in records)]
    head = ["", "", "training rows", "n", "test error", "minus ERM", "minus the same without the cure"]
    return {
        "errors": "\n".join(markdown_rows(head, body)),
        "bias": "\n".join(markdown_rows(["", *widths, "ERM's test error", "nearest of any"], biases)) if biases else "",
        "kept": "\n".join(f"- {line}" for line in kept),
    }


def table_title(table: str) -> str:
    """Return a table's heading."""
    return names.dataset_title(table) if table != "concrete" else "Concrete"


def errors(record: Record) -> dict[int, float]:
    """Return the test error by seed, in standard deviations of the label."""
    return {row["seed"]: row["test"] for row in record["seeds"] if np.isfinite(row["test"])}


def against(records: Mapping[str, Record], arm: str, base: str) -> Interval | None:
    """Return an arm minus another, paired by seed; None where one has no records."""
    if arm not in records or base not in records:
        return None
    return paired(errors(records[arm]), errors(records[base]))


def _verdict(cure: str, records: Sequence[Record]) -> str:
    """Return whether every table has an interval below 0 against the same without the cure."""
    found = {}
    for table in dict.fromkeys(record["table"] for record in records):
        mine = {record["arm"]: record for record in records if record["table"] == table}
        if (interval := against(mine, cure, CURES[cure])) is not None:
            erm = against(mine, cure, BASE)
            found[table] = (interval, erm)
    better = [table_title(table) for table, (interval, _) in found.items() if interval.high < 0]
    worse = [table_title(table) for table, (interval, _) in found.items() if interval.low > 0]
    beats = [table_title(table) for table, (_, erm) in found.items() if erm is not None and erm.high < 0]
    told = f"{TITLES[cure]}: better than without it on {_listed(better)}, worse on {_listed(worse)}"
    return f"{told}; better than ERM on {_listed(beats)}. {'Worth an option.' if beats else 'Not kept as an option.'}"


def _listed(names_: Sequence[str]) -> str:
    return " and ".join(names_) if names_ else "none"
