"""The spurious-strength table: one ERM model of RCF-MNIST, scored on test images in two colourings.

The same test images and angles are coloured as in training (the paper's "w/o shift") and reversed ("w/ shift"). Runs
of Table 3 have the dataset's ratio. `python -m scripts.train -m` trains others with `dataset=rcf_mnist method=erm
preset=paper experiment.name=table_spurious dataset.ratio=0.5,0.95`. All finished runs enter results/spurious.csv, from
which the table is rendered.

Example: python -m scripts.analysis spurious preset=cpu
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from cmixup.errors import InputError
from cmixup.metrics import METRICS
from cmixup.saved_run import load_run
from scripts.analysis.runs import KEYS as COMMON
from scripts.analysis.runs import Report, dataset_of, merge_rows, results_of, runs_of, write_analysis
from scripts.config.arguments import Args
from scripts.config.compose import compose_train
from scripts.driver.job import pick_device
from scripts.records import names
from scripts.records.csv_rows import read_csv, to_csv
from scripts.records.experiment import RESULTS
from scripts.records.run_tables import option_words
from scripts.report.rendering import writes
from scripts.report.result_table import Score, bullets, markdown_page, markdown_table, summary_text
from scripts.stats.intervals import Summary, summarise_values

KEYS = COMMON
TABLE, MAIN = "table_spurious", "table3"  # other ratios than the dataset's belong to the first
DATASET, METHOD, METRIC, PAPER = "rcf_mnist", "erm", "rmse", "tab:spu_strength"
COLOURS = {"same": "no-shift", "reversed": "shift"}  # of test images, and what the paper's rows call them
FILE = "spurious.csv"
MAY_DIFFER = {"dataset.ratio", "train.epochs"}  # from a preset
SPURIOUS_COLUMNS = ("preset", "ratio", "epochs", "seed", *COLOURS, "notes", "run")


def score_runs(reports: Sequence[Report], out: Path, device: torch.device) -> list[dict[str, Any]]:
    """Return a row for every run, with its test error by colouring; its score must be the recorded one."""
    rows = []
    for report in reports:
        config, run = report["config"]["dataset"], load_run(out / "runs" / report["run"], device)
        scores = {}
        for colour in COLOURS:
            test = dataset_of(config, test_color=colour).load(report["seed"]).test
            images, size = test.x[torch.arange(len(test))], report["config"]["train"]["eval_batch_size"]
            prediction = run.predict(images, size, scaled=True)
            scores[colour] = METRICS[METRIC].score(prediction, test.y).item()
        score, recorded = scores[config["test_color"]], report[f"test_{METRIC}"]
        if not math.isclose(score, recorded, rel_tol=0.01):
            raise InputError(f"run {report['run']} was recorded with {METRIC} {recorded:.4f}, but has {score:.4f} here")
        rows.append(
            {"preset": report["preset"], "ratio": config["ratio"], "epochs": report["epochs"], "seed": report["seed"],
             **{c: f"{v:.6g}" for c, v in scores.items()}, "notes": "; ".join(report["notes"]), "run": report["run"]}
        )  # fmt: skip
        print(f"ratio {config['ratio']} seed {report['seed']}: {scores}")
    return rows


@writes
def render_tables(results: Path = RESULTS) -> dict[str, str]:
    """Return the tables that `results/spurious.csv` gives, one a preset, by their paths below results/."""
    presets = pd.read_csv(results / FILE, keep_default_na=False).groupby("preset")
    return {f"tables/{TABLE}_{preset}.md": spurious_table(rows, str(preset)) for preset, rows in presets}


def spurious_table(rows: pd.DataFrame, preset: str) -> str:
    """Return the table as Markdown; the paper's numbers stand beside the dataset's own ratio."""
    standard = float(compose_train([f"dataset={DATASET}"]).dataset.ratio)
    printed = [r for r in read_csv(RESULTS / "paper" / "results.csv") if r["table"] == PAPER]
    paper = {r["setting"]: Summary(float(r["mean"]), math.nan, 3) for r in printed}
    epochs_of_paper = compose_train([f"dataset={DATASET}", "preset=paper"]).train.epochs
    legend = (
        "Test RMSE on the same images, coloured as in training (w/o shift) and reversed (w/ shift): mean ± standard "
        f"deviation over n seeds, weights of the best validation score; the paper trained for {epochs_of_paper} "
        "epochs. Ratio: share of training images whose colour tells the angle. At 0.5 it says nothing, and both "
        "columns must agree but for noise."
    )
    head = ["ratio", "epochs", "n", *(c for side in ("w/o", "w/") for c in (f"{side} shift, ours", "paper", "diff"))]
    body = []
    for (ratio, epochs), ratio_rows in rows.groupby(["ratio", "epochs"]):
        line = [f"{ratio:g}", str(epochs), str(len(ratio_rows))]
        for colour, setting in COLOURS.items():
            cell = Score(summarise_values(ratio_rows[colour].tolist()), paper[setting] if ratio == standard else None)
            line += [summary_text(cell.ours, 3), summary_text(cell.paper, 3), cell.difference_text]
        body.append(line)
    cell_title = f"{names.dataset_title(DATASET)}, {names.method_title(METHOD)}"
    parts = [f"## {cell_title}: strength of the spurious colour, preset {preset}", legend, markdown_table(head, body)]
    if notes := [note for note in rows["notes"].str.split("; ").explode().unique() if note]:
        parts.append(bullets(notes))
    return markdown_page(*parts, f"`make reproduce-table-spurious PRESET={preset}` makes this page.")


def run(args: Args) -> None:
    """Score all finished runs of a preset, which may have another ratio and other epochs than it."""
    results, preset, device = results_of(args), args.get("preset", "paper"), args.get("device", "auto")
    cell = DATASET, METHOD, preset
    about = f"{METHOD} on {DATASET}, preset {preset!r}; make reproduce-table-spurious PRESET={preset}"
    reports = runs_of(args, [MAIN, TABLE], lambda r: (r["dataset"], r["method"], r["preset"]) == cell
                      and option_words(r["options"]).keys() <= MAY_DIFFER, about)  # fmt: skip
    rows = merge_rows(results / FILE, score_runs(reports, args.out, pick_device(device)), *SPURIOUS_COLUMNS[:4])
    write_analysis(args, {FILE: to_csv(sorted(rows, key=lambda r: r["run"]), SPURIOUS_COLUMNS)})
    write_analysis(args, render_tables(results))
