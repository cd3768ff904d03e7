"""Calls of everything in `cmixup.__all__` with hostile arguments: one `InputError` line, or a right result."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch

import cmixup
from cmixup.errors import shown
from tests.robustness.attempts import judged, run_attempts, seeded
from tests.robustness.base import Trial
from tests.robustness.calls_mixing import call_at, call_beta, call_cmixup, call_mix, call_pairs, call_shown, call_space
from tests.robustness.calls_sampling import call_batch_sampler, call_diagnose, call_fraction, call_sampler
from tests.robustness.checks import Wrong
from tests.robustness.hostile import Draws
from tests.robustness.saved_runs import load_run_call

TARGETS: dict[str, Callable[[Draws], None]] = {
    "BatchPartnerSampler": call_batch_sampler,
    "Beta": call_beta,
    "CMixup": call_cmixup,
    "InputError": call_shown,
    "LabelSpace": call_space,
    "PairBatchSampler": call_pairs,
    "PairDataset": call_pairs,
    "PartnerSampler": call_sampler,
    "bandwidth_for_fraction": call_fraction,
    "diagnose": call_diagnose,
    "load_run": load_run_call,
    "mix": call_mix,
    "mixing_at": call_at,
}
SHARES = {
    "PartnerSampler": 8,
    "mix": 3,
    "CMixup": 3,
    "BatchPartnerSampler": 3,
    "diagnose": 2,
    "bandwidth_for_fraction": 2,
}


def attempt(number: int, seed: int, targets: Sequence[str]) -> str:
    """Make one call; return what was wrong with it, or an empty text."""
    rng, rnd = seeded(seed, number)
    d, name = Draws(rng, rnd), rnd.choice(targets)
    torch.manual_seed(number)
    wrong = ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            TARGETS[name](d)
    except Wrong as error:
        wrong = f"wrong answer: {error}"
    except Exception as error:
        wrong = judged(error)
        if not wrong and not d.hostile:
            wrong = f"refused what is right: {error}"
    given = ", ".join(f"{key}={shown(value)}" for key, value in d.log.items())
    return f"call {number} of seed {seed}: {name}: {wrong}; {given}" if wrong else ""


def run(count: int, seed: int, folder: Path) -> Trial:
    """Make `count` calls."""
    torch.set_num_threads(1)
    targets = [name for name in cmixup.__all__ for _ in range(SHARES.get(name, 1))]
    what = "calls of the public API with hostile arguments: one line of InputError, or what the definition gives"
    return run_attempts("fuzz_api", what, partial(attempt, seed=seed, targets=targets), count, folder)
