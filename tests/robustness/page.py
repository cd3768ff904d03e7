"""The page of what was tried on the project itself, results/reliability.md, from its records."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from cmixup.files import write_atomically
from scripts.driver.provenance import environment
from tests.robustness.base import Trial

RECORDS, PAGE = "reliability.jsonl", "reliability.md"
LONGEST = 300  # characters of a failure on the page


def read_records(results: Path) -> list[dict[str, Any]]:
    """Return the last record of every trial."""
    path = results / RECORDS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def write_records(results: Path, trials: Sequence[Trial], counts: Mapping[str, int], seed: int) -> None:
    """Write a line for every trial, with commit, machine, count and seed, beside those of trials that did not run."""
    shared = {"date": time.strftime("%Y-%m-%d", time.gmtime()), **environment(torch.device("cpu")), "seed": seed}
    new = {trial.name: {**asdict(trial), "count": counts[trial.name], **shared} for trial in trials}
    kept = {record["name"]: record for record in read_records(results)} | new
    write_atomically(results / RECORDS, "".join(json.dumps(record) + "\n" for record in kept.values()))


ABOUT = """# What holds when things go wrong

With this page you know which promises of this project were tried for real, how often, and which held
(`results/reliability.jsonl` has the records). Commands are forked from a process that has imported the code, since 3 s
of imports would be most of every start; signals, files, locks and processes are real. Runs are tiny, on synthetic data.
"As undisturbed" is byte for byte: weights, predictions, history, configuration, and reports but for their times.
"""
#: From their documentation and sources, as read for this page; cells say what was found there.
OTHERS = """## Beside others

| | promise | what their own tests do |
| --- | --- | --- |
| SQLite | a transaction is whole or absent after a crash or a power cut (journal, fsync) | I/O errors, lack of memory and a crash at every step in a loop; un-synced writes dropped |
| Levanter | "bitwise deterministic", also "in the face of preemption and resumption" (its README) | not read for this page |
| NequIP | temporary file, move, rename; groups of files move together; resumes | none with a signal seen; loads pickles |
| DomainBed | a `done` file; incomplete runs are deleted and trained again | none with a signal seen |
| this project | see above; power cuts are not tried (file and folder are synced before a name counts), nor NFS, Windows, GPUs | this page |

`make reliability` tries all of it again and renders this page.
"""  # noqa: E501 - a table


def to_markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the page."""
    lines = [
        ABOUT,
        "| trial | what is tried and must hold | tried | held | seconds |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    for r in records:
        held = f"{r['held']:,}" if r["held"] == r["tried"] else f"**{r['held']:,}**"
        lines.append(f"| {r['name']} | {r['what']} | {r['tried']:,} | {held} | {r['seconds']:,.0f} |")
    lines += ["", "## Notes", ""]
    for r in records:
        state = f"commit {r['commit'][:10] or 'unknown'}{' with uncommitted changes' if r['dirty'] else ''}"
        torch_ = f"PyTorch {r['versions'].get('torch', '?')}"
        notes = f"{r['notes']}. " if r["notes"] else ""
        lines.append(f"- {r['name']}: {notes}{r['date']}, {state}, seed {r['seed']}, {torch_}, {r['device']}.")
    lines += ["", "## What did not hold", ""]
    wrong = [r for r in records if r["held"] < r["tried"]]
    for r in wrong:
        lines.append(f"- {r['name']}, {r['tried'] - r['held']:,} of {r['tried']:,}:")
        lines += [f"  - `{line[:LONGEST]}`" for line in r["failures"]]
    lines += [] if wrong else ["Nothing: everything that was tried held."]
    return "\n".join(lines) + "\n\n" + OTHERS


def write_page(results: Path) -> Path:
    """Render the page from its records."""
    path = results / PAGE
    write_atomically(path, to_markdown(read_records(results)))
    return path
