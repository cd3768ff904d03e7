"""What pages say of records: sentences and tables of claims, the map of what reproduces, and tables of an ablation."""

from __future__ import annotations

from scripts.claims.check import FILE, check_all, count_intervals
from scripts.claims.difference_tables import claim_tables
from scripts.claims.evidence import Evidence
from scripts.claims.map import map_lines, short_lines
from scripts.claims.paper_verdict import agreement_lines, authors_table
from scripts.claims.prose import claim_sentence, page_places, prose_pages
from scripts.records.curves import published_curves
from scripts.records.experiment import RESULTS, all_experiments, load_experiment
from scripts.records.register import fills
from scripts.records.rescored import filled_records
from scripts.report import ablation
from scripts.report.published_tables import make_table, standard_records

README = f"{RESULTS.name}/README.md"
PAGES = ("*.md", "docs", "examples", "results/*.md", "results/*/README.md", "tests")
SOURCES = ("results/runs", "results/predictions", "results/paper", "results/*.csv", "results/*.yaml", "results/curves",
           "results/task_errors", "results/tuned.jsonl", "results/study", "results/benchmarks",
           "results/tables")  # fmt: skip


@fills(*PAGES, *SOURCES)
def sentence_parts() -> dict[str, dict[str, str]]:
    """Return every part that the claims and their evidence give, by page and place."""
    records, curves = filled_records(), published_curves()
    evidence = Evidence(records)
    verdicts = check_all(evidence)
    short = short_lines(evidence, RESULTS)
    table = make_table(load_experiment("table1"), standard_records(records), "released")
    agreement = "\n".join(agreement_lines(table, evidence, "released", count_intervals(verdicts)))
    found = {
        "README.md": {"reproduces": short},
        README: {"reproduces": short, "map": map_lines(evidence, RESULTS), "agreement": agreement},
    }
    for experiment in all_experiments():
        if experiment.page:
            mine = [c for c in curves if c.experiment == experiment.name]
            found[f"{RESULTS.name}/{experiment.page}"] = {
                experiment.name: ablation.variant_tables(experiment, records, mine),
                "authors": authors_table(load_experiment("table3"), experiment.datasets, evidence),
            }
    said = {verdict.claim.name: claim_sentence(verdict) for verdict in verdicts}
    said |= claim_tables(verdicts, RESULTS / FILE)
    for path in prose_pages():
        mine_said = {name: said[name] for name in page_places(path.read_text()) if name in said}
        if mine_said:
            found.setdefault(str(path.relative_to(RESULTS.parent)), {}).update(mine_said)
    return found
