"""What C-Mixup may be expected to change on a table, from its training rows alone: the rule of 30 other tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import InputError
from scripts.driver.compose import compose_train
from scripts.driver.job import plan
from scripts.report.terminal import print_table
from scripts.study.published import FOLDER
from scripts.study.rule import ALWAYS_ERM, FILE, Rule, read_rule
from scripts.study.traits import TRAITS, describe

SEED = 0


def advise(table: str, target: str, options: Sequence[str] = ()) -> None:
    """Print the traits of a table and what to expect there.

    Args:
        table: a CSV file.
        target: the column to predict.
        options: words such as `dataset.categorical=[city]`.

    Raises:
        InputError: nothing has been published to go by, or the table cannot be read.
    """
    if not (FOLDER / FILE).is_file():
        raise InputError(f"{FOLDER / FILE} is not there: the study has published no rule yet")
    rule = read_rule(FOLDER / FILE)
    words = ["dataset=csv", f"dataset.path={table}", f"dataset.target={target}", *options, "logger=none"]
    train = plan(compose_train(words)).dataset.load(SEED).train
    traits = describe(train.x.numpy(), train.y.numpy(), SEED)
    rows = [[TRAITS[name], f"{value:.3g}"] for name, value in traits.items()]
    print_table(["what the training rows say", "value"], rows, str(Path(table).name), left=1)
    print(advice(rule, list(traits.values())))


def advice(rule: Rule, traits: Sequence[float]) -> str:
    """Return the sentences: what to expect, what to do, and what that rests on."""
    expected = rule(traits)
    what = "try it" if expected < 0 and rule.helps else "leave it"
    lines = [
        f"Expect {expected:+.1f} % ± {2 * rule.spread:.1f} % of ERM's test error from C-Mixup: {what}.",
        f'The rule is "{rule.name}", fitted on {rule.cases} cases of {rule.tables} tables.',
        "± is twice its root mean squared error on tables that it had not seen.",
    ]
    if not rule.helps:
        lines.append(
            f'There no rule beat "{ALWAYS_ERM}": following it changed the error by {_text(rule.followed)} %, and '
            f"going by the sign that other seeds of the same table show would by {_text(rule.by_others)} %."
        )
    if far := rule.beyond(traits):
        lines.append(f"This table lies beyond those tables in {', '.join(far)}: trust it less.")
    return "\n".join(lines)


def _text(interval: Sequence[float]) -> str:
    if not interval:
        return "an unknown number of"
    mean, low, high = interval
    return f"{mean:+.2f} [{low:+.2f}, {high:+.2f}]"
