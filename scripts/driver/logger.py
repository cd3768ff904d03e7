"""What follows a run while it trains: wandb, offline unless the environment says otherwise, or nothing.

`WANDB_MODE`, `WANDB_PROJECT`, `WANDB_ENTITY`, `WANDB_RUN_GROUP`, `WANDB_DIR` and `WANDB_TAGS` are wandb's own. wandb
starts to report on itself when it is imported, before any run says offline, so what keeps it quiet is set before that.
Where it cannot start and no variable of wandb's asks for anything, the run trains without it, and a line says so.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError, check_choice
from cmixup.files import make_folder, write_atomically
from cmixup.training.settings import TrainSettings
from scripts.driver.predictions import PREDICTIONS, calibration_curve, read_predictions
from scripts.driver.runs import HISTORY, folder_name, is_done, read_report
from scripts.stats.scored import Parts

LOGGERS = ("wandb", "none")
MODES = ("online", "offline", "disabled", "dryrun", "run", "shared")
#: Set before wandb is imported, where the environment says nothing.
QUIET = {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
#: Folders, below that of the logs, of what wandb otherwise writes in the home directory.
PLACES = {"WANDB_DATA_DIR": "wandb", "WANDB_CACHE_DIR": "", "WANDB_CONFIG_DIR": "wandb"}
RUN_ID = ".wandb_run"  # in a run's folder: its id, by which the run goes on after it was killed
LONGEST_NAME, LONGEST_TAG = 128, 64  # that wandb's server takes
INIT_TIMEOUT = 30.0  # seconds until a server counts as unreachable; wandb waits 90
MOST_ROWS = 1000  # of a scatter
REMEDY = "WANDB_MODE=offline logs into a folder, logger=none does not log"


def prepare_wandb(folder: Path) -> bool:
    """Set the variables of wandb so that it makes no connection that nobody asked for, and writes below a folder.

    Returns:
        Whether the environment asked something of wandb: a variable of it that is not set here.

    Raises:
        InputError: WANDB_MODE is none of wandb's modes.
    """
    defaults = QUIET | {key: str(folder / place) for key, place in PLACES.items()}
    wanted = any(k.startswith("WANDB_") and value and defaults.get(k) != value for k, value in os.environ.items())
    for key, value in defaults.items():
        os.environ[key] = os.environ.get(key) or value
    check_choice("WANDB_MODE", os.environ["WANDB_MODE"], MODES)
    return wanted


@contextlib.contextmanager
def _without_stderr() -> Iterator[None]:
    """Let what starts here, such as wandb's service, print no errors: it dumps pages where it cannot run."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def group_of(plain: Mapping[str, Any], options: Mapping[str, Any]) -> str:
    """Return the name that all seeds of a cell share: dataset, method, preset and every option that differs from it."""
    name = "-".join([plain["dataset"]["name"], plain["method"]["name"], folder_name(plain["preset"], options)])
    longest = LONGEST_NAME - 8  # a seed follows
    digest = hashlib.sha256(name.encode()).hexdigest()[:12]
    return name if len(name) <= longest else f"{name[: longest - 13]}-{digest}"


def tags_of(plain: Mapping[str, Any], options: Mapping[str, Any]) -> list[str]:
    """Return the tags of a cell after those of `WANDB_TAGS`: dataset, method, preset, bandwidth and the options."""
    tags = [tag.strip() for tag in os.environ.get("WANDB_TAGS", "").split(",") if tag.strip()]
    tags += [plain["dataset"]["name"], plain["method"]["name"], plain["preset"]]
    bandwidth = plain["method"].get("bandwidth")
    tags += [] if bandwidth is None else [f"bandwidth={bandwidth}"]
    tags += [f"{key}={value}" for key, value in options.items() if key != "method.bandwidth"]
    return list(dict.fromkeys(tag[:LONGEST_TAG] for tag in tags))


