"""What tuning tried and found: records of every trial with its validation score, and the winners' values.

A record is a line with `dataset`, `method`, `preset` (tuned or tuned_default, which is made), `command`, `commit`,
`dirty`, `model`, `seed`, `budget` (trials asked for; fewer mean that the grid has no more), `metric`, `best` (the
winner's place) and `trials`: the `options` of each, and its `val`, or null where it diverged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.metrics import metric_of
from scripts.config.compose import read_part
from scripts.driver.locks import LOCKS, holding_alone
from scripts.records.records import Report, validation_score

FILE = "tuned.jsonl"  # below results/


def choose_trial(reports: Sequence[Report | None]) -> int:
    """Return which trial has the best validation score, the first of ties.

    Raises:
        InputError: no trial gave a score.
    """
    scores = {k: (validation_score(report), report["selection"]) for k, report in enumerate(reports) if report}
    if not scores:
        raise InputError("every trial diverged")
    sign = 1 if metric_of(next(iter(scores.values()))[1]).lower_is_better else -1
    return min(scores, key=lambda k: sign * scores[k][0])


def read_trials(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file, or none where it does not exist."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def add_trial(path: Path, record: Mapping[str, Any]) -> None:
    """Add a record to those of a file, unless it is there already; others may do so meanwhile."""
    with holding_alone(path.parent / LOCKS, path.name):
        lines = [json.dumps(one) for one in read_trials(path)]
        if (line := json.dumps(record)) not in lines:
            write_atomically(path, "".join(f"{one}\n" for one in [*lines, line]))


def write_values(path: Path, method: str, values: Mapping[str, Any]) -> None:
    """Put a method's tuned values into a dataset's file, beside other methods that are there."""
    with holding_alone(path.parent / LOCKS, path.name):
        known = {**(read_part(path) if path.is_file() else {}), method: dict(values)}
        # JSON's 1e-05 would be a string in YAML.
        lines = [yaml.safe_dump({name: known[name]}, default_flow_style=True, width=math.inf) for name in sorted(known)]
        head = f"# Tuned values by method: python -m scripts.tune dataset={path.stem}; every trial: results/{FILE}\n"
        write_atomically(path, head + "".join(f"{line[1:-2]}\n" for line in lines))
