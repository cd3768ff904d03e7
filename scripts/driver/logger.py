"""What hears of a run while it trains: wandb, offline unless the environment says otherwise, or nothing.

`WANDB_MODE`, `WANDB_PROJECT`, `WANDB_ENTITY`, `WANDB_RUN_GROUP`, `WANDB_DIR` and `WANDB_TAGS` are wandb's own. wandb
starts to report on itself when it is imported, before any run says offline, so what keeps it quiet is set before that.
Where it cannot start and no variable of wandb's asks for anything, the run trains without it, and a line says so.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cmixup.data import RegressionData
from cmixup.errors import InputError, check_choice
from cmixup.files import NOT_SUPPORTED, make_folder, write_atomically
from cmixup.training.settings import TrainSettings
from scripts.driver.predictions import PREDICTIONS, Parts, read_predictions
from scripts.driver.runs import HISTORY, folder_name, is_done, read_report
from scripts.driver.wandb_media import image_examples, prediction_plots, run_artifact

LOGGERS = ("wandb", "wandb_files", "none")  # the second one also keeps each run's files, as an artifact
MODES = ("online", "offline", "disabled", "dryrun", "run", "shared")
#: Said before wandb is imported, where the environment says nothing.
QUIET = {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
PLACES = {
    "WANDB_DATA_DIR": "wandb",
    "WANDB_CACHE_DIR": "",
    "WANDB_CONFIG_DIR": "wandb",
}  # of what it otherwise writes in the home directory
HOMES = ("XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")  # of folders below a home, where there is none
RUN_ID = ".wandb_run"  # in a run's folder: its id, by which the run goes on after it was killed
LONGEST_NAME, LONGEST_TAG = 128, 64  # that wandb's server takes
INIT_TIMEOUT = 30.0  # seconds until a server counts as unreachable; wandb waits 90
_SAID = set[Path]()
REMEDY = "WANDB_MODE=offline logs into a folder, logger=none does not log"


def import_wandb(folder: Path) -> Any:
    """Return the package, imported so that it makes no connection that nobody asked for, and writes below a folder.

    Raises:
        InputError: WANDB_MODE is none of wandb's modes.
    """
    for key, value in QUIET.items():
        os.environ[key] = os.environ.get(key) or value
    check_choice("WANDB_MODE", os.environ["WANDB_MODE"], MODES)
    for key, place in PLACES.items():
        os.environ[key] = os.environ.get(key) or str(folder / place)
    try:
        Path.home()
    except RuntimeError:  # no HOME, and a user without an entry, as in a container: wandb asks for it all the same
        for key in HOMES:
            os.environ[key] = os.environ.get(key) or str(folder / "wandb")
    import wandb

    return wandb


def is_asked_for(folder: Path) -> bool:
    """Return whether the environment asks something of wandb: a variable of it that this module has not set itself."""
    own = QUIET | {key: str(folder / place) for key, place in PLACES.items()}
    return any(key.startswith("WANDB_") and value and own.get(key) != value for key, value in os.environ.items())


@contextlib.contextmanager
def _without_stderr() -> Iterator[None]:
    """Let what starts here, such as wandb's service, print no errors: it dumps pages where it cannot run."""
    try:
        kept = os.dup(2)
    except OSError:  # it is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
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
    given = [tag.strip() for tag in os.environ.get("WANDB_TAGS", "").split(",") if tag.strip()]
    bandwidth = plain["method"].get("bandwidth")
    own = [plain["dataset"]["name"], plain["method"]["name"], plain["preset"]]
    own += [] if bandwidth is None else [f"bandwidth={bandwidth}"]
    own += [f"{key}={value}" for key, value in options.items() if key != "method.bandwidth"]
    return list(dict.fromkeys(tag[:LONGEST_TAG] for tag in [*given, *own]))


