"""The arguments of a command line, `key=value` as in Hydra, seeds among them, and the text of --help."""

import difflib
import os
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cmixup.errors import MAX_SEED, InputError, check_choice, check_count, format_value
from scripts.config.words import take_folders, typed_path

MOST_SEEDS = 100_000  # of one command
SWITCH = {"0": False, "false": False, "1": True, "true": True}
OUT = "folder of runs and of what is made of them; default CMIXUP_OUT, else outputs"  # what `--help` says of `out`


class Args(dict[str, str]):
    """The values of a command line by their keys, as text; a key without a value is absent."""

    def switch(self, key: str) -> bool:
        """Return whether a key is 1 or true rather than 0, false or absent."""
        return SWITCH[check_choice(key, self.get(key, "0"), tuple(SWITCH))]

    def numbers(self, key: str) -> list[float]:
        """Return the numbers between commas, none where the key is absent."""
        try:
            return [float(part) for part in self.get(key, "").split(",") if part.strip()]
        except ValueError:
            raise InputError(f"{key} must be numbers separated by commas, got {self[key]!r}") from None

    def count(self, key: str, default: int = 0) -> int:
        """Return a whole number, 0 or more."""
        text = self.get(key, str(default))
        if not text.isdecimal():
            raise InputError(f"{key} must be a whole number, got {text!r}")
        return check_count(key, int(text))

    def names(self, key: str, known: Sequence[str]) -> list[str]:
        """Return the names between commas, which must be known; all known ones where the key is absent."""
        parts = [part.strip() for part in self.get(key, "").split(",") if part.strip()] or list(known)
        for part in parts:
            if part not in known:
                raise InputError(f"{key} must be among {', '.join(known)}, got {part!r}{near_hint(part, known)}")
        return list(dict.fromkeys(parts))

    @property
    def out(self) -> Path:
        """The folder of runs: the argument `out=`, else CMIXUP_OUT, else `outputs`."""
        return Path(typed_path(self.get("out") or os.environ.get("CMIXUP_OUT") or "outputs"))

    def path(self, key: str) -> Path:
        """Return the path that a key names."""
        return Path(typed_path(self[key]))


def near_hint(word: str, known: Sequence[str]) -> str:
    """Return a question that names the known word most like this one, or nothing."""
    nearest = difflib.get_close_matches(word, known, 1)
    return f"; did you mean {nearest[0]}?" if nearest else ""


def parse_args(
    argv: Sequence[str] | None, keys: Mapping[str, str], about: str | None = None, names: Sequence[str] = ()
) -> Args:
    """Read a command line: values of `names` first, then `key=value`; an empty value counts as not given.

    Args:
        argv: the command line; None is that of this process. `--help` prints `about` and the keys, and ends.
        keys: every key with its meaning and its default. A key that ends in "." stands for all that begin so.
        about: the command's docstring, which has an example.
        names: keys whose values may stand first and alone, such as the table of `scripts.reproduce table1`.

    Raises:
        InputError: another word, an unknown key, or a key twice.
        SystemExit: help was asked for.
    """
    argv = take_folders(sys.argv[1:] if argv is None else argv)
    if {"-h", "--help"} & set(argv):
        print(format_help(about or "", keys))
        raise SystemExit(0)
    args, positional, prefixes = Args(), list(names), tuple(key for key in keys if key.endswith("."))
    for word in argv:
        key, sign, value = word.partition("=")
        is_key = sign and (key in keys or key.startswith(prefixes))
        if positional and not is_key and not word.startswith("-") and (not sign or "/" in key or os.path.exists(word)):  # noqa: PTH110
            key, value = positional.pop(0), word  # a run's folder is named by its options
        elif not is_key:
            meant = key.lstrip("-").replace("-", "_")
            hint = f"; did you mean {meant}=?" if meant in keys else near_hint(meant, list(keys))
            raise InputError(f"option must be one of {'=, '.join(keys)}=, got {word!r}{hint}")
        if key in args:
            raise InputError(f"{key} must be given once, got {word!r} too")
        if value:
            args[key] = value
    return args


