"""The page of the cures: is C-Mixup biased where a function is curved, and does either cure undo it?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scripts.records import names
from scripts.records.stats import Interval, paired, summarise
from scripts.records.tables import markdown_rows
from scripts.report.sweep import interval_text
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
DECIMALS = 4

Record = Mapping[str, Any]


def read() -> list[dict[str, Any]]:
    """Return the published records, none if there are none."""
    return [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.is_file() else []


def render(records: Sequence[Record]) -> str:
    """Return the page as Markdown."""
    about = (
        "Mixing fits a function to points between rows, where a curved one does not pass through the mixed label. Two "
        "cures are tried with the budget of [the study](when.md): every row has 16 trials on a seed of its own, in "
        "which the cure is on, and 10 seeds with the winner's options. Inputs are mixed. *Alpha shrunk where curved*: "
        "a row's alpha is divided by 1 + s r, r the bias of mixing it by a quick kernel model against that model's "
        "error. *Predictions un-shrunk*: after training, by the mean weight of a row and the regression of its "
        "partners' mean on it (Carratino et al. 2022; for C-Mixup the partners are its own)."
    )
    parts = ["# Can the harm be undone?", "", about]
    for table in dict.fromkeys(record["table"] for record in records):
        mine = {record["arm"]: record for record in records if record["table"] == table}
        parts += ["", f"## {title(table)}", "", *_block(mine)]
    verdicts = [_verdict(cure, records) for cure in CURES if any(record["arm"] == cure for record in records)]
    return "\n".join([*parts, "", "## What is kept", "", *(f"- {line}" for line in verdicts)]) + "\n"


def title(table: str) -> str:
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


def _block(mine: Mapping[str, Record]) -> list[str]:
    body = []
    for arm, record in mine.items():
        found, base = summarise(list(errors(record).values())), CURES.get(arm)
        beside = interval_text(against(mine, arm, base), DECIMALS) if base else ""
        erm = interval_text(against(mine, arm, BASE), DECIMALS) if arm != BASE else ""
        text = f"{found.mean:.{DECIMALS}f} ± {found.std:.{DECIMALS}f}"
        body.append([TITLES.get(arm, names.method_title(arm)), str(found.n), text, erm, beside])
    rows = next(iter(mine.values()))["train_rows"]
    legend = (
        f"{rows} training rows. Test error in standard deviations of the label, mean ± standard deviation over n "
        "seeds; differences are paired by seed, mean [95 % t interval], below 0 is better."
    )
    head = ["", "n", "test error", "minus ERM", "minus the same without the cure"]
    return [legend, "", *markdown_rows(head, body), *_biases(mine)]


def _biases(mine: Mapping[str, Record]) -> list[str]:
    if BASE not in mine:
        return []
    seeds = mine[BASE]["seeds"]
    keys = [key for key in seeds[0] if key.startswith("bias ")]
    cells = [f"{np.mean([row[key] for row in seeds]):.3f}" for key in keys]
    heads = [key.removeprefix("bias ") + " std" if key != "bias any" else "any partner" for key in keys]
    level = np.mean([row["test"] for row in seeds])
    text = (
        "Bias of mixing half and half where ERM's network is taken for the function, by bandwidth: root mean square "
        f"over training rows, mean over seeds, in standard deviations of the label; ERM's test error is {level:.3f}."
    )
    near, far = (np.mean([row[key] for row in seeds]) for key in (keys[0], keys[-1]))
    share = (
        f"With partners within {heads[0]} the bias is {100 * near / far:.0f} % of that with any partner: by so much "
        "does likeness of labels keep mixed inputs to where the function is straight."
    )
    return ["", text, "", *markdown_rows(["partners within", *heads], [["bias", *cells]]), "", share]


def _verdict(cure: str, records: Sequence[Record]) -> str:
    """Return whether every table has an interval below 0 against the same without the cure."""
    found = {}
    for table in dict.fromkeys(record["table"] for record in records):
        mine = {record["arm"]: record for record in records if record["table"] == table}
        if (interval := against(mine, cure, CURES[cure])) is not None:
            erm = against(mine, cure, BASE)
            found[table] = (interval, erm)
    better = [title(table) for table, (interval, _) in found.items() if interval.high < 0]
    worse = [title(table) for table, (interval, _) in found.items() if interval.low > 0]
    beats = [title(table) for table, (_, erm) in found.items() if erm is not None and erm.high < 0]
    told = f"{TITLES[cure]}: better than without it on {_listed(better)}, worse on {_listed(worse)}"
    return f"{told}; better than ERM on {_listed(beats)}. {'Worth an option.' if beats else 'Not kept as an option.'}"


def _listed(names_: Sequence[str]) -> str:
    return " and ".join(names_) if names_ else "none"
