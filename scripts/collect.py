"""Average the runs of a sweep over their seeds, by the value of one option, and print, write and draw what they say.

Every finished run below the folders is taken, such as those of a Hydra sweep (`python -m scripts.train -m
dataset=airfoil,no2 method.bandwidth=0.1,1,10 'seed=range(0,3)'`); datasets, and runs that differ in other options, are
separate groups. Each value's paired difference from ERM is shown where ERM was trained with the same options.

python -m scripts.collect outputs/runs/adhoc over=method.bandwidth
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.config.arguments import OUT, parse_args
from scripts.driver.cli import user_errors
from scripts.records import names
from scripts.report.collected import collect_sweeps, collected_page, find_reports, narrowed_reports, to_rows
from scripts.report.figures import to_png
from scripts.report.sweep_figure import draw_panels, sweep_panels

MOST_NAMED = 4  # datasets in the name of a file
WHERE = ("dataset", "method", "preset", "experiment")
KEYS = {
    "folders": "where finished runs are, between commas; default the folder of runs",
    "over": "the option, such as method.bandwidth, train.lr, method.pairing",
    "metric": "of the test scores; default the one that selects checkpoints",
    **{key: f"only runs of this {key}; default all" for key in WHERE},
    "out": f"{OUT}; files go into collected/ in it",
}


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("folders",))
        if not (over := given.get("over")):
            raise InputError("over must name an option, such as over=method.bandwidth")
        folders = [Path(folder) for folder in given.get("folders", str(given.out / "runs")).split(",")]
        reports, unfinished = find_reports(folders)
        mine = narrowed_reports(reports, {key: given.get(key, "") for key in WHERE if key != "method"})
        groups, left_out = collect_sweeps(mine, over, given.get("metric", ""), method := given.get("method", ""))
        mine = [r for r in mine if method in ("", r["method"])]
        datasets, methods = (sorted({str(r[key]) for r in mine}) for key in ("dataset", "method"))
        score = ", ".join(dict.fromkeys(names.metric_title(group.metric) for group in groups))
        text = collected_page(groups)
        swept = [name for name in methods if name != "erm"] or methods
        drawn = names.method_title(swept[0]) if len(swept) == 1 else "mean"
        plot = to_png(draw_panels(sweep_panels(groups), over, f"test {score}", drawn))
        which = datasets if len(datasets) <= MOST_NAMED else [f"{len(datasets)}_datasets"]
        path = given.out / "collected" / re.sub(r"[^\w.+-]", "_", "-".join([*which, *methods, over]))
        made: dict[str, str | bytes] = {".md": text, ".csv": to_rows(groups), ".png": plot}
        for suffix, content in made.items():
            write_atomically(path.parent / f"{path.name}{suffix}", content)
        print(text)
        for line in [*left_out, *([f"{unfinished} runs that are not finished"] if unfinished else [])]:
            print(f"left out: {line}", file=sys.stderr)
        print(f"Written: {path}{', '.join(made)}")


if __name__ == "__main__":
    main()
