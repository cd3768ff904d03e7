"""What the configuration is made of, and what it refuses, before any work."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from cmixup.errors import InputError
from scripts.config.arguments import parse_seeds
from scripts.config.compose import CONFIG_DIR, compose_train
from scripts.config.parts import GROUPS, check_part, target_of
from tests.scripts.cover import DATASETS, METHODS, TASKS, method_kind, presets_of
from tests.scripts.jobs import job_of

# ---- every file


@pytest.mark.parametrize(
    "path",
    [p for g in GROUPS for p in sorted((CONFIG_DIR / g).glob("*.yaml"))],
    ids=lambda p: f"{p.parent.name}/{p.stem}",
)
def test_the_name_is_the_files_stem_and_the_target_exists(path: Path) -> None:
    node = yaml.safe_load(path.read_text())
    assert node["name"] == path.stem
    assert callable(target_of(node))


@pytest.mark.parametrize("name", DATASETS)
def test_every_dataset_has_presets_with_the_same_keys_default_among_them(name: str) -> None:
    presets = presets_of(name)
    assert "default" in presets
    every = set(presets_of(TASKS[0] if name in TASKS else "airfoil")["paper"]) - {"scaling"}  # videos have none
    keys = set(presets["default"]) - {"label_scaling"}  # only where a preset wants it, whatever the method
    assert all(set(values) - {"label_scaling"} == keys >= every for values in presets.values())
    assert all("label_scaling" not in values for preset, values in presets.items() if preset != "default")


# ---- composing


@pytest.mark.parametrize(
    "words",
    [
        [], ["method.bandwidth=[std,0.3]", "train.lr=1e-3"], ["train.lr=0.1", "dataset=no2", "train.lr=0.2"],
        ["method=k_mixup", "method/pairing=uniform", "method.alpha=0.7"],
        ["method.bandwidth=5", "debug=tiny", "seeds=0..3"],
        ["+dataset.extra={a: 1}", "dataset=crime", "out=a b", "train.track=[test]"], ["preset=released", "seed=3"],
    ],
)  # fmt: skip
def test_values_set_on_what_is_kept_are_those_that_hydra_composes(words: list[str]) -> None:
    last = list({word.partition("=")[0]: word for word in words}.values())
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        hydras = compose("train", overrides=last)
    for _ in range(2):  # the second time from what is kept, which the first left as it was
        ours = compose_train(words)
        assert OmegaConf.to_container(ours) == OmegaConf.to_container(hydras)
        OmegaConf.update(ours, "train.lr", 9.0)


# ---- seeds


@pytest.mark.parametrize(
    ("value", "seeds"),
    [
        ("0..9", list(range(10))), ("3..3", [3]), (" 2..4 ", [2, 3, 4]), ([0, 3, 5], [0, 3, 5]), ((7,), [7]),
        ("0,3,5", [0, 3, 5]), ("5,", [5]), (10, list(range(10))), ("3", [0, 1, 2]), (1, [0]), ([0], [0]),
        ([5, 0, 3], [0, 3, 5]), ("2,1", [1, 2]), ("[0, 3,5]", [0, 3, 5]), ("[7]", [7]),
    ],
)  # fmt: skip
def test_seeds(value: Any, seeds: list[int]) -> None:
    assert parse_seeds(value) == seeds


@pytest.mark.parametrize(
    "value",
    ["", "x", "[]", "[3", "[0..3]", "9..0", "1..2..3", "0,x", ",", [], [1, 1], [-1], 0, 1.5, True, [None], [[1]],
     [float("inf")], {"a": 1}],
)  # fmt: skip
def test_bad_seeds_are_refused_with_their_value(value: Any) -> None:
    with pytest.raises(InputError, match="seeds must be a range like"):
        parse_seeds(value)


def test_seeds_override_seed() -> None:
    assert job_of("seed=7").seeds == [7]
    assert job_of("seed=7", "seeds=[0,3,5]").seeds == [0, 3, 5]
    assert job_of("seeds=0..9").seeds == list(range(10))
    assert job_of("seeds=4").seeds == [0, 1, 2, 3]


# ---- what is refused, before any work


BAD = [
    # ---- misspelt
    ("method.bandwith=1", r"method\.bandwith is not known; did you mean bandwidth\?"),
    ("traain.lr=3", r"traain is not known; did you mean train\?"),
    ("dataset=no2 method=cmixp", r"method must be one of .* got 'cmixp'; did you mean cmixup\?"),
    ("method/pairing=labl", r"method/pairing must be one of .* did you mean label\?"),
    ("debug=small", "small"),
    # ---- added by force, or without what it needs
    ("+method.bandwith=1", r"method\.bandwith is not known; method takes pairing, lam, layer, mixing, .*alpha, band"),
    ("+model.in_shape=[3]", r"model\.in_shape"),
    ("dataset=no2 method=maml", "method.inner_lr has no value here, since there is no dataset.presets"),
    # ---- values of another type
    ("train.epochs=ten", r"train\.epochs must be a whole number, got 'ten'"),
    ("train.epochs=true", r"train\.epochs must be a whole number, got True"),
    ("train.lr=fast", r"train\.lr must be a number, got 'fast'"),
    ("train.drop_last=1", r"train\.drop_last must be true or false, got 1"),
    ("method.bandwidth=wide", r"bandwidth must be a number.*got 'wide'"),
    ("method.alpha=null", r"method\.alpha must be a number, got None"),
    ("seed=x", "seed must be a whole number, got 'x'"),
    # ---- values that make no sense
    ("preset=papers", "preset must be one of paper, released, default, tuned, tuned_default for .*, got 'papers'"),
    ("train.lr=0", "lr must be a finite number above 0, got 0"),
    ("checkpoint_every=-1", r"checkpoint_every must be 0 \(never\) or a whole number of epochs, 0 or more, got -1"),
    ("threads=0", "threads must be a whole number, 1 to 1024, got 0"),
    ("seeds=0..99999999999", "at most 100000 seeds up to 4294967295, got '0..99999999999'"),
    ("logger=tensorboard", "logger must be one of wandb, none, got 'tensorboard'"),
    ("device=tpu", "device must be auto, cpu, cuda or cuda:<n>, got 'tpu'"),
    ("method=k_mixup method.k=17", r"train\.batch_size must be at least k = 17, got 16 \(method k_mixup\)"),
    ("dataset=crime method=irm train.batch_size=18", r"must be a multiple of groups = 4, 8 or more, got 18 \("),
    ("dataset=crime method=irm train.batch_size=4", r"must be a multiple of groups = 4, 8 or more, got 4 \("),
    ("method=mixup method.pairing=random", r"method\.pairing is chosen with method/pairing=, one of .*, got 'random'"),
    ("train.lr=${dataset.no_such_key}", "no_such_key"),
    # ---- one value for two options
    ("method=regmixup method/mixing=puzzlemix", r"method\.eta is an option of RegMixup and of mixing, which cannot be"),
    ("method=local_mixup method/form=knn method/pairing=blocks", r"method\.k is an option of form and of pairing"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_words_are_refused_by_name_and_value(words: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        job_of(*words.split())


@pytest.mark.parametrize("method", [name for name in METHODS if method_kind(name).domains and name != "group_dro"])
def test_the_dataset_says_how_many_domains_make_a_batch(method: str) -> None:
    assert job_of("dataset=crime", f"method={method}").config["method"]["groups"] == 4
    job = job_of("dataset=crime", f"method={method}", "method.groups=2")
    assert job.options == {"method.groups": 2}


# ---- the pieces


def test_arguments_leave_out_target_and_name() -> None:
    def make(size: int, rate: float = 1.0, word: str | None = None) -> None: ...

    part = check_part("part", {"_target_": "x", "name": "y", "size": 3, "rate": 2, "word": None}, function=make)
    assert part.kwargs == {"size": 3, "rate": 2, "word": None}
    with pytest.raises(InputError, match=r"part\.sise is not known; part takes size, rate, word"):
        check_part("part", {"sise": 3}, function=make)
    with pytest.raises(InputError, match=r"part\.word must be a word or null, got 3"):
        check_part("part", {"word": 3}, function=make)
