"""Further differences of results/findings.md, and our runs beside those of the authors' code."""

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from scripts.config.compose import part_file
from scripts.records import names
from scripts.records.csv_rows import to_csv
from scripts.report.evidence import AUTHORS_WIDTHS, Evidence, Query, experiment_of, minus, published_evidence, sample_of
from scripts.report.paper.claims import all_comparisons
from scripts.report.paper.statements import published_statements
from scripts.report.rendering import fills, writes
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import HIGHER, LEVEL, LOWER, Interval, Summary, interval_text

Row = tuple[str, Interval, int]  # its name, the difference, decimals
PAGE = "results/findings.md"
LEADING, DOMAINS = ("airfoil", "no2"), ("crime", "skillcraft")
DIRECTED = ("irm", "ib_irm", "vrex", "coral", "drnn", "group_dro", "fish")
PRESETS = ("paper", "released", "default", "tuned", "tuned_default")
TRACKED = {"train.track": ["test"]}  # options of ablation_ood that change nothing
ONE_ORDER = {"dataset.row_order": "released", "train.shuffle": False, "train.drop_last": True}


def enough_decimals(difference: Interval, decimals: int) -> int:
    """Return `decimals`, or up to two more where an end of the interval would print as 0."""
    nearest = min(abs(difference.low), abs(difference.high))
    return next((n for n in (decimals, decimals + 1) if round(nearest, n)), decimals + 2) if nearest else decimals


def difference_lines(rows: Iterable[Row]) -> str:
    """Return the Markdown table of some differences."""
    body = [[label, str(d.n), interval_text(d, enough_decimals(d, least), bold=True)] for label, d, least in rows]
    return markdown_table(("difference", "n", "mean [95 % interval]"), body)


@fills
def finding_parts() -> dict[str, dict[str, str]]:
    """Return every table of the page, and how many intervals there are."""
    e = published_evidence()
    tables = {"effects_table1": table1_rows, "effects_domains": domain_rows, "effects_rcf_mnist": rcf_rows}
    parts = {name: difference_lines(rows(e)) for name, rows in tables.items()}
    return {PAGE: parts, "results/README.md": {"expected_by_chance": expected_by_chance(e)}}


def expected_by_chance(e: Evidence) -> str:
    """How many intervals the pages have, and how many would exclude 0 by chance."""
    rows = [d for rows in (table1_rows, domain_rows, rcf_rows) for _, d, _ in rows(e)]
    judged = [statement.ours for statement in published_statements() if statement.ours]
    intervals = {*judged, *rows, *(d for comparisons in all_comparisons().values() for _, _, d in comparisons)}
    n, excluding = len(intervals), sum(d.side in (LOWER, HIGHER) for d in intervals)
    return (
        f"No interval is corrected for multiple comparisons: [findings](findings.md) has {n} intervals. Without any "
        f"true difference, about {(1 - LEVEL) * n:.0f} of them would exclude 0; {excluding} do"
    )


def table1_rows(e: Evidence) -> Iterator[Row]:
    """Yield differences in distribution: by preset, in the authors' code, of RC-Mixup, and of ERM's own options."""
    for dataset, preset in itertools.product(LEADING, PRESETS[2:]):
        about = f"C-Mixup minus ERM: {names.dataset_title(dataset)}, preset {preset}"
        yield about, e.gain("table1", dataset, preset, "cmixup"), 3
    for dataset, places in (("airfoil", 3), ("exchange_rate", 4)):
        about = f"C-Mixup minus ERM in the authors' code: {names.dataset_title(dataset)}"
        yield about, minus(e.authors(dataset, "cmixup"), e.authors(dataset, "erm")), places
    for dataset in LEADING:
        about = f"RC-Mixup minus ERM, both tuned: {names.dataset_title(dataset)}"
        yield about, e.gain("table1", dataset, "tuned", "rc_mixup"), 3
    erm = e.runs("ladder", "airfoil", "paper", "erm")
    for about, options in (("labels standardised", {"train.label_scaling": "standard"}),
                           ("500 epochs instead of 100", {"train.epochs": 500})):  # fmt: skip
        yield f"ERM: Airfoil, {about}", minus(e.runs("ladder", "airfoil", "paper", "erm", options), erm), 3