class Logger:
    """Hears of one run while it trains, and keeps nothing."""

    def start(self) -> None:
        """Begin; all is well with the data, model and method of the runs that train together."""

    def epoch(self, epoch: int, row: Mapping[str, float]) -> None:
        """Take the history row of an epoch."""

    def finish(self, report: Mapping[str, Any], predictions: Parts | None, data: RegressionData | None = None) -> None:
        """Take the run's report and, unless it failed, its predictions and data; the last that is heard of it."""


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
        self._asked = is_asked_for(self._folder)
        self._wandb = import_wandb(self._folder)
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
            with _without_stderr():
                self._run = self._begin()
        except (self._wandb.errors.Error, OSError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split()).rstrip(".")[:200]
            if self._asked:
                raise InputError(f"wandb: {reason} ({REMEDY})") from None
            print(f"wandb cannot start here, so this run is not logged: {reason}", file=sys.stderr)
        self._since, self._logged = time.perf_counter(), set[str]()

    def _begin(self) -> Any:
        """Return the run of wandb; whatever it raises is raised."""
        group = group_of(self._plain, self._options)
        given = {} if os.environ.get("WANDB_INIT_TIMEOUT") else {"init_timeout": INIT_TIMEOUT}
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
            settings=self._wandb.Settings(silent=True, console="off", x_disable_stats=True, **given),
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
        for name in row.keys() - self._logged:
            self._run.define_metric(name, summary="none")
            self._logged.add(name)
        self._run.log(dict(row), step=int(row["epoch"]))

    def replay(self, folder: Path) -> None:
        """Log a run that is done from its folder: its curves, record and predictions."""
        self.start()
        if self._run is None:
            return
        with (folder / HISTORY).open(newline="") as file:
            for row in csv.DictReader(file):
                self._log(curve_row(self._plain, {name: float(value) for name, value in row.items()}))
        ((_, kept),) = read_predictions(folder / PREDICTIONS).items()
        self._run_folder = folder
        self.finish(read_report(folder), kept)

    def finish(self, report: Mapping[str, Any], predictions: Parts | None, data: RegressionData | None = None) -> None:
        """Put the record into the run's summary, and predictions into tables, plots and pictures; close it.

        Where somebody asked something of wandb, and it is offline, a line says how to upload. Its tables need a file
        system with `fsync`; on another one a line says that they are left out.
        """
        if self._run is None:
            return
        self._run.summary.update(run_summary(report))
        try:
            if predictions:
                self._log_predictions(report, predictions, data)
        except OSError as error:
            if error.errno not in NOT_SUPPORTED:
                raise
            print(f"wandb keeps no predictions of this run here: {error}", file=sys.stderr)
        self._run.finish()
        if self._asked and os.environ["WANDB_MODE"] in ("offline", "dryrun"):
            say_sync(self._folder)

    def _log_predictions(self, report: Mapping[str, Any], predictions: Parts, data: RegressionData | None) -> None:
        pictures = image_examples(self._wandb, data.test, predictions) if data is not None else {}
        self._run.log(prediction_plots(self._wandb, predictions) | pictures)
        if self._plain["logger"] == "wandb_files" and self._run_folder is not None:
            self._run.log_artifact(run_artifact(self._wandb, f"run-{self._run.id}", self._run_folder, report))


def make_logger(
    plain: Mapping[str, Any], options: Mapping[str, Any], seed: int, run_folder: Path | None = None
) -> Logger:
    """Return the logger of a run that the configuration names; see `WandbLogger`."""
    return Logger() if plain["logger"] == "none" else WandbLogger(plain, options, seed, run_folder)


def log_done(plain: Mapping[str, Any], options: Mapping[str, Any], seed: int, folder: Path) -> None:
    """Log a run that was done before where wandb's agent asked for it, which would wait for its score in vain."""
    if plain["logger"] != "none" and os.environ.get("WANDB_SWEEP_ID"):
        WandbLogger(plain, options, seed).replay(folder)


def say_sync(folder: Path) -> None:
    """Say once a process how offline runs of a folder are uploaded."""
    if folder not in _SAID:
        _SAID.add(folder)
        print(f"wandb is offline; upload by: wandb sync {folder}/wandb/offline-run-*", file=sys.stderr)


def curve_row(plain: Mapping[str, Any], row: Mapping[str, float]) -> dict[str, float]:
    """Return a history row under the names of the summary, `val/rmse` for `val_rmse`, with the rate of its epoch."""
    settings = TrainSettings(**plain["train"])
    found = {name.replace("_", "/", 1): value for name, value in row.items()}
    return found | {"train/lr": settings.lr_at(int(row["epoch"]))}


def run_summary(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run's summary says of its report: scores, facts, verdict, options, commit, folder."""
    scores = {f"{split}/{name}": v for split, found in report["scores"].items() for name, v in found.items()}
    options = {f"options/{key}": value for key, value in report["options"].items()}
    keys = ("best_epoch", "verdict", "status", "failure", "seconds", "stack", "notes", "run", "commit", "dirty", "unit")
    return {**scores, **report["facts"], **options, **{key: report[key] for key in keys if key in report}}
