"""Training ResNet-18 on a folder of images beside a plain torchvision loop, measured in one run.

Crops of scikit-learn's two photographs are written as JPEG files, whose label is where they were cut, and read by
`dataset=images`. The plain loop has all pixels on the device, as bytes, and does nothing that it could leave out.

Example: python -m scripts.bench images device=cuda count=12000
"""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData, in_threads
from cmixup.methods.base import Method
from cmixup.methods.erm import ERM
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.networks.resnet import ResNet
from cmixup.networks.vision import import_torchvision
from cmixup.pairing.label import LabelDistance
from cmixup.seeding import Streams, torch_seed
from cmixup.settings import TrainSettings
from cmixup.trainer import Run, train
from datasets.images import Images
from scripts.bench.clock import PAGE, SHORT, store_rows, stored_rows
from scripts.config.arguments import Args
from scripts.driver.provenance import run_environment
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table

KEYS = SHORT | {
    "device": "cpu (64 pixels, float32) or cuda (224 pixels, bfloat16); default cpu",
    "count": "images; default 2000",
}
COLUMNS = ("way", "machine", "pixels", "batch", "precision", "images_a_second", "ratio")
SIDE = 512
EPOCHS, REPEATS = 3, 3


def write_images(folder: Path, count: int, size: int) -> Images:
    """Write `count` images and their table, nine tenths of which is for training, and return the dataset."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    photographs = [Image.fromarray(photograph) for photograph in load_sample_images().images]
    corners = np.random.default_rng(0).integers(0, 150, (count, 2))
    (folder / "photos").mkdir()

    def write(k: int) -> None:
        left, top = corners[k].tolist()
        crop = photographs[k % 2].crop((left, top, left + 256, top + 256)).resize((SIDE, SIDE))
        crop.save(folder / "photos" / f"{k}.jpg")

    in_threads(write, range(count))
    parts = ["train", "train", "train", "train", "val", "train", "train", "train", "train", "test"]
    lines = ["file,left,part", *(f"{k},{corners[k, 0]},{parts[k // 2 % 10]}" for k in range(count))]
    (folder / "labels.csv").write_text("\n".join(lines))
    table = str(folder / "labels.csv")
    return Images(str(folder / "photos"), labels=table, target="left", size=size, split="part")


def plain_epochs(data: RegressionData, device: torch.device, settings: TrainSettings) -> Iterator[None]:
    """Train without mixing, as a loop that is written for this alone; yields after each epoch."""
    images: list[Any] = [data.train.x, data.val.x]
    pixels, val = (part.files.kept[part.rows].to(device) for part in images)
    y, val_y = data.train.y.to(device), data.val.y.to(device)
    y, shape = (y - y.mean()) / y.std(), (1, 3, 1, 1)
    mean, std = (torch.tensor(of, device=device).reshape(shape) for of in ([120.0] * 3, [60.0] * 3))
    model = import_torchvision("torchvision.models").resnet18(num_classes=1)
    model = model.to(device, memory_format=torch.channels_last)
    optimizer = torch.optim.Adam(model.parameters(), settings.lr, fused=True)

    def as_inputs(some: Tensor) -> Tensor:
        return ((some.float() - mean) / std).contiguous(memory_format=torch.channels_last)

    half, batch = settings.precision == "bfloat16", settings.batch_size
    for _ in range(settings.epochs):
        order = torch.randperm(len(y), device=device)
        for rows in torch.split(order, batch)[: len(y) // batch]:
            with torch.autocast(device.type, torch.bfloat16, enabled=half):
                loss = nn.functional.mse_loss(model(as_inputs(pixels[rows])).float(), y[rows])
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for part, labels in zip(torch.split(val, 256), torch.split(val_y, 256), strict=True):
                loss += nn.functional.mse_loss(model(as_inputs(part)), labels)
        model.train()
        loss.item()  # waits for the device
        yield


def epoch_seconds(data: RegressionData, method: Method | None, device: torch.device, settings: TrainSettings) -> float:
    """Return the fastest of the epochs after the first, which warms up, by the clock; the plain loop for None."""
    ends = [time.perf_counter()]
    if method is None:
        ends += [time.perf_counter() for _ in plain_epochs(data, device, settings)]
    else:
        streams = Streams(0)
        with torch_seed(streams.init):
            size = int(data.train.x[torch.arange(1)].shape[-1])
            model = ResNet((3, size, size), 1, channels_last=True)
        run = Run(data, method, model, streams)
        train([run], settings, device, on_epoch=lambda *_: ends.append(time.perf_counter()))
    return float(np.diff(ends)[1:].min())


def run(given: Args) -> None:
    """Measure all ways in turn, so that a slow minute of the machine meets all."""
    short, device = given.switch("short"), torch.device(given.get("device", "cpu"))
    count, epochs, repeats = (80, 2, 1) if short else (given.count("count", 2_000), EPOCHS + 1, REPEATS)
    size, batch, precision = (224, 128, "bfloat16") if device.type == "cuda" else (64, 64, "float32")
    settings = TrainSettings(epochs, batch if not short else 8, 1e-3, drop_last=True, eval_batch_size=256,
                             label_scaling="standard", precision=precision)  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        data = write_images(Path(folder), count, size if not short else 32).load(0)
    ways: dict[str, Callable[[], Method | None]] = {
        "plain loop, no mixing": lambda: None,
        "dataset=images method=erm": ERM,
        "dataset=images method=cmixup": lambda: Mix(LabelDistance("auto"), Beta(2.0, "example")),
    }
    rounds = [[epoch_seconds(data, make(), device, settings) for make in ways.values()] for _ in range(repeats)]
    fastest = np.min(rounds, axis=0)
    trained = len(data.train) // settings.batch_size * settings.batch_size
    where = (run_environment(device)["device"], size, batch, precision)
    rows = [
        dict(zip(COLUMNS, (way, *where, f"{trained / seconds:.0f}", f"{fastest[0] / seconds:.3f}"), strict=True))
        for way, seconds in zip(ways, fastest, strict=True)
    ]
    others = [row for row in stored_rows("images") if row["machine"] != where[0]]
    store_rows(given, "images", [*others, *rows], COLUMNS)


@fills
def images_table() -> dict[str, dict[str, str]]:
    """Return the table of training on images."""
    body = [
        [r["way"], f"{r['machine']}, {r['pixels']} pixels a side, batch {r['batch']}, {r['precision']}",
         r["images_a_second"], r["ratio"]]
        for r in stored_rows("images")
    ]  # fmt: skip
    return {PAGE: {"images": markdown_table(["way", "on", "images a second", "of the plain loop"], body)}}
