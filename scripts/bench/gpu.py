"""What a GPU gains beside the CPU.

Rows: a hidden C-Mixup step of FCN3 and LSTNet as stacks, plain and compiled; RCF-MNIST's ResNet-18 in images a second
with float32, TF32 and bf16; partners drawn on the device. Wall seconds, the fastest of three repeats, after warming up.
The page is written only where there is a GPU.

Example: python -m scripts.bench gpu short=1
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import nn

from cmixup import PartnerSampler
from cmixup.batch import Batch
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.model_stack import ModelStack
from cmixup.pairing.label import LabelDistance
from models.fcn3 import FCN3
from models.lstnet import LSTNet
from models.resnet import ResNet
from scripts.bench.clock import CPU, SHORT, Work, put, seconds
from scripts.driver.provenance import device_name
from scripts.driver.words import Words
from scripts.records.tables import markdown_rows

KEYS = SHORT
Row = tuple[str, str, str, str]  # what, how, device, how fast
REPEATS, STEPS = 3, 20
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], int, str]] = {
    "FCN3, batch 16": (lambda: FCN3((5,), 1), (16, 5), 1, "block1"),
    "LSTNet, batch 128": (lambda: LSTNet((168, 8), 8), (128, 168, 8), 8, "conv"),
}


def fastest(work: Work, device: torch.device, steps: int) -> float:
    """Return the wall seconds of one of `steps` calls, the fastest of some repeats."""
    seconds(work, device)
    repeats = REPEATS if steps > 1 else 1

    def several() -> None:
        for _ in range(steps):
            work()

    return min(seconds(several, device, time.perf_counter) for _ in range(repeats)) / steps


def step_of(name: str, size: int, device: torch.device, how: str = "plain") -> Work:
    """Return a hidden C-Mixup step of a stack of networks."""
    network, shape, width, layer = NETWORKS[name]
    stack = ModelStack([network() for _ in range(size)], device)
    method = Mix(LabelDistance(0.3), Beta(2.0), layer)
    method.layers = (layer,)
    lead = (size,) if size > 1 else ()
    x, y = torch.rand(*lead, *shape, device=device), torch.rand(*lead, shape[0], width, device=device)
    lam = torch.rand(*lead, shape[0], device=device)
    domain = torch.zeros(*lead, shape[0], dtype=torch.int64, device=device)
    batch = Batch(x, y, domain, Batch(x.flip(-1), y, domain), {"lam": lam})
    if how == "compiled":
        stack.model.compile()
    return partial(method.step, stack, batch)


def steps_of(device: torch.device, *, short: bool) -> Iterator[Row]:
    """Measure a hidden C-Mixup step of small networks as stacks."""
    for name in NETWORKS:
        for size in (1, 3) if short else (1, 10, 100):
            for how in ("plain", "compiled") if device.type == "cuda" else ("plain",):
                taken = fastest(step_of(name, size, device, how), device, 2 if short else STEPS)
                yield f"{name}, stack of {size}", how, device.type, f"{1e6 * taken / size:.0f} us a step and model"


def images(device: torch.device, *, short: bool) -> Iterator[Row]:
    """Measure ResNet-18 on RCF-MNIST's images, forward, backward and step."""
    size, width = (16, 4) if short else (64, 64)
    stack = ModelStack([ResNet((3, 28, 28), 1, 18, width=width)], device)
    x, y = torch.rand(size, 3, 28, 28, device=device), torch.rand(size, 1, device=device)

    def step(half: bool) -> None:
        stack.optimizer.zero_grad()
        with torch.autocast(device.type, torch.bfloat16, enabled=half):
            prediction = stack.model(x)
        (prediction.float() - y).square().mean().backward()
        stack.optimizer.step()

    for how in ("float32", "TF32", "bf16"):
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = how == "TF32"
        taken = fastest(partial(step, how == "bf16"), device, 1 if short else STEPS)
        yield f"RCF-MNIST, ResNet-18, batch {size}", how, device.type, f"{size / taken:.0f} images/s"
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = True, False


def sampling(device: torch.device, *, short: bool) -> Iterator[Row]:
    """Measure an epoch of partners of labels on the device."""
    for n in (10**4,) if short else (10**5, 10**6, 10**7, 10**8) if device.type == "cuda" else (10**5, 10**6, 10**7):
        labels = torch.as_tensor(np.random.default_rng(0).normal(size=n), device=device)
        sampler, rng = PartnerSampler(labels, 0.1), np.random.default_rng(1)
        taken = fastest(partial(sampler.epoch, rng), device, 1)
        yield f"partners of {n:,} labels", sampler.method, device.type, f"{1e9 * taken / n:.2f} ns a partner"


def run(given: Words) -> None:
    """Measure every row on the GPU, where there is one, and on the CPU."""
    short, rows = given.switch("short"), []
    devices = [*([torch.device("cuda")] if torch.cuda.is_available() else []), torch.device("cpu")]
    for device in devices:
        parts = (steps_of, images, sampling)
        for row in chain.from_iterable(part(device, short=short) for part in parts):
            print(" | ".join(row), flush=True)
            rows.append(list(row))
    if short or len(devices) == 1:
        print("nothing is written: " + ("a short try" if short else "no GPU is here"))
        return
    about = f"Wall time, the fastest of {REPEATS} repeats; beside {device_name(CPU)}. `make bench-gpu`."
    put(given, "gpu", "On a GPU", [about, markdown_rows(["what", "how", "device", "speed"], rows)], devices[0])
