"""Speed of the mixings of images: `python -m scripts.bench.mixing`.

First PuzzleMix on a batch against the same work image by image in a Python loop, saliency included, for each block
count; then a training step of every mixing against one of mixup. Random images of RCF-MNIST's shape, ResNet-18, process
time on one thread, the fastest of several repeats, the ways taken in turn.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from cmixup.data import RegressionData, Split
from cmixup.files import write_atomically
from cmixup.methods.mix import Mix
from cmixup.mixing.automix import AutoMix
from cmixup.mixing.base import Mixing
from cmixup.mixing.cutmix import CutMix
from cmixup.mixing.lam import Beta
from cmixup.mixing.linear import Linear
from cmixup.mixing.puzzlemix import PuzzleMix, saliency
from cmixup.pairing.uniform import Uniform
from cmixup.seeding import Streams, torch_seed
from cmixup.training.settings import TrainSettings
from cmixup.training.stack_training import Run, StackTraining
from models.resnet import ResNet, resnet18
from scripts.driver.cli import user_errors
from scripts.driver.provenance import environment
from scripts.records.experiment import RESULTS
from scripts.records.tables import markdown_rows

BATCH, SHAPE, ALPHA = 64, (3, 28, 28), 2.0
WIDTHS = {16: "preset cpu", 64: "preset paper"}
MIXINGS: dict[str, Callable[[], Mixing]] = {
    "mixup": Linear, "CutMix": CutMix, "PuzzleMix": PuzzleMix, "AutoMix": lambda: AutoMix(10),
}  # fmt: skip
Work = Callable[[], object]


def make_model(width: int) -> ResNet:
    """Return a ResNet-18 for images of RCF-MNIST's shape."""
    with torch_seed(0):
        return resnet18(SHAPE, 1, width=width)


def images(count: int) -> Tensor:
    """Return random smooth images in [-1, 1], `(count, 3, 28, 28)`."""
    rough = torch.rand(count, 3, 7, 7, generator=torch.Generator().manual_seed(0)) * 2 - 1
    return torch.nn.functional.interpolate(rough, size=SHAPE[1:], mode="bilinear")


def puzzle_ways(model: ResNet, part: float) -> dict[str, Work]:
    """Return PuzzleMix on a batch, and image by image; `part` in [0, 1) picks the block count."""
    mixing = PuzzleMix()
    first, second = images(2 * BATCH).chunk(2)
    lam = torch.from_numpy(np.random.default_rng(0).beta(ALPHA, ALPHA, BATCH).astype(np.float32))

    def puzzle(rows: slice) -> Tensor:
        maps = saliency(model, torch.cat([first[rows], second[rows]])).chunk(2)
        draws = {"lam": lam[rows], "blocks": torch.full_like(lam[rows], part)}
        draws |= {"saliency": maps[0], "partner_saliency": maps[1]}
        return mixing(first[rows], second[rows], draws)[0]

    def each() -> Tensor:
        return torch.cat([puzzle(slice(k, k + 1)) for k in range(BATCH)])

    def at_once() -> Tensor:
        return puzzle(slice(None))

    # Saliency differs in its last digits, and a cut that is near a tie with it.
    same = (each() - at_once()).abs().amax(dim=(1, 2, 3)) < 1e-4
    assert same.float().mean() > 0.9, same
    return {"loop": each, "batch": at_once}


def step_ways(width: int) -> dict[str, Work]:
    """Return an epoch of 5 training steps with each mixing."""
    x = images(5 * BATCH)
    split = Split(x, x.mean(dim=(1, 2, 3))[:, None], torch.zeros(len(x), dtype=torch.int64), "images/train")
    data = RegressionData("images", split, split, split, unit="none")

    def work_of(mixing: Mixing) -> Work:
        method, model, streams = Mix(Uniform(), Beta(ALPHA), mixing=mixing), make_model(width), Streams(0)
        method.fit(data, model, streams)
        how = TrainSettings(epochs=1, batch_size=BATCH, lr=7e-5)
        training = StackTraining([Run(data, method, model, streams)], how, torch.device("cpu"))
        method.begin(training)

        def work() -> None:
            order = method.order(split, BATCH, streams, drop_last=False)
            training.run_epoch([order], [method.draw(order, streams)])

        return work

    return {name: work_of(make()) for name, make in MIXINGS.items()}


def fastest(ways: dict[str, Work], repeats: int, *, mean: bool = False) -> dict[str, float]:
    """Return the least process time of each way, or the mean where ways draw what they do."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for repeat in range(repeats + 1):  # the first one warms up
        for name, work in ways.items():
            start = time.process_time()
            work()
            if repeat:
                taken[name].append(time.process_time() - start)
    return {name: sum(each) / repeats if mean else min(each) for name, each in taken.items()}


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench.mixing", description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    with user_errors():
        counts = PuzzleMix().block_counts(*SHAPE[1:])
        model, body, total = make_model(16), [], np.zeros(2)
        for k, count in enumerate(counts):
            spent = fastest(puzzle_ways(model, (k + 0.5) / len(counts)), given.repeats)
            total += (spent["loop"], spent["batch"])
            body.append([f"{count} x {count}", *_row(spent["loop"], spent["batch"])])
        body.append(["mean over block counts", *_row(*(total / len(counts)))])
        steps = []
        for width, preset in WIDTHS.items():
            spent = fastest(step_ways(width), 4 * given.repeats, mean=True)
            steps += [
                [f"{preset}, width {width}", name, f"{value / 5 * 1e3:.0f}", f"{value / spent['mixup']:.2f}x"]
                for name, value in spent.items()
            ]
        where = environment(torch.device("cpu"))
        versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
        about_puzzle = (
            f"PuzzleMix on {BATCH} pairs of images of 3 x 28 x 28 at once, and pair by pair in a loop: saliency "
            "(ResNet-18 of width 16), graph cut with 3 levels, transport. Process time on one thread, the fastest of "
            f"{given.repeats}."
        )
        about_steps = (
            f"A training step, batch {BATCH}; process time on one thread, mean over {20 * given.repeats} steps, the "
            "mixings in turn. PuzzleMix draws a block count for each."
        )
        machine = (
            f"`make bench-mixing` measures them anew. Machine: {where['device']}, {platform.system()} "
            f"{platform.machine()}; {versions}."
        )
        tables = [
            markdown_rows(["blocks", "loop, ms", "batch, ms", "speed-up"], body),
            markdown_rows(["network", "mixing", "step, ms", "against mixup"], steps),
        ]
        parts = ["# Mixings of images: speed", about_puzzle, tables[0], about_steps, tables[1], machine]
        text = "\n\n".join(part if isinstance(part, str) else "\n".join(part) for part in parts) + "\n"
        write_atomically(RESULTS / "benchmarks" / "mixing.md", text)
        print(text)


def _row(loop: float, batch: float) -> list[str]:
    return [f"{loop * 1e3:.0f}", f"{batch * 1e3:.0f}", f"{loop / batch:.1f}x"]


if __name__ == "__main__":
    main()
