"""What a finished run shows in wandb besides numbers: tables and plots of its predictions, images, and its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmixup.data import Split
from scripts.driver.predictions import Parts, calibration_curve

MOST_ROWS = 1000  # of a scatter
MOST_IMAGES = 16
CHANNELS = (1, 3)  # of what can be shown as a picture
LONGEST_NAME = 128  # of an artifact


def prediction_plots(wandb: Any, predictions: Parts) -> dict[str, Any]:
    """Return prediction against truth, residuals (at most `MOST_ROWS` points) and calibration of the test rows."""
    test = predictions["test"]
    truth, found = test.target.reshape(-1), test.prediction[""].reshape(-1)
    rows = _spread_rows(len(truth), MOST_ROWS)
    data = [[float(t), float(p), float(t - p)] for t, p in zip(truth[rows], found[rows], strict=True)]
    table = wandb.Table(columns=["truth", "prediction", "residual"], data=data)
    bins = [[float(p), float(t)] for p, t in zip(*calibration_curve(truth, found), strict=True)]
    means = wandb.Table(columns=["mean prediction", "mean truth"], data=bins)
    scatter, line = wandb.plot.scatter, wandb.plot.line
    return {
        "test/predictions": table,
        "test/prediction_against_truth": scatter(table, "truth", "prediction", "Test: prediction against truth"),
        "test/residuals": scatter(table, "prediction", "residual", "Test: residual against prediction"),
        "test/calibration": line(means, "mean prediction", "mean truth", "Test: calibration, bins of equal size"),
    }


def image_examples(wandb: Any, test: Split, predictions: Parts) -> dict[str, Any]:
    """Return at most `MOST_IMAGES` test images, or middle frames of videos, with truth and prediction; else nothing.

    Inputs are images `(B, C, H, W)` or videos `(B, C, T, H, W)` with one or three channels.
    """
    rows = _spread_rows(len(test.y), MOST_IMAGES)
    x = test.x[torch.from_numpy(rows)]
    if isinstance(x, Tensor) and x.ndim == 5:
        x = x[:, :, x.shape[2] // 2]
    if not isinstance(x, Tensor) or x.ndim != 4 or x.shape[1] not in CHANNELS:
        return {}
    low, high = float(x.min()), float(x.max())
    pictures = ((x - low) / max(high - low, 1e-12) * 255).round().to(torch.uint8).permute(0, 2, 3, 1).numpy()
    found, truth = predictions["test"].prediction[""], predictions["test"].target
    said = [f"truth {_short_text(truth[row])}, prediction {_short_text(found[row])}" for row in rows]
    shown = [p[..., 0] if p.shape[-1] == 1 else p for p in pictures]
    return {"test/images": [wandb.Image(each, caption=caption) for each, caption in zip(shown, said, strict=True)]}


def run_artifact(wandb: Any, name: str, folder: Path, report: Mapping[str, Any]) -> Any:
    """Return an artifact of all files of a run's folder (weights and predictions among them).

    Its metadata name the checksums of the data, the seed, the commit and the folder.
    """
    keys = ("checksums", "dataset", "method", "seed", "commit", "run")
    artifact = wandb.Artifact(name[:LONGEST_NAME], type="run", metadata={k: report[k] for k in keys if k in report})
    for path in sorted(folder.iterdir()):
        if path.is_file() and not path.name.startswith("."):
            artifact.add_file(str(path), name=path.name)
    return artifact


def _spread_rows(count: int, most: int) -> np.ndarray:
    """Return at most so many of `count` rows, evenly spread."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


def _short_text(values: np.ndarray) -> str:
    return " ".join(f"{value:.3g}" for value in values)
