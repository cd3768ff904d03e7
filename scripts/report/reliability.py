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
from scripts.driver.runs import environment
from scripts.trials.base import Trial

RECORDS, PAGE = "reliability.jsonl", "reliability.md"


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


def to_markdown(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the page."""
    lines = ["# What holds when things go wrong", "", "| trial | tried | held |", "| --- | ---: | ---: |"]
    lines += [f"| {r['what']} | {r['tried']:,} | {r['held']:,} |" for r in records]
    return "\n".join(lines) + "\n"


def write_page(results: Path) -> Path:
    """Render the page from its records."""
    path = results / PAGE
    write_atomically(path, to_markdown(read_records(results)))
    return path