class Logger:
    """Follows one run while it trains, and keeps nothing."""

    def start(self) -> None:
        """Begin; all is well with the data, model and method of the runs that train together."""

    def epoch(self, epoch: int, row: Mapping[str, float]) -> None:
        """Take the history row of an epoch."""

    def finish(self, report: Mapping[str, Any], predictions: Parts | None) -> None:
        """Take the run's report and, unless it failed, its predictions; the last call."""


class WandbLogger(Logger):
    """A run of wandb: curves, configuration, record, verdict, and predictions against truth.

    Args:
        plain: the resolved configuration.
        options: what it changes of its preset.
        seed: of the run.
        run_folder: the run's, which keeps its id; None for a run that is only logged again.

    Raises:
        InputError: WANDB_MODE is none of wandb's modes.
    """

    def __init__(self, plain: Mapping[str, Any], options: Mapping[str, Any], seed: int, run_folder: Path | None = None):
        self._folder = Path(os.environ.get("WANDB_DIR") or plain["out"]).resolve()
        self._wanted = prepare_wandb(self._folder)
        self._wandb: Any = None  # the package
        self._run: Any = None  # of wandb; none where it could not start
        self._plain, self._options, self._seed = plain, options, seed
        self._run_folder = run_folder

    def start(self) -> None:
        """Open the run.

        Raises:
            InputError: wandb wants a key, its server cannot be reached, or one of its variables has a wrong value.
        """
        make_folder(self._folder)
        try:
            import wandb

            self._wandb = wandb
            with _without_stderr():
                self._run = self._begin()
        except Exception as error:  # wandb raises errors of many kinds, those of its settings among them
            reason = " ".join(str(error).split()).rstrip(".")[:200]
            if self._wanted:
                raise InputError(f"wandb: {reason} ({REMEDY})") from None
            print(f"wandb cannot start here, so this run is not logged: {reason}", file=sys.stderr)
        self._since, self._metrics = time.perf_counter(), set[str]()

    def _begin(self) -> Any:
        """Return the run of wandb; whatever it raises is raised."""
        group = group_of(self._plain, self._options)
        timeout = {} if os.environ.get("WANDB_INIT_TIMEOUT") else {"init_timeout": INIT_TIMEOUT}
        run_id = self._run_id()
        run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT") or "cmixup",
            dir=str(self._folder),
            mode=os.environ["WANDB_MODE"],
            group=os.environ.get("WANDB_RUN_GROUP") or group,
            job_type=self._plain["experiment"],
            name=f"{group}-{self._seed}",
            tags=tags_of(self._plain, self._options),
            config={**self._plain, "seed": self._seed, "seeds": None, "options": dict(self._options)},
            id=run_id,
            resume="allow" if run_id else None,
            reinit="create_new",
            settings=self._wandb.Settings(silent=True, console="off", x_disable_stats=True, **timeout),
        )
        if run_id and self._run_folder:
            write_atomically(self._run_folder / RUN_ID, run_id)
        return run

    def _run_id(self) -> str | None:
        """Return the id of the run: that of its folder where it goes on, else a new one; None where an agent gives it.

        A run that is trained again (`rerun`) is another one of the same group.
        """
        if self._run_folder is None or os.environ.get("WANDB_RUN_ID"):
            return None
        kept = self._run_folder / RUN_ID
        goes_on = kept.is_file() and not self._plain["rerun"] and not is_done(self._run_folder)
        return kept.read_text().strip() if goes_on else secrets.token_hex(4)

    def epoch(self, epoch: int, row: Mapping[str, float]) -> None:
        """Log an epoch: see `curve_row`, and `epoch_seconds`, how long it took for all runs that train together."""
        if self._run is None:
            return
        before, self._since = self._since, time.perf_counter()
        self._log(curve_row(self._plain, row) | {"epoch_seconds": self._since - before})

    def _log(self, row: Mapping[str, float]) -> None:
        """Log an epoch's row, none of which goes into the summary: that holds the best epoch's scores."""
        for name in row.keys() - self._metrics:
            self._run.define_metric(name, summary="none")
            self._metrics.add(name)
        self._run.log(dict(row), step=int(row["epoch"]))

    def replay(self, folder: Path) -> None:
        """Log a run that is done from its folder: its curves, record and predictions."""
        self.start()
        if self._run is None:
            return
        with (folder / HISTORY).open(newline="") as file:
            for row in csv.DictReader(file):
                self._log(curve_row(self._plain, {name: float(value) for name, value in row.items()}))
        ((_, predictions),) = read_predictions(folder / PREDICTIONS).items()
        self.finish(read_report(folder), predictions)

    def finish(self, report: Mapping[str, Any], predictions: Parts | None) -> None:
        """Put the record into the run's summary, and predictions into tables and plots; close it.

        Where somebody asked something of wandb, and it is offline, a line says how to upload.
        """
        if self._run is None:
            return
        self._run.summary.update(run_summary(report))
        if predictions:
            self._run.log(prediction_plots(self._wandb, predictions))
        self._run.finish()
        if self._wanted and os.environ["WANDB_MODE"] in ("offline", "dryrun"):
            print_sync(self._folder)


