"""Words of a command line as Hydra reads them: names mean what was typed, and folders of parts are one's own, too.

Names of files, folders and columns are quoted before Hydra sees them. What its grammar is needed for stays its own:
lists in brackets, the values of a sweep between commas (`-m`), quoted text, and `${oc.env:...}`.
"""

import functools
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Glob, Override, Quote, QuotedString
from hydra.errors import HydraException

from cmixup.errors import InputError, format_value

FOLDERS = "CMIXUP_CONFIG"  # environment: folders like configs/ with parts of one's own
PARSER = OverridesParser.create()
FILES = ("dataset.path", "dataset.labels", "dataset.x", "dataset.y", "out")
WEIGHTS = "model.weights"  # a file, or null
SINGLE = (*FILES, *(f"dataset.{name}" for name in ("group", "package", "item", "image", "split", "time")))  # never null
SEVERAL = tuple(f"dataset.{name}" for name in ("target", "categorical", "drop", "keep", "missing", "known", "id"))
QUOTED = r"'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\""
LIST = r"\[(?:[^\[\]]|\[[^\[\]]*\])*\]"  # with names such as size [m]
ITEM = re.compile(rf"\s*(?:{QUOTED}|{LIST}|\[[^\]]*\])\s*(?=,|$)|[^,]+")  # of a list or a sweep
MULTIRUN = frozenset({"-m", "--multirun", "hydra.mode=MULTIRUN"})
FUNCTION = re.compile(r"(choice|glob|interval|range|shuffle|sort|tag)\(.*\)")  # of a sweep
TEXT = re.compile(r"(?!(true|false|null|inf|nan)$)[a-z_./][\w./]*", re.ASCII | re.IGNORECASE)  # needs no quotes
KNOWN_TO_HYDRA = re.compile(r"[\w/\-\\+.$%*@?|: ]", re.ASCII)  # of a value without quotes


#: The words that were typed by the options that they stand for, and nothing for a dataset that they choose.
TYPED: dict[str, str] = {}


class Alias(NamedTuple):
    """A word for the user's own data: its option, the dataset that it chooses, if any, and what `--help` says of it."""

    option: str
    dataset: str
    help_text: str


ALIASES = {
    "table": Alias("dataset.path", "csv", "a table of your own, a file"),
    "images": Alias("dataset.path", "images", "a folder with images of your own"),
    "series": Alias("dataset.path", "series", "a file with a series of your own"),
    "arrays": Alias("dataset.path", "arrays", "a file with arrays x and y of your own, .npz or .h5"),
    "x": Alias("dataset.x", "arrays", "a .npy file with inputs of your own"),
    "y": Alias("dataset.y", "arrays", "a .npy file with their labels"),
    "labels": Alias("dataset.labels", "", "the table with the labels of images"),
    "target": Alias("dataset.target", "", "the column to predict"),
    "time": Alias("dataset.time", "", "the column of a series that holds times"),
    "window": Alias("dataset.window", "", "rows of a series that an input has"),
    "horizon": Alias("dataset.horizon", "", "rows of a series that are forecast"),
}


def as_typed(text: str) -> str:
    """Return a line of an error with the words that were typed for options, and without a dataset that nobody typed."""
    for option, word in TYPED.items():
        text = re.sub(rf"^{option.removeprefix('dataset.')}(?=[ :])| ?\b{option}\b", f" {word}".rstrip(), text)
    return text.strip()


def typed_path(text: str) -> str:
    """Return the path that a word names: quotes around the whole are none of it, and ~ is the user's folder."""
    inside = text[1:-1] if re.fullmatch(QUOTED, text) and not os.path.exists(text) else text  # noqa: PTH110
    return os.path.expanduser(inside)  # noqa: PTH111, which raises where a name begins so


