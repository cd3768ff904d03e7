"""Presets hold the published values, and those of methods are the same compositions in Python."""

from collections.abc import Callable
from typing import Any

import pytest

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.blocks import Blocks
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.second_batch import SecondBatch
from cmixup.pairing.uniform import Uniform
from cmixup.training.settings import TrainSettings
from scripts.config.compose import compose_train
from scripts.config.parts import resolve_config
from tests.scripts.cover import PRESETS
from tests.scripts.jobs import job_of

PYTHON: dict[str, Callable[[dict[str, Any]], Mix]] = {
    "mixup": lambda c: Mix(Uniform(), Beta(c["alpha"], c["lam_per"])),
    "manifold_mixup": lambda c: Mix(Uniform(), Beta(c["alpha"], c["lam_per"]), "hidden"),
    "cmixup": lambda c: Mix(LabelDistance(c["bandwidth"]), Beta(c["alpha"], c["lam_per"]), c["layer"]),
    "cmixup_batch": lambda c: Mix(
        SecondBatch(c["bandwidth"], c["candidates"]), Beta(c["alpha"], c["lam_per"]), c["layer"]
    ),
    "k_mixup": lambda c: Mix(Blocks(4), Beta(c["alpha"], c["lam_per"])),
}


@pytest.mark.parametrize("preset", ["paper", "released"])
@pytest.mark.parametrize("name", PYTHON)
def test_a_preset_is_one_composition_in_python_and_in_the_configuration(name: str, preset: str) -> None:
    job = job_of(f"method={name}", f"preset={preset}", "dataset=airfoil")
    assert repr(job.make_method()) == repr(
        PYTHON[name](job.config["method"])
    )  # repr prints every part with its options


@pytest.mark.parametrize(
    ("dataset", "preset", "expected"),
    [
        ("airfoil", "paper", {"bandwidth": 1.75, "alpha": 0.5, "lam_per": "example", "layer": "hidden"}),
        ("airfoil", "released", {"bandwidth": 1.75, "alpha": 2.0, "lam_per": "batch", "layer": "hidden"}),
        ("no2", "paper", {"bandwidth": 1.2, "alpha": 2.0, "lam_per": "example", "layer": "input"}),
        ("no2", "released", {"bandwidth": 1.2, "alpha": 2.0, "lam_per": "batch", "layer": "input"}),
        ("exchange_rate", "paper", {"bandwidth": 0.05, "alpha": 1.5, "lam_per": "example", "layer": "hidden"}),
        ("exchange_rate", "released", {"bandwidth": 0.05, "alpha": 1.5, "lam_per": "batch", "layer": "hidden"}),
        ("electricity", "paper", {"bandwidth": 0.5, "alpha": 2.0, "lam_per": "example", "layer": "input"}),
        ("electricity", "released", {"bandwidth": 0.5, "alpha": 2.0, "lam_per": "batch", "layer": "input"}),
        ("echo", "paper", {"bandwidth": 100.0, "alpha": 2.0, "lam_per": "example", "layer": "input"}),
        ("echo", "released", {"bandwidth": 50.0, "alpha": 0.2, "lam_per": "batch", "layer": "input"}),
        ("echo", "default", {"bandwidth": 5.0, "alpha": 2.0, "lam_per": "example", "layer": "input"}),
        ("rcf_mnist", "paper", {"bandwidth": 0.2, "alpha": 2.0, "lam_per": "example", "layer": "hidden"}),
        ("rcf_mnist", "released", {"bandwidth": 0.2, "alpha": 2.0, "lam_per": "batch", "layer": "hidden"}),
        ("poverty_map", "paper", {"bandwidth": 0.5, "alpha": 0.5, "lam_per": "example", "layer": "input"}),
        ("poverty_map", "released", {"bandwidth": 0.5, "alpha": 2.0, "lam_per": "example", "layer": "input"}),
        ("dti", "paper", {"bandwidth": 21.0, "alpha": 2.0, "lam_per": "example", "layer": "hidden"}),
        ("dti", "released", {"bandwidth": 20.0, "alpha": 2.0, "lam_per": "batch", "layer": "hidden"}),
    ],
)
def test_presets_hold_the_published_values(dataset: str, preset: str, expected: dict[str, Any]) -> None:
    method = resolve_config(compose_train([f"dataset={dataset}", "method=cmixup", f"preset={preset}"]))["method"]
    assert {key: method[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("dataset", "width", "horizon"),
    [("exchange_rate", 50, 12), ("electricity", 100, 24), ("electricity_fragment", 100, 24)],
)
@pytest.mark.parametrize(("preset", "variant"), [("paper", "attention"), ("released", "skip"), ("default", "skip")])
def test_the_forecaster_of_a_preset(dataset: str, width: int, horizon: int, preset: str, variant: str) -> None:
    job = job_of(f"dataset={dataset}", "method=cmixup", f"preset={preset}")
    model = {"name": "lstnet", "channels": width, "hidden": width, "variant": variant, "score": "dot"}
    assert {key: job.config["model"][key] for key in model} == model
    assert (job.dataset.window, job.dataset.horizon) == (168, horizon)
    assert (job.settings.epochs, job.settings.batch_size, job.settings.lr) == (100, 128, 0.001)
    assert job.settings.eval_batch_size == 256  # windows are large


@pytest.mark.parametrize(("preset", "optimizer"), [("paper", "adam"), ("released", "sgd"), ("default", "sgd")])
def test_how_echo_is_trained(preset: str, optimizer: str) -> None:
    """The paper says Adam, the authors' code kept SGD."""
    job = job_of("dataset=echo", "method=cmixup", f"preset={preset}")
    expected = TrainSettings(
        epochs=20, batch_size=10, lr=1e-4, optimizer=optimizer, weight_decay=1e-4, drop_last=preset == "released",
        eval_batch_size=10, lr_decay=0.1, lr_decay_every=15,
    )  # fmt: skip
    assert job.settings == expected
    assert job.config["model"] == {
        "name": "r2plus1d_18", "_target_": "models.r2plus1d_18.R2Plus1D18", "weights": None, "bias": 55.6, "width": 64,
    }  # fmt: skip
    form = job.dataset.spec
    assert (form.frames, form.period, form.size, form.pad, job.dataset.original) == (32, 2, 112, 12, True)


@pytest.mark.parametrize(
    ("dataset", "epochs", "batch_size", "lr"),
    [("rcf_mnist", 30, 64, 7e-5), ("poverty_map", 50, 64, 1e-3), ("dti", 20, 64, 5e-5)],
)
@pytest.mark.parametrize("preset", PRESETS)
def test_how_images_and_pairs_are_trained(dataset: str, epochs: int, batch_size: int, lr: float, preset: str) -> None:
    """results/paper/hyperparameters.csv, tab:hyperameter_ood."""
    job = job_of(f"dataset={dataset}", "method=cmixup", f"preset={preset}")
    train = job.settings
    assert (train.epochs, train.batch_size, train.lr, train.weight_decay) == (epochs, batch_size, lr, 0.0)
    assert (train.optimizer, train.drop_last) == ("adam", preset == "released")
    if dataset == "poverty_map":
        assert job.config["model"]["depth"] == (50 if preset == "paper" else 18)
    if dataset == "dti":
        assert (job.dataset.subsample, job.dataset.whole_test) == (preset != "paper", preset == "paper")
        assert job.config["model"]["drug_length"] == 100
