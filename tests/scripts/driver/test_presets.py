"""The presets of methods in Python and those in the configuration are the same compositions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cmixup.methods.cmixup import cmixup
from cmixup.methods.cmixup_batch import cmixup_batch
from cmixup.methods.k_mixup import k_mixup
from cmixup.methods.manifold_mixup import manifold_mixup
from cmixup.methods.mix import Mix
from cmixup.methods.mixup import mixup
from scripts.driver.config import compose_train
from scripts.driver.job import plan

PYTHON: dict[str, Callable[[dict[str, Any]], Mix]] = {
    "mixup": lambda c: mixup(c["alpha"], c["lam_per"]),
    "manifold_mixup": lambda c: manifold_mixup(c["alpha"], c["lam_per"]),
    "cmixup": lambda c: cmixup(c["bandwidth"], c["alpha"], c["lam_per"], c["layer"]),
    "cmixup_batch": lambda c: cmixup_batch(c["bandwidth"], c["alpha"], c["lam_per"], c["layer"]),
    "k_mixup": lambda c: k_mixup(c["alpha"], c["lam_per"]),
}


@pytest.mark.parametrize("preset", ["paper", "released"])
@pytest.mark.parametrize("name", PYTHON)
def test_a_preset_is_one_composition_in_python_and_in_the_configuration(name: str, preset: str) -> None:
    job = plan(compose_train([f"method={name}", f"preset={preset}", "dataset=airfoil"]))
    assert repr(job.make_method()) == repr(
        PYTHON[name](job.config["method"])
    )  # repr prints every part with its options
