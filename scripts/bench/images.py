"""An epoch on a folder of images against the same loop on tensors in memory, measured in one run.

2,000 crops of scikit-learn's two photographs are written as JPEG files of 512 x 512 pixels, whose label is a number,
and read at 64 x 64 by `dataset=images`; ResNet-18 trains with C-Mixup.

Example: python -m scripts.bench images
"""

from __future__ import annotations

import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

from cmixup.data import RegressionData
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from cmixup.resnet import ResNet
from cmixup.seeding import Streams, torch_seed
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import Run, train
from datasets.images import Images
from scripts.bench.clock import PAGE, SHORT, measured_seconds, store_rows, stored_rows, with_machine
from scripts.config.arguments import Args
from scripts.report.register import fills
from scripts.report.result_table import markdown_table

KEYS = SHORT
COLUMNS = ("way", "reading", "epoch", "ratio")
SIDE, SIZE, BATCH = 512, 64, 64


def write_images(folder: Path, n: int) -> Images:
    """Write `n` images and their labels, and return the dataset."""
    rng, photographs = np.random.default_rng(0), load_sample_images().images
    (folder / "photos").mkdir()
    lines = ["file,left"]
    for k in range(n):
        photograph = Image.fromarray(photographs[k % 2])
        left, top = (int(rng.integers(0, side - 256)) for side in photograph.size)
        crop = photograph.crop((left, top, left + 256, top + 256)).resize((SIDE, SIDE))
        crop.save(folder / "photos" / f"{k}.jpg")
        lines.append(f"{k},{left}")
    (folder / "labels.csv").write_text("\n".join(lines))
    return Images(str(folder / "photos"), labels=str(folder / "labels.csv"), target="left", size=SIZE)


def epoch_seconds(data: RegressionData, epochs: int, width: int) -> list[float]:
    """Return the process seconds of each epoch, validation included."""
    streams, ends = Streams(0), [time.process_time()]
    with torch_seed(streams.init):
        model = ResNet((3, SIZE, SIZE), 1, width=width)
    method = Mix(LabelDistance("auto"), Beta(2.0, "example"))
    settings = TrainSettings(epochs, BATCH, 1e-3, label_scaling="standard")
    train([Run(data, method, model, streams)], settings, on_epoch=lambda *_: ends.append(time.process_time()))
    return np.diff(ends).tolist()


def run(given: Args) -> None:
    """Measure both ways in turn; the first epoch of each warms up."""
    n, epochs, width = (24, 2, 2) if given.switch("short") else (2000, 3, 64)
    with tempfile.TemporaryDirectory() as folder:
        dataset = write_images(Path(folder), n)
        reading = measured_seconds(lambda: dataset.load(0))
        lazy = dataset.load(0)
    parts = {part: getattr(lazy, part) for part in ("train", "val", "test")}
    tensors = replace(lazy, **{p: replace(one, x=one.x[torch.arange(len(one))]) for p, one in parts.items()})
    ways = {"tensors in memory": tensors, "dataset=images": lazy}
    seconds = {way: list[float]() for way in ways}
    for _ in range(1 if given.switch("short") else 2):
        for way, data in ways.items():
            seconds[way] += epoch_seconds(data, epochs, width)[1:]
    fastest = [min(times) for times in seconds.values()]
    rows = [
        dict(
            zip(
                COLUMNS,
                (way, f"{reading if data is lazy else 0:.1f}", f"{low:.2f}", f"{low / fastest[0]:.3f}"),
                strict=True,
            )
        )
        for (way, data), low in zip(ways.items(), fastest, strict=True)
    ]
    store_rows(given, "images", rows, COLUMNS)


@fills
def images_table() -> dict[str, dict[str, str]]:
    """Return the table of images."""
    body = [[r["way"], r["reading"], r["epoch"], r["ratio"]] for r in stored_rows("images")]
    table = markdown_table(["way", "reading, s", "fastest epoch, s", "ratio"], body)
    return {PAGE: {"images": with_machine(table, "images")}}
