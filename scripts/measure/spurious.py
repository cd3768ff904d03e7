"""The spurious-strength table: one ERM model of RCF-MNIST, scored on test images in two colourings.

`python -m scripts.spurious [--out outputs] [--preset paper] [--ratios 0.5,0.6,0.7,0.8,0.9,1.0] [train.epochs=10]`

The same test images and angles are coloured as in training (the paper's "w/o shift") and reversed ("w/ shift"). Runs
are those of Table 3, whose ratio is the dataset's, and of other ratios. `--ratios` trains what is not done yet of these
if that takes at most `--budget` minutes each; further words are options of scripts.train. All finished runs enter
results/spurious.csv, and from that the table is rendered.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from torch import nn

from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.label_scaling import LabelScaling
from cmixup.methods.base import Method
from cmixup.metrics import METRICS
from cmixup.training.loader import BatchLoader
from cmixup.training.predict import predict
from scripts.driver.compose import compose_train
from scripts.measure.load_run import Report, dataset_of, finished, labels_of, method_of, model_of
from scripts.records import names
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv, to_csv
from scripts.records.stats import summarise
from scripts.records.tables import Cell, difference_text, markdown_rows, ours_text, paper_text

TABLE, MAIN = "table_spurious", "table3"  # other ratios than the dataset's belong to the first
DATASET, METHOD, METRIC, PAPER = "rcf_mnist", "erm", "rmse", "tab:spu_strength"
COLOURS = {"same": "no-shift", "reversed": "shift"}  # of test images, and what the paper's rows call them
MAY_DIFFER = {"dataset.ratio", "train.epochs"}  # from a preset
SPURIOUS_COLUMNS = ("preset", "ratio", "epochs", "seed", *COLOURS, "notes", "run")


def rmse_by_colour(
    model: nn.Module,
    method: Method,
    splits: Mapping[str, Split],
    device: torch.device,
    batch_size: int,
    *,
    labels: LabelScaling | None = None,
) -> dict[str, float]:
    """Return one model's test error by colouring.

    Args:
        model: as trained; it is only read.
        method: predicts with it.
        splits: test splits by colouring.
        device: where to predict.
        batch_size: images at once.
        labels: how the run scaled its labels; not at all by default.
    """
    model = model.to(device)
    found = {}
    for colour, split in splits.items():
        prediction = predict(method.predictors()[""], model, BatchLoader([split], device, labels), batch_size).cpu()
        found[colour] = float(METRICS[METRIC].score(prediction, split.y))
    return found


def score(reports: Sequence[Report], out: Path, device: torch.device) -> list[dict[str, Any]]:
    """Return a row for every run.

    Raises:
        InputError: a run whose score here is not the one it was recorded with: something has changed since.
    """
    rows = []
    for config, group in groupby(
        sorted(reports, key=lambda r: json.dumps(r["config"]["dataset"])), key=lambda r: r["config"]["dataset"]
    ):
        datasets = {c: dataset_of({"config": {"dataset": config}}, test_color=c) for c in COLOURS}
        for report in group:
            data = {c: dataset.load(report["seed"]) for c, dataset in datasets.items()}
            found = rmse_by_colour(
                model_of(report, data["same"], out), method_of(report), {c: d.test for c, d in data.items()}, device,
                report["config"]["train"]["eval_batch_size"], labels=labels_of(report, data["same"], device),
            )  # fmt: skip
            recorded = report["scores"]["test"][METRIC]
            again = found[config["test_color"]]
            if not math.isclose(again, recorded, rel_tol=0.01):
                raise InputError(
                    f"run {report['run']} was recorded with {METRIC} {recorded:.4f}, but has {again:.4f} here"
                )
            rows.append(
                {"preset": report["preset"], "ratio": config["ratio"], "epochs": report["epochs"],
                 "seed": report["seed"], **{c: f"{v:.6g}" for c, v in found.items()},
                 "notes": "; ".join(report["notes"]), "run": report["run"]}
            )  # fmt: skip
            print(f"ratio {config['ratio']} seed {report['seed']}: {found}")
    return rows


def runs(out: Path, preset: str) -> list[dict[str, Any]]:
    """Return the reports of finished runs that follow the preset but for ratio and epochs."""
    found = [r for experiment in (MAIN, TABLE) for r in finished(out, experiment)]
    cell = (DATASET, METHOD, preset)
    return [
        r for r in found if (r["dataset"], r["method"], r["preset"]) == cell and set(r["options"]) <= MAY_DIFFER
    ]  # fmt: skip


def render_tables(results: Path = RESULTS) -> dict[str, str]:
    """Return the tables that `results/spurious.csv` gives, one a preset, by their paths below results/."""
    path = results / "spurious.csv"
    rows = read_csv(path) if path.is_file() else []
    texts = {}
    for preset in sorted({r["preset"] for r in rows}):
        mine = [r for r in rows if r["preset"] == preset]
        texts[f"tables/{TABLE}_{preset}.md"] = table(mine, preset)
        texts[f"tables/{TABLE}_{preset}.csv"] = table_csv(mine)
    return texts


def cells(rows: Sequence[Mapping[str, str]]) -> dict[tuple[float, int], dict[str, Cell]]:
    """Return the table's cells by ratio and epochs, and by colouring; the paper's ratio is the dataset's."""
    standard = float(compose_train([f"dataset={DATASET}"]).dataset.ratio)
    paper = {
        r["setting"]: float(r["mean"]) for r in read_csv(RESULTS / "paper" / "results.csv") if r["table"] == PAPER
    }  # fmt: skip
    found = {}
    for ratio, epochs in sorted({(float(r["ratio"]), int(r["epochs"])) for r in rows}):
        mine = [r for r in rows if (float(r["ratio"]), int(r["epochs"])) == (ratio, epochs)]
        found[ratio, epochs] = {
            colour: Cell(summarise([float(r[colour]) for r in mine]), paper[setting] if ratio == standard else None)
            for colour, setting in COLOURS.items()
        }
    return found


