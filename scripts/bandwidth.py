"""Diagnose a bandwidth: who would be paired, before any training.

It looks at a dataset's training labels or at yours. `check=1` measures all datasets whose files are here instead.

Example: python -m scripts.bandwidth table=my.csv target=price bandwidth=0.1,1
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.sampling.bandwidth import SUGGESTED_FRACTIONS, BandwidthReport, bandwidth_for_fraction, diagnose
from datasets.common.fetch import FetchError
from scripts.config.arguments import OUT, Args, parse_args
from scripts.config.compose import compose_train
from scripts.config.parts import check_part, resolve_config
from scripts.config.words import ALIASES
from scripts.driver.cli import user_errors
from scripts.records import names
from scripts.records.csv_rows import read_csv, to_csv
from scripts.records.experiment import RESULTS
from scripts.report.figures import bandwidth_figure
from scripts.report.rendering import fills, to_png, write_figures
from scripts.report.result_table import markdown_table

GRID = np.logspace(-3, 2, 16)  # multiples of the labels' pooled standard deviation
KEYS = {
    "dataset": "whose training labels; or",
    **{word: alias.help_text for word, alias in ALIASES.items()},
    "dataset.": "options of the dataset",
    "bandwidth": "numbers between commas, added to the grid; default none",
    "out": f"{OUT}; the plot goes into its bandwidth/",
    "check": "1 measures the published bandwidths of all datasets that are here, into results/bandwidth.csv; default 0",
}
PAGE = "results/tables/bandwidth.md"
SHORT_HEAD = ("bandwidth", "effective fraction", "pair gap", "verdict", "where from")  # of a terminal
HEAD = (
    "dataset", "label std", "bandwidth", "effective fraction", "self-pairing", "pair gap", "uniform gap", "verdict",
    "where from", "worth searching",
)  # fmt: skip


def dataset_labels(*words: str) -> np.ndarray:
    """Return the training labels `(N, d_y)` of the dataset that words of a command line choose."""
    node = resolve_config(compose_train(words))["dataset"]
    return check_part("dataset", node).build().load(0).train.y.numpy()


def published_bandwidths() -> dict[str, list[tuple[float, str]]]:
    """Return the bandwidths of results/paper/hyperparameters.csv with their sources, by our name of the dataset."""
    published: dict[str, dict[float, list[str]]] = {}
    for r in read_csv(RESULTS / "paper" / "hyperparameters.csv"):
        if r["key"] == "bandwidth_sigma":
            of_dataset = published.setdefault(names.spelling("dataset", r["dataset"]), {})
            of_dataset.setdefault(float(r["value"]), []).append(r["source"])
    return {name: [(b, ", ".join(sources)) for b, sources in by_width.items()] for name, by_width in published.items()}


def bandwidth_grid(labels: np.ndarray) -> list[float]:
    """Return a logarithmic grid of bandwidths around the labels' spread; one value where they are constant."""
    spread = float(np.nanstd(labels))
    return [float(f"{spread * c:.3g}") for c in GRID] if spread > 0 else [1.0]


def check_bandwidths(results: Path = RESULTS) -> str:
    """Measure the published bandwidths of all datasets whose files are here, into results/bandwidth.csv and its figure.

    Returns what its page shows. Nothing is written where the files of a dataset that these have are missing.
    """
    records, curves = [], {}
    for name, bandwidths in published_bandwidths().items():
        try:
            labels = dataset_labels(f"dataset={name}")
        except FetchError:
            continue
        marked = reports_of(labels, bandwidths)
        records += measured_rows(name, labels, marked)
        along = [diagnose(labels, bandwidth) for bandwidth in bandwidth_grid(labels)]
        curves[names.dataset_title(name)] = along, [report for report, _ in marked], float(labels.std())
    if not records:
        raise InputError("no dataset with a published bandwidth is at hand")
    text, file = bandwidth_table(records), results / "bandwidth.csv"
    stored = {r["dataset"] for r in read_csv(file)} if file.is_file() else set()
    if absent := stored - {r["dataset"] for r in records}:
        return f"{text}\n\nNothing is written: it has {', '.join(sorted(absent))}, whose files are not at hand."
    write_figures({"figures/bandwidth.png": bandwidth_figure(curves)}, results)
    write_atomically(file, to_csv(records, list(records[0])))
    return f"{text}\n\nMeasured into {file}; `python -m scripts.render` fills {PAGE}"


Reports = list[tuple[BandwidthReport, str]]  # each with its source


