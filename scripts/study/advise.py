"""What the published study lets one expect of C-Mixup on a table not yet seen, and the commands that find out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from cmixup.errors import InputError
from scripts.config.compose import compose_train, override_word
from scripts.driver.job import plan_job
from scripts.records.experiment import RESULTS

EXPECTED = RESULTS / "study" / "expected.txt"


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
    given = shlex.join(words)
    found = "".join(f"Look first: {line}\n" for line in dataset.problems())
    return f"""{found}{published_text()}

Nothing measured on training rows foretold the sign on those tables. Find out on yours (test rows, 10 seeds):
python -m scripts.train -m {given} method=erm,cmixup seeds=0..9 logger=none
python -m scripts.collect over=method dataset=csv experiment=adhoc
16 trials of options for either method, as in the study; it prints the commands that train with the best:
python -m scripts.tune {given} method=erm,cmixup preset=default"""


def published_text() -> str:
    """Return the sentences on what to expect, which `scripts.render` has made: `scripts.study.expectation`.

    Raises:
        InputError: they are not there.
    """
    if not EXPECTED.is_file():
        raise InputError(f"{EXPECTED} is missing; make it by `python -m scripts.render`")
    return EXPECTED.read_text().rstrip()
