"""What docs/report.md says of the runs behind it: how many, of which datasets and methods, and how long they took."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from scripts.records.experiment import all_experiments
from scripts.records.published import published_reports
from scripts.records.register import fills

PAGE = "docs/report.md"

#: Titles of runs that `make` trains by options of scripts.train, without a file of their own.
NO_EXPERIMENT = {"table_spurious": "RCF-MNIST at other ratios of misleading colours"}


@fills("results/runs")
def report_parts() -> dict[str, dict[str, str]]:
    """Return the parts of docs/report.md: `runs`, a table, and `compute`, a sentence."""
    reports = published_reports()
    titles = NO_EXPERIMENT | {experiment.name: experiment.title for experiment in all_experiments()}
    return {PAGE: {"runs": "\n".join(run_lines(reports, titles)), "compute": compute_text(reports)}}


def run_lines(reports: Iterable[Mapping[str, Any]], titles: Mapping[str, str]) -> Iterator[str]:
    """Yield a table with a row for each experiment: its title, datasets, methods, runs, most seeds and core-hours."""
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for report in reports:
        groups[report["experiment"]].append(report)
    yield "| experiment | datasets | methods | runs | seeds of a cell, at most | core-hours |"
    yield "| --- | --- | ---: | ---: | ---: | ---: |"
    for name, own in sorted(groups.items()):
        datasets = ", ".join(sorted({report["dataset"] for report in own}))
        methods, seeds = ({report[key] for report in own} for key in ("method", "seed"))
        title = titles.get(name, name).replace("|", "/")
        yield f"| {title} | {datasets} | {len(methods)} | {len(own)} | {len(seeds)} | {count_hours(own):.1f} |"


def compute_text(reports: Iterable[Mapping[str, Any]]) -> str:
    """Return how many runs there are, their core-hours, the processors and the versions of PyTorch."""
    own = list(reports)
    processors = sorted({report["device"].partition(": ")[2] or report["device"] for report in own})
    versions = sorted({report["versions"]["torch"] for report in own})
    return (
        f"The tables and figures rest on {len(own):,} runs, which took {count_hours(own):.0f} core-hours on "
        f"{', '.join(processors)} with PyTorch {', '.join(versions)}"
    )


def count_hours(reports: Iterable[Mapping[str, Any]]) -> float:
    """Return the hours of a core that runs took; seeds that trained as one stack share its time."""
    return sum(report["seconds"] * report["threads"] for report in reports) / 3600
