"""What a training step of RCF-MNIST's narrow network costs with either layout of images in memory.

Example: python -m scripts.bench images
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

from cmixup.seeding import torch_seed
from cmixup.training.share import draw_epoch
from cmixup.training.stack_training import StackTraining
from scripts.bench.clock import SHORT, in_turn, put
from scripts.driver.compose import compose_train
from scripts.driver.execute import make_run
from scripts.driver.job import plan
from scripts.driver.words import Words
from scripts.records.names import method_title
from scripts.records.tables import markdown_rows

KEYS = SHORT
METHODS = ("erm", "mixup", "cmixup", "cmixup_batch", "puzzlemix", "automix")
LAYOUTS = {"channels first": "false", "channels last": "true"}


def epoch_of(method: str, channels_last: str, steps: int) -> Callable[[], None]:
    """Return what takes `steps` training steps of preset cpu on the twin, whose epoch is one batch."""
    words = ["dataset=rcf_mnist", "preset=cpu", "dataset.synthetic=true", "device=cpu", "logger=none"]
    job = plan(compose_train([*words, f"method={method}", f"model.channels_last={channels_last}"]))
    run = make_run(job, 0)
    run.method.fit(run.data, run.model, run.streams)
    training = StackTraining([run], job.settings, job.device)
    training.method.begin(training)

    def work() -> None:
        with torch_seed(run.streams.training):
            for _ in range(steps):
                order, draws = draw_epoch(run, job.settings)
                training.run_epoch([order], [draws])

    return work


def run(given: Words) -> None:
    """Measure a step of every method with both layouts."""
    steps, repeats = (1, 1) if given.switch("short") else (10, 9)
    cases = list(product(METHODS[: 2 if given.switch("short") else None], LAYOUTS))
    taken = in_turn({f"{m} {layout}": epoch_of(m, LAYOUTS[layout], steps) for m, layout in cases}, repeats)
    fastest = {name: 1e3 * min(seconds) / steps for name, seconds in taken.items()}
    body = []
    for method in dict.fromkeys(m for m, _ in cases):
        before, after = (fastest[f"{method} {layout}"] for layout in LAYOUTS)
        body.append([method_title(method), f"{before:.1f}", f"{after:.1f}", f"{before / after:.2f}x"])
    protocol = (
        "A training step of RCF-MNIST, preset cpu: a ResNet-18 with a quarter of the channels, batch 64; drawing and "
        f"gathering included. Process milliseconds on one thread, the fastest of {repeats} times {steps} steps, in "
        "turn. Preset cpu trains with channels last. `make bench-images` measures them anew."
    )
    put(given, "images", "A step on images", [protocol, markdown_rows(["method", *LAYOUTS, "speed-up"], body)])
