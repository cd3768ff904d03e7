"""From configuration to checked objects: every key and type is checked against the signature it is meant for."""

import functools
import importlib
import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from omegaconf import DictConfig, OmegaConf

from cmixup.errors import InputError, as_number, format_value
from datasets.common.base import Dataset
from scripts.config.compose import (
    TUNED_PRESETS,
    compose_train,
    one_line_errors,
    option_names,
    override_words,
    part_file,
    part_folders,
)

# Keys that name something or say where it runs, and change no training.
ROOT_KEYS: dict[str, type] = {
    "preset": str, "seed": int, "experiment": str, "device": str, "threads": int, "logger": str, "out": str,
    "rerun": bool, "checkpoint_every": int, "resume": str, "weights": bool,
}  # fmt: skip
# Keys of a group's config that are no arguments: how tables print it; of a dataset whether the data are the user's
# (`own`), its presets, how long a run takes on one CPU core, how long a method may search before it trains, how many
# domains a batch has, how often long runs are saved, why nothing of it is published, and options of methods that the
# paper does not have (`published`); of a method what scripts.tune tries, how many times as long as ERM's a run of it
# takes, and how it scales labels where the preset does not say.
ABOUT = {
    "dataset": (
        "title", "own", "presets", "cpu_minutes", "search", "groups", "checkpoint_every", "absent", "published",
    ),
    "method": ("title", "grid", "cost", "label_scaling"),
}  # fmt: skip
GROUPS = ("dataset", "model", "method")
NOT_ARGUMENTS = ("_target_", "name")
MAX_WHOLE = 2**63 - 1  # larger numbers are no setting, and their digits fill a message


def resolve_config(cfg: DictConfig) -> dict[str, Any]:
    """Return the configuration with every interpolation resolved; groups, keys and preset must be known ones."""
    needs = dict.fromkeys(GROUPS, ("name", "_target_")) | {"train": (), "experiment": ("name",)}
    needs["dataset"] += ("presets",)
    with one_line_errors():
        for group, keys in needs.items():
            node = OmegaConf.select(cfg, group)
            if not isinstance(node, DictConfig):
                advice = "choose a file with # @package _global_ by a group of your own, +run=mine for run/mine.yaml"
                raise InputError(f"{group} must hold options of its own, got {format_value(node)}: {advice}")
            for key in keys:
                value = OmegaConf.select(node, key)
                if not isinstance(value, DictConfig if key == "presets" else str):
                    raise InputError(f"{group}.{key} cannot be set, got {format_value(value)}")
        if cfg.preset not in (presets := list(cfg.dataset.presets)):
            known = ", ".join(dict.fromkeys([*presets, *TUNED_PRESETS]))
            raise InputError(
                f"preset must be one of {known} for dataset {cfg.dataset.name}, got {format_value(cfg.preset)}"
            )
        config: Any = OmegaConf.to_container(cfg, resolve=True)
    top = [*ROOT_KEYS, *GROUPS, "train", "seeds"]
    for key in sorted({*top} ^ {*config}, key=str):
        reason = "is missing: it cannot be taken out" if key in top else "is not known"
        raise InputError(f"{key} {reason}; the top level takes {', '.join(top)}")
    for group, about in ABOUT.items():
        for name in about:
            config[group].pop(name, None)
    config["experiment"] = config["experiment"]["name"]
    return config


def target_of(node: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the class or function that `_target_` names."""
    module, _, attribute = str(node["_target_"]).rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"_target_ must name a class or function, got {format_value(node['_target_'])}: {format_value(str(error))}"
        ) from None


@dataclass(frozen=True)
class Part:
    """A checked node of the configuration."""

    function: Callable[..., Any]  # the class or function that it calls
    kwargs: dict[str, Any]  # its arguments; nodes below it are parts themselves
    shared: dict[str, Any]  # options that everything of its kind takes, for the method `with_options` of what is built
    kind: Any  # the class of what it builds

    def build(self, *more: Any) -> Any:
        """Return what the function makes of the arguments, after the parts below it are built."""
        kwargs = {key: value.build() if isinstance(value, Part) else value for key, value in self.kwargs.items()}
        for name, parameter in list(arguments_of(self.function).items())[len(more) :]:
            if parameter.default is parameter.empty and name not in kwargs:
                raise InputError(f"_target_ {self.function.__name__} cannot be called: missing argument {name!r}")
        built = self.function(*more, **kwargs)
        return built.with_options(**self.shared) if self.shared else built


def is_part(value: Any) -> bool:
    """Return whether a value of the configuration is a node that is built."""
    return isinstance(value, Mapping) and "_target_" in value


def arguments_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return what a class or function takes by name, each argument with its type; `Any` where it has none.

    A constructor that hands `**more` on takes the arguments of its parent's by name, too, and so on up.
    """
    is_class = inspect.isclass(function)
    inits = [vars(base)["__init__"] for base in getattr(function, "__mro__", ()) if "__init__" in vars(base)]
    arguments: dict[str, inspect.Parameter] = {}
    for callee in inits if is_class else [function]:
        hints, parameters = typing.get_type_hints(callee), list(inspect.signature(callee).parameters.values())
        for parameter in parameters[is_class:]:  # without self
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                arguments.setdefault(parameter.name, parameter.replace(annotation=hints.get(parameter.name, Any)))
        if all(parameter.kind is not parameter.VAR_KEYWORD for parameter in parameters):
            break
    return arguments


def _check_owners(path: str, parts: Mapping[str, Mapping[str, Any]], keys: Iterable[str]) -> None:
    for key in sorted(keys):
        if len(owners := [name for name, options in parts.items() if key in options]) > 1:
            raise InputError(f"{path}.{key} is an option of {' and of '.join(owners)}, which cannot be combined here")


def check_part(
    path: str, node: dict[str, Any], reserved: Sequence[str] = (), function: Callable[..., Any] | None = None, *,
    names: Mapping[str, str] = MappingProxyType({}), hint: Any = None,
) -> Part:  # fmt: skip
    """Check every key of a node, and of the nodes below it, by name and type.

    A key that the function does not take, but a node below does, is that node's: `method.bandwidth` is the bandwidth of
    `method.pairing`. Whole numbers given for floats become floats in `node` too: 5 and 5.0 are one value and name one
    run.

    Args:
        path: how errors call the node.
        node: a part of the configuration.
        reserved: arguments that the configuration cannot set.
        function: what is called; by default what `_target_` names.
        names: how errors call keys that the user gives elsewhere.
        hint: the type of what it must build, where there is one.

    Raises:
        InputError: an unknown key, a value of another type, or a part of another kind, named with its path.
    """
    function = function or target_of(node)
    hints = {name: parameter.annotation for name, parameter in arguments_of(function).items() if name not in reserved}
    shared = typing.get_type_hints(function.with_options) if hasattr(function, "with_options") else {}
    hints |= {key: kind for key, kind in shared.items() if key != "return"}
    for key, expected in hints.items():  # a word that stands for a part, which is chosen as a group
        group, value = f"{path}.{key}".replace(".", "/"), node.get(key)
        named = isinstance(value, str) and str not in (expected, *typing.get_args(expected))
        if named and (known := option_names(group)):
            one_of = ", ".join(known)
            raise InputError(f"{path}.{key} is chosen with {group}=, one of {one_of}, got {format_value(value)}")
    below = {key: value for key, value in node.items() if is_part(value)}
    passed_on = {key for part in below.values() for key in part if key not in NOT_ARGUMENTS}
    _check_owners(path, {function.__name__: hints, **below}, passed_on.intersection(node))
    kwargs: dict[str, Any] = {}
    for key, value in node.items():
        where = names.get(key, f"{path}.{key}")
        if key in NOT_ARGUMENTS or (key in passed_on and key not in hints):
            continue
        if key not in hints:
            takes = ", ".join([*hints, *sorted(passed_on.difference(hints))]) or "no options"
            raise InputError(f"{where} is not known; {path} takes {takes}")
        if key not in below:
            check_type(where, value, hints[key])
            takes_float = type(value) is int and float in (hints[key], *typing.get_args(hints[key]))
            kwargs[key] = node[key] = as_number(where, value) if takes_float else value
            continue
        outer_paths = {name: f"{path}.{name}" for name in value if name in node and name not in NOT_ARGUMENTS}
        for name, outer_path in outer_paths.items():
            if repr(value[name]) != repr(node[name]):  # as text, so that NaN equals itself
                raise InputError(f"{path}.{key}.{name} is {outer_path}: give that, got {format_value(value[name])}")
        kwargs[key] = check_part(f"{path}.{key}", value, names=outer_paths, hint=hints[key])
        node.update({name: value[name] for name in outer_paths})
    kind = function if inspect.isclass(function) else typing.get_type_hints(function).get("return")
    wanted_types = [cls for cls in (typing.get_args(hint) or (hint,)) if inspect.isclass(cls) and cls is not Any]
    is_builtin = all(cls.__module__ == "builtins" for cls in wanted_types)  # numbers and texts, which no part is
    if wanted_types and (not issubclass(kind, tuple(wanted_types)) if inspect.isclass(kind) else is_builtin):
        one_of = " or ".join(cls.__name__ for cls in wanted_types if cls is not type(None))
        raise InputError(f"{path} must be a {one_of} here, got {node.get('name', node['_target_'])}")
    return Part(function, kwargs, {key: kwargs.pop(key) for key in shared if key in kwargs}, kind)


def check_type(path: str, value: Any, kind: Any) -> None:
    """Raise `InputError` unless `value` is of type `kind` (whole numbers pass as floats) and of a usual size."""
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    allowed = [k for one in kinds for k in ((int, float) if one is float else (one,))]
    classes = [k for k in allowed if isinstance(k, type)]
    wrong_bool = isinstance(value, bool) and bool not in classes
    if len(classes) == len(allowed) and (wrong_bool or not isinstance(value, tuple(classes))):
        expected = " or ".join(_WORDS.get(k, getattr(k, "__name__", str(k))) for k in kinds)
        raise InputError(f"{path} must be {expected}, got {format_value(value)}")
    if isinstance(value, int) and float not in classes and abs(value) > MAX_WHOLE:
        raise InputError(f"{path} must be a whole number within +-{MAX_WHOLE}, got {format_value(value)}")


_WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false", type(None): "null"}


def changed_options(config: Mapping[str, Any], preset: str = "") -> dict[str, Any]:
    """Return the options that differ from what dataset, model, method and preset alone would give.

    Keys are spelt as in the configuration, such as `method.bandwidth`; a part that was swapped is given by its name,
    `method.pairing: uniform`, and options of its own by what differs from that part's defaults.

    Args:
        config: a resolved configuration.
        preset: compare with this one instead of its own.
    """
    preset = preset or config["preset"]
    compose_usual = _usual_config.__wrapped__ if preset in TUNED_PRESETS else _usual_config  # tuning writes values anew
    dataset, model, method = (config[group]["name"] for group in GROUPS)
    words = [f"dataset={dataset}", f"method={method}", f"preset={preset}"]
    usual_config = compose_usual(part_folders(), *words)
    if usual_config["model"]["name"] != model:
        words = [*words, f"model={model}"]
        usual_config = compose_usual(part_folders(), *words)
    options, usual_options = _flat_options(config), _flat_options(usual_config)
    parts = {f"method.{key}": value.get("name") for key, value in config["method"].items() if is_part(value)}
    swapped = {key: name for key, name in parts.items() if usual_options.get(key) != name}
    if swapped:
        usual_options = _flat_options(compose_usual(part_folders(), *words, *override_words(swapped)))
    changed = {key for key, value in options.items() if key not in usual_options or usual_options[key] != value}
    return {key: value for key, value in options.items() if key in swapped or (key in changed and key not in parts)}


@functools.cache
def _usual_config(_: tuple[Path, ...], *words: str) -> Mapping[str, Any]:
    """Return what words compose to, not to be changed; once a process for the same folders of files."""
    return resolve_config(compose_train(words))


def _flat_options(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return every option with its path; a part by its name, and those of its options that do not stand above it."""
    flat: dict[str, Any] = {}
    for group in (*GROUPS, "train"):
        for key, value in config[group].items():
            if not is_part(value):
                flat[f"{group}.{key}"] = value
                continue
            flat[f"{group}.{key}"] = value.get("name", value["_target_"])
            below = {name: v for name, v in value.items() if name == "_target_" or name not in ("name", *config[group])}
            flat |= {f"{group}.{key}.{name}": v for name, v in below.items()}
    return flat


def dataset_class(name: str) -> type[Dataset]:
    """Return the class that configs/dataset/<name>.yaml names."""
    kind = target_of(part_file("dataset", name))
    assert isinstance(kind, type)
    return kind