def domain_rows(e: Evidence) -> Iterator[Row]:
    """Yield what presets, the order of rows and bandwidths change on Crime and SkillCraft."""
    for dataset in DOMAINS:
        title = names.dataset_title(dataset)
        for preset in PRESETS[2:]:
            yield f"C-Mixup minus ERM: {title}, preset {preset}", e.gain("table3", dataset, preset, "cmixup"), 3
        gain = e.gain("ablation_ood", dataset, "paper", "cmixup", options=ONE_ORDER)
        yield f"C-Mixup minus ERM: {title}, preset paper, rows as released", gain, 3
        kept, erm = (e.runs("ablation_ood", dataset, "paper", "erm", options) for options in (ONE_ORDER, TRACKED))
        yield f"ERM: {title}, rows as released", minus(kept, erm), 3
    for width in (1.0, 3.0, 6.0):
        about = f"C-Mixup minus ERM: SkillCraft, bandwidth {width:g}"
        ours = e.runs("figure_bandwidth", "skillcraft", "paper", "cmixup", {"method.bandwidth": width})
        yield about, minus(ours, e.runs("table3", "skillcraft", "paper", "erm")), 3


def rcf_rows(e: Evidence) -> Iterator[Row]:
    """Yield differences on RCF-MNIST: by the chosen epoch, the last one, and with balanced batches."""
    last: Query = {"train.select": "last"}
    balanced: Query = {**last, "train.domains_per_batch": 2}
    rules: tuple[tuple[str, str, Query], ...] = (
             ("epoch chosen on validation", "table3", {}), ("last epoch", "table3_last_epoch", last),
             ("last epoch, balanced batches", "table3_balanced", balanced))  # fmt: skip
    for method, (about, experiment, options) in itertools.product(("cmixup_batch", "cmixup"), rules):
        d = e.gain(experiment, "rcf_mnist", "cpu", method, options=options)
        yield f"{names.method_title(method)} minus ERM, {about}", d, 3
    erm = e.runs("table3_balanced", "rcf_mnist", "cpu", "erm", balanced)
    others = e.runs("table3_last_epoch", "rcf_mnist", "cpu", "erm", last)
    yield "ERM, balanced batches minus others", minus(erm, others), 3
    for method in DIRECTED:
        d = minus(e.runs("table3_last_epoch", "rcf_mnist", "cpu", method, last), erm)
        yield f"{names.method_title(method)} minus ERM, last epoch, balanced batches", d, 3


PRESET, ABLATION = "released", "ablation_ood"  # the latter has the bandwidths that no preset has
AUTHORS_COLUMNS = ("dataset", "method", "metric", "n", "n_shared", "mean", "std", "ours_minus_theirs", "low", "high")
AUTHORS_DATASETS = ("airfoil", "no2", "exchange_rate", *DOMAINS)  # on which we ran their code


def authors_cells(dataset: str, e: Evidence) -> Iterator[tuple[str, str, Summary, Interval]]:
    """Yield the cells of a dataset that both codes have: method with bandwidth, score, theirs, and ours minus theirs.

    The difference is of the same seeds.
    """
    published = part_file("dataset", dataset)["presets"][PRESET]["bandwidth"]
    table, metrics = ("table3", ("rmse", "worst_rmse")) if dataset in DOMAINS else ("table1", ("rmse",))
    methods = [m for m in experiment_of(table).methods if m != "cmixup"]
    cells = [*((m, None) for m in methods), *(("cmixup", width) for width in AUTHORS_WIDTHS.get(dataset, (None,)))]
    for (method, bandwidth), metric in itertools.product(cells, metrics):
        query = {"dataset": dataset, "method": method, "metric": metric}
        ours: dict[str, Any] = {"experiment": table, "preset": PRESET, **query}
        if bandwidth not in (None, published):
            ours |= {"experiment": ABLATION, "options": {"method.bandwidth": bandwidth}}
        theirs, mine = e.find({**query, "from": "authors", "bandwidth": bandwidth}), e.find(ours)
        if theirs and mine:
            shared = sample_of({s: v for s, v in mine.values.items() if s in theirs.values}, mine.units)
            title = names.method_title(method) + ("" if bandwidth is None else f", bandwidth {bandwidth:g}")
            yield title, metric, theirs.summary, minus(shared, theirs)


@writes
def authors_file() -> dict[str, str]:
    """Return the CSV file of the cells of both codes; means and deviations are of all seeds of the authors' code."""
    e, rows = published_evidence(), []
    for dataset in AUTHORS_DATASETS:
        for title, metric, theirs, d in authors_cells(dataset, e):
            numbers = [float(f"{v:.4g}") for v in (theirs.mean, theirs.std, d.mean, d.low, d.high)]
            rows.append((dataset, title, metric, theirs.n, d.n, *numbers))
    return {"tables/authors_code.csv": to_csv(rows, AUTHORS_COLUMNS)}
