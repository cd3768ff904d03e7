from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from hydra.errors import HydraException

from cmixup.errors import InputError
from cmixup.training.settings import TrainSettings
from scripts.driver.config import (
    CONFIG_DIR,
    GROUPS,
    arguments,
    check_type,
    compose_train,
    differences,
    names,
    parse_seeds,
    resolved,
    target,
)
from scripts.driver.job import Job, folder_name, pick_device, plan
from tests.scripts.cover import DATASETS, METHODS, PRESETS, TASKS, combinations, has_domains, needs_domains, presets_of

MODELS = names("model")


def planned(*overrides: str) -> Job:
    return plan(compose_train(list(overrides)))


# ---- every configuration


def test_names_are_the_files() -> None:
    assert {"airfoil", "no2", "diabetes"} <= set(DATASETS)
    assert {"erm", "mixup", "manifold_mixup", "cmixup"} <= set(METHODS)
    assert "fcn3" in MODELS


@pytest.mark.parametrize(
    "path",
    [p for g in GROUPS for p in sorted((CONFIG_DIR / g).glob("*.yaml"))],
    ids=lambda p: f"{p.parent.name}/{p.stem}",
)
def test_the_name_is_the_files_stem_and_the_target_exists(path: Path) -> None:
    node = yaml.safe_load(path.read_text())
    assert node["name"] == path.stem
    assert callable(target(node))


@pytest.mark.parametrize("name", DATASETS)
def test_every_dataset_has_presets_with_the_same_keys_default_among_them(name: str) -> None:
    presets = presets_of(name)
    assert "default" in presets
    every = set(presets_of(TASKS[0] if name in TASKS else "airfoil")["default"]) - {"scaling"}  # videos have none
    assert all(set(values) == set(presets["default"]) >= every for values in presets.values())


@pytest.mark.parametrize(("dataset", "method", "preset"), combinations())
def test_combinations_compose_and_plan(dataset: str, method: str, preset: str, tmp_path: Path) -> None:
    job = planned(f"dataset={dataset}", f"method={method}", f"preset={preset}", f"out={tmp_path}")
    values = presets_of(dataset)[preset]
    for key in ("epochs", "batch_size", "lr", "optimizer", "weight_decay", "drop_last"):
        assert getattr(job.settings, key) == values[key]
    assert job.dataset.name == dataset
    if "scaling" in values:
        assert job.dataset.scaling == values["scaling"]
    fixed = {"lam_per"} if method == "k_metamix" else set()  # one lambda a task, whatever the preset
    for key in (
        {"bandwidth", "alpha", "lam_per", "inner_lr", "inner_steps"} & set(values) & set(job.config["method"]) - fixed
    ):
        assert job.config["method"][key] == values[key]
    assert job.options == {}
    assert job.folder == tmp_path / "runs" / "adhoc" / dataset / job.config["model"]["name"] / method / preset
    assert job.pending == job.seeds == [0]
    assert not (tmp_path / "runs").exists()


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
    method = planned(f"dataset={dataset}", f"preset={preset}").config["method"]
    assert {key: method[key] for key in expected} == expected


@pytest.mark.parametrize(
    ("dataset", "width", "horizon"),
    [("exchange_rate", 50, 12), ("electricity", 100, 24), ("electricity_fragment", 100, 24)],
)
@pytest.mark.parametrize(("preset", "variant"), [("paper", "attention"), ("released", "skip"), ("default", "skip")])
def test_the_forecaster_of_a_preset(dataset: str, width: int, horizon: int, preset: str, variant: str) -> None:
    job = planned(f"dataset={dataset}", f"preset={preset}")
    model = {"name": "lstnet", "channels": width, "hidden": width, "variant": variant, "score": "dot"}
    assert {key: job.config["model"][key] for key in model} == model
    assert (job.dataset.window, job.dataset.horizon) == (168, horizon)
    assert (job.settings.epochs, job.settings.batch_size, job.settings.lr) == (100, 128, 0.001)
    assert job.settings.eval_batch_size == 256  # windows are large
    alias = planned(f"dataset={dataset}", f"preset={preset}", "model=lst_attn")
    assert alias.config["model"] == job.config["model"] | {"name": "lst_attn", "variant": "attention"}


