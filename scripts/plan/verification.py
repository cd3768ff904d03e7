"""Published cells and the same cells trained again: which numbers differ, and by how much."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmixup.errors import InputError
from scripts.config.parts import GROUPS, config_leaves
from scripts.driver.runs import strict_json
from scripts.records.published import cell_of, published_reports, unrounded_scores

Report = Mapping[str, Any]
QUICK = "fcn3"  # its stacks of ten train in seconds, those of other networks in minutes to an hour


@dataclass(frozen=True)
class Cell:
    """Published runs of one folder that trained together.

    Attributes:
        name: the runs' folder, without the seed.
        seeds: all seeds of their stack, in its order. Digits repeat only in the same stack.
        reports: the published reports by seed.
    """

    name: str
    seeds: tuple[int, ...]
    reports: Mapping[int, Report]

    @property
    def stack(self) -> list[tuple[dict[str, Any], tuple[int, ...]]]:
        """Options and seeds of every cell that trained in the same stack, in its order."""
        alone = [{"options": self.first["options"], "seeds": self.seeds}]
        return [(dict(c["options"]), tuple(c["seeds"])) for c in self.first.get("stack_cells", alone)]

    @property
    def first(self) -> Report:
        """The report of the lowest seed, for what all seeds share."""
        return self.reports[min(self.reports)]


@dataclass(frozen=True)
class Difference:
    """A number that is not what was published."""

    name: str
    published: Any
    found: Any

    @property
    def size(self) -> tuple[float, float]:
        """The distance of the two by the published one, and the distance; infinite where there is none."""
        pair = (self.published, self.found)
        if any(isinstance(v, bool) or not isinstance(v, int | float) or not math.isfinite(v) for v in pair):
            return math.inf, math.inf
        distance = abs(self.found - self.published)
        return distance / abs(self.published) if self.published else math.inf, distance

    def __str__(self) -> str:
        relative, absolute = self.size
        more = f" (absolute {absolute:.3g}, relative {relative:.3g})" if math.isfinite(absolute) else ""
        return f"{self.name} {self.published!r} -> {self.found!r}{more}"


def published_cells(
    results: Path, datasets: Sequence[str] = (), experiments: Sequence[str] = (), models: Sequence[str] = (QUICK,)
) -> list[Cell]:
    """Return the published cells of some networks in the order of their names.

    Args:
        results: the folder results/.
        datasets: only these; all if empty.
        experiments: only these; all if empty.
        models: only these networks.

    Raises:
        InputError: there is none.
    """
    found: dict[tuple[str, tuple[int, ...], str], dict[int, Report]] = {}
    for report in published_reports(results):
        name = cell_of(report)
        if (
            report["model"] in models
            and report["dataset"] in (datasets or [report["dataset"]])
            and report["experiment"] in (experiments or [report["experiment"]])
        ):
            others = json.dumps(report.get("stack_cells"), sort_keys=True)
            found.setdefault((name, tuple(report.get("stack_seeds", [report["seed"]])), others), {})[report["seed"]] = (
                report
            )
    if not found:
        raise InputError(f"{results / 'runs'} holds no published run of {', '.join(models)} that was asked for")
    return [Cell(name, seeds, reports) for (name, seeds, _), reports in sorted(found.items())]


def draw_cells(cells: Sequence[Cell], n: int, seed: int) -> list[Cell]:
    """Return `n` cells (or all, if there are fewer), drawn without repetition with `seed`."""
    chosen = random.Random(seed).sample(range(len(cells)), min(n, len(cells)))  # noqa: S311 - no secret
    return [cells[k] for k in sorted(chosen)]


def by_stack(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Return the cells in groups that trained as one stack, so that each stack is trained again once."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        key = [cell.name.rpartition("/")[0], cell.first["preset"], cell.stack]
        alone = [] if "stack_cells" in cell.first else [cell.name, cell.seeds]
        found.setdefault(json.dumps([key, alone], sort_keys=True), []).append(cell)
    return list(found.values())


def config_differences(recorded: Mapping[str, Any], composed: Mapping[str, Any]) -> list[Difference]:
    """Return the values that a preset gives now and did not give then, for keys that both configurations have.

    Classes (`_target_`) may have moved since and are left out, and so are keys whose shape has changed.
    """
    parts = (*GROUPS, "train")
    plain = [
        json.loads(json.dumps(strict_json({part: config[part] for part in parts}))) for config in (recorded, composed)
    ]
    then, now = (dict(config_leaves(config)) for config in plain)
    both = [key for key in sorted(then.keys() & now.keys()) if not key.endswith("_target_")]
    return [Difference(key, then[key], now[key]) for key in both if then[key] != now[key]]


def compared_numbers(report: Report) -> dict[str, Any]:
    """Return the numbers of a report that must repeat, by name."""
    scores = {f"{split} {name}": v for split, each in unrounded_scores(report).items() for name, v in each.items()}
    facts = {f"fact {name}": value for name, value in report["facts"].items()}
    return {**scores, "best_epoch": report["best_epoch"], **facts}


def own_score(report: Report) -> float:
    """Return the test score of a report by the metric that chose its epoch."""
    return float(unrounded_scores(report)["test"][report["selection"]])


def report_differences(published: Report, again: Report) -> list[Difference]:
    """Return every published number that the new run does not have to the last bit; None stands for a missing one."""
    new = compared_numbers(again)
    return [
        Difference(f"seed {published['seed']} {name}", value, new.get(name))
        for name, value in compared_numbers(published).items()
        if not _same_value(value, new.get(name))
    ]


def _same_value(a: Any, b: Any) -> bool:
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isnan(a) and math.isnan(b))