def hydra_words(words: Sequence[str]) -> list[str]:
    """Return words of a command line as Hydra reads them: names are quoted, and `table=my.csv` chooses its dataset.

    Signs such as -m come first, wherever they were typed: argparse takes no words on both sides of one.
    """
    sweeps, flags, overrides = bool(MULTIRUN & set(words)), list[str](), list[str]()
    aliases = [key for key in (word.partition("=")[0] for word in words) if key in ALIASES]
    datasets = {ALIASES[key].dataset: key for key in aliases if ALIASES[key].dataset}
    TYPED.update({ALIASES[key].option: key for key in aliases})
    for previous, word in zip(["", *words], words, strict=False):
        key, sign, value = word.partition("=")
        is_flag_value = previous.startswith("-") and previous not in MULTIRUN  # such as job, after --cfg
        if word.startswith("-") or (is_flag_value and not sign and not word.startswith("~")):
            flags.append(word)
            continue
        option = ALIASES[key].option if key in ALIASES else key
        names = sign and (option.lstrip("+") in ("out", WEIGHTS) or option.lstrip("+").startswith("dataset."))
        overrides.append(f"{option}={_hydra_value(option.lstrip('+'), value, sweeps=sweeps)}" if names else word)
        if not sign and not word.startswith("~"):
            raise InputError(f"option must be key=value, got {format_value(word)}; a value with blanks needs quotes")
        override = parse_word(overrides[-1])
        if not override.is_sweep_override() or override.is_hydra_override():
            continue
        if not sweeps:
            raise InputError(f"{word}: several values are a sweep, which needs -m: python -m scripts.train -m {word}")
        if isinstance(override.value(), Glob) and "." in override.key_or_group:
            raise InputError(f"{word}: glob chooses files of a group, such as method=glob(*mix*); give values: 0.1,1")
    if len(datasets) > 1:
        raise InputError(f"data must be of one kind, got {' and '.join(f'{key}=' for key in datasets.values())}")
    if datasets and not any(word.startswith("dataset=") for word in words):
        overrides.append(f"dataset={next(iter(datasets))}")
        TYPED[overrides[-1]] = ""
    return [*flags, *overrides]


def _hydra_value(key: str, text: str, *, sweeps: bool, lists: bool = True) -> str:
    exists = key in FILES and os.path.exists(text)  # noqa: PTH110, of any length
    is_null = text == "null" and lists and key not in (*SINGLE, "dataset.target")
    if not text or is_null or "${oc." in text or (re.fullmatch(QUOTED, text) and not exists):
        return text
    if sweeps and FUNCTION.fullmatch(text):
        return text
    if sweeps and not exists and len(items := ITEM.findall(text)) > 1:
        return ",".join(_hydra_value(key, item.strip(), sweeps=False) for item in items)
    if lists and key not in SINGLE and text.startswith("[") and text.endswith("]"):
        items = [item.strip() for item in ITEM.findall(text[1:-1])]
        return f"[{','.join(_hydra_value(key, item, sweeps=False, lists=False) for item in items)}]"
    if TEXT.fullmatch(text) or (key not in (*SINGLE, *SEVERAL, WEIGHTS) and _hydra_reads(f"{key}={text}")):
        return text
    return hydra_quoted(typed_path(text) if key in (*FILES, WEIGHTS) else text)


def _hydra_reads(word: str) -> bool:
    """Return whether Hydra can read a word, and not as a sweep over texts, which is a name with a comma."""
    try:
        override = parse_word(word)
    except InputError:
        return False
    values = [override.value(), *getattr(override.value(), "list", ())]
    return not (override.is_sweep_override() and any(isinstance(value, (str, Glob)) for value in values))


def hydra_quoted(text: str) -> str:
    """Return a text as Hydra and OmegaConf read it as it stands."""
    return QuotedString(re.sub(r"(\\*)\$\{", r"\1\1\\${", text), Quote.double).with_quotes()


def hydra_text(value: Any) -> str:
    """Return a value as Hydra reads it on a command line."""
    if isinstance(value, str):
        return hydra_quoted(value)
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(hydra_text, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("Infinity", "inf")


@functools.lru_cache(1 << 10)
def parse_word(word: str) -> Override:
    """Return a word of a command line as Hydra reads it, or name the sign at which it stops, and how to quote it."""
    try:
        return PARSER.parse_override(word)
    except HydraException:
        key, _, value = word.partition("=")
        sign = next((sign for sign in value if not KNOWN_TO_HYDRA.match(sign)), "")
        close = "close it, or " if value.startswith(("[", "{")) else ""
        stops = f"cannot read {sign} here: {close}put the value into quotes" if sign else "finds no value, such as"
        raise InputError(f"{key}={value}: Hydra {stops} '{key}={hydra_quoted(value or 'value')}'") from None


def take_folders(words: Sequence[str]) -> list[str]:
    """Return words without `--config-dir` and `hydra.searchpath`, whose folders hold parts from now on (`FOLDERS`)."""
    others, folders, rest = list[str](), list[str](), iter(words)
    for word in rest:
        key, _, value = word.partition("=")
        if key in ("--config-dir", "-cd"):
            folders.append(value or next(rest, ""))
        elif key.lstrip("+") == "hydra.searchpath":
            folders += [typed_path(item.strip()) for item in ITEM.findall(value.removeprefix("[").removesuffix("]"))]
        else:
            others.append(word)
    if folders:
        earlier = os.environ.get(FOLDERS, "").split(os.pathsep)
        os.environ[FOLDERS] = os.pathsep.join(filter(None, dict.fromkeys([*map(_resolved_folder, folders), *earlier])))
    return others


def _resolved_folder(place: str) -> str:
    path = Path(typed_path(place.removeprefix("file://")))
    if path.is_dir():
        return str(path.resolve())
    raise InputError(f"--config-dir and hydra.searchpath must name folders, got {format_value(place)}")