def make_logger(
    plain: Mapping[str, Any], options: Mapping[str, Any], seed: int, run_folder: Path | None = None
) -> Logger:
    """Return the logger of a run that the configuration names; see `WandbLogger`."""
    return Logger() if plain["logger"] == "none" else WandbLogger(plain, options, seed, run_folder)


def log_done(plain: Mapping[str, Any], options: Mapping[str, Any], seed: int, folder: Path) -> None:
    """Log a run that was done before where wandb's agent asked for it, which would wait for its score in vain."""
    if plain["logger"] != "none" and os.environ.get("WANDB_SWEEP_ID"):
        WandbLogger(plain, options, seed).replay(folder)


@functools.cache
def print_sync(folder: Path) -> None:
    """Print once a process how offline runs of a folder are uploaded."""
    print(f"wandb is offline; upload by: wandb sync {folder}/wandb/offline-run-*", file=sys.stderr)


def curve_row(plain: Mapping[str, Any], row: Mapping[str, float]) -> dict[str, float]:
    """Return a history row under the names of the summary, `val/rmse` for `val_rmse`, with the rate of its epoch."""
    settings = TrainSettings(**plain["train"])
    renamed = {name.replace("_", "/", 1): value for name, value in row.items()}
    return renamed | {"train/lr": settings.lr_at(int(row["epoch"]))}


def run_summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run's summary says of its report: scores, facts, verdict, options, commit, folder."""
    scores = {f"{split}/{name}": v for split, values in report["scores"].items() for name, v in values.items()}
    options = {f"options/{key}": value for key, value in report["options"].items()}
    keys = ("best_epoch", "verdict", "status", "failure", "seconds", "stack", "notes", "run", "commit", "dirty", "unit")
    return {**scores, **report["facts"], **options, **{key: report[key] for key in keys if key in report}}


def prediction_plots(wandb: Any, predictions: Parts) -> dict[str, Any]:
    """Return prediction against truth, residuals (at most `MOST_ROWS` points) and calibration of the test rows."""
    test = predictions["test"]
    truth, predicted = test.target.reshape(-1), test.prediction[""].reshape(-1)
    rows = np.unique(np.linspace(0, len(truth) - 1, min(len(truth), MOST_ROWS)).astype(np.int64))
    data = [[float(t), float(p), float(t - p)] for t, p in zip(truth[rows], predicted[rows], strict=True)]
    table = wandb.Table(columns=["truth", "prediction", "residual"], data=data)
    bins = [[float(p), float(t)] for p, t in zip(*calibration_curve(truth, predicted), strict=True)]
    means = wandb.Table(columns=["mean prediction", "mean truth"], data=bins)
    scatter, line = wandb.plot.scatter, wandb.plot.line
    return {
        "test/predictions": table,
        "test/prediction_against_truth": scatter(table, "truth", "prediction", "Test: prediction against truth"),
        "test/residuals": scatter(table, "prediction", "residual", "Test: residual against prediction"),
        "test/calibration": line(means, "mean prediction", "mean truth", "Test: calibration, bins of equal size"),
    }
