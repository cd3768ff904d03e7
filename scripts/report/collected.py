"""A user's own sweep: finished runs below some folders, grouped by the value that one option had."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cmixup.done import checked
from cmixup.errors import InputError
from cmixup.metrics import lower_is_better
from scripts.driver.runs import HISTORY, is_done, read_report
from scripts.records import names
from scripts.records.records import to_csv
from scripts.records.stats import summarise
from scripts.records.tables import markdown_rows, mean_text
from scripts.report.figures import legend_below, looks, subplots
from scripts.report.sweep import Point, Report, by_value, decimals_for, option_value, points, shown

WHOLE = ("dataset", "model", "method", "preset", "experiment")  # what a report names beside its options
COLUMNS = ("group", "option", "value", "n", "metric", "mean", "std", "low", "high", "val_mean", "best")


@dataclass(frozen=True)
class Collected:
    """The runs that differ in nothing but one option and their seeds.

    Attributes:
        label: what tells them from other groups; all of it where there is one group.
        option, metric: the option, and the test score shown.
        points: a value each, in ascending order.
        runs: their reports, by value.
    """

    label: str
    option: str
    metric: str
    points: list[Point]
    runs: Mapping[Any, Sequence[Report]]

    @property
    def on_val(self) -> dict[Any, float]:
        """Mean of the same score on validation by value; NaN where validation has no such score."""
        scores = {v: [float(r["scores"]["val"].get(self.metric, math.nan)) for r in of] for v, of in self.runs.items()}
        return {value: summarise(each).mean for value, each in scores.items()}

    @property
    def best(self) -> Point | None:
        """The value with the best mean test score, the first of equals; None where no mean is finite."""
        return self._best({p.value: p.interval.mean for p in self.points})

    @property
    def best_on_val(self) -> Point | None:
        """The value with the best mean validation score."""
        return self._best(self.on_val)

    def _best(self, means: Mapping[Any, float]) -> Point | None:
        sign = 1 if lower_is_better(self.metric) else -1
        finite = [p for p in self.points if math.isfinite(means[p.value])]
        return min(finite, key=lambda p: sign * means[p.value], default=None)


def find_reports(folders: Sequence[Path]) -> tuple[list[dict[str, Any]], int]:
    """Return the reports of finished runs below the folders, each with its `folder`, and how many are not finished.

    Raises:
        InputError: a folder that is not there, or no finished run in any.
    """
    for folder in folders:
        if not folder.is_dir():
            raise InputError(f"folder must exist, got {str(folder)!r}")
    runs = sorted({path.parent.resolve() for folder in folders for path in folder.rglob("config.yaml")})
    done = [run for run in runs if is_done(run)]
    if not done:
        left = f"; {len(runs)} are not finished" if runs else ""
        raise InputError(f"no finished run below {', '.join(map(str, folders))}{left}")
    return [{**read_report(run), "folder": run} for run in done], len(runs) - len(done)


def narrowed(reports: Sequence[dict[str, Any]], where: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the reports whose dataset, method, ... are as given; an empty text takes all.

    Raises:
        InputError: there is none of that name.
    """
    kept = list(reports)
    for key, value in where.items():
        found = sorted({str(r[key]) for r in kept})
        if value and value not in found:
            raise InputError(f"{key} must be one of {', '.join(found)} in these runs, got {value!r}")
        kept = [r for r in kept if not value or r[key] == value]
    return kept


def collect(reports: Sequence[dict[str, Any]], option: str, metric: str = "") -> tuple[list[Collected], list[str]]:
    """Return a group for all runs that differ only in `option` and their seeds, and what was left out.

    Args:
        reports: of finished runs.
        option: such as `method.bandwidth`, `method.pairing`, `train.lr`, or `dataset`, `model`, `method`, `preset`.
        metric: of the test scores; by default the one that selected the checkpoints.

    Raises:
        InputError: an option that is no run's, several datasets or methods, one value only, an unknown metric, or two
            runs that differ in nothing.
    """
    if option in ("seed", "seeds"):
        raise InputError("over must be an option, got 'seed': scores are averaged over seeds")
    for whole in ("dataset", "method"):
        found = sorted({str(r[whole]) for r in reports})
        if len(found) > 1 and option != whole:
            raise InputError(f"these runs are of several {whole}s, {', '.join(found)}: say which with {whole}=")
    _check_option(reports, option)
    groups: dict[str, list[dict[str, Any]]] = {}
    for report in reports:
        groups.setdefault(json.dumps(_rest(report, option), sort_keys=True), []).append(report)
    rests = {key: json.loads(key) for key in groups}
    collected, left_out = [], []
    for key, mine in groups.items():
        label = _label(rests[key], list(rests.values()))
        score = metric or str(mine[0]["selection"])
        swept = points(mine, option, score)
        if len(swept) < 2:
            left_out.append(f"{label}: {option} has one value, {shown(swept[0].value)}, in {len(mine)} runs")
            continue
        collected.append(Collected(label, option, score, swept, by_value(mine, option)))
    if not collected:
        raise InputError(f"there is no sweep over {option} here; {'; '.join(left_out)}")
    return collected, left_out


