"""What the published study lets one expect of C-Mixup on a table not yet seen, and the commands that find out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from cmixup.errors import InputError
from scripts.driver.compose import compose_train, override
from scripts.driver.job import plan
from scripts.records.stats import clustered
from scripts.records.tables import interval_text
from scripts.study.effects import BASE, effects, mean_error, scores_of
from scripts.study.protocols import load_protocol1
from scripts.study.published import read


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
    """Return the sentences on C-Mixup against ERM over the study's tables with all of their rows.

    Raises:
        InputError: fewer than two tables are published.
    """
    rules = load_protocol1()
    scores = scores_of(read(rules), "all")
    each = effects(scores, "cmixup")
    percent = [100 * effect.interval.mean / mean_error(scores[name][BASE]) for name, effect in each.items()]
    mean, n = clustered(percent, list(each)), len(each)
    if mean is None:
        raise InputError("results/runs/study must hold ERM and C-Mixup on two tables or more; it does not")
    verdicts = [effect.verdict(rules.level) for effect in each.values()]
    return (
        f"On {n} real tables, tuned alike, {rules.seeds} seeds: C-Mixup gained on {verdicts.count('win')}, lost on "
        f"{verdicts.count('loss')} and made no difference beyond chance on {verdicts.count('tie')} (paired t tests, "
        f"Holm's correction).\nIts test error minus ERM's, in % of ERM's: mean over tables {interval_text(mean, 1)}, "
        f"standard deviation {np.std(percent, ddof=1):.1f}.\n"
        f"On a table not yet seen expect between {min(percent):+.1f} and {max(percent):+.1f} %, the ends of what was "
        f"seen: one drawn as those were falls between them in {n - 1} of {n + 1} cases."
    )
