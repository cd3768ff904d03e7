"""Presets hold what the paper prints and its authors released, and those of methods are compositions in Python."""

from collections.abc import Callable
from typing import Any

import pytest

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.blocks import Blocks
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.second_batch import SecondBatch
from cmixup.pairing.uniform import Uniform
from scripts.records import names
from scripts.records.csv_rows import read_csv
from scripts.records.experiment import RESULTS
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


#: Keys of results/paper/hyperparameters.csv, and where a configuration has them.
KEYS = {
    "lr": "train.lr", "batch_size": "train.batch_size", "max_epochs": "train.epochs", "optimizer": "train.optimizer",
    "weight_decay": "train.weight_decay", "alpha_beta": "method.alpha", "bandwidth_sigma": "method.bandwidth",
    "mixup_type": "method.layer", "window": "dataset.window", "hidCNN": "model.channels", "hidRNN": "model.hidden",
    "frames": "dataset.frames", "period": "dataset.period", "pad": "dataset.pad", "fc_bias_init": "model.bias",
    "spurious_ratio": "dataset.ratio", "inner_lr": "method.inner_lr", "inner_updates": "method.inner_steps",
}  # fmt: skip
WORDS = {"ManiMix": "hidden", "mixup": "input", "CutMix": "input", "Adam": "adam", "SGD": "sgd"}


def printed() -> dict[tuple[str, str], dict[str, str]]:
    """What the paper and the release say, by our dataset and preset; of DTI's two released bandwidths README's."""
    values: dict[tuple[str, str], dict[str, str]] = {}
    for r in read_csv(RESULTS / "paper" / "hyperparameters.csv"):
        preset, _, place = r["source"].partition(" ")
        if r["key"] in KEYS and preset in ("paper", "released") and place != "src/main.sh":
            cell = values.setdefault((names.spelling("dataset", r["dataset"]), preset), {})
            cell[KEYS[r["key"]]] = r["value"].split()[0]
    return values


@pytest.mark.parametrize(("cell", "values"), printed().items(), ids=str)
def test_presets_hold_the_published_values(cell: tuple[str, str], values: dict[str, str]) -> None:
    dataset, preset = cell
    method = "cmixup_meta" if "method.inner_lr" in values else "cmixup"
    job = job_of(f"dataset={dataset}", f"method={method}", f"preset={preset}")
    for key, value in values.items():
        group, name = key.split(".")
        ours = job.config[group][name]
        assert ours == (float(value) if isinstance(ours, (int, float)) else WORDS[value]), key
    if method == "cmixup":
        by_example = preset == "paper" or dataset == "poverty_map"
        assert job.config["method"]["lam_per"] == ("example" if by_example else "batch")
        assert job.settings.drop_last == (preset == "released")


FORECASTS = {"exchange_rate": (50, 12), "electricity": (100, 24), "electricity_fragment": (100, 24)}


@pytest.mark.parametrize("dataset", FORECASTS)
@pytest.mark.parametrize(("preset", "variant"), [("paper", "attention"), ("released", "skip"), ("default", "skip")])
def test_the_forecaster_of_a_preset(dataset: str, preset: str, variant: str) -> None:
    job = job_of(f"dataset={dataset}", "method=cmixup", f"preset={preset}")
    width, horizon = FORECASTS[dataset]
    model = {"name": "lstnet", "channels": width, "hidden": width, "variant": variant, "score": "dot"}
    assert {key: job.config["model"][key] for key in model} == model
    assert (job.dataset.window, job.dataset.horizon) == (168, horizon)
    assert job.settings.eval_batch_size == 256  # windows are large


@pytest.mark.parametrize("preset", PRESETS)
def test_what_the_table_of_the_paper_leaves_out(preset: str) -> None:
    """Of the paper Echo has Adam, of the authors' code SGD."""
    echo, poverty_map, dti = (
        job_of(f"dataset={name}", "method=cmixup", f"preset={preset}") for name in ("echo", "poverty_map", "dti")
    )
    assert echo.settings.optimizer == ("adam" if preset == "paper" else "sgd")
    assert (echo.settings.lr_decay, echo.settings.lr_decay_every, echo.settings.eval_batch_size) == (0.1, 15, 10)
    assert echo.dataset.spec.size == 112
    assert poverty_map.config["model"]["depth"] == (50 if preset == "paper" else 18)
    assert (dti.dataset.subsample, dti.dataset.whole_test) == (preset != "paper", preset == "paper")
    assert dti.config["model"]["drug_length"] == 100
