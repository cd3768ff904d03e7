"""What the published study lets one expect of C-Mixup on a table not yet seen, as a text that `advise` prints."""

from __future__ import annotations

from cmixup.errors import InputError
from scripts.effects.verdicts import EQUAL, GAINS, LOSES, UNTOLD, Effect, direction_text, mean_text, new_text
from scripts.protocol.protocols import load_protocol2
from scripts.records.register import writes
from scripts.study.evidence import study_settings
from scripts.study.front import ENSEMBLE, METHOD


@writes("results/runs/study", "results/predictions/study", "results/predictions/targets")
def expectation_text() -> dict[str, str]:
    """Return the sentences by their path below results/."""
    return {"study/expected.txt": expected() + "\n"}


def expected() -> str:
    """Return the sentences on C-Mixup, and on an ensemble, over tables with all of their rows, split at random.

    Raises:
        InputError: fewer than two tables are published.
    """
    rules, setting = load_protocol2(), study_settings()[-1]
    own = setting.effect(METHOD, rules)
    if own is None or len(own.means) < 2:
        raise InputError("results/runs must hold ERM and C-Mixup on two tables or more; it does not")
    told, size, ensemble = own.counts(), f"{rules.equal:g} %", setting.effect(ENSEMBLE, rules)
    lines = [
        (
            f"On {len(own.means)} real tables, each of {rules.splits} splits tuned by itself, by a model of all tables "
            "(results/study/when.md):"
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
