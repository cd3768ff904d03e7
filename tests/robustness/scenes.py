"""What is killed, raced and crashed: small commands of every kind that writes runs."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.robustness.commands import Command, words

Scene = Callable[[Path], Command]  # a command that works in a folder


def _train(*given: str) -> Scene:
    return lambda out: Command("scripts.train", words(*given, out=out))


def _sweep(out: Path) -> Command:
    given = ("dataset=no2", "method=cmixup", "train.epochs=3", "method.bandwidth=0.1,1", "seed=range(0,2)")
    return Command("scripts.train", ("-m", *words(*given, out=out)))


def _tune(out: Path) -> Command:
    return Command("scripts.tune", ("dataset=no2", "method=erm", "debug=tiny", "jobs=2", f"out={out}"))


def shorten() -> None:
    """Let `scripts.reproduce` train twins for three epochs."""
    cells: Any = sys.modules["scripts.plan.cells"]
    full = cells.asked_cells
    short = ["dataset.synthetic=true", "train.epochs=3"]
    cells.asked_cells = lambda *given: [replace(cell, shared=[*cell.shared, *short]) for cell in full(*given)]
    cells.estimate_minutes = lambda *_: 0.0
    no2: Any = sys.modules["datasets.no2"]
    no2.NO2.fetch = lambda _: None


def _reproduce(out: Path) -> Command:
    given = ("table1", "seeds=2", "datasets=no2", "methods=erm,mixup", f"out={out}")
    return Command("scripts.reproduce", given, shorten)


def to_publish(out: Path) -> Command:
    """Return what trains the runs that are published."""
    given = ("experiment=table1", "dataset=no2", "method=mixup", "train.epochs=2", "seeds=0..2")
    return Command("scripts.train", words(*given, out=out))


def publishing(runs: Path) -> Scene:
    """Return what publishes the runs in `runs` to a folder."""

    def make(out: Path) -> Command:
        def point() -> None:
            experiment: Any = sys.modules["scripts.records.experiment"]
            experiment.RESULTS = out
            provenance: Any = sys.modules["scripts.driver.provenance"]
            provenance.code_at = lambda *_: ""  # their commit is made up, too

        return Command("scripts.publish", (f"out={runs}",), point)

    return make


def _few_tasks() -> None:
    """Give the twin of images a handful of tasks."""
    tasks: Any = sys.modules["datasets.common.pose.tasks"]
    tasks.SYNTHETIC_TASKS = (4, 2, 2)


MAML = ("dataset=pascal1d", "method=maml", "model.width=2", "seeds=0..1", "train.epochs=2", "train.batch_size=2")
STACK = ("dataset=no2", "method=cmixup", "seeds=0..2")
#: By name; `publish` is made by `publishing`.
SCENES: dict[str, Scene] = {
    "single": _train("dataset=no2", "method=cmixup", "seed=3", "train.epochs=8", "checkpoint_every=1"),
    "stacked": _train(*STACK, "train.epochs=8", "checkpoint_every=2"),
    "unsaved-stack": _train(*STACK, "train.epochs=4"),
    "MixRL": _train("dataset=no2", "method=mixrl", "method.outer=3", "method.n_in=2", "seeds=0..1",
                    "train.epochs=4", "checkpoint_every=1"),
    "MAML": lambda out: Command("scripts.train", words(*MAML, out=out), _few_tasks),
    "LSTNet": _train("dataset=exchange_rate", "method=mixup", "seeds=0..1", "train.epochs=2", "model.channels=3",
                     "model.hidden=3", "checkpoint_every=1"),
    "tune": _tune,
    "sweep": _sweep,
    "reproduce": _reproduce,
}  # fmt: skip