@pytest.mark.parametrize(("preset", "optimizer"), [("paper", "adam"), ("released", "sgd"), ("default", "sgd")])
def test_how_echo_is_trained(preset: str, optimizer: str) -> None:
    """The paper says Adam, the authors' code kept SGD."""
    job = planned("dataset=echo", f"preset={preset}")
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
    job = planned(f"dataset={dataset}", f"preset={preset}")
    found = job.settings
    assert (found.epochs, found.batch_size, found.lr, found.weight_decay) == (epochs, batch_size, lr, 0.0)
    assert (found.optimizer, found.drop_last) == ("adam", preset == "released")
    if dataset == "poverty_map":
        assert job.config["model"]["depth"] == (50 if preset == "paper" else 18)
    if dataset == "dti":
        assert (job.dataset.subsample, job.dataset.whole_test) == (preset != "paper", preset == "paper")
        assert job.config["model"]["drug_length"] == 100


def test_other_datasets_evaluate_in_the_trainers_own_blocks() -> None:
    settings = planned("dataset=airfoil").settings
    assert settings.eval_batch_size == 4096
    assert [settings.lr_at(epoch) for epoch in (1, 100)] == [0.01, 0.01]


# ---- seeds


@pytest.mark.parametrize(
    ("value", "seeds"),
    [
        ("0..9", list(range(10))), ("3..3", [3]), (" 2..4 ", [2, 3, 4]), ([0, 3, 5], [0, 3, 5]), ((7,), [7]),
        ("0,3,5", [0, 3, 5]), ("5,", [5]), (10, list(range(10))), ("3", [0, 1, 2]), (1, [0]), ([0], [0]),
    ],
)  # fmt: skip
def test_seeds(value: Any, seeds: list[int]) -> None:
    assert parse_seeds(value) == seeds


@pytest.mark.parametrize(
    "value",
    ["", "x", "9..0", "0..x", "1..2..3", "0,x", ",", [], [1, 1], "1,1", [-1], -3, "-1..2", 0, "0", 1.5, [1.5], True,
     [True], [None], [[1]], [float("inf")], [float("nan")], {"a": 1}, None],
)  # fmt: skip
def test_bad_seeds_are_refused_with_their_value(value: Any) -> None:
    with pytest.raises(InputError, match="seeds must be a range like"):
        parse_seeds(value)


def test_seeds_override_seed() -> None:
    assert planned("seed=7").seeds == [7]
    assert planned("seed=7", "seeds=[0,3,5]").seeds == [0, 3, 5]
    assert planned("seeds=0..9").seeds == list(range(10))
    assert planned("seeds=4").seeds == [0, 1, 2, 3]


