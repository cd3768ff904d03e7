"""Render everything that shows numbers from results/runs: records.csv, tables, figures, and sentences of the pages.

Nothing here is typed by hand; a test compares the committed files with a fresh rendering. A sentence that the records
no longer support (results/claims.yaml) leaves its page, and the command names it. `claims` prints every such sentence
with its numbers, and its exit status is 1 if one is not supported. `make docs` makes one site of all pages.

python -m scripts.render claims failing=1
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from cmixup.errors import InputError, check_choice
from cmixup.files import write_atomically
from scripts.bench.sampling import figures as sampling_figures
from scripts.claims.check import Verdict, check_all, intervals
from scripts.claims.evidence import Evidence
from scripts.claims.map import map_lines, short_lines
from scripts.claims.paper_verdict import agreement_lines, authors_table
from scripts.claims.prose import pages, places, sentence, splice
from scripts.driver.arguments import parse_args
from scripts.driver.cli import user_errors
from scripts.measure import invariance, task_errors
from scripts.measure.spurious import render_tables as spurious_tables
from scripts.measure.task_errors import render_tables as paired_tables
from scripts.records import names
from scripts.records.curves import Curve, published_curves
from scripts.records.experiment import RESULTS, experiments, load_experiment, make_table
from scripts.records.published import published_records
from scripts.records.records import read_csv, records_csv
from scripts.records.seal import check_seal, seal_files
from scripts.records.tables import table_page, to_table_csv
from scripts.report import ablation, gallery
from scripts.report.figures import overfitting_figure, stale_figures, write_figures
from scripts.report.ladder import ladder_page
from scripts.report.shown import presets, published_ladders, published_sweeps, shown_tables, standard
from scripts.report.sweep import sweep_page
from scripts.report.sweep_figure import draw_panels, draw_sweeps
from scripts.report.table_figure import table_figure
from scripts.study import page as study
from scripts.theory import page as theory

README = RESULTS.parent / "README.md"
KEYS = {
    "what": "files or claims; default files",
    "check": "of files: 1 writes nothing, names what is stale, and fails if anything is; default 0",
    "names": "of claims: only these, between commas; default all",
    "failing": "of claims: 1 prints the ones alone that do not hold; default 0",
}


def render_texts(records: pd.DataFrame) -> dict[str, str]:
    """Return the text of every rendered file, by its path below results/."""
    texts = {"records.csv": records_csv(records)}
    for experiment, preset, table in shown_tables(records):
        page = table_page(table, linked=True) + made_by(experiment.name, preset)
        for suffix, text in ((".md", page), (".csv", to_table_csv(table))):
            texts[f"tables/{experiment.name}_{preset}{suffix}"] = text
    return texts | spurious_tables() | paired_tables() | sweep_tables() | theory.render() | study.texts()


def sweep_tables() -> dict[str, str]:
    """Return the table of every sweep, ladder and preset that has published runs, by its path below results/."""
    texts = {(e.name, preset): sweep_page(e, found, preset) for e, preset, found in published_sweeps()}
    texts |= {(e.name, preset): ladder_page(e, found, preset) for e, preset, found in published_ladders()}
    return {f"tables/{name}_{preset}.md": text + made_by(name, preset) for (name, preset), text in texts.items()}


def made_by(experiment: str, preset: str) -> str:
    """Return the last line of a page: the commands that make it."""
    trained = f"python -m scripts.reproduce {experiment} preset={preset}"
    return f"\n`{trained}` trains these runs, `make publish` renders this page.\n"


def agreement(records: pd.DataFrame, evidence: Evidence, verdicts: Sequence[Verdict] = ()) -> str:
    """Return the part of results/README.md that says what reproduces, preset released."""
    table = make_table(load_experiment("table1"), standard(records), "released")
    return "\n".join(agreement_lines(table, evidence, "released", intervals(verdicts)))


def render_pages(
    records: pd.DataFrame, curves: Sequence[Curve], verdicts: Sequence[Verdict], results: Path = RESULTS
) -> dict[str, str]:
    """Return the text of README.md and of every page of results/ with prose, by its path in the repository."""
    evidence, by_name = Evidence(records, results), {verdict.claim.name: verdict for verdict in verdicts}
    readme, short = f"{results.name}/README.md", short_lines(evidence, results)
    parts = {
        "README.md": {"study": study.readme(), "helps": study.short(), "reproduces": short},
        "docs/bench.md": {"entry": study.bench()},
        readme: {
            "study": study.readme().replace(f"({results.name}/", "("),
            "reproduces": short,
            "map": map_lines(evidence, results),
            "agreement": agreement(records, evidence, verdicts),
        },
    }
    for experiment in experiments():
        if experiment.page:
            mine = [c for c in curves if c.experiment == experiment.name]
            parts[f"{results.name}/{experiment.page}"] = {
                experiment.name: ablation.variant_tables(experiment, records, mine),
                "authors": authors_table(load_experiment("table3"), experiment.datasets, evidence),
            }
    texts = {str(path.relative_to(results.parent)): path.read_text() for path in pages(results)}
    said = {name: sentence(verdict) for name, verdict in by_name.items()}
    return {
        page: splice(text, parts.get(page, {}) | {name: said[name] for name in places(text) if name in said})
        for page, text in texts.items()
    }


def render_figures(records: pd.DataFrame, curves: Sequence[Curve]) -> dict[str, Figure]:
    """Return every figure that is drawn from what is published, by its path below results/."""
    table1 = load_experiment("table1")
    tables = {p: make_table(table1, standard(records), p) for p in presets(records, "table1")}
    found = {"table1": table_figure(tables, standard(records))}
    for experiment in experiments():
        for preset in sorted({c.preset for c in curves if c.experiment == experiment.name and experiment.figure}):
            found[f"{experiment.name}_{preset}"] = overfitting_figure(experiment, curves, preset)
        if experiment.variants and (panels := ablation.panels(experiment, records)):
            score = f"test {names.metric_title(experiment.metrics[0])}, 95 % t band"
            found[experiment.name] = draw_panels(panels, "bandwidth, in units of the label", score, "C-Mixup")
    for experiment, preset, swept in published_sweeps():
        found[f"{experiment.name}_{preset}"] = draw_sweeps(swept, experiment.sweep["method"])
    figures = {f"figures/{name}.png": figure for name, figure in found.items()}
    measured = sampling_figures(read_csv(RESULTS / "benchmarks" / "sampling.csv"))
    figures |= {f"benchmarks/{name}": figure for name, figure in measured.items()}
    figures |= gallery.figures()
    return figures | invariance.figures() | task_errors.figures() | theory.figures() | study.figures()


def stale_files(records: pd.DataFrame, root: Path = RESULTS.parent) -> list[str]:
    """Return what is committed but not what the records render to: files below `root`, then claims that fail."""
    texts = {f"{RESULTS.name}/{path}": text for path, text in render_texts(records).items()}
    verdicts = check_all(Evidence(records))
    texts |= render_pages(records, published_curves(), verdicts)
    stale = [name for name, text in texts.items() if not (root / name).is_file() or (root / name).read_text() != text]
    return stale + [f"claim {verdict.claim.name}" for verdict in verdicts if not verdict.holds]


def check() -> None:
    """Say that every rendered file is what the records render to and every claim holds.

    Raises:
        InputError: a file or a claim that is not so.
    """
    records = published_records()
    if stale := [*stale_files(records), *stale_figures(render_figures(records, published_curves()))]:
        raise InputError(f"stale, run python -m scripts.render: {', '.join(stale)}")
    print("every rendered file is what the records render to, and every claim holds")


def write() -> None:
    """Write every rendered file, and name the claims that no longer hold."""
    records, curves = published_records(), published_curves()
    texts, figures = render_texts(records), render_figures(records, curves)
    folder = f"{RESULTS.name}/"
    drawn = {*texts, *figures, *(f"{page.relative_to(RESULTS)}" for page in pages(RESULTS) if RESULTS in page.parents)}
    check_seal(RESULTS, drawn)  # what is drawn from must be what was published
    for path, text in texts.items():
        write_atomically(RESULTS / path, text)
    verdicts = check_all(Evidence(records))
    rendered = render_pages(records, curves, verdicts)
    for name, text in rendered.items():
        write_atomically(RESULTS.parent / name, text)
    write_figures(figures)
    seal_files(RESULTS, {*drawn, *(name.removeprefix(folder) for name in rendered if name.startswith(folder))})
    print(f"rendered {len(records)} records into {RESULTS} and {README}")
    if failing := [verdict.claim.name for verdict in verdicts if not verdict.holds]:
        print(f"{len(failing)} claims no longer hold (python -m scripts.render claims failing=1): {', '.join(failing)}")


def print_claims(chosen: Sequence[str], *, failing: bool) -> None:
    """Print claims with their numbers, all or the ones named; `failing` leaves out those that hold.

    Raises:
        SystemExit: one of all claims does not hold.
    """
    verdicts = check_all(Evidence(pd.DataFrame(read_csv(RESULTS / "records.csv")), RESULTS))
    wrong = [verdict.claim.name for verdict in verdicts if not verdict.holds]
    for verdict in verdicts:
        if (not chosen or verdict.claim.name in chosen) and not (failing and verdict.holds):
            print("\n".join(verdict.lines()))
    print(f"{len(verdicts) - len(wrong)} of {len(verdicts)} claims hold")
    if wrong:
        print("FAILS:", ", ".join(wrong))
        raise SystemExit(1)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("what",))
        what = check_choice("what", given.get("what", "files"), ("files", "claims"))
        if what == "claims":
            print_claims(given.get("names", "").split(",") if "names" in given else [], failing=given.switch("failing"))
        elif given.switch("check"):
            check()
        else:
            write()


if __name__ == "__main__":
    main()