def table(rows: Sequence[Mapping[str, str]], preset: str) -> str:
    """Return the table as Markdown."""
    cell = f"{names.dataset_title(DATASET)}, {names.method_title(METHOD)}"
    title = f"{cell}: strength of the spurious colour, preset {preset}"
    epochs_of_paper = compose_train([f"dataset={DATASET}", "preset=paper"]).train.epochs
    legend = (
        "Test RMSE of one model a seed on the same images and angles, coloured as in training (w/o shift) and reversed "
        "(w/ shift). Ours: mean ± standard deviation over n seeds, checkpoint of the best validation score; the paper "
        f"trained for {epochs_of_paper} epochs. Ratio: share of training images whose colour tells the angle; at 0.5 "
        "colour says nothing, and both columns must agree but for noise."
    )
    head = ["ratio", "epochs", "n", *(c for side in ("w/o", "w/") for c in (f"{side} shift, ours", "paper", "diff"))]
    body = []
    for (ratio, epochs), by_colour in cells(rows).items():
        line = [f"{ratio:g}", str(epochs), str(next(c.ours.n for c in by_colour.values() if c.ours))]
        body.append([*line, *(t(c) for c in by_colour.values() for t in (ours_text, paper_text, difference_text))])
    notes = dict.fromkeys(note for r in rows for note in r["notes"].split("; ") if note)
    return (
        "\n".join([f"## {title}", "", legend, "", *markdown_rows(head, body), "", *(f"- {n}" for n in notes)]).rstrip()
        + "\n"
    )


def table_csv(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the table as CSV, one row a ratio, number of epochs and colouring."""
    lines = [
        {"ratio": ratio, "epochs": epochs, "setting": COLOURS[colour], "n": cell.ours.n if cell.ours else 0,
         "mean": cell.ours.mean if cell.ours else None, "std": cell.ours.std if cell.ours else None,
         "paper_mean": cell.paper, "difference": cell.difference}
        for (ratio, epochs), by_colour in cells(rows).items()
        for colour, cell in by_colour.items()
    ]  # fmt: skip
    return to_csv(lines, list(lines[0]))
