"""What the published study lets one expect of C-Mixup on a table not yet seen, and the commands that find out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from cmixup.errors import InputError
from scripts.driver.compose import compose_train, override
from scripts.driver.job import plan
from scripts.records.tables import interval_text
from scripts.study.evidence import settings
from scripts.study.front import lead
from scripts.study.protocols import load_protocol1, load_protocol2
from scripts.study.verdicts import EQUAL, GAINS, LOSES, UNTOLD, counts, over_tables


def advise(table: str, target: str, options: Sequence[str] = ()) -> str:
    """Return what to expect on a table, and how to find out there.

    Args:
        table: a CSV file.
        target: the column to predict.
        options: words such as `dataset.categorical=[city]`.

    Raises:
        InputError: the table cannot be read, or the study has fewer than two published tables.
    """
    words = ["dataset=csv", override("dataset.path", table), override("dataset.target", target), *options]
    plan(compose_train(words)).dataset.load(seed=0)
    given = shlex.join(words)
    return f"""{expected()}

Nothing measured on training rows foretold the sign on those tables. Find out on yours (test rows, 10 seeds):
python -m scripts.train -m {given} method=erm,cmixup seeds=0..9 logger=none
python -m scripts.collect over=method dataset=csv experiment=adhoc
16 trials of options for either method, as in the study; it prints the commands that train with the best:
python -m scripts.tune {given} method=erm,cmixup preset=default"""


def expected() -> str:
    """Return the sentences on C-Mixup against ERM over tables with all of their rows, split at random.

    They are of protocol 2 once this setting of it is whole, until then of protocol 1, by the same tests.

    Raises:
        InputError: fewer than two tables are published.
    """
    rules, earlier = load_protocol2(), load_protocol1()
    setting = (found := settings())[-1]
    each = lead(found).changes("cmixup")
    values, n = [change.interval.mean for change in each.values()], len(each)
    if n < 2:
        raise InputError("results/runs/study must hold ERM and C-Mixup on two tables or more; it does not")
    told = counts(each, rules.level, rules.equal)
    how = (
        f"each of {rules.splits} splits tuned by itself"
        if setting.whole
        else f"tuned once for {earlier.seeds} splits (the study's earlier protocol; of the present one "
        f"{len(setting.tables)} of {setting.of} tables are trained)"
    )
    return (
        f"On {n} real tables, {how}: C-Mixup gained on {told[GAINS]}, lost on {told[LOSES]}, made no difference of "
        f"{rules.equal:g} % on {told[EQUAL]}, and on {told[UNTOLD]} it cannot be told (t tests that allow for the "
        "overlap of splits, Holm's correction over tables).\nIts test error minus ERM's, in % of ERM's: mean over "
        f"tables {interval_text(over_tables(each), 1)}, standard deviation {np.std(values, ddof=1):.1f}.\n"
        f"On a table not yet seen expect between {min(values):+.1f} and {max(values):+.1f} %, the ends of what was "
        f"seen: one drawn as those were falls between them in {n - 1} of {n + 1} cases."
    )
