"""The page of what was tried on the project itself, results/reliability.md, from its records."""

import json
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from cmixup.files import write_atomically
from scripts.driver.provenance import run_environment
from scripts.records.seal import seal_measured
from tests.robustness.base import Trial

RECORDS, PAGE = "reliability.jsonl", "reliability.md"
LONGEST = 300  # characters of a failure on the page


def read_records(results: Path) -> list[dict[str, Any]]:
    """Return the last record of every trial."""
    path = results / RECORDS
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def write_records(
    results: Path, trials: Sequence[Trial], counts: Mapping[str, int], seed: int, known: Collection[str] = ()
) -> None:
    """Write a line for every trial, with commit, machine, count and seed, and keep those of trials that did not run.

    Args:
        results: the folder of the records.
        trials, counts, seed: what was found, and how it was asked for.
        known: names of the trials that there are; records of others are left out. All are kept if empty.
    """
    shared = {"date": time.strftime("%Y-%m-%d", time.gmtime()), **run_environment(torch.device("cpu")), "seed": seed}
    new = {trial.name: {**asdict(trial), "count": counts[trial.name], **shared} for trial in trials}
    kept = {record["name"]: record for record in read_records(results)} | new
    kept = {name: record for name, record in kept.items() if name in (known or kept)}
    write_atomically(results / RECORDS, "".join(json.dumps(record) + "\n" for record in kept.values()))


ABOUT = """# Robustness tests

Which promises of this project were tried for real, how often, and which held
(`results/reliability.jsonl` has the records). Commands are forked from a process that has imported the code, since 3 s
of imports would be most of every start; signals, files, locks and processes are real. Runs are tiny, on synthetic data.
"As undisturbed" is byte for byte: weights, predictions, history, configuration, and reports but for their times.

## What is promised

- **A run is whole or absent**, however its process ends, and a stack is so as one. Started again, it ends as
  undisturbed (kills, crash_points, races, disk_full).
- **An error of the disk is an error.** Where a write, fsync, rename or close fails, the command ends with one line, and
  nothing is called done that may be lost (nth_call).
- **A changed bit is named.** Of a run by the checksums in its `DONE` (bit_rot), of the published results by
  `results/SEAL` (chain), of raw files and of installed packages by their SHA-256 (`make verify`).
- **A command ends as it does at home, or says in one line why not** (environments). Where cells could not be trained,
  the table of the others is printed, and the status is 2.
- **A published run was made by the code of its commit** (provenance).
- **One command checks all of it, from the pages down to the packages**: `make verify` names the first link that does
  not hold (tampering), and ends with the root of the published results, which [results/README](README.md) prints. In a
  fresh clone it held on 2026-11-25, in 70 minutes on two cores that twenty other processes shared.

## What is not promised

- The seal is no signature: whoever can write results/ can seal anew. Compare the root with one that you have from
  elsewhere.
- The page that people edit (`README.md`) is outside the seal. What is rendered into it is compared by `make verify`.
- Not seen: a package that was edited together with its RECORD, and a start-up file of Python that patches what it
  imports. A run does not see bytecode whose source was given its old size and time again; `make verify` does.
- Where files are limited to some kB, this Python may leave half of a file of bytecode, which ends later commands with
  `EOFError: marshal data too short`. Remove such files; `PYTHONDONTWRITEBYTECODE=1` writes none.
- Hashes of packages hold on Linux, x86-64 and CPython 3.11. Elsewhere constraints.txt names versions, and packages that
  these need in turn may differ.
- Not tried: power cuts (files and folders are synced before a name counts), NFS, Windows, macOS, GPUs, and errors of
  what the C library's own streams write.

## What was tried
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
    seal_measured(results, [RECORDS, PAGE])
    return path
