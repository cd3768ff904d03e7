"""From words of a command line to a composed configuration, and back."""

import contextlib
import functools
import os
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.types import Override, OverrideType
from hydra.errors import MissingConfigException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, InterpolationKeyError, OmegaConfBaseException

from cmixup.errors import InputError, format_value
from scripts.config.arguments import near_hint
from scripts.config.words import ALIASES, FOLDERS, TYPED, hydra_text, hydra_words, parse_word, take_folders, typed_path

CONFIG_DIR = Path(__file__).resolve().parents[2] / "configs"
TUNED, TUNED_DEFAULT = "tuned", "tuned_default"  # presets, and the folders of the values that make them
TUNED_PRESETS = (TUNED, TUNED_DEFAULT)
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the same, ten times as fast
LONGEST_LINE = 300  # characters of what Hydra says of bad words
ADDED = "method/transform"  # the group that no method has by default, so that Hydra wants a + before it
TUNE_SEED = 1000  # of scripts.tune; no table may use it


def option_names(group: str) -> list[str]:
    """Return the options of a config group, such as all datasets; none where `group` is no group."""
    return sorted({path.stem for folder in part_folders() for path in (folder / group).glob("*.yaml")})


def part_folders() -> tuple[Path, ...]:
    """Return the folders that hold parts: configs/, and those that the environment names to this process and others."""
    return (CONFIG_DIR, *(Path(folder) for folder in os.environ.get(FOLDERS, "").split(os.pathsep) if folder))


def part_path(group: str, name: str) -> Path:
    """Return the file of one option of a group, in the first folder that has it, else in configs/."""
    paths = [folder / group / f"{name}.yaml" for folder in part_folders()]
    return next((path for path in paths if os.path.isfile(path)), paths[0])  # noqa: PTH113, a name of any length


def part_file(group: str, name: str) -> dict[str, Any]:
    """Return what the file of one option of a group says, as it stands; read once a process, not to be changed."""
    return _read(part_path(group, name))


def read_part(path: Path) -> dict[str, Any]:
    """Return what a configuration file says, as it stands."""
    return yaml.load(path.read_text(), Loader=LOADER) or {}  # noqa: S506, safe


_read = functools.cache(read_part)


@contextlib.contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn what Hydra and OmegaConf raise of bad words, which may be anything, into an `InputError` of one line."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        raise InputError(describe_error(error)) from error


def describe_error(error: BaseException) -> str:
    """Return what is wrong with the words of a command line in one sentence, with the known word most like one."""
    inner: Any = error
    # OmegaConf adds a cause of its own, without a key, in a process that is traced (a debugger, coverage).
    while inner.__cause__ and not getattr(inner, "full_key", None):
        inner = inner.__cause__
    if isinstance(error, MissingConfigException) and error.missing_cfg_file:
        group, _, name = error.missing_cfg_file.rpartition("/")
        known = [str(option) for option in error.options or ()]
        return f"{group} must be one of {', '.join(known)}, got {format_value(name)}{near_hint(name, known)}"
    if isinstance(inner, InterpolationKeyError) and (match := re.search(r"key '([^']+)'", str(inner))):
        return f"{inner.full_key} has no value here, since there is no {match[1]}: give {inner.full_key}=..."
    if isinstance(inner, ConfigKeyError | ConfigAttributeError) and isinstance(inner.parent_node, DictConfig):
        known = [str(key) for key in inner.parent_node]
        if inner.full_key in TYPED:
            aliases = ", ".join(f"{word}=" for word in ALIASES if ALIASES[word].dataset)
            reason = f"is no option of dataset {inner.parent_node.get('name')}; data of your own are named by {aliases}"
            return f"{TYPED[inner.full_key]} {reason}"
        hint = near_hint(str(inner.key), known) or f"; there are {', '.join(known)}"
        return f"{inner.full_key} is not known{hint}"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_LINE else f"{text[:LONGEST_LINE]}..."


@one_line_errors()
def compose_train(overrides: Sequence[str]) -> DictConfig:
    """Compose configs/train.yaml with command-line overrides.

    Choices of groups are composed once a process, as it takes a tenth of a second, and values are set as Hydra does.
    """
    words, groups, values, experiment = hydra_words(overrides), list[str](), list[Override](), ""
    folders = part_folders()
    # Hydra refuses a group that is chosen twice; here the last choice wins, as it does for values.
    for word in {word.partition("=")[0]: word for word in words}.values():
        override = parse_word(word)
        key = override.key_or_group
        is_group = (
            "/" in key
            or override.package is not None
            or any(os.path.isdir(folder / key) for folder in folders)  # noqa: PTH112, a name of any length
            or key.split(".")[0] == "hydra"
        )
        sets_value = override.type in (OverrideType.CHANGE, OverrideType.ADD, OverrideType.FORCE_ADD)
        if sets_value and not is_group and not override.is_sweep_override():
            values.append(override)
        elif key == "experiment" and os.path.isfile(part_path(key, word.partition("=")[2])):  # noqa: PTH113
            experiment = word  # its file refers to no other part, and is put in without Hydra
        else:
            groups.append(word)
    if any(word.startswith("debug=") for word in groups):  # which records under a name of its own
        groups, experiment = [*groups, *([experiment] if experiment else [])], ""
    in_hydra = GlobalHydra.instance().is_initialized()
    cfg: DictConfig = pickle.loads(_hydra_composed(folders, tuple(sorted(groups)), in_hydra))  # noqa: S301, made here
    if experiment:
        cfg.experiment = part_file("experiment", experiment.partition("=")[2])
    for override in values:
        key, value = override.key_or_group, override.value()
        if override.is_add() and not isinstance(value, (dict, list)) and OmegaConf.select(cfg, key) is not None:
            raise InputError(f"{key} is there already: set it without +, got {format_value(value)}")
        try:
            OmegaConf.update(cfg, key, value, merge=True, force_add=override.is_add() or override.is_force_add())
        except OmegaConfBaseException as error:
            if isinstance(error, ConfigKeyError | ConfigAttributeError):
                raise
            raise InputError(f"{key} cannot be set to {format_value(value)}: {str(error).splitlines()[0]}") from None
    tuned = cfg.preset in TUNED_PRESETS and cfg.preset not in cfg.dataset.presets
    return compose_train(with_tuned(cfg, cfg.preset, words)) if tuned else cfg