# ---- what is refused, before any work


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("method.bandwith=1", "bandwith"), ("train.epoch=3", "epoch"), ("dataset.scalling=all", "scalling"),
        ("sed=1", "sed"), ("model.width=64", "width"), ("dataset=airfoils", "airfoils"), ("method=cmix", "cmix"),
        ("model=fcn", "fcn"), ("debug=small", "small"),
    ],
)  # fmt: skip
def test_misspelt_keys_and_names_are_refused(override: str, key: str) -> None:
    with pytest.raises(HydraException, match=key):
        compose_train([override])


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("+method.bandwith=1", r"method\.bandwith is not known; method takes pairing, lam, layer, mixing, alpha, band"),
        ("+train.epoch=3", r"train\.epoch is not known"),
        ("+dataset.scalling=all", r"dataset\.scalling is not known"),
        ("+model.width=64", r"model\.width is not known"),
        ("+model.in_shape=[3]", r"model\.in_shape"),
        ("+sed=1", "sed"),
    ],
)  # fmt: skip
def test_keys_added_by_force_are_refused_too(override: str, key: str) -> None:
    with pytest.raises(InputError, match=key):
        planned(override)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("train.epochs=ten", r"train\.epochs must be a whole number, got 'ten'"),
        ("train.epochs=1.5", r"train\.epochs must be a whole number, got 1.5"),
        ("train.epochs=true", r"train\.epochs must be a whole number, got True"),
        ("train.epochs=null", r"train\.epochs must be a whole number, got None"),
        ("train.lr=fast", r"train\.lr must be a number, got 'fast'"),
        ("train.drop_last=1", r"train\.drop_last must be true or false, got 1"),
        ("train.optimizer=3", r"train\.optimizer must be a word, got 3"),
        ("method.bandwidth=wide", r"bandwidth must be a number.*got 'wide'"),
        ("method.bandwidth=[1,2]", r"bandwidth must be a number.*got \[1, 2\]"),
        ("method.alpha=null", r"method\.alpha must be a number, got None"),
        ("method.layer=1", r"method\.layer must be a word, got 1"),
        ("dataset.synthetic=1", r"dataset\.synthetic must be true or false, got 1"),
        ("dataset.scaling=2", r"dataset\.scaling must be a word, got 2"),
        ("seed=x", "seed must be a whole number, got 'x'"),
        ("seed=1.0", r"seed must be a whole number, got 1.0"),
        ("threads=two", "threads must be a whole number, got 'two'"),
        ("rerun=1", "rerun must be true or false, got 1"),
        ("preset=3", "preset must be one of paper, released, default, tuned for dataset airfoil, got 3"),
    ],
)
def test_values_of_another_type_are_refused(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        planned(override)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("preset=papers", "preset must be one of paper, released, default, tuned for dataset airfoil, got 'papers'"),
        ("method.bandwidth=-1", r"bandwidth must be 0 or more .*got -1"),
        ("method.bandwidth=nan", r"bandwidth must be 0 or more .*got nan"),
        ("method.alpha=0", r"alpha must be a finite number above 0, got 0"),
        ("method.alpha=inf", r"alpha must be a finite number above 0, got inf"),
        ("method.lam_per=epoch", "lam_per must be one of example, batch, got 'epoch'"),
        ("train.epochs=0", "epochs must be 1 or more, got 0"),
        ("train.batch_size=-1", "batch_size must be 1 or more, got -1"),
        ("train.eval_batch_size=0", "eval_batch_size"),
        ("train.lr=0", "lr must be a finite number above 0, got 0"),
        ("train.lr=nan", "lr must be a finite number above 0, got nan"),
        ("train.weight_decay=-0.1", "weight_decay must be a finite number, 0 or more, got -0.1"),
        ("train.optimizer=adamw", "optimizer must be one of adam, sgd, got 'adamw'"),
        ("dataset.scaling=none", "scaling must be one of train, all, got 'none'"),
        ("threads=0", "threads must be 1 or more, got 0"),
        ("seed=-1", r"seed must be .*got \[?-1"),
        ("seeds=9..0", "seeds must be a range like"),
        ("seeds=[null]", "seeds must be a range like"),
        ("logger=tensorboard", "logger must be one of wandb, none, got 'tensorboard'"),
        ("device=tpu", "device must be auto, cpu, cuda or cuda:<n>, got 'tpu'"),
        ("device=meta", "device must be auto, cpu, cuda or cuda:<n>, got 'meta'"),
    ],
)
def test_values_that_make_no_sense_are_refused(override: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        planned(override)


def test_bad_values_of_other_datasets_are_refused() -> None:
    with pytest.raises(InputError, match="split_seed must be 0 or more, got -1"):
        planned("dataset=no2", "dataset.split_seed=-1")
    with pytest.raises(InputError, match=r"train\.batch_size must be at least k = 17, got 16 \(method k_mixup\)"):
        planned("method=k_mixup", "method.k=17")
    with pytest.raises(InputError, match=r"method\.pairing is chosen with method/pairing=, one of .*, got 'random'"):
        planned("method=mixup", "method.pairing=random")


def test_batches_that_domain_methods_cannot_divide_are_refused() -> None:
    with pytest.raises(InputError, match=r"train\.batch_size must be a multiple of groups = 4, 8 or more, got 18 \("):
        planned("dataset=crime", "method=irm", "train.batch_size=18")
    with pytest.raises(InputError, match=r"train\.batch_size must be a multiple of groups = 4, 8 or more, got 4 "):
        planned("dataset=crime", "method=irm", "train.batch_size=4")
    assert planned("dataset=crime", "method=vrex", "train.batch_size=4").settings.batch_size == 4


@pytest.mark.parametrize("method", [name for name in METHODS if needs_domains(name) and name != "group_dro"])
def test_the_dataset_says_how_many_domains_make_a_batch(method: str) -> None:
    assert planned("dataset=crime", f"method={method}").config["method"]["groups"] == 4
    job = planned("dataset=crime", f"method={method}", "method.groups=2")
    assert job.options == {"method.groups": 2}


def test_which_datasets_and_methods_have_to_do_with_domains() -> None:
    domains = {"irm", "ib_irm", "vrex", "coral", "drnn", "group_dro", "fish"}
    assert {name for name in METHODS if needs_domains(name)} == domains
    assert {"crime", "skillcraft"} <= {name for name in DATASETS if has_domains(name)}
    assert not {"airfoil", "no2", "exchange_rate"} & {name for name in DATASETS if has_domains(name)}
    tried = combinations()
    assert {method for _, method, _ in tried} == set(METHODS)
    assert all(has_domains(dataset) for dataset, method, _ in tried if method in domains)


def test_an_interpolation_to_nothing_is_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"no_such_key"):
        planned("train.lr=${dataset.no_such_key}")


# ---- devices


