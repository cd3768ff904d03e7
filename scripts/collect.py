"""Average the runs of a sweep over their seeds, by the value of one option, and print, write and draw what they say.

`python -m scripts.collect outputs/runs/adhoc/no2 --over method.bandwidth` takes every finished run below the folders,
such as those of a Hydra sweep (`python -m scripts.train -m method.bandwidth=0.1,1,10 'seed=range(0,3)'`). Runs that
differ in other options are separate groups.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from cmixup.files import write_atomically
from scripts.driver.cli import out_folder, user_errors
from scripts.records import names
from scripts.report.collected import Collected, collect, find_reports, narrowed, to_markdown, to_rows
from scripts.report.figures import to_png
from scripts.report.sweep_figure import draw_panels, panel


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m scripts.collect", description=__doc__)
    parser.add_argument("folders", nargs="+", help="finished runs are looked for below these")
    parser.add_argument("--over", required=True, help="the option, such as method.bandwidth, train.lr, method.pairing")
    parser.add_argument("--metric", default="", help="of the test scores; default the one that selects checkpoints")
    parser.add_argument("--dataset", default="", help="only runs of this dataset")
    parser.add_argument("--method", default="", help="only runs of this method")
    parser.add_argument("--preset", default="", help="only runs of this preset")
    parser.add_argument("--experiment", default="", help="only runs of this experiment")
    parser.add_argument("--out", default="", help="where table, CSV and plot go; default collected/ in outputs")
    return parser.parse_args(arguments)


def write(groups: Sequence[Collected], folder: Path, stem: str) -> None:
    """Write the table as Markdown and CSV, and the plot."""
    write_atomically(folder / f"{stem}.md", to_markdown(groups))
    write_atomically(folder / f"{stem}.csv", to_rows(groups))
    panels = {group.label: panel(group.points) for group in groups}
    first = groups[0]
    figure = draw_panels(panels, first.option, f"test {names.metric_title(first.metric)}, 95 % t band", "mean")
    write_atomically(folder / f"{stem}.png", to_png(figure))


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    given = parse(argv)
    with user_errors():
        reports, unfinished = find_reports([Path(folder) for folder in given.folders])
        where = {key: getattr(given, key) for key in ("dataset", "method", "preset", "experiment")}
        mine = narrowed(reports, where)
        groups, left_out = collect(mine, given.over, given.metric)
        folder = Path(given.out) if given.out else out_folder("") / "collected"
        parts = [*sorted({str(r["dataset"]) for r in mine}), *sorted({str(r["method"]) for r in mine}), given.over]
        stem = re.sub(r"[^\w.+-]", "_", "-".join(parts))
        write(groups, folder, stem)
        print(to_markdown(groups))
        if unfinished:
            left_out = [*left_out, f"{unfinished} runs that are not finished"]
        for line in left_out:
            print(f"left out: {line}", file=sys.stderr)
        print(f"Written: {folder / stem}.md, .csv, .png")


if __name__ == "__main__":
    main()