@functools.cache
def _hydra_composed(folders: tuple[Path, ...], words: tuple[str, ...], in_hydra: bool) -> bytes:
    """Let Hydra compose, and pickle it, which copies it in a fifth of the time of a deep copy.

    `in_hydra` says whether Hydra's own command line has been read, which knows where to look.
    """
    with contextlib.nullcontext() if in_hydra else initialize_config_dir(str(folders[0]), version_base="1.3"):
        return pickle.dumps(compose("train", overrides=[*words, *([search_word(folders[1:])] if folders[1:] else [])]))


def search_word(folders: Sequence[Path]) -> str:
    """Return the word by which Hydra finds parts in folders of the user's."""
    user_folders = [f for f in folders if f != CONFIG_DIR]
    names = [path.relative_to(CONFIG_DIR) for path in CONFIG_DIR.rglob("*/*.yaml")] if user_folders else []
    if hidden := [folder / name for folder in user_folders for name in names if (folder / name).is_file()]:
        raise InputError(f"{hidden[0]} would not be read: configs/ has a file of that name, so give it another")
    return f"hydra.searchpath={hydra_text([f'file://{folder}' for folder in folders])}"


def is_custom(dataset: str, method: str) -> bool:
    """Return whether the data, or the files of dataset or method, are the user's: they have no tuned presets."""
    parts = ("dataset", dataset), ("method", method)
    return bool(part_file(*parts[0]).get("own")) or any(CONFIG_DIR not in part_path(*part).parents for part in parts)


def tuned_path(dataset: str, preset: str = TUNED) -> Path:
    """Return the file of a dataset's tuned values, by method; their keys are those of the command line."""
    return CONFIG_DIR / preset / f"{dataset}.yaml"


def tuned_values(dataset: str, method: str, preset: str = TUNED) -> dict[str, Any] | None:
    """Return a method's tuned values, or None where it has not been tuned on a dataset."""
    path = tuned_path(dataset, preset)
    return read_part(path).get(method) if path.is_file() else None


def base_preset(dataset: str, preset: str = TUNED) -> str:
    """Return the preset that a tuned one starts from.

    `tuned` starts from `paper`, or from `default` for a dataset that the paper does not have; `tuned_default` from
    `default`; any other is its own.
    """
    if preset not in TUNED_PRESETS:
        return preset
    presets = part_file("dataset", dataset).get("presets", ())  # the run says what such a file lacks
    return "paper" if preset == TUNED and "paper" in presets else "default"


def tune_command(dataset: str, method: str, preset: str = TUNED) -> str:
    """Return the command that makes a tuned preset for a method."""
    chosen = [f"preset={base_preset(dataset, preset)}"] if preset != TUNED else []
    return " ".join(["python -m scripts.tune", f"dataset={dataset}", f"method={method}", *chosen])


def with_tuned(cfg: DictConfig, preset: str, words: Sequence[str]) -> list[str]:
    """Return the words of a command line under the values of a tuned preset, over which the words win."""
    dataset, method = cfg.dataset.name, cfg.method.name
    if is_custom(dataset, method):
        raise InputError(
            f"preset {preset}: data and parts of your own have none; scripts.tune prints the command with what it finds"
        )
    values = tuned_values(dataset, method, preset)
    if values is None:
        command = tune_command(dataset, method, preset)
        raise InputError(f"preset {preset}: {method} has not been tuned on {dataset}; {command} does it")
    base = base_preset(dataset, preset)
    return [f"+dataset.presets.{preset}=${{dataset.presets.{base}}}", *override_words(values), *words]


def normalize_arguments(words: Sequence[str]) -> list[str]:
    """Return a command line as Hydra takes it: `table=` and `target=` as options of a dataset, which is chosen."""
    if out := os.environ.get("CMIXUP_OUT"):
        os.environ["CMIXUP_OUT"] = typed_path(out)
    words = hydra_words(take_folders(words))
    if folders := part_folders()[1:]:
        words.append(search_word(folders))
    return words


def override_word(key: str, value: Any) -> str:
    """Return a command-line override that sets `key` to `value`; a part is chosen as a group by its name."""
    group = key.replace(".", "/")
    if isinstance(value, str) and os.path.isfile(part_path(group, value)):  # noqa: PTH113
        return f"{'+' if group == ADDED else ''}{group}={value}"
    return f"{key}={hydra_text(value)}"


def override_words(options: Mapping[str, Any]) -> list[str]:
    """Return the words of a command line that set options as records name them."""
    return [override_word(key, value) for key, value in options.items()]
