"""Finished runs, read back: their reports, and dataset, method and model as they were; and what is written of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from cmixup.data import RegressionData, Split
from cmixup.done import checked, read_tensors
from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.label_scaling import LabelScaling
from cmixup.methods.base import Method
from cmixup.saved_run import WEIGHTS
from cmixup.training.loader import BatchLoader
from cmixup.training.predict import predict
from datasets.common.base import Dataset
from datasets.common.damaged import naming
from scripts.config.arguments import OUT, Args
from scripts.config.parts import check_part
from scripts.driver.provenance import check_committed
from scripts.driver.runs import load_reports
from scripts.records.experiment import RESULTS
from scripts.records.records import choose_variants, read_csv
from scripts.records.seal import seal_measured
from scripts.report.figures import write_figures

Report = Mapping[str, Any]
RESULTS_KEY = "folder of numbers, tables and figures; default results"
KEYS = {
    "out": OUT,
    "preset": "whose runs; default paper",
    "device": "auto, cpu or cuda; default auto",
    "results": RESULTS_KEY,
}


def runs_of(
    given: Args, experiments: Sequence[str], wanted: Callable[[Report], bool], about: str
) -> list[dict[str, Any]]:
    """Return the reports of finished runs that a measurement is of, the better layer of each method chosen.

    Raises:
        InputError: there is none `about` which it is, or results/ does not hold such runs.
    """
    every = [r for e in experiments for r in choose_variants(load_reports(given.out / "runs" / e))]
    found = [r for r in every if r["experiment"] in experiments and wanted(r)]
    if not found:
        raise InputError(f"out {given.out} holds no finished run of {about}")
    check_publishable(given, found)
    return found


def check_publishable(given: Args, reports: Sequence[Report]) -> None:
    """Raise `InputError` for runs of edited or unknown code or on synthetic data, which results/ does not hold."""
    if "results" in given:
        return
    try:
        check_committed({str(report["run"]): report for report in reports})
    except InputError as error:
        raise InputError(f"{error}, or give results=") from None
    for report in reports:
        if report["config"]["dataset"].get("synthetic"):
            raise InputError(f"{report['run']} is of synthetic data; its numbers go elsewhere: give results=")


def dataset_of(report: Report, **changes: Any) -> Dataset:
    """Return the dataset of a run, with other values of some of its options."""
    dataset = check_part("dataset", {**report["config"]["dataset"], **changes}).build()
    assert isinstance(dataset, Dataset)
    return dataset


def method_of(report: Report) -> Method:
    """Return the method of a run; it is not fitted."""
    config = copy.deepcopy(report["config"]["method"])
    config.pop("standardise", None)  # methods over domains had it before labels were scaled by the engine
    method = check_part("method", config).build()
    assert isinstance(method, Method)
    return method


def labels_of(report: Report, data: RegressionData, device: torch.device) -> LabelScaling:
    """Return how a run scaled its labels; runs from before there was a choice did not scale the outputs."""
    return LabelScaling.fit(report["config"]["train"].get("label_scaling", "none"), [data.train], device)


def model_of(report: Report, data: RegressionData, out: Path, method: Method | None = None) -> nn.Module:
    """Return the model of a run with the weights of its checkpoint, in evaluation mode; see `labels_of` for its unit.

    Args:
        report: of the run.
        data: what it was trained on; gives the model its shapes.
        out: where the run lies, in `out/runs`.
        method: fitted on the way in, to predict with; some give the model parameters (MR-MAML).

    Raises:
        InputError: the checkpoint is not there, or is damaged.
    """
    path = out / "runs" / report["run"] / WEIGHTS
    if not path.is_file():
        raise InputError(f"run {report['run']} has no weights: no such file {path}")
    config = report["config"]["model"]
    # What it started from is in the checkpoint's past, and its file need not be here.
    config = {**config, **({"weights": None} if "weights" in config else {})}
    part = check_part("model", config, reserved=("in_shape", "out_features"))
    x: Any = data.train.x
    model = part.build(tuple(x.shape[1:]), data.train.y.shape[1])
    if method:
        method.fit(data, model, None)
    with naming(path, "a file of this model's weights"):
        model.load_state_dict(read_tensors(checked(path)))
    assert isinstance(model, nn.Module)
    return model.eval()


def run_predictions(report: Report, data: RegressionData, split: Split, out: Path, device: torch.device) -> Tensor:
    """Return what a run predicts of a split `(N, d_y)`, on the CPU, in the unit of the labels.

    Args:
        report: of the run.
        data: what it was trained on.
        split: test rows, of another dataset where that is asked.
        out: where the run lies.
        device: where to predict.
    """
    method = method_of(report)
    model = model_of(report, data, out, method).to(device)
    rows = BatchLoader([split], device, labels_of(report, data, device))
    return predict(method.predictors()[""], model, rows, report["config"]["train"]["eval_batch_size"]).cpu()


def check_score(report: Report, metric: str, again: float) -> None:
    """Raise `InputError` where a run's test score is not the recorded one: something has changed since."""
    recorded = report["scores"]["test"][metric]
    if not math.isclose(again, recorded, rel_tol=0.01):
        raise InputError(f"run {report['run']} was recorded with {metric} {recorded:.4f}, but has {again:.4f} here")


def results_of(given: Args) -> Path:
    """Return the folder that a measurement writes into: the word `results=`, else the project's own."""
    return Path(given.get("results", RESULTS))


def stored_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, none where there is no such file."""
    return read_csv(path) if path.is_file() else []


def write_measured(results: Path, texts: Mapping[str, str], figures: Mapping[str, Figure] | None = None) -> None:
    """Write numbers and tables, then pictures, by their paths below `results`, and print where they are."""
    for name, text in texts.items():
        write_atomically(results / name, text)
        print(text if name.endswith(".md") else f"numbers: {results / name}")
    for path in write_figures(figures or {}, results):
        print(f"figure: {path}")
    seal_measured(results, [*texts, *(figures or {})])
