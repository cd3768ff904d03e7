"""What the published study lets one expect of C-Mixup on a table not yet seen, and the commands that find out."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from cmixup.errors import InputError
from scripts.config.compose import compose_train, override_word
from scripts.driver.job import plan_job
from scripts.effects.verdicts import EQUAL, GAINS, LOSES, UNTOLD, Effect, direction_text, mean_text, new_text
from scripts.protocol.protocols import load_protocol2
from scripts.records.experiment import RESULTS
from scripts.records.register import writes
from scripts.study.evidence import ENSEMBLE, METHOD, with_later_splits

EXPECTED = RESULTS / "study" / "expected.txt"
WIDTH = 80  # columns of a terminal


def advise_table(table: str, target: str, options: Sequence[str] = ()) -> str:
    """Return what to expect on a table, and how to find out there.

    Args:
        table: a CSV file.
        target: the column to predict.
        options: words such as `dataset.categorical=[city]`.

    Raises:
        InputError: the table cannot be read.
    """
    words = ["dataset=csv", override_word("dataset.path", table), override_word("dataset.target", target), *options]
    dataset = plan_job(compose_train(words)).dataset
    dataset.load(seed=0)
    found = [f"Look first: {line}" for line in dataset.problems()]
    parts: list[str | list[str]] = [
        *found, *published_text().splitlines(), "",
        "Nothing measured on training rows foretold the sign on those tables. Find out on yours (test rows, 10 seeds):",
        ["python -m scripts.train -m", *words, "method=erm,cmixup", "seeds=0..9", "logger=none"],
        ["python -m scripts.collect", "over=method", "dataset=csv", "experiment=adhoc"],
        "16 trials of options for either method, as in the study; it prints the commands that train with the best:",
        ["python -m scripts.tune", *words, "method=erm,cmixup", "preset=default"],
    ]  # fmt: skip
    return "\n".join(wrap_command(*part) if isinstance(part, list) else wrap_text(part) for part in parts)


def wrap_text(text: str) -> str:
    """Return a sentence in lines of a terminal."""
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def wrap_command(command: str, *words: str) -> str:
    """Return a command in lines of a terminal, which a shell reads as one; a longer word is a line of its own."""
    lines = [command]
    for word in map(shlex.quote, words):
        if len(lines[-1]) + len(word) + 3 > WIDTH:
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}"
    return "\n".join(lines)


def published_text() -> str:
    """Return the sentences on what to expect, which `scripts.render` has made: `scripts.study.advise`.

    Raises:
        InputError: they are not there.
    """
    if not EXPECTED.is_file():
        raise InputError(f"{EXPECTED} is missing; make it by `python -m scripts.render`")
    return EXPECTED.read_text().rstrip()


@writes
def expectation_text() -> dict[str, str]:
    """Return the sentences by their path below results/."""
    return {"study/expected.txt": expected() + "\n"}


def expected() -> str:
    """Return the sentences on C-Mixup, and on an ensemble, over tables with all of their rows, split at random.

    Raises:
        InputError: fewer than two tables are published.
    """
    rules, setting = load_protocol2(), with_later_splits()
    own = setting.effect(METHOD, rules)
    if own is None or len(own.means) < 2:
        raise InputError("results/runs must hold ERM and C-Mixup on two tables or more; it does not")
    told, size, ensemble = own.counts(), f"{rules.equal:g} %", setting.effect(ENSEMBLE, rules)
    lines = [
        (
            f"On {len(own.means)} real tables, each of {setting.splits} splits tuned by itself, by a model of all "
            "tables (results/study/when.md):"
        ),
        f"C-Mixup's test error minus ERM's, in % of ERM's: mean {mean_text(own)}; {direction_text(own)}.",
        (
            f"It gains {size} or more on {told[GAINS]} tables, loses as much on {told[LOSES]}, lies within on "
            f"{told[EQUAL]}, and on {told[UNTOLD]} that cannot be told."
        ),
        advice(own, rules.equal),
    ]
    if ensemble:
        lines += [f"Five averaged networks of ERM: mean {mean_text(ensemble)}; {direction_text(ensemble)}.",
                  advice(ensemble, rules.equal)]  # fmt: skip
    return "\n".join(lines)


def advice(own: Effect, equal: float) -> str:
    """Return what to expect on a table that nobody has seen."""
    new = own.of_new
    return f"{new_text(own, equal)} Its effect lies between {new.low:+.1f} and {new.high:+.1f} % with probability 0.95."
