"""From configuration to checked objects: every key and type is checked against the signature it is meant for."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
# Keys of a group's config that are no arguments: how tables print it; of a dataset its presets, how long a run takes on
# one CPU core, how long a method may search before it trains, how many domains a batch has, how often long runs are
# saved, and why nothing of it is published; of a method what scripts.tune tries.
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


def base_preset(dataset: str) -> str:
    """Return the preset that tuning starts from: `paper`, or `default` for a dataset that the paper does not have."""
    presets = yaml.safe_load((CONFIG_DIR / "dataset" / f"{dataset}.yaml").read_text())["presets"]
    return "paper" if "paper" in presets else "default"


def tuned_overrides(cfg: DictConfig) -> list[str]:
    """Return the overrides that preset `tuned` stands for: preset `paper` under the tuned values.

    Prepend these to the command line's overrides, which then win.

    Raises:
        InputError: this method has not been tuned on this dataset.
    """
    dataset, method = cfg.dataset.name, cfg.method.name
    base = base_preset(dataset)
    path = tuned_path(dataset, method)
    if not path.is_file():
        raise InputError(
            f"preset tuned: {method} has not been tuned on {dataset}; "
            f"python -m scripts.tune dataset={dataset} method={method} does it"
        )
    values = yaml.safe_load(path.read_text()) or {}
    return [f"+dataset.presets.tuned=${{dataset.presets.{base}}}", *command(values)]


def override(key: str, value: Any) -> str:
    """Return a command-line override that sets `key` to `value`; a part is chosen as a group by its name."""
    group = key.replace(".", "/")
    if isinstance(value, str) and (CONFIG_DIR / group / f"{value}.yaml").is_file():
        return f"{group}={value}"
    return f"{key}={json.dumps(value)}"


def _compose(overrides: list[str]) -> DictConfig:
    # Hydra refuses a group that is chosen twice; here the last choice wins, as it does for values.
    overrides = list({word.partition("=")[0]: word for word in overrides}.values())
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
    """Return the class or function that `_target_` names.

    Raises:
        InputError: there is none of that name.
    """
    module, _, attribute = str(node["_target_"]).rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"_target_ must name a class or function, got {node['_target_']!r}: {error}") from None


@dataclass(frozen=True)
class Part:
    """A checked node of the configuration.

    Attributes:
        function: the class or function that it calls.
        given: its arguments; nodes below it are parts themselves.
    """

    function: Callable[..., Any]
    given: dict[str, Any]

    def build(self, *more: Any) -> Any:
        """Return what the function makes of the arguments, after the parts below it are built."""
        given = {key: value.build() if isinstance(value, Part) else value for key, value in self.given.items()}
        return self.function(*more, **given)

    @property
    def kind(self) -> Any:
        """The class of what it builds."""
        return self.function if inspect.isclass(self.function) else typing.get_type_hints(self.function).get("return")


def is_part(value: Any) -> bool:
    """Return whether a value of the configuration is a node that is built."""
    return isinstance(value, Mapping) and "_target_" in value


def check_part(path: str, node: dict[str, Any], reserved: Sequence[str] = ()) -> Part:
    """Check every key of a node, and of the nodes below it, by name and type.

    A key that the function does not take, but a node below does, is that node's: `method.bandwidth` is the bandwidth of
    `method.pairing`. Whole numbers given for floats become floats in `node` too: 5 and 5.0 are one value and name one
    run.

    Args:
        path: how errors call the node.
        node: a part of the configuration.
        reserved: arguments that the configuration cannot set.

    Raises:
        InputError: an unknown key, a value of another type, or a part of another kind, named with its path.
    """
    function = target(node)
    hints = typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
    known = [name for name in inspect.signature(function).parameters if name not in ("self", *reserved)]
    for key in known:
        _refuse_name_of_part(f"{path}.{key}", node.get(key), hints[key])
    below = {key: value for key, value in node.items() if is_part(value)}
    passed_on = {key for part in below.values() for key in part if key not in NOT_ARGUMENTS}
    given: dict[str, Any] = {}
    for key, value in node.items():
        where = f"{path}.{key}"
        if key in NOT_ARGUMENTS or (key in passed_on and key not in known):
            continue
        if key not in known:
            takes = ", ".join([*known, *sorted(passed_on - set(known))]) or "no options"
            raise InputError(f"{where} is not known; {path} takes {takes}")
        if key in below:
            given[key] = _check_below(path, key, node, hints[key])
        else:
            given[key] = node[key] = checked_value(where, value, hints[key])
    return Part(function, given)


NOT_ARGUMENTS = ("_target_", "name")


def _check_below(path: str, key: str, node: dict[str, Any], hint: Any) -> Part:
    """Check the part `node[key]`, whose arguments may stand one level up; they are named as the user gives them."""
    below = node[key]
    shared = [name for name in below if name in node and name not in NOT_ARGUMENTS]
    for name in shared:
        if repr(below[name]) != repr(node[name]):  # as text, so that NaN equals itself
            raise InputError(f"{path}.{key}.{name} is {path}.{name}: give that, got {below[name]!r}")
    try:
        part = check_part(f"{path}.{key}", below)
    except InputError as error:
        message = str(error)
        for name in shared:
            message = message.replace(f"{path}.{key}.{name} ", f"{path}.{name} ")
        raise InputError(message) from None
    node.update({name: below[name] for name in shared})
    kinds = [kind for kind in (typing.get_args(hint) or (hint,)) if inspect.isclass(kind)]
    if inspect.isclass(part.kind) and kinds and not issubclass(part.kind, tuple(kinds)):
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise InputError(f"{path}.{key} must be a {wanted} here, got {below.get('name', below['_target_'])}")
    return part


def _refuse_name_of_part(where: str, value: Any, hint: Any) -> None:
    """Raise `InputError` where a word stands for a part, which is chosen as a group: `method/pairing=uniform`."""
    group = where.replace(".", "/")
    takes_words = str in (hint, *typing.get_args(hint))
    if isinstance(value, str) and not takes_words and (CONFIG_DIR / group).is_dir():
        raise InputError(f"{where} is chosen with {group}=, one of {', '.join(names(group))}, got {value!r}")


def checked_value(where: str, value: Any, hint: Any) -> Any:
    """Return a value of the configuration, as a float where floats are taken and it is a whole number.

    Raises:
        InputError: a value of another type.
    """
    check_type(where, value, hint)
    takes_float = type(value) is int and float in (hint, *typing.get_args(hint))
    return float(value) if takes_float else value


def arguments(path: str, node: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Return the keys of a node without `_target_` as arguments of `function`, checked as `check_part` does."""
    hints = typing.get_type_hints(function.__init__ if inspect.isclass(function) else function)
    known = [name for name in inspect.signature(function).parameters if name != "self"]
    for key in node:
        if key not in (*known, *NOT_ARGUMENTS):
            raise InputError(f"{path}.{key} is not known; {path} takes {', '.join(known)}")
    given = {key: value for key, value in node.items() if key not in NOT_ARGUMENTS}
    return {key: checked_value(f"{path}.{key}", value, hints[key]) for key, value in given.items()}


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

    Keys are spelt as in the configuration, such as `method.bandwidth`; a part that was swapped is told by its name,
    `method.pairing: uniform`, and options of its own by what differs from that part's defaults.

    Args:
        plain: a resolved configuration.
        preset: compare with this one instead of its own.
    """
    preset = preset or plain["preset"]
    words = (*(f"{group}={plain[group]['name']}" for group in GROUPS), f"preset={preset}")
    # Composing takes a tenth of a second; the files of tuned values may change while a process runs.
    standard = _standard.__wrapped__ if preset == TUNED else _standard
    mine, usual = _flat(plain), standard(words)
    parts = {f"method.{key}": value.get("name") for key, value in plain["method"].items() if is_part(value)}
    swapped = {key: name for key, name in parts.items() if usual.get(key) != name}
    theirs = standard((*words, *command(swapped))) if swapped else usual
    changed = {key for key, value in mine.items() if key not in theirs or theirs[key] != value}
    return {key: value for key, value in mine.items() if key in swapped or (key in changed and key not in parts)}


@functools.cache
def _standard(words: tuple[str, ...]) -> dict[str, Any]:
    return _flat(resolved(compose_train(words)))


def _flat(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return every option with its path; a part by its name, and those of its options that do not stand above it."""
    flat: dict[str, Any] = {}
    for group in (*GROUPS, "train"):
        for key, value in plain[group].items():
            if not is_part(value):
                flat[f"{group}.{key}"] = value
                continue
            flat[f"{group}.{key}"] = value.get("name", value["_target_"])
            own = {name: v for name, v in value.items() if name not in NOT_ARGUMENTS and name not in plain[group]}
            flat |= {f"{group}.{key}.{name}": v for name, v in own.items()}
    return flat


def command(options: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that set options as records name them."""
    return [override(key, value) for key, value in options.items()]


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
    found = target(yaml.safe_load((CONFIG_DIR / "dataset" / f"{name}.yaml").read_text()))
    assert isinstance(found, type)
    return found
