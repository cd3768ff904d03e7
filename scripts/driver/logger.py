"""Loggers of a run while it trains: wandb, offline unless the environment says otherwise, or none.

`WANDB_MODE`, `WANDB_PROJECT`, `WANDB_ENTITY`, `WANDB_RUN_GROUP`, `WANDB_DIR` and `WANDB_TAGS` are wandb's own. wandb
starts to report on itself when it is imported, before any run says offline, so the variables that quiet it come first.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cmixup.errors import InputError
from cmixup.files import make_folder, write_atomically
from cmixup.training.settings import TrainSettings
from scripts.driver.runs import RunFolder, folder_name
from scripts.stats.scored import Parts

#: Set before wandb is imported, where the environment says nothing.
QUIET = {"WANDB_MODE": "offline", "WANDB_ERROR_REPORTING": "false"}
#: Folders, below that of the logs, of what wandb otherwise writes in the home directory.
PLACES = {"WANDB_DATA_DIR": "wandb", "WANDB_CACHE_DIR": "", "WANDB_CONFIG_DIR": "wandb"}
RUN_ID = ".wandb_run"  # in a run's folder: its id, by which the run goes on after it was killed
LONGEST_GROUP, LONGEST_TAG = 107, 64  # the server takes 128 and 64; a hash and a seed follow the group
MOST_ROWS = 1000  # of a scatter
MOST_PICTURES = 16
BINS = 10  # of the calibration: as many rows in each
ADVICE = "WANDB_MODE=offline logs into a folder, logger=none does not log"
#: Keys of a report that go into a run's summary.
SUMMARY = (
    "best_epoch", "verdict", "status", "failure", "seconds", "stack", "notes", "run", "commit", "dirty", "unit",
)  # fmt: skip


def names_of(config: Mapping[str, Any], options: Mapping[str, Any]) -> tuple[str, list[str]]:
    """Return the name that all seeds of a cell share, of dataset, method, preset and options, and its tags."""
    dataset, method, preset = config["dataset"]["name"], config["method"]["name"], config["preset"]
    group = folder_name(f"{dataset}-{method}-{preset}", options, LONGEST_GROUP)
    tags = [tag.strip() for tag in os.environ.get("WANDB_TAGS", "").split(",") if tag.strip()]
    bandwidth = config["method"].get("bandwidth")
    tags += [dataset, method, preset, *([] if bandwidth is None else [f"bandwidth={bandwidth}"])]
    tags += [f"{key}={value}" for key, value in options.items() if key != "method.bandwidth"]
    return group, list(dict.fromkeys(tag[:LONGEST_TAG] for tag in tags))


@dataclass
class WandbLogger:
    """A run of wandb: curves, configuration, record, verdict, and predictions against truth.

    A run that was killed goes on as itself, and one that is trained again is another one.
    """

    config: Mapping[str, Any]  # resolved
    options: Mapping[str, Any]  # what it changes of its preset
    seed: int
    run_folder: Path  # keeps the run's id

    def __post_init__(self) -> None:
        place = Path(os.environ.get("WANDB_DIR") or self.config["out"]).resolve()
        self._lr_at = TrainSettings(**self.config["train"]).lr_at
        self._metrics = set[str]()
        # wandb makes no connection that nobody asked for, and writes below the folder.
        defaults = QUIET | {key: str(place / folder) for key, folder in PLACES.items()}
        os.environ.update({key: os.environ.get(key) or value for key, value in defaults.items()})
        make_folder(place)
        (group, tags), run_id = names_of(self.config, self.options), None
        if not os.environ.get("WANDB_RUN_ID"):  # which an agent gives
            id_file = self.run_folder / RUN_ID
            goes_on = id_file.is_file() and not self.config["rerun"] and not RunFolder(self.run_folder).is_done()
            run_id = id_file.read_text().strip() if goes_on else secrets.token_hex(4)
        try:
            import wandb

            self._wandb: Any = wandb
            self._run: Any = wandb.init(
                project=os.environ.get("WANDB_PROJECT") or "cmixup",
                dir=str(place),
                mode=os.environ["WANDB_MODE"],  # type: ignore[arg-type]
                group=os.environ.get("WANDB_RUN_GROUP") or group,
                job_type=self.config["experiment"],
                name=f"{group}-{self.seed}",
                tags=tags,
                config={**self.config, "seed": self.seed, "seeds": None, "options": dict(self.options)},
                id=run_id,
                resume="allow" if run_id else None,
                reinit="create_new",
                settings=wandb.Settings(silent=True, console="off", x_disable_stats=True),
            )
            if run_id:
                write_atomically(self.run_folder / RUN_ID, run_id)
        except Exception as error:  # wandb raises errors of many kinds, those of its settings among them
            reason = " ".join(str(error).split()).rstrip(".")[:200]
            raise InputError(f"wandb: {reason} ({ADVICE})") from None

    def epoch(self, epoch: int, row: Mapping[str, float]) -> None:
        """Log an epoch and its learning rate under the names of the summary, `val/rmse` for `val_rmse`.

        None of it goes into the summary: that holds the best epoch's scores.
        """
        logged = {name.replace("_", "/", 1): value for name, value in row.items()} | {"train/lr": self._lr_at(epoch)}
        for name in logged.keys() - self._metrics:
            self._run.define_metric(name, summary="none")
            self._metrics.add(name)
        self._run.log(logged, step=epoch)

    def finish(self, folder: RunFolder, inputs: Any) -> None:
        """Put a run's report into the summary, and predictions into tables and plots, from its folder; close it.

        Of test `inputs` that have `pictures` a few are shown with truth and prediction.
        """
        report = folder.report()
        scores = {f"{split}/{name}": v for split, values in report["scores"].items() for name, v in values.items()}
        options = {f"options/{key}": value for key, value in report["options"].items()}
        record = {key: report[key] for key in SUMMARY if key in report}
        self._run.summary.update({**scores, **report["facts"], **options, **record})
        if report["status"] == "done":
            predictions = folder.predictions()
            self._run.log(prediction_plots(self._wandb, predictions) | pictures(self._wandb, predictions, inputs))
        self._run.finish()


def pictures(wandb: Any, predictions: Parts, inputs: Any) -> dict[str, Any]:
    """Return a few images of the test rows with truth and prediction; nothing of inputs that are no images."""
    if not hasattr(inputs, "pictures"):
        return {}
    test = predictions["test"]
    rows = np.unique(np.linspace(0, len(test.target) - 1, min(len(test.target), MOST_PICTURES)).astype(np.int64))
    captions = [
        f"truth {', '.join(f'{v:.4g}' for v in t)}; prediction {', '.join(f'{v:.4g}' for v in p)}"
        for t, p in zip(test.target[rows], test.prediction[""][rows], strict=True)
    ]
    captioned_images = zip(inputs.pictures(torch.from_numpy(rows)), captions, strict=True)
    return {"test/images": [wandb.Image(image, caption=caption) for image, caption in captioned_images]}


def prediction_plots(wandb: Any, predictions: Parts) -> dict[str, Any]:
    """Return prediction against truth, residuals (at most `MOST_ROWS` points) and calibration of the test rows.

    Calibration is the mean truth of rows that are predicted alike over their mean prediction. A slope above 1 says that
    predictions are drawn to the mean, as mixing labels does.
    """
    test = predictions["test"]
    known = ~np.isnan(test.target)
    truth, predicted = test.target[known], test.prediction[""][known]
    rows = np.unique(np.linspace(0, len(truth) - 1, min(len(truth), MOST_ROWS)).astype(np.int64))
    data = [[float(t), float(p), float(t - p)] for t, p in zip(truth[rows], predicted[rows], strict=True)]
    table = wandb.Table(columns=["truth", "prediction", "residual"], data=data)
    parts = np.array_split(np.argsort(predicted, kind="stable"), min(BINS, len(truth)))
    bins = [[float(predicted[part].mean()), float(truth[part].mean())] for part in parts]
    means = wandb.Table(columns=["mean prediction", "mean truth"], data=bins)
    scatter, line = wandb.plot.scatter, wandb.plot.line
    return {
        "test/predictions": table,
        "test/prediction_against_truth": scatter(table, "truth", "prediction", "Test: prediction against truth"),
        "test/residuals": scatter(table, "prediction", "residual", "Test: residual against prediction"),
        "test/calibration": line(means, "mean prediction", "mean truth", "Test: calibration, bins of equal size"),
    }
