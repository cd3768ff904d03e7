"""Reports as lines of text: what the runs of a cell share once, and a short line for each run.

    {"texts": ["method=erm", "train.lr=0.01", ...]}
    {"shared": {"experiment": "table1", ..., "seed": null, "run": "table1/.../seed=*"}, "own": [["seed"], ...]}
    [0, 1.5700681924594329, ...]

A line of a cell is the report of its runs, with null where they differ; `own` lists these places, and a line for each
run has their values in that order. Where a file has lists of texts for its runs, its first line has all of these, and
the numbers in `of_texts`, a place of `own` each, are theirs. What is read is what was written, key for key. A line that
is the whole report of a run, as earlier versions wrote, is read as well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

NAME = re.compile(r"(?:/trial=\d+)?/seed=-?\d+$")  # what ends the name of a run
Report = dict[str, Any]
Place = list[str | int]  # the keys, and numbers of a list, that lead to a value


def cell_of(report: Mapping[str, Any]) -> str:
    """Return the name of a report's cell: its run without the seed."""
    return str(report["run"]).rpartition("/")[0]


def to_lines(reports: Iterable[Mapping[str, Any]]) -> str:
    """Return reports, whose numbers are what JSON can say, as lines in order of cells and seeds."""
    blocks: dict[tuple[str, ...], list[Report]] = {}
    for report in sorted(reports, key=lambda r: (cell_of(r), r["seed"])):
        blocks.setdefault((NAME.sub("", report["run"]), *report), []).append(dict(report))
    made = [_cell_line(own) for own in blocks.values()]
    texts = sorted({text for _, of_texts, rows in made for row in rows for k in of_texts for text in row[k]})
    numbers = {text: k for k, text in enumerate(texts)}
    lines = [_dumped_json({"texts": texts})] if texts else []
    for head, of_texts, rows in made:
        lines.append(_dumped_json({**head, "of_texts": of_texts} if of_texts else head))
        for row in rows:
            for k in of_texts:
                row[k] = [numbers[text] for text in row[k]]
            lines.append(_dumped_json(row))
    return "".join(f"{line}\n" for line in lines)


def _cell_line(own: list[Report]) -> tuple[Report, list[int], list[list[Any]]]:
    """Return the line of a cell, which of its places have lists of texts, and the values of each run."""
    name = NAME.sub(_starred_name, own[0]["run"])
    if all(_run_name(name, report) == report["run"] for report in own):
        own = [{**report, "run": name} for report in own]
    places = list[Place]()
    shared = _shared_values(own, [], places)
    rows = [[_place_value(report, place) for place in places] for report in own]
    of_texts = [k for k in range(len(places)) if all(_is_texts(row[k]) for row in rows)]
    return {"shared": shared, "own": places}, of_texts, rows


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _dumped_json(value: Any) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def from_lines(lines: Iterable[str]) -> Iterator[Report]:
    """Yield the reports that lines are about, in the order of the lines.

    Raises:
        ValueError: a line is none of these, by its number.
    """
    texts, head, shared = list[str](), Report(), "null"  # as text, which makes a new report for each run
    for n, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
            if isinstance(found, list):
                for k in head.get("of_texts", ()):
                    found[k] = [texts[number] for number in found[k]]
                yield _whole_report(shared, head["own"], found)
            elif "shared" in found:
                head, shared = {**found, "own": found["own"]}, json.dumps(found["shared"])
            elif "texts" in found:
                texts = found["texts"]
            else:
                yield found
        except (ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
            raise ValueError(f"line {n} is no report of a run: {type(error).__name__}: {error}") from None


def _whole_report(shared: str, places: Sequence[Place], values: Sequence[Any]) -> Report:
    report: Report = json.loads(shared)
    for place, value in zip(places, values, strict=True):
        *way, last = place
        node: Any = report
        for key in way:
            node = node[key]
        node[last] = value
    if "*" in report["run"]:
        report["run"] = _run_name(report["run"], report)
    return report


def _starred_name(name: re.Match[str]) -> str:
    return re.sub(r"=-?\d+", "=*", name[0])


def _run_name(name: str, report: Mapping[str, Any]) -> str:
    """Return the name of a run for its cell's: the stars stand for the numbers of its trial and its seed."""
    trial = name.replace("trial=*", f"trial={report['options'].get('trial', 0):02}")
    return trial.replace("seed=*", f"seed={report['seed']}")


def _shared_values(values: Sequence[Any], way: Place, places: list[Place]) -> Any:
    """Return what values have in common, null in its place where they differ, and put these places into `places`."""
    if len({json.dumps(value) for value in values}) == 1 and way != ["seed"]:
        return values[0]
    first = values[0]
    if isinstance(first, dict) and all(isinstance(v, dict) and list(v) == list(first) for v in values):
        return {key: _shared_values([value[key] for value in values], [*way, key], places) for key in first}
    if (
        isinstance(first, list)
        and all(isinstance(v, list) and len(v) == len(first) for v in values)
        and not all(map(_is_texts, values))
    ):
        return [_shared_values([value[k] for value in values], [*way, k], places) for k in range(len(first))]
    places.append(way)
    return None


def _place_value(report: Any, place: Place) -> Any:
    for key in place:
        report = report[key]
    return report
