"""From configuration to checked objects: every key and type is checked against the signature it is meant for."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from cmixup.errors import InputError
from datasets.common.base import Dataset

CONFIG_DIR = Path(__file__).resolve().parents[2] / "configs"
# Keys that say what something is or where it runs, not what is trained.
ROOT_KEYS: dict[str, type] = {
    "preset": str, "seed": int, "experiment": str, "device": str, "threads": int, "logger": str, "out": str,
    "rerun": bool, "checkpoint_every": int,
}  # fmt: skip
# Keys of a group's config that are no arguments: how tables print it; of a dataset its presets, how long a run takes on one CPU core, how
# long a method may search before it trains, how many domains a batch has, how often long runs are saved, and why
# nothing of it is published; of a method what scripts.tune tries.
ABOUT = {
    "dataset": ("title", "presets", "cpu_minutes", "search", "groups", "checkpoint_every", "absent"),
    "method": ("title", "grid"),
}
GROUPS = ("dataset", "model", "method")
TUNED = "tuned"
TUNE_SEED = 1000  # of scripts.tune; no table may use it


def compose_train(overrides: Sequence[str]) -> DictConfig:
    """Compose configs/train.yaml with command-line overrides.

    Raises:
        InputError: preset=tuned without tuned values.
    """
    cfg = _compose(list(overrides))
    return _compose([*tuned_overrides(cfg), *overrides]) if cfg.preset == TUNED else cfg


def tuned_path(dataset: str, method: str) -> Path:
    """Return the file of a method's tuned values; their keys are those of the command line."""
    return CONFIG_DIR / TUNED / dataset / f"{method}.yaml"


def tuned_overrides(cfg: DictConfig) -> list[str]:
    """Return the overrides that preset `tuned` stands for: preset `paper` under the tuned values.

    They are meant to come before those of the command line, which so have the last word.

    Raises:
        InputError: this method has not been tuned on this dataset.
    """
    dataset, method = cfg.dataset.name, cfg.method.name
    path = tuned_path(dataset, method)
    if not path.is_file():
        raise InputError(
            f"preset tuned: {method} has not been tuned on {dataset}; "
            f"python -m scripts.tune dataset={dataset} method={method} does it"
        )
    values = yaml.safe_load(path.read_text()) or {}
    return ["+dataset.presets.tuned=${dataset.presets.paper}", *(override(k, v) for k, v in values.items())]


def override(key: str, value: Any) -> str:
    """Return a command-line override that sets `key` to `value`."""
    return f"{key}={json.dumps(value)}"


def _compose(overrides: list[str]) -> DictConfig:
    if GlobalHydra.instance().is_initialized():
        return compose("train", overrides=overrides)
    with initialize_config_dir(str(CONFIG_DIR), version_base="1.3"):
        return compose("train", overrides=overrides)


def names(group: str) -> list[str]:
    """Return the options of a config group, such as all datasets."""
    return sorted(path.stem for path in (CONFIG_DIR / group).glob("*.yaml"))


def resolved(cfg: DictConfig) -> dict[str, Any]:
    """Return the configuration with every interpolation resolved.

    Raises:
        InputError: an unknown preset, or a value that refers to one that is not there.
    """
    presets = list(cfg.dataset.presets)
    if cfg.preset not in presets:
        known = ", ".join([*presets, TUNED])
        raise InputError(f"preset must be one of {known} for dataset {cfg.dataset.name}, got {cfg.preset!r}")
    try:
        plain = OmegaConf.to_container(cfg, resolve=True)
    except OmegaConfBaseException as error:
        raise InputError(str(error).splitlines()[0]) from None
    assert isinstance(plain, dict)
    for group, about in ABOUT.items():
        for name in about:
            plain[group].pop(name, None)
    plain["experiment"] = plain["experiment"]["name"]
    top = [*ROOT_KEYS, *GROUPS, "train", "seeds"]
    for key in map(str, plain):
        if key not in top:
            raise InputError(f"{key} is not known; the top level takes {', '.join(top)}")
    for key, kind in ROOT_KEYS.items():
        check_type(key, plain[key], kind)
    return {str(key): value for key, value in plain.items()}