def _check_option(reports: Sequence[dict[str, Any]], option: str) -> None:
    """Raise `InputError` unless every run has the option."""
    try:
        for report in reports:
            option_value(report, option)
    except InputError:
        changed = sorted({key for r in reports for key in r["options"]})
        known = f"; what these runs changed: {', '.join(changed)}" if changed else ""
        raise InputError(f"over must be an option of these runs, got {option!r}{known}") from None


def _rest(report: Mapping[str, Any], option: str) -> dict[str, Any]:
    """Return all that tells a run from others, but for the option, what stands below it, and the seed."""
    inside = f"{option}."
    options = {k: v for k, v in report["options"].items() if k != option and not k.startswith(inside)}
    return {**{key: report[key] for key in WHOLE if key != option}, **options}


def _label(rest: Mapping[str, Any], every: Sequence[Mapping[str, Any]]) -> str:
    """Return what tells one group from the others, or dataset, method and preset where it is alone."""
    keys = sorted({key for one in every for key in one if any(other.get(key) != one[key] for other in every)})
    telling = [f"{key}={shown(rest[key])}" if key in rest else f"{key} as the preset" for key in keys]
    return ", ".join(telling) or " ".join(str(rest[key]) for key in ("dataset", "method", "preset") if key in rest)


def collected_page(groups: Sequence[Collected]) -> str:
    """Return a table a group; the best mean is bold, with its interval below."""
    legend = (
        "Test score, mean ± standard deviation (n - 1 in the denominator) and 95 % t interval over n seeds; bold is "
        "the best mean."
    )
    parts = [legend]
    for group in groups:
        finite = [p.interval.mean for p in group.points if math.isfinite(p.interval.mean)]
        d = decimals_for(finite or [1.0])
        rows = []
        for p in group.points:
            found = p.interval
            text = mean_text(p.scores, d)
            value = shown(p.value)
            if p == group.best:
                value, text = f"**{value}**", f"**{text}**"
            between = f"[{found.low:.{d}f}, {found.high:.{d}f}]" if found.n > 1 else "—"
            val = group.on_val[p.value]
            rows.append([value, str(len(p.scores)), text, between, f"{val:.{d}f}" if math.isfinite(val) else "—"])
        shown_metric = names.metric_title(group.metric)
        head = [group.option, "n", f"test {shown_metric}", "95 % interval", f"val {shown_metric}"]
        parts += ["", f"## {group.label}", "", *markdown_rows(head, rows), "", best_line(group, d)]
    return "\n".join([*parts, ""])


def best_line(group: Collected, decimals: int) -> str:
    """Return a sentence on the best value on test, and on the one that validation would choose."""
    chosen, on_val = group.best, group.best_on_val
    if chosen is None:
        return "No value has a finite mean."
    found = chosen.interval
    ends = f" [{found.low:.{decimals}f}, {found.high:.{decimals}f}]" if found.n > 1 else ", one seed"
    by_val = f" Validation, by which options are to be chosen, prefers {shown(on_val.value)}." if on_val else ""
    return f"Best on test: {group.option}={shown(chosen.value)}, {found.mean:.{decimals}f}{ends}.{by_val}"


def curves(groups: Sequence[Collected]) -> Figure:
    """Draw the score that selects checkpoints over epochs, the mean over seeds, a line a value."""
    figure, ((axis,),) = subplots(1, 1, figsize=(9, 4.5))
    lines = {f"{g.label}, {shown(v)}" if len(groups) > 1 else shown(v): of for g in groups for v, of in g.runs.items()}
    for (label, mine), look in zip(lines.items(), looks(len(lines)), strict=True):
        histories = [csv.DictReader(checked(r["folder"] / HISTORY).read_text().splitlines()) for r in mine]
        column = f"val_{mine[0]['selection']}"
        epochs = zip(*([float(row[column]) for row in history] for history in histories), strict=False)
        mean = [sum(scores) / len(scores) for scores in epochs]
        axis.plot(range(1, len(mean) + 1), mean, color=look["color"], label=label, linewidth=1.2)
    axis.set(xlabel="epoch", ylabel="validation score that selects checkpoints")
    axis.grid(alpha=0.3)
    legend_below(figure, {line.get_label(): line for line in axis.lines})
    return figure


def to_rows(groups: Sequence[Collected]) -> str:
    """Return the same numbers as CSV, a row a value."""
    rows = [
        {"group": group.label, "option": group.option, "value": shown(p.value), "n": len(p.scores),
         "metric": group.metric, "mean": p.interval.mean, "std": summarise(list(p.scores.values())).std,
         "low": p.interval.low if p.interval.n > 1 else None, "high": p.interval.high if p.interval.n > 1 else None,
         "val_mean": group.on_val[p.value], "best": p == group.best}
        for group in groups for p in group.points
    ]  # fmt: skip
    return to_csv(rows, COLUMNS)
