"""The vectorised inner loop against a Python loop over tasks: `python -m scripts.bench.maml [--device cuda]`.

One training step's gradient of MAML on random views, meta-batch and width of the presets. The loop runs the same code
on one task after another. Times are process time on one thread on the CPU, wall time on a GPU; the fastest of several
repeats, the ways taken in turn.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable

import torch
from torch import Tensor

from cmixup.files import write_atomically
from cmixup.methods.maml import MAML, InnerLoop
from cmixup.seeding import torch_seed
from cmixup.tasks import Episode
from models.conv_maml import ConvMAML
from scripts.driver.cli import user_errors
from scripts.driver.devices import pick_device
from scripts.driver.provenance import environment
from scripts.records.experiment import RESULTS
from scripts.records.tables import markdown_rows

CASES = {"cpu": (16, 4), "paper": (64, 10)}  # preset: decoder width, tasks a batch
SHOTS, LR, STEPS = 15, 0.01, 5


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


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """Return how long `work` takes: process time on the CPU, wall time elsewhere."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    start = clock()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return clock() - start


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.bench.maml", description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--cases", default=",".join(CASES))
    given = parser.parse_args()
    torch.set_num_threads(1)
    with user_errors():
        device = pick_device(given.device)
        body = []
        for name in given.cases.split(","):
            width, n_tasks = CASES[name]
            parts = make(width, n_tasks, device)
            taken: dict[str, list[float]] = {"loop": [], "vectorised": []}
            losses: dict[str, float] = {}
            for repeat in range(given.repeats + 1):  # the first one warms up
                for way, run in (("loop", looped), ("vectorised", vectorised)):
                    spent = seconds(lambda run=run, parts=parts: run(*parts), device)  # type: ignore[misc]
                    losses[way] = run(*parts) if repeat == 0 else losses[way]
                    if repeat:
                        taken[way].append(spent)
            assert abs(losses["loop"] - losses["vectorised"]) < 1e-3 * losses["loop"], losses
            loop, ours = min(taken["loop"]), min(taken["vectorised"])
            case = f"{name}: width {width}, {n_tasks} tasks"
            body.append([case, f"{loop:.3f}", f"{ours:.3f}", f"{loop / ours:.2f}x"])
            print(*body[-1], flush=True)
        where = environment(device)
        versions = ", ".join(f"{name} {version}" for name, version in where["versions"].items())
        clock = "process time, one thread" if device.type == "cpu" else "wall time"
        protocol = (
            f"Gradient of one training step, encoder included: {STEPS} second-order inner steps, {SHOTS} support and "
            f"{SHOTS} query views of 128 x 128 a task, float32. Seconds a step ({clock}), the fastest of "
            f"{given.repeats} in turn. `make bench-maml` measures them anew."
        )
        rows = markdown_rows(["preset", "loop over tasks, s", "vectorised, s", "speed-up"], body)
        machine = f"Machine: {where['device']}, {platform.system()} {platform.machine()}; {versions}."
        text = "\n".join([f"# Inner loop of MAML, {device.type}", "", protocol, "", *rows, "", machine, ""])
        write_atomically(RESULTS / "benchmarks" / f"maml_{device.type}.md", text)
        print(text)


if __name__ == "__main__":
    main()