def parse_command(argv: Sequence[str] | None, parts: Mapping[str, Any], about: str | None) -> tuple[Any, Args]:
    """Read the name of one of several modules with `KEYS`, then its arguments, see `parse_args`.

    `about` is what `--help` without a name prints.
    """
    name, *rest = (sys.argv[1:] if argv is None else argv) or ["--help"]
    if name in ("-h", "--help"):
        print(format_help(about or "", {}))
        raise SystemExit(0)
    if name not in parts:
        raise InputError(
            f"the first word must be one of {', '.join(parts)}, got {name!r}{near_hint(name, list(parts))}"
        )
    return parts[name], parse_args(rest, parts[name].KEYS, parts[name].__doc__)


def parse_seeds(value: Any, name: str = "seeds") -> list[int]:
    """Return seeds from a range `0..9` (both ends in), a list `[0,3,5]` or `0,3,5`, or a count (10 means 0..9).

    They come in rising order however they are written: the models of a stack share one stream of dropout masks.
    """
    try:
        items = value[1:-1].split(",") if isinstance(value, str) and value[:1] + value[-1:] == "[]" else value
        words: Sequence[Any] = items if isinstance(items, list | tuple) else str(items).split(",")
        if len(words) == 1 and not isinstance(items, list | tuple):  # no comma
            low, sign, high = words[0].rpartition("..")
            first, stop = (int(low), int(high) + 1) if sign else (0, int(words[0]))
            words = range(first, min(stop, first + MOST_SEEDS + 1))
        words = [word for word in words if not isinstance(word, str) or word.strip()]
        seeds = [int(word) for word in words]
        exact = all(int(word) == float(word) and not isinstance(word, bool) for word in words)
        if not exact or not 0 < len(set(seeds)) == len(seeds) <= MOST_SEEDS or min(seeds) < 0 or max(seeds) > MAX_SEED:
            raise ValueError(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            f"{name} must be a range like 0..9, a list like [0,3,5], or a count, at most {MOST_SEEDS} seeds "
            f"up to {MAX_SEED}, got {format_value(value)}"
        ) from None
    return sorted(seeds)


WIDTH = 78  # two less than a terminal's, for the sign that a line goes on


def format_help(about: str, keys: Mapping[str, str]) -> str:
    """Return a command's docstring and its keys, each with its meaning and its default.

    Of the paragraphs of `about` indented lines stay lines, and each command after "Example:" becomes one.
    """
    text, sign, examples = re.sub(r"Examples?: ", "\0", about.strip(), count=1).partition("\0")
    paragraphs = []
    for paragraph in text.strip().split("\n\n") if text else []:
        lines = paragraph.splitlines() if paragraph.startswith(" ") else [paragraph]
        paragraphs.append("\n".join(_filled_lines(line, "", " " * 13 * line.startswith(" ")) for line in lines))
    if sign:
        commands = re.findall(r"`([^`]+)`", examples) or [examples]
        filled = [_filled_lines(" ".join(one.split()), "  ", "      ").replace("\n", " \\\n") for one in commands]
        paragraphs.append("\n".join([f"Example{'s' * (len(commands) > 1)}:", *filled]))
    meanings = {key + ("*=" if key.endswith(".") else "="): meaning for key, meaning in keys.items()}
    width = max(map(len, meanings), default=0)
    lines = [_filled_lines(meaning, f"  {key:<{width}} ", " " * (width + 3)) for key, meaning in meanings.items()]
    return "\n\n".join([*paragraphs, *(["\n".join(line.rstrip() for line in lines)] if keys else [])])


def _filled_lines(text: str, first: str = "", others: str = "") -> str:
    """Return text in lines of at most `WIDTH` characters, the first and the others indented."""
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
