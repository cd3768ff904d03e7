"""The vectorised inner loop against a Python loop over tasks.

One training step's gradient of MAML on random views, meta-batch and width of the presets. The loop calls the same code
on one task after another. Between the two stands the vectorised loop with an encoder whose linear layer is applied to
each block of views instead of once to all.

Example: python -m scripts.bench maml device=cuda
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from cmixup.methods.maml import MAML, InnerLoop
from cmixup.seeding import torch_seed
from cmixup.tasks import Episode
from models.conv_maml import VIEWS_PER_BLOCK, ConvMAML, Encoder
from scripts.bench.clock import SHORT, in_turn, put
from scripts.driver.devices import pick_device
from scripts.driver.words import Words
from scripts.records.tables import markdown_rows

KEYS = SHORT | {"device": "auto, cpu or cuda; default auto"}
CASES = {"cpu": (16, 4), "paper": (64, 10)}  # preset: decoder width, tasks a batch
SHOTS, LR, STEPS = 15, 0.01, 5


class Blockwise(Encoder):
    """The encoder with a product of its linear layer for each block of views."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the codes."""
        return torch.cat([self.out(self.maps(part)) for part in torch.split(x, VIEWS_PER_BLOCK)])


def make(width: int, n_tasks: int, device: torch.device) -> tuple[MAML, ConvMAML, Episode, Tensor]:
    """Return method, model, tasks and query labels."""
    with torch_seed(0):
        model = ConvMAML((1, 128, 128), SHOTS, width).to(device)
        support, query = (torch.rand(n_tasks, SHOTS, 1, 128, 128, device=device) for _ in range(2))
        labels, y = (10 * torch.rand(n_tasks, SHOTS, device=device) for _ in range(2))
    return MAML(InnerLoop(LR, STEPS)), model, Episode(support, labels, query), y


def vectorised(method: MAML, model: ConvMAML, x: Episode, y: Tensor) -> float:
    """Return the loss; its gradient is left in the model."""
    model.zero_grad()
    loss = (method.adapted(model, x, STEPS) - y).square().mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach())


def blockwise(method: MAML, model: ConvMAML, x: Episode, y: Tensor) -> float:
    """Do the same with the linear layer block by block."""
    model.encoder.__class__ = Blockwise
    loss = vectorised(method, model, x, y)
    model.encoder.__class__ = Encoder
    return loss


def looped(method: MAML, model: ConvMAML, x: Episode, y: Tensor) -> float:
    """Do the same, task by task."""
    model.zero_grad()
    total = 0.0
    for k in range(len(y)):
        one = Episode(*(part[k : k + 1] for part in x))
        loss = (method.adapted(model, one, STEPS) - y[k : k + 1]).square().mean() / len(y)
        loss.backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach())
    return total


def run(given: Words) -> None:
    """Measure both ways for each preset, and check that they find the same loss."""
    device, short = pick_device(given.get("device", "auto")), given.switch("short")
    repeats, body = 1 if short else 3, []
    for name, (width, n_tasks) in list(CASES.items())[: 1 if short else None]:
        case = make(width, n_tasks, device)
        ways = {way.__name__: partial(way, *case) for way in (looped, blockwise, vectorised)}
        losses = {way: work() for way, work in ways.items()}
        assert max(losses.values()) - min(losses.values()) < 1e-3 * losses["looped"], losses
        taken = [min(each) for each in in_turn(ways, repeats, device).values()]
        seconds = [f"{each:.3f}" for each in taken]
        body.append([f"{name}: width {width}, {n_tasks} tasks", *seconds, f"{taken[0] / taken[-1]:.2f}x"])
    protocol = (
        f"Gradient of one training step, encoder included: {STEPS} second-order inner steps, {SHOTS} support and "
        f"{SHOTS} query views of 128 x 128 a task, float32. Seconds a step "
        f"({'process time, one thread' if device.type == 'cpu' else 'wall time'}), the fastest of {repeats} in turn. "
        "`make bench-maml` measures them anew."
    )
    table = markdown_rows(
        ["preset", "loop over tasks, s", "vectorised, linear layer by blocks, s", "vectorised, s", "speed-up"], body
    )
    put(given, f"maml_{device.type}", f"Inner loop of MAML, {device.type}", [protocol, table], device)
