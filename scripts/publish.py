"""Copy finished runs of tables and figures into results/, with curves and predictions, and render the pages.

Predictions are those of seeds 0 to 9; of later ones scores are copied. Runs by hand (`adhoc`, `debug`) and those of
a search (`tune`) stay where they are. Runs of edited code or of an unknown commit are refused. `store=outputs/study`
copies what the study trained there, `store=outputs/entries/mine-1a2b3c4d` an entry.
Example: `python -m scripts.publish out=outputs`.
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import InputError
from cmixup.files import checked
from scripts.config.arguments import OUT, parse_args
from scripts.config.compose import TUNE_SEED
from scripts.driver.cli import user_errors
from scripts.driver.locks import PUBLISHING, holding_locks
from scripts.driver.provenance import check_committed
from scripts.driver.runs import HISTORY, PREDICTIONS, RunFolder, load_reports
from scripts.records.experiment import NOT_PUBLISHED, RESULTS
from scripts.records.prediction_store import rounded
from scripts.records.published import (
    EVERY_STUDY,
    PREDICTED,
    add_runs,
    cell_name,
    dataset_of,
    keep_predictions,
    run_files,
    write_reports,
)
from scripts.records.rescored import lacking_scores, scores_again
from scripts.records.run_tables import Report, read_pairs, row_of
from scripts.report import rendering
from scripts.report.overfitting import keep_curves
from scripts.stats.scored import Parts
from scripts.study.ensembles import keep_ensembles


def publish_runs(out: Path, results: Path) -> list[Path]:
    """Copy what `out/runs` holds to `results`; returns the files of reports that were written.

    Raises:
        InputError: no run to publish, one of edited or unknown code, one without predictions, one with a damaged
            file, two of a cell and seed, or one with the seed of tuning. Nothing has been written then.
    """
    reports = [r for r in load_reports(out / "runs") if r["experiment"] not in NOT_PUBLISHED]
    if not reports:
        raise InputError(f"out {out} holds no finished run of a table or figure")
    check_committed({r["run"]: r for r in reports})
    unpredicted = [r["run"] for r in reports if not (out / "runs" / r["run"] / PREDICTIONS).is_file()]
    if unpredicted:
        raise InputError(f"{len(unpredicted)} runs have no {PREDICTIONS}, such as {unpredicted[0]}; train them again")
    for run in (out / "runs" / r["run"] for r in reports):
        for name in (PREDICTIONS, HISTORY):
            checked(run / name)
    tuned_on = [r["run"] for r in reports if r["seed"] == TUNE_SEED]
    if tuned_on:
        raise InputError(f"seed {TUNE_SEED} is what methods are tuned with and must not enter a table: {tuned_on[0]}")
    cells = Counter((r["experiment"], r["dataset"], cell_name(row_of(r)), r["seed"]) for r in reports)
    duplicates = [" ".join(map(str, cell)) for cell, count in cells.items() if count > 1]
    if duplicates:  # a copy, or other tuned values
        raise InputError(f"{duplicates[0]}: two runs are of this cell and seed; move one out of {out / 'runs'}")
    with holding_locks(results, [PUBLISHING], wait=True):  # files are read, and written with what is new
        tracked = [r for r in reports if r["config"]["train"].get("track")]  # they are there for their curves
        keep_curves(results, ((r, checked(out / "runs" / r["run"] / HISTORY)) for r in tracked))
        runs = [published_run(r, out / "runs" / r["run"]) for r in reports]
        keep_predictions(results, ((report, parts) for report, parts in runs if parts))
        return write_reports(results, (report for report, _ in runs))


def published_run(report: Report, folder: Path) -> tuple[Report, Parts]:
    """Return what is published of a run: its report and, of the first seeds, its predictions.

    These are rounded, and the scores are those of what is kept, to the last bit. Of a later seed the run's own scores
    are published, and those that its predictions alone would give later are computed now.
    """
    parts: Parts = RunFolder(folder).predictions()
    kept: Parts = {}
    if report["seed"] not in PREDICTED:
        computed = lacking_scores(report["scores"], parts)
        scores = {part: {**values, **computed.get(part, {})} for part, values in report["scores"].items()}
    else:
        kept = rounded(parts)
        scores = {**report["scores"], **scores_again(report["scores"], kept)}
    return {**report, "scores": scores}, kept


def publish_store(store: Path, results: Path) -> list[Path]:
    """Copy the runs of a store of the study to `results`; returns the files of reports that were written."""
    if not (tables := [(path, list(read_pairs(path))) for path in run_files(store, EVERY_STUDY)]):
        raise InputError(f"store {store} holds no run of the study")
    check_committed({shared["run"]: shared for _, pairs in tables for shared, _ in pairs if "commit" in shared})
    with holding_locks(results, [PUBLISHING], wait=True):
        keep_ensembles(store, results)  # of predictions, which stay in the store
        return [add_runs(results, path.parent.name, dataset_of(path), pairs) for path, pairs in tables]


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args = parse_args(argv, {"out": OUT, "store": "folder of the study or of an entry"}, __doc__)
        store = Path(args["store"]) if "store" in args else None
        written = publish_store(store, RESULTS) if store else publish_runs(args.out, RESULTS)
        print(f"{len(written)} files written to {RESULTS / 'runs'}")
        rendering.render_everything()


if __name__ == "__main__":
    main()
