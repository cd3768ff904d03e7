"""Train variants of a preset, each with one thing changed, over the same seeds, and show what each change does.

`python -m scripts.ablation ablation_ood --seeds 10 --datasets crime --methods cmixup`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from cmixup.errors import InputError
from cmixup.files import write_atomically
from datasets.common.fetch import FetchError
from scripts.driver.cli import chosen, out_folder, user_errors
from scripts.driver.compose import compose_train
from scripts.driver.plan import Job, plan
from scripts.driver.runs import load_reports
from scripts.driver.words import parse_seeds
from scripts.plan.schedule import train_all
from scripts.records.curves import read_curves
from scripts.records.experiment import load_experiment
from scripts.records.records import records_frame
from scripts.records.variants import variants
from scripts.report.ablation import to_markdown


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.ablation", description=__doc__)
    parser.add_argument("experiment")
    for option in ("seeds", "datasets", "methods", "device", "out"):
        parser.add_argument(f"--{option}", default="")
    given = parser.parse_args(argv)
    with user_errors():
        experiment = load_experiment(given.experiment)
        if not experiment.variants:
            raise InputError(f"experiment must have variants, got {given.experiment!r}")
        out = out_folder(given.out)
        seeds = parse_seeds(given.seeds or experiment.seeds)
        common = [f"seeds=[{','.join(map(str, seeds))}]", f"device={given.device or 'auto'}", f"out={out}"]
        cells: list[tuple[list[str], Job]] = []
        datasets = chosen("datasets", given.datasets, experiment.datasets)
        methods = chosen("methods", given.methods, experiment.methods)
        for variant in variants(experiment):
            if variant.dataset in datasets and variant.method in methods:
                command = variant.command(experiment.name, *common)
                cells.append((command, plan(compose_train(command))))
        for dataset in {job.config["dataset"]["name"]: job.dataset for _, job in cells}.values():
            try:
                dataset.fetch()
            except FetchError as error:
                raise InputError(str(error)) from None
        for problem in train_all(cells, experiment.name):
            print(problem, file=sys.stderr)
        reports = load_reports(out / "runs" / experiment.name)
        tracked = [r for r in reports if r["config"]["train"].get("track")]
        text = to_markdown(experiment, records_frame(reports), read_curves(tracked, out / "runs"))
        path = out / "tables" / f"{experiment.name}.md"
        write_atomically(path, f"## {experiment.title}\n\n{text}\n")
        print(f"{text}\n\nWritten: {path}")


if __name__ == "__main__":
    main()