def target(node: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the class or function that `_target_` names."""
    module, _, attribute = str(node["_target_"]).rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def arguments(
    path: str, node: Mapping[str, Any], function: Callable[..., Any], reserved: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the keys of `node` as arguments of `function`, each checked by name and type.

    Args:
        path: how errors call the node.
        node: a part of the configuration.
        function: what is going to be called.
        reserved: arguments that the configuration cannot set.

    Raises:
        InputError: a key that `function` does not take, or a value of another type, named with `path`.
    """
    hints = typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
    known = [name for name in inspect.signature(function).parameters if name not in ("self", *reserved)]
    given = {key: value for key, value in node.items() if key not in ("_target_", "name")}
    for key, value in given.items():
        if key not in known:
            raise InputError(f"{path}.{key} is not known; {path} takes {', '.join(known) or 'no options'}")
        check_type(f"{path}.{key}", value, hints[key])
        if type(value) is int and float in (hints[key], *typing.get_args(hints[key])):
            given[key] = float(value)  # 5 and 5.0 are one value, and name one run
    return given


def check_type(path: str, value: Any, kind: Any) -> None:
    """Raise `InputError` unless `value` is of type `kind` (whole numbers pass as floats)."""
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    allowed = [k for one in kinds for k in ((int, float) if one is float else (one,))]
    plain = [k for k in allowed if isinstance(k, type)]
    wrong_bool = isinstance(value, bool) and bool not in plain
    if len(plain) == len(allowed) and (wrong_bool or not isinstance(value, tuple(plain))):
        expected = " or ".join(_WORDS.get(k, getattr(k, "__name__", str(k))) for k in kinds)
        raise InputError(f"{path} must be {expected}, got {value!r}")


_WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false", type(None): "null"}


def differences(plain: Mapping[str, Any], preset: str = "") -> dict[str, Any]:
    """Return the options that differ from what dataset, model, method and preset alone would give.

    Keys are spelt as in the configuration, such as `method.bandwidth`.

    Args:
        plain: a resolved configuration.
        preset: compare with this one instead of its own.
    """
    preset = preset or plain["preset"]
    words = (*(f"{group}={plain[group]['name']}" for group in GROUPS), f"preset={preset}")
    # Composing takes a tenth of a second; the files of tuned values may change while a process runs.
    theirs = (_standard.__wrapped__ if preset == TUNED else _standard)(words)
    return {key: value for key, value in _flat(plain).items() if key not in theirs or theirs[key] != value}


@functools.cache
def _standard(words: tuple[str, ...]) -> dict[str, Any]:
    return _flat(resolved(compose_train(words)))


def _flat(plain: Mapping[str, Any]) -> dict[str, Any]:
    parts = {group: plain[group] for group in (*GROUPS, "train")}
    return {f"{group}.{key}": value for group, node in parts.items() for key, value in node.items()}


def parse_words(words: Sequence[str], known: Sequence[str]) -> dict[str, str]:
    """Read `key=value` words of a command line; an empty value counts as not given.

    Raises:
        InputError: another word, or an unknown key.
    """
    given: dict[str, str] = {}
    for word in words:
        key, found, value = word.partition("=")
        if not found or key not in known:
            raise InputError(f"option must be one of {'=, '.join(known)}=, got {word!r}")
        if value:
            given[key] = value
    return given


def parse_seeds(value: Any, name: str = "seeds") -> list[int]:
    """Return seeds from a range `0..9` (both ends in), a list `[0,3,5]` or `0,3,5`, or a count (10 means 0..9).

    Raises:
        InputError: anything else, an empty or repeated seed.
    """
    problem = InputError(f"{name} must be a range like 0..9, a list like [0,3,5], or a count, got {value!r}")
    try:
        if isinstance(value, (list, tuple)):
            seeds = [_whole(v) for v in value]
        elif isinstance(value, int):
            seeds = list(range(_whole(value)))
        else:
            text = str(value).strip()
            if ".." in text:
                low, high = (_whole(part) for part in text.split(".."))
                seeds = list(range(low, high + 1))
            elif "," in text:
                seeds = [_whole(part) for part in text.split(",") if part.strip()]
            else:
                seeds = list(range(_whole(text)))
    except (TypeError, ValueError, OverflowError):
        raise problem from None
    if not seeds or len(set(seeds)) != len(seeds):
        raise problem
    return seeds


def _whole(value: Any) -> int:
    if isinstance(value, bool) or int(value) != float(value) or int(value) < 0:
        raise ValueError(value)
    return int(value)


def dataset_class(name: str) -> type[Dataset]:
    """Return the class that configs/dataset/<name>.yaml names.

    Raises:
        InputError: no such dataset.
    """
    if name not in names("dataset"):
        raise InputError(f"dataset must be among {', '.join(names('dataset'))}, got {name!r}")
    found = target(compose_train([f"dataset={name}"]).dataset)
    assert isinstance(found, type)
    return found
