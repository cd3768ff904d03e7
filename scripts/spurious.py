"""The spurious-strength table: one ERM model of RCF-MNIST, scored on test images in two colourings.

`python -m scripts.spurious [--out outputs] [--preset paper] [--ratios 0.5,0.6,0.7,0.8,0.9,1.0] [train.epochs=10]`

The same test images and angles are coloured as in training (the paper's "w/o shift") and reversed ("w/ shift"). Runs
are those of Table 3, whose ratio is the dataset's, and of other ratios. `--ratios` trains what is not done yet of these
if that takes at most `--budget` minutes each; further words are options of scripts.train. All finished runs enter
results/spurious.csv, and from that the table is rendered.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.cli import analysis_parser, label, out_folder, user_errors
from scripts.driver.compose import compose_train
from scripts.driver.devices import pick_device
from scripts.driver.plan import Job, plan
from scripts.driver.words import parse_seeds
from scripts.measure.load_run import check_publishable
from scripts.measure.spurious import (
    DATASET,
    MAIN,
    METHOD,
    SPURIOUS_COLUMNS,
    TABLE,
    render_tables,
    runs,
    score,
)
from scripts.plan.costs import estimate_minutes
from scripts.plan.schedule import train_all
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv, to_csv


def plan_ratios(
    ratios: Sequence[float], words: Sequence[str], budget: float
) -> tuple[list[tuple[list[str], Job]], list[str]]:
    """Return the jobs of these ratios, and a line with the command for each that would take longer than `budget`."""
    standard = float(compose_train([f"dataset={DATASET}"]).dataset.ratio)
    cells, missing = [], []
    for ratio in ratios:
        command = [
            f"dataset={DATASET}", f"method={METHOD}", f"experiment.name={MAIN if ratio == standard else TABLE}",
            f"dataset.ratio={ratio}", "logger=none", *words,
        ]  # fmt: skip
        job = plan(compose_train(command))
        minutes = estimate_minutes(job)
        if minutes > budget:
            missing.append(f"{label(job)}: about {minutes:.0f} min here; python -m scripts.train {' '.join(command)}")
        else:
            cells.append((command, job))
    return cells, missing


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = analysis_parser("spurious", __doc__, "of preset paper")
    parser.add_argument("--ratios", default="", help="comma-separated, 0.5 to 1: train these first; default: none")
    parser.add_argument("--seeds", default="", help="of these runs; default 3")
    parser.add_argument("--budget", type=float, default=30, help="minutes that training a ratio may take; default 30")
    parser.add_argument("words", nargs="*", help="options of scripts.train for these runs, such as train.epochs=10")
    given = parser.parse_args(argv)
    with user_errors():
        out = out_folder(given.out)
        results, preset, device = Path(given.results or RESULTS), given.preset or "paper", given.device or "auto"
        words = [f"preset={preset}", f"seeds={parse_seeds(given.seeds or 3)}".replace(" ", ""), f"out={out}",
                 f"device={device}", *given.words]  # fmt: skip
        ratios = [float(r) for r in given.ratios.split(",") if r.strip()]
        jobs, problems = plan_ratios(ratios, words, given.budget)
        problems += train_all(jobs, TABLE) if jobs else []
        for line in problems:
            print(f"not trained: {line}", file=sys.stderr)
        reports = runs(out, preset)
        if not reports:
            raise InputError(
                f"out {out} holds no finished run of {METHOD} on {DATASET}, preset {preset!r}; "
                f"--ratios 0.8 trains Table 3's"
            )
        if not given.results:
            check_publishable(reports)
        rows = score(reports, out, pick_device(device))
        path = results / "spurious.csv"
        old = [r for r in (read_csv(path) if path.is_file() else []) if r["preset"] != preset]
        write_atomically(path, to_csv([*old, *sorted(rows, key=lambda r: r["run"])], SPURIOUS_COLUMNS))
        for name, text in render_tables(results).items():
            write_atomically(results / name, text)
            if name.endswith(f"_{preset}.md"):
                print(text)


if __name__ == "__main__":
    main()
