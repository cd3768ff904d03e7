"""What `--help` prints, in lines of at most 80 characters."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence

WIDTH = 78  # two less than a terminal's, for the sign that a line goes on
#: Groups of `scripts.train`, with what they choose.
GROUPS = {
    "dataset": "what is trained on (docs/data.md)",
    "method": "how it is mixed",
    "model": "the network; default the dataset's own",
    "method/pairing": "who is mixed with whom",
    "method/mixing": "how two rows become one",
    "method/lam": "with what weights",
    "experiment": "which table or figure the records belong to; default adhoc",
    "debug": "tiny trains one epoch on a few rows",
}
#: Keys of `scripts.train` that most commands need.
KEYS = {
    "preset": "where hyperparameters come from: paper, released, default or tuned",
    "seeds": "0..9, [0,3,5] or a count; they train together as one stack",
    "method.bandwidth": "sigma of C-Mixup, in label units, or auto",
    "method.alpha": "of Beta(alpha, alpha), from which lambda is drawn",
    "train.epochs": "likewise train.lr, train.batch_size, train.patience, ...",
    "table": "your own CSV file, with target=COLUMN",
    "device": "auto, cpu, cuda or cuda:0",
    "out": "folder of runs; default CMIXUP_OUT, else outputs",
    "logger": "wandb (offline by default) or none",
    "rerun": "true trains again what is done",
}
EXAMPLES = (
    "python -m scripts.train dataset=airfoil method=cmixup seeds=0..2",
    "python -m scripts.train table=my.csv target=price method=erm",
    "python -m scripts.train -m dataset=no2 method=erm,mixup,cmixup",
    "python -m scripts.train dataset=no2 --cfg job --resolve",
)


def format_help(about: str, keys: Mapping[str, str]) -> str:
    """Return a command's docstring and its keys, each with what it is and its default.

    Args:
        about: paragraphs. Indented lines stay lines, and each command behind "Example:" becomes one.
        keys: a key that ends in "." stands for all that begin so.
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
    return "\n\n".join([*paragraphs, *([listed_keys(keys)] if keys else [])])


def listed_keys(keys: Mapping[str, str]) -> str:
    """Return a line or more for each key."""
    signed = {key + ("*=" if key.endswith(".") else "="): what for key, what in keys.items()}
    width = max(map(len, signed), default=0)
    lines = [_filled_lines(what, f"  {key:<{width}} ", " " * (width + 3)) for key, what in signed.items()]
    return "\n".join(line.rstrip() for line in lines)


def train_help(names: Callable[[str], Sequence[str]]) -> str:
    """Return the help of `scripts.train`.

    Args:
        names: returns the options of a group of configs/.
    """
    parts = [
        "Train a configuration: data, method, network and seeds.",
        "Usage: python -m scripts.train [-m] GROUP=NAME ... KEY=VALUE ...",
        "Examples (the last one prints every key with its value, and trains nothing):\n"
        + "\n".join(f"  {line}" for line in EXAMPLES),
        "-m sweeps: every combination of the values between commas is a run.",
        "Groups:",
    ]
    for group, what in GROUPS.items():
        parts.append(f"  {group}=  {what}\n{_filled_lines(', '.join(names(group)), '    ', '    ')}")
    parts += ["Keys:\n" + listed_keys(KEYS), "Every key: configs/train.yaml and docs/command_line.md."]
    return "\n\n".join(parts)


def _filled_lines(text: str, first: str = "", others: str = "") -> str:
    """Return text in lines of at most `WIDTH` characters, the first and the others indented."""
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )
