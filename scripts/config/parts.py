"""From configuration to checked objects: every key and type is checked against the signature it is meant for."""

from __future__ import annotations

import functools
import importlib
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from cmixup.errors import InputError, as_number, format_value
from datasets.common.base import Dataset
from scripts.config.compose import (
    CONFIG_DIR,
    TUNED,
    TUNED_DEFAULT,
    compose_train,
    is_tuned,
    one_line,
    option_names,
    override_words,
    part_file,
)

# Keys that say what something is or where it runs, not what is trained.
ROOT_KEYS: dict[str, type] = {
    "preset": str, "seed": int, "experiment": str, "device": str, "threads": int, "logger": str, "out": str,
    "rerun": bool, "checkpoint_every": int, "resume": str, "weights": bool,
}  # fmt: skip
# Keys of a group's config that are no arguments: how tables print it; of a dataset its presets, how long a run takes on
# one CPU core, how long a method may search before it trains, how many domains a batch has, how often long runs are
# saved, why nothing of it is published, and options of methods that the paper does not have (`published`);
# of a method what scripts.tune tries, how many times as long as ERM's a run of it takes, and
# how it scales labels where the preset does not say.
ABOUT = {
    "dataset": (
        "title", "presets", "cpu_minutes", "search", "groups", "checkpoint_every", "absent", "published",
    ),
    "method": ("title", "grid", "cost", "label_scaling"),
}  # fmt: skip
GROUPS = ("dataset", "model", "method")
NOT_ARGUMENTS = ("_target_", "name")
MAX_WHOLE = 2**63 - 1  # what is larger is no setting, and its digits fill a message


def resolve_config(cfg: DictConfig) -> dict[str, Any]:
    """Return the configuration with every interpolation resolved.

    Raises:
        InputError: an unknown preset, or a value that refers to one that is not there.
    """
    with one_line():
        _check_groups(cfg)
        presets = list(cfg.dataset.presets)
        if cfg.preset not in presets:
            known = ", ".join(dict.fromkeys([*presets, TUNED, TUNED_DEFAULT]))
            raise InputError(
                f"preset must be one of {known} for dataset {cfg.dataset.name}, got {format_value(cfg.preset)}"
            )
        plain = OmegaConf.to_container(cfg, resolve=True)
    assert isinstance(plain, dict)
    top = [*ROOT_KEYS, *GROUPS, "train", "seeds"]
    if missing := [key for key in top if key not in plain]:
        raise InputError(f"{missing[0]} is missing: it cannot be taken out")
    if unknown := [str(key) for key in plain if key not in top]:
        raise InputError(f"{unknown[0]} is not known; the top level takes {', '.join(top)}")
    for group, about in ABOUT.items():
        for name in about:
            plain[group].pop(name, None)
    plain["experiment"] = plain["experiment"]["name"]
    for key, kind in ROOT_KEYS.items():
        check_type(key, plain[key], kind)
    return {str(key): value for key, value in plain.items()}


def _check_groups(cfg: DictConfig) -> None:
    """Raise `InputError` unless the groups are groups, with what every part has."""
    needs = dict.fromkeys(GROUPS, ("name", "_target_")) | {"train": (), "experiment": ("name",)}
    needs["dataset"] += ("presets",)
    for group, inside in needs.items():
        node = OmegaConf.select(cfg, group)
        if not isinstance(node, DictConfig):
            raise InputError(f"{group} must hold options of its own, got {format_value(node)}")
        for key in inside:
            wanted = DictConfig if key == "presets" else str
            if not isinstance(OmegaConf.select(node, key), wanted):
                raise InputError(f"{group}.{key} cannot be set, got {format_value(OmegaConf.select(node, key))}")


def target_of(node: Mapping[str, Any]) -> Callable[..., Any]:
    """Return the class or function that `_target_` names.

    Raises:
        InputError: there is none of that name.
    """
    module, _, attribute = str(node["_target_"]).rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(
            f"_target_ must name a class or function, got {format_value(node['_target_'])}: {format_value(str(error))}"
        ) from None


@dataclass(frozen=True)
class Part:
    """A checked node of the configuration.

    Attributes:
        function: the class or function that it calls.
        given: its arguments; nodes below it are parts themselves.
        shared: options that everything of its kind takes, for the method `with_options` of what is built.
    """

    function: Callable[..., Any]
    given: dict[str, Any]
    shared: dict[str, Any] = field(default_factory=dict)

    def build(self, *more: Any) -> Any:
        """Return what the function makes of the arguments, after the parts below it are built."""
        given = {key: value.build() if isinstance(value, Part) else value for key, value in self.given.items()}
        try:
            signature = call_signature(self.function)
            if not (more and any(one.kind is one.VAR_POSITIONAL for one in signature.parameters.values())):
                signature.bind(*more, **given)
        except TypeError as error:
            raise InputError(f"_target_ {self.function.__name__} cannot be called: {error}") from None
        except ValueError:  # a builtin that does not say what it takes
            pass
        built = self.function(*more, **given)
        return built.with_options(**self.shared) if self.shared else built

    @property
    def kind(self) -> Any:
        """The class of what it builds."""
        return self.function if inspect.isclass(self.function) else typing.get_type_hints(self.function).get("return")


def is_part(value: Any) -> bool:
    """Return whether a value of the configuration is a node that is built."""
    return isinstance(value, Mapping) and "_target_" in value


def parameters_of(node: Mapping[str, Any]) -> list[str]:
    """Return the names of the arguments of what a node calls."""
    return parameter_names(call_signature(target_of(node)))


def parameter_names(signature: inspect.Signature) -> list[str]:
    """Return the names that can be given, so neither `*args` nor `**more`."""
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [name for name, one in signature.parameters.items() if one.kind not in starred]


def call_signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return what a class or function takes, each argument with its type; `Any` where it has none.

    A constructor that hands `**more` on takes the arguments of its parent's by name, too, and so on up.

    Raises:
        ValueError: a builtin that does not say what it takes.
    """
    if not inspect.isclass(function):
        return _typed_signature(function)
    first, *parents = [
        _typed_signature(vars(kind)["__init__"]) for kind in function.__mro__ if "__init__" in vars(kind)
    ]
    taken = dict(list(first.parameters.items())[1:])  # without self
    for parent in parents:
        handed_on = [name for name, one in taken.items() if one.kind is one.VAR_KEYWORD]
        if not handed_on:
            break
        del taken[handed_on[0]]
        for one in list(parent.parameters.values())[1:]:
            if one.name not in taken and one.kind is not one.VAR_POSITIONAL:
                taken[one.name] = one if one.kind is one.VAR_KEYWORD else one.replace(kind=one.KEYWORD_ONLY)
    return first.replace(parameters=list(taken.values()))


def _typed_signature(function: Callable[..., Any]) -> inspect.Signature:
    hints = typing.get_type_hints(function)
    signature = inspect.signature(function)
    typed = [one.replace(annotation=hints.get(name, Any)) for name, one in signature.parameters.items()]
    return signature.replace(parameters=typed)


def check_part(
    path: str, node: dict[str, Any], reserved: Sequence[str] = (), function: Callable[..., Any] | None = None
) -> Part:
    """Check every key of a node, and of the nodes below it, by name and type.

    A key that the function does not take, but a node below does, is that node's: `method.bandwidth` is the bandwidth of
    `method.pairing`. Whole numbers given for floats become floats in `node` too: 5 and 5.0 are one value and name one
    run.

    Args:
        path: how errors call the node.
        node: a part of the configuration.
        reserved: arguments that the configuration cannot set.
        function: what is called; by default what `_target_` names.

    Raises:
        InputError: an unknown key, a value of another type, or a part of another kind, named with its path.
    """
    function = function or target_of(node)
    signature = call_signature(function)
    known = [name for name in parameter_names(signature) if name not in reserved]
    hints = {name: signature.parameters[name].annotation for name in known}
    shared = typing.get_type_hints(function.with_options) if hasattr(function, "with_options") else {}
    shared.pop("return", None)
    hints, known = hints | shared, [*known, *shared]
    for key in known:
        _refuse_name_of_part(f"{path}.{key}", node.get(key), hints.get(key, Any))
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
            given[key] = _check_below(path, key, node, hints.get(key, Any))
        else:
            hint = hints.get(key, Any)
            check_type(where, value, hint)
            takes_float = type(value) is int and float in (hint, *typing.get_args(hint))
            given[key] = node[key] = as_number(where, value) if takes_float else value
    return Part(function, given, {key: given.pop(key) for key in shared if key in given})


def _check_below(path: str, key: str, node: dict[str, Any], hint: Any) -> Part:
    """Check the part `node[key]`, whose arguments may stand one level up; they are named as the user gives them."""
    below = node[key]
    shared = [name for name in below if name in node and name not in NOT_ARGUMENTS]
    for name in shared:
        if repr(below[name]) != repr(node[name]):  # as text, so that NaN equals itself
            raise InputError(f"{path}.{key}.{name} is {path}.{name}: give that, got {format_value(below[name])}")
    try:
        part = check_part(f"{path}.{key}", below)
    except InputError as error:
        message = str(error)
        for name in shared:
            message = message.replace(f"{path}.{key}.{name} ", f"{path}.{name} ")
        raise InputError(message) from None
    node.update({name: below[name] for name in shared})
    kinds = [kind for kind in (typing.get_args(hint) or (hint,)) if inspect.isclass(kind)]
    plain = all(kind.__module__ == "builtins" for kind in kinds)  # numbers and texts, which no part is
    if kinds and (not issubclass(part.kind, tuple(kinds)) if inspect.isclass(part.kind) else plain):
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise InputError(f"{path}.{key} must be a {wanted} here, got {below.get('name', below['_target_'])}")
    return part


def _refuse_name_of_part(where: str, value: Any, hint: Any) -> None:
    """Raise `InputError` where a word stands for a part, which is chosen as a group: `method/pairing=uniform`."""
    group = where.replace(".", "/")
    takes_words = str in (hint, *typing.get_args(hint))
    if isinstance(value, str) and not takes_words and (CONFIG_DIR / group).is_dir():
        raise InputError(
            f"{where} is chosen with {group}=, one of {', '.join(option_names(group))}, got {format_value(value)}"
        )


def checked_arguments(path: str, node: Mapping[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Return the keys of a node without `_target_` as arguments of `function`, checked as `check_part` does."""
    return check_part(path, dict(node), function=function).given