def reports_of(labels: np.ndarray, bandwidths: Sequence[tuple[float, str]]) -> Reports:
    """Return the reports of bandwidths, the lowest first."""
    return [(diagnose(labels, bandwidth), source) for bandwidth, source in sorted(bandwidths)]


def measured_rows(name: str, labels: np.ndarray, reports: Reports) -> list[dict[str, str]]:
    """Return the rows of results/bandwidth.csv for a dataset, numbers to six digits: more depend on the processor."""
    low, high = (bandwidth_for_fraction(labels, fraction) for fraction in SUGGESTED_FRACTIONS)
    rows = [
        {"dataset": name, "labels": len(labels), "label_std": float(np.nanstd(labels)), **vars(report),
         "source": source, "suggested_low": low, "suggested_high": high}
        for report, source in reports
    ]  # fmt: skip
    return [{key: f"{v:.6g}" if isinstance(v, float) else str(v) for key, v in row.items()} for row in rows]


def bandwidth_table(rows: Sequence[Mapping[str, str]], head: Sequence[str] = HEAD) -> str:
    """Return the table of results/tables/bandwidth.md that the rows of results/bandwidth.csv give, or some columns."""
    lines = []
    for r in rows:
        digits = [f"{float(r[key]):.4g}" for key in ("label_std", "bandwidth", "pair_gap", "uniform_gap")]
        shares = [float(r[key]) for key in ("effective_fraction", "self_probability")]
        percents = [f"{100 * s:.3f} %" if s < 0.001 or s > 0.99 else f"{100 * s:.1f} %" for s in shares]
        searched = f"{float(r['suggested_low']):.3g} to {float(r['suggested_high']):.3g}"
        begin = [names.dataset_title(r["dataset"]), *digits[:2], *percents, *digits[2:]]
        cells = [*begin, r["verdict"], re.sub(r" tab:\w+", "", r["source"]), searched]
        lines.append([cells[HEAD.index(name)] for name in head])
    return markdown_table(head, lines)


@fills
def published_page() -> dict[str, dict[str, str]]:
    """Return the table of the committed numbers, and which datasets are not in it."""
    rows = read_csv(RESULTS / "bandwidth.csv")
    there = {r["dataset"] for r in rows}
    absent = ", ".join(names.dataset_title(name) for name in published_bandwidths() if name not in there)
    return {PAGE: {"bandwidths": bandwidth_table(rows), "absent": absent}}


def show_bandwidths(args: Args) -> None:
    """Print and draw the pairs of bandwidths on the labels that the arguments name."""
    dataset_words = ["dataset", *(word for word, alias in ALIASES.items() if alias.dataset)]
    if not (data := [word for word in dataset_words if word in args]):
        raise InputError("give either dataset=<name>, table=, images=, series= or arrays=")
    title = args["dataset"] if data[-1] == "dataset" else str(args.path(data[-1]))
    words = [f"{key}={value}" for key, value in args.items() if key in ALIASES or key.startswith("dataset")]
    labels, bandwidths = dataset_labels(*words), published_bandwidths().get(title, [])
    bandwidths = [*bandwidths, *((b, "asked for") for b in args.numbers("bandwidth"))]
    grid, marked = reports_of(labels, [(b, "") for b in bandwidth_grid(labels)]), reports_of(labels, bandwidths)
    rows = measured_rows(title, labels, sorted([*grid, *marked], key=lambda pair: pair[0].bandwidth))
    heading = f"{Path(title).name}: {len(labels)} training labels, standard deviation {np.nanstd(labels):.4g}"
    print(f"{heading}\n\n{bandwidth_table(rows, SHORT_HEAD)}\n")
    shares = " to ".join(f"{100 * f:.0f} %" for f in SUGGESTED_FRACTIONS)
    low, high = (float(rows[0][key]) for key in ("suggested_low", "suggested_high"))
    print("effective fraction: share of all rows that are partners in effect. pair gap: mean\n"
          f"distance of two mixed labels, {grid[0][0].uniform_gap:.4g} under mixup. Worth searching: bandwidths\n"
          f"from {low:.3g} to {high:.3g} ({shares} of the data as effective partners).")  # fmt: skip
    curves = {Path(title).name: ([report for report, _ in grid], [report for report, _ in marked], 1.0)}
    figure = bandwidth_figure(curves, "label unit", "asked for or published")
    path = args.out / "bandwidth" / f"{Path(title).stem}.png"
    write_atomically(path, to_png(figure))
    print(f"Plot: {path}")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args = parse_args(argv, KEYS, __doc__)
        if args.switch("check"):
            print(check_bandwidths())
        else:
            show_bandwidths(args)


if __name__ == "__main__":
    main()
