"""What `CMIXUP_KERNELS=intel` gains on an AMD machine: steps in two processes in turn, one as it starts.

Example: python -m scripts.bench kernels
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from cmixup.batch import Batch
from cmixup.errors import InputError
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.model_stack import ModelStack
from cmixup.pairing.label import LabelDistance
from models.fcn3 import FCN3
from models.lstnet import LSTNet
from scripts.bench.clock import CPU, SHORT, Work, measured_seconds, put_page
from scripts.config.arguments import Args
from scripts.driver.workers import Worker
from scripts.machine.kernels import asking_kernels, check_kernels
from scripts.records.tables import markdown_rows

KEYS = SHORT
CASES = {"FCN3, batch 16": (10, 50), "LSTNet, batch 128": (1, 4)}  # models in a stack, steps
REPEATS = 30
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int, str]] = {
    "FCN3, batch 16": (lambda: FCN3((5,), 1), (16, 5), 1, "block1"),
    "LSTNet, batch 128": (lambda: LSTNet((168, 8), 8), (128, 168, 8), 8, "conv"),
}


def step_of(name: str, size: int) -> Work:
    """Return a hidden C-Mixup step of a stack of networks."""
    network, shape, width, layer = NETWORKS[name]
    stack = ModelStack([network() for _ in range(size)], CPU)
    method = Mix(LabelDistance(0.3), Beta(2.0), layer)
    method.layers = (layer,)
    lead = (size,) if size > 1 else ()
    x, y, lam = torch.rand(*lead, *shape), torch.rand(*lead, shape[0], width), torch.rand(*lead, shape[0])
    domain = torch.zeros(*lead, shape[0], dtype=torch.int64)
    batch = Batch(x, y, domain, Batch(x.flip(-1), y, domain), {"lam": lam})
    return partial(method.step, stack, batch)


def measure_step(task: tuple[str, int, int], tell: Callable[[Any], None]) -> None:
    """Tell the seconds of a step of a stack; in a worker."""
    name, size, steps = task
    torch.set_num_threads(1)
    check_kernels()
    step = step_of(name, size)
    step()
    tell(measured_seconds(lambda: [step() for _ in range(steps)]) / steps)


def run(given: Args) -> None:
    """Measure a step of each network with this machine's kernels and with those of Intel.

    Raises:
        InputError: those of Intel cannot be had here.
    """
    short, workers, body = given.switch("short"), dict[str, Worker](), list[list[str]]()
    for word in ("", "intel"):
        with asking_kernels(word):
            workers[word] = Worker(multiprocessing.get_context("spawn"), measure_step)
    for name, (size, steps) in CASES.items():
        taken: dict[str, list[float]] = {word: [] for word in workers}
        for word in [*workers] * (1 if short else REPEATS):
            workers[word].give((name, size, 1 if short else steps))
            ended, told = workers[word].hear()
            if ended:  # before it has measured
                raise InputError(str(told))
            workers[word].hear()
            taken[word].append(told)
        own, intel = (min(each) for each in taken.values())
        body.append([f"{name}, stack of {size}", f"{1e3 * own:.2f}", f"{1e3 * intel:.2f}", f"{own / intel:.2f}x"])
    protocol = (
        f"A hidden C-Mixup step, process milliseconds on one thread, the fastest of {REPEATS} repeats in turn, in two "
        "processes: one as it starts, one with `CMIXUP_KERNELS=intel`. `make bench-kernels` measures them anew."
    )
    table = markdown_rows(["step", "as it starts, ms", "CMIXUP_KERNELS=intel, ms", "speed-up"], body)
    put_page(given, "kernels", "Kernels of products", [protocol, table])