def check_type(path: str, value: Any, kind: Any) -> None:
    """Raise `InputError` unless `value` is of type `kind` (whole numbers pass as floats) and of a usual size."""
    kinds = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    allowed = [k for one in kinds for k in ((int, float) if one is float else (one,))]
    plain = [k for k in allowed if isinstance(k, type)]
    wrong_bool = isinstance(value, bool) and bool not in plain
    if len(plain) == len(allowed) and (wrong_bool or not isinstance(value, tuple(plain))):
        expected = " or ".join(_WORDS.get(k, getattr(k, "__name__", str(k))) for k in kinds)
        raise InputError(f"{path} must be {expected}, got {format_value(value)}")
    if isinstance(value, int) and float not in plain and abs(value) > MAX_WHOLE:
        raise InputError(f"{path} must be a whole number within +-{MAX_WHOLE}, got {format_value(value)}")


_WORDS = {int: "a whole number", float: "a number", str: "a word", bool: "true or false", type(None): "null"}


def changed_options(plain: Mapping[str, Any], preset: str = "") -> dict[str, Any]:
    """Return the options that differ from what dataset, model, method and preset alone would give.

    Keys are spelt as in the configuration, such as `method.bandwidth`; a part that was swapped is given by its name,
    `method.pairing: uniform`, and options of its own by what differs from that part's defaults.

    Args:
        plain: a resolved configuration.
        preset: compare with this one instead of its own.
    """
    dataset, model, method = (plain[group]["name"] for group in GROUPS)
    words = [f"dataset={dataset}", f"method={method}", f"preset={preset or plain['preset']}"]
    usual = _usual_config(words)
    if usual["model"]["name"] != model:
        words = [*words, f"model={model}"]
        usual = _usual_config(words)
    mine, theirs = _flat_options(plain), _flat_options(usual)
    parts = {f"method.{key}": value.get("name") for key, value in plain["method"].items() if is_part(value)}
    swapped = {key: name for key, name in parts.items() if theirs.get(key) != name}
    if swapped:
        theirs = _flat_options(_usual_config([*words, *override_words(swapped)]))
    changed = {key for key, value in mine.items() if key not in theirs or theirs[key] != value}
    return {key: value for key, value in mine.items() if key in swapped or (key in changed and key not in parts)}


def _usual_config(words: Sequence[str]) -> Mapping[str, Any]:
    """Return what words compose to, not to be changed; once a process, but for tuned values, which tuning writes."""
    tuned = any(is_tuned(word.removeprefix("preset=")) for word in words)
    return resolve_config(compose_train(words)) if tuned else _untuned_config(CONFIG_DIR, tuple(words))


@functools.cache
def _untuned_config(_: Path, words: tuple[str, ...]) -> Mapping[str, Any]:
    return resolve_config(compose_train(words))


def _flat_options(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return every option with its path; a part by its name, and those of its options that do not stand above it."""
    flat: dict[str, Any] = {}
    for group in (*GROUPS, "train"):
        for key, value in plain[group].items():
            if not is_part(value):
                flat[f"{group}.{key}"] = value
                continue
            flat[f"{group}.{key}"] = value.get("name", value["_target_"])
            inside = {name: v for name, v in value.items() if name not in NOT_ARGUMENTS and name not in plain[group]}
            flat |= {f"{group}.{key}.{name}": v for name, v in inside.items()}
    return flat


def dataset_class(name: str) -> type[Dataset]:
    """Return the class that configs/dataset/<name>.yaml names.

    Raises:
        InputError: no such dataset.
    """
    if name not in option_names("dataset"):
        raise InputError(f"dataset must be among {', '.join(option_names('dataset'))}, got {name!r}")
    kind = target_of(part_file("dataset", name))
    assert isinstance(kind, type)
    return kind
