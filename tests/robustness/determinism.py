"""The same run again, under everything that must not change it; and alone instead of in a stack, which may."""

import contextlib
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from scripts.config.compose import compose_train
from scripts.driver.execute import execute_job
from scripts.driver.job import plan_job
from scripts.driver.runs import HISTORY, REPORT
from tests.robustness.attempts import run_attempts
from tests.robustness.base import Trial

#: One of each kind of training: in memory, one seed after the other, on tasks, hidden layers, domains, a search.
SCENES = {
    "no2 cmixup": ("train.epochs=4",),
    "exchange_rate cmixup": ("debug=tiny",),
    "pascal1d maml": ("debug=tiny",),
    "no2 manifold_mixup": ("train.epochs=4",),
    "crime group_dro": ("debug=tiny",),
    "no2 mixrl": ("debug=tiny",),
}
SEEDS = 2
WEIGHTS = "checkpoint.pt"
#: Whose digits depend on the number of threads, since oneDNN sums a convolution's weight gradient thread by thread.
CONVOLUTIONS = ("pascal1d maml",)
#: What says how a run was made and not what it gave.
HOW = ("seconds", "started", "stack_seeds", "run", "git", "threads", "host", "packages", "python")
HANGS = 400.0  # seconds


def words(scene: str, seed: int, out: Path, *more: str) -> list[str]:
    """Return the command line of a scene."""
    dataset, method = scene.split()
    last = seed + SEEDS - 1
    given = [
        f"dataset={dataset}",
        f"method={method}",
        "dataset.synthetic=true",
        "logger=none",
        "checkpoint_every=0",
        *SCENES[scene],
        f"seeds={seed}..{last}",
        f"out={out}",
        *more,
    ]
    return list({word.partition("=")[0]: word for word in given}.values())


def here(line: list[str]) -> None:
    """Train in this process."""
    with contextlib.redirect_stderr(io.StringIO()):
        execute_job(plan_job(compose_train(line)))
    torch.set_num_threads(1)


def elsewhere(hash_seed: str, line: list[str]) -> None:
    """Train in a process of its own, where Python hashes texts otherwise."""
    given = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-m", "scripts.train", *line], env=given, check=True, capture_output=True)


def outcome(out: Path, seed: int) -> dict[str, Any]:
    """Return what a run gave: its report without how it was made, the bytes of its history, its weights."""
    (folder,) = {path.parent for path in out.glob(f"runs/**/seed={seed}/{REPORT}")}
    report = {key: value for key, value in json.loads((folder / REPORT).read_text()).items() if key not in HOW}
    config = report.pop("config", {})
    for key in ("threads", "checkpoint_every", "out", "seeds"):
        config.pop(key, None)
    weights = torch.load(folder / WEIGHTS, weights_only=True)
    return {
        "report": json.dumps(report, sort_keys=True),
        "config": json.dumps(config, sort_keys=True),
        "history": (folder / HISTORY).read_bytes(),
        "weights": b"".join(weights[name].contiguous().numpy().tobytes() for name in sorted(weights)),
    }


#: How a run is made again, by what must not matter.
VARIANTS: dict[str, tuple[tuple[str, ...], Callable[[list[str]], None]]] = {
    "again": ((), here),
    "2 threads": (("threads=2",), here),
    "hash seed 1": ((), partial(elsewhere, "1")),
    "checkpoints": (("checkpoint_every=1",), here),
    "order of seeds": (("order",), here),
    "hash seed random": ((), partial(elsewhere, "random")),
    "alone": (("alone",), here),
}


def attempt(number: int, seed: int, folder: Path) -> str:
    """Make a run twice and compare; return where they differ, or an empty text."""
    scene = list(SCENES)[number % len(SCENES)]
    variant = list(VARIANTS)[number // len(SCENES) % len(VARIANTS)]
    seed += SEEDS * (number // (len(SCENES) * len(VARIANTS)))
    first, other = folder / f"{scene}-{seed}".replace(" ", "-"), folder / f"{number}"
    if not first.exists():
        here(words(scene, seed, first))
    more, train = VARIANTS[variant]
    if variant == "order of seeds":
        more = (f"seeds=[{','.join(str(k) for k in reversed(range(seed, seed + SEEDS)))}]",)
    elif variant == "alone":
        more = (f"seeds=[{seed}]",)
    train(words(scene, seed, other, *more))
    if variant == "alone" or (variant == "2 threads" and scene in CONVOLUTIONS):
        (folder / f"{variant}-{number}").write_text(f"{difference(first, other, seed)!r} {scene}")
        return ""
    for each in range(seed, seed + SEEDS):
        one, two = outcome(first, each), outcome(other, each)
        if unlike := [name for name in one if one[name] != two[name]]:
            return f"run {number} of seed {seed}: {scene}, {variant}: {', '.join(unlike)} differ"
    return ""


def difference(first: Path, other: Path, seed: int) -> float:
    """Return the largest difference of two runs' test scores, relative to the score."""
    one, two = (json.loads(outcome(out, seed)["report"])["scores"]["test"] for out in (first, other))
    return max(abs(one[name] - two[name]) / max(abs(one[name]), 1e-12) for name in one)


def run(count: int, seed: int, folder: Path) -> Trial:
    """Make `count` runs again; 42 are every scene with every variant."""
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    what = (
        "the same run again, with 2 threads, other hash seeds, another order of seeds, checkpoints: identical report, "
        "history and weights"
    )
    tried = run_attempts("determinism", what, partial(attempt, seed=seed, folder=folder), count, folder, hangs=HANGS)
    measured = {variant: differences(folder, variant) for variant in ("alone", "2 threads")}
    notes = [f"{sum(len(found) for found in measured.values())} of these runs are measured and promise nothing"]
    if found := measured["alone"]:
        notes.append(
            f"A seed alone instead of in a stack of {SEEDS}: its test scores differ by {found[-1][0]:.2g} of "
            f"themselves at most ({found[-1][1]}), since batched kernels round otherwise for another number of models"
        )
    if found := measured["2 threads"]:
        notes.append(
            f"With 2 threads convolutions differ by {found[-1][0]:.2g} at most ({found[-1][1]}), since oneDNN sums the "
            "gradient of their weights thread by thread; published runs have one thread"
        )
    return replace(tried, notes=". ".join(notes))


def differences(folder: Path, variant: str) -> list[tuple[float, str]]:
    """Return the differences of a variant's runs with their scenes, the largest last."""
    found = [path.read_text().partition(" ") for path in folder.glob(f"{variant}-*")]
    return sorted((float(value), scene) for value, _, scene in found)
