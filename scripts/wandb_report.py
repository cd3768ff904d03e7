"""A dashboard of your runs: as one HTML file without an account, and as a report in wandb with one.

`python -m scripts.wandb_report outputs/runs/adhoc/airfoil --over method.bandwidth` writes outputs/dashboard.html: a
table of the runs, their curves, the score over the option, and the predictions of what is best on validation. `--upload
entity/project` makes a report with the same panels from the runs of that project (`pip install wandb-workspaces`;
offline runs get there with `wandb sync`).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.cli import out_folder, user_errors
from scripts.driver.runs import is_done, read_report
from scripts.driver.wandb_logger import import_wandb
from scripts.report.collected import collect, find_reports
from scripts.report.dashboard import page


def panels(reports: Any, selection: str, over: str) -> list[Any]:
    """Return the panels of a wandb report: curves, and the score over an option.

    Args:
        reports: the module `wandb_workspaces.reports.v2`.
        selection: the metric that selects checkpoints.
        over: the option.
    """
    return [
        reports.LinePlot(title="validation", x="epoch", y=[f"val_{selection}"]),
        reports.LinePlot(title="training loss", x="epoch", y=["train_loss"]),
        reports.ScatterPlot(title=f"test over {over}", x=f"c::{over}", y=f"s::test/{selection}"),
    ]


def upload(target: str, selection: str, over: str) -> str:
    """Make the report in wandb and return its address.

    Raises:
        InputError: no `entity/project`, no package, or wandb refuses.
    """
    entity, _, project = target.partition("/")
    if not entity or not project:
        raise InputError(f"upload must be entity/project, got {target!r}")
    wandb = import_wandb()
    try:
        import wandb_workspaces.reports.v2 as reports
    except ImportError:
        raise InputError("upload needs wandb's package for reports: pip install wandb-workspaces") from None
    try:
        runset = reports.Runset(entity=entity, project=project, groupby=["group"])
        grid = reports.PanelGrid(runsets=[runset], panels=panels(reports, selection, over))
        made = reports.Report(entity=entity, project=project, title="C-Mixup runs", blocks=[grid])
        made.save()
    except (wandb.errors.Error, OSError, ValueError) as error:
        raise InputError(f"wandb: {' '.join(str(error).split())[:200]}") from None
    return str(made.url)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.wandb_report", description=__doc__)
    parser.add_argument("folders", nargs="*", help="finished runs are looked for below these; default outputs/runs")
    parser.add_argument("--over", default="method.bandwidth", help="the option that was swept; default the bandwidth")
    parser.add_argument("--out", default="", help="the file; default dashboard.html in outputs")
    parser.add_argument("--upload", default="", help="entity/project: also make a report in wandb")
    given = parser.parse_args(argv)
    with user_errors():
        folders = [Path(folder) for folder in given.folders] or [out_folder("") / "runs"]
        reports, unfinished = find_reports(folders)
        found = sorted({path.parent.resolve() for folder in folders for path in folder.rglob("config.yaml")})
        runs = [(folder, read_report(folder)) for folder in found if is_done(folder)]
        try:
            swept, _ = collect(reports, given.over)
        except InputError as error:  # runs that differ in something else have a table and curves all the same
            swept = []
            print(f"no plot over {given.over}: {error}")
        path = Path(given.out) if given.out else out_folder("") / "dashboard.html"
        text = page(runs, swept)
        write_atomically(path, text)
        left = f"; {unfinished} runs are not finished" if unfinished else ""
        print(f"Written: {path} ({len(text) / 1e6:.1f} MB), {len(runs)} runs{left}")
        if given.upload:
            print(f"report: {upload(given.upload, str(reports[0]['selection']), given.over)}")


if __name__ == "__main__":
    main()