def test_cuda_asked_for_and_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for name in ("cuda", "cuda:1"):
        with pytest.raises(InputError, match=f"device is '{name}', but this machine offers 0 CUDA devices"):
            planned(f"device={name}")
    assert planned("device=auto").device == torch.device("cpu")


def test_cuda_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert pick_device("auto") == pick_device("cuda") == torch.device("cuda")
    assert pick_device("cuda:0") == torch.device("cuda:0")
    assert pick_device("cpu") == torch.device("cpu")
    with pytest.raises(InputError, match="device is 'cuda:1', but this machine offers 1 CUDA devices"):
        pick_device("cuda:1")


# ---- what differs, and the folder's name


def test_differences_are_the_options_that_differ_from_the_preset() -> None:
    def found(*overrides: str) -> dict[str, Any]:
        return differences(resolved(compose_train(list(overrides))))

    assert found() == found("preset=released") == found("dataset=no2", "method=erm") == {}
    assert (
        found("seed=5", "seeds=0..3", "device=cpu", "logger=none", "experiment=table1", "out=/tmp/x", "threads=2") == {}
    )
    assert found("method.bandwidth=5.5") == {"method.bandwidth": 5.5}
    assert found("method.bandwidth=1.75") == {}
    assert found("method.alpha=2.0", "preset=released") == {}
    assert found("method.alpha=0.5", "preset=released") == {"method.alpha": 0.5}
    assert found("train.epochs=3", "dataset.scaling=all") == {"train.epochs": 3, "dataset.scaling": "all"}
    assert found("debug=tiny") == {"dataset.synthetic": True, "train.epochs": 2}


def test_options_that_differ_give_folders_that_differ(tmp_path: Path) -> None:
    choices = [
        [], ["preset=released"], ["method.bandwidth=5.5"], ["method.bandwidth=6.5"], ["method.alpha=5.5"],
        ["train.lr=0.5"], ["method=erm"], ["method=mixup"], ["dataset=no2"], ["dataset=no2", "dataset.split_seed=1"],
        ["experiment=table1"], ["method.layer=input"], ["method.bandwidth=5.5", "train.lr=0.5"],
    ]  # fmt: skip
    folders = [planned(*overrides, f"out={tmp_path}").folder for overrides in choices]
    assert len(set(folders)) == len(choices)


def test_a_whole_number_and_the_same_with_a_point_are_one_run() -> None:
    assert planned("method.bandwidth=5").folder == planned("method.bandwidth=5.0").folder
    assert planned("train.lr=1").options == planned("train.lr=1.0").options == {"train.lr": 1.0}


def test_folder_names() -> None:
    assert folder_name("paper", {}) == "paper"
    assert folder_name("paper", {"train.lr": 0.1, "method.bandwidth": 5}) == "paper,bandwidth=5,train.lr=0.1"
    assert folder_name("paper", {"method.layer": "a/b c"}).startswith("paper,layer=a_b_c")
    assert set("/\\ :*?<>|'[]") & set(folder_name("paper", {"method.layer": "/\\ :*?<>|'[]"})) == set()


def test_long_folder_names_are_cut_and_stay_distinct() -> None:
    long = [folder_name("paper", {f"method.{'x' * 200}": value}) for value in (1, 2)]
    assert all(len(name) <= 140 for name in long)
    assert long[0] != long[1]
    assert long[0].startswith("paper,xxx")


@pytest.mark.parametrize("pair", [("a/b", "a_b"), ("a b", "a_b")])
def test_folder_names_of_different_values_differ(pair: tuple[str, str]) -> None:
    one, other = (folder_name("paper", {"method.layer": value}) for value in pair)
    assert one != other


# ---- the pieces


def test_arguments_leave_out_target_and_name() -> None:
    def make(size: int, rate: float = 1.0, word: str | None = None) -> None: ...

    assert arguments("part", {"_target_": "x", "name": "y", "size": 3, "rate": 2, "word": None}, make) == {
        "size": 3, "rate": 2, "word": None,
    }  # fmt: skip
    with pytest.raises(InputError, match=r"part\.sise is not known; part takes size, rate, word"):
        arguments("part", {"sise": 3}, make)
    with pytest.raises(InputError, match=r"part\.word must be a word or null, got 3"):
        arguments("part", {"word": 3}, make)


def test_check_type_lets_other_annotations_pass() -> None:
    check_type("x", [1, 2], list[int])
    check_type("x", 1, float)
    check_type("x", True, bool)
    for kind, value in itertools.product((int, float, str), (True, [1], {})):
        with pytest.raises(InputError, match="x must be"):
            check_type("x", value, kind)
