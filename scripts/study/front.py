"""What README shows of the study: C-Mixup against ERM on every table, in a picture and in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from scripts.claims.check import joined
from scripts.report.effect_figures import draw_ordered
from scripts.study.evidence import Setting
from scripts.study.protocols import Protocol2, load_protocol1
from scripts.study.published import read
from scripts.study.verdicts import (
    EQUAL,
    GAINS,
    LOSES,
    UNTOLD,
    VERDICTS,
    counts,
    over_tables,
)

METHOD = "cmixup"
PICTURE = "front.png"
ENSEMBLE = "ERM x 5"


def lead(found: Sequence[Setting]) -> Setting:
    """Return the setting that README shows: rows at random of protocol 2 once it is whole, of protocol 1 before."""
    if found[-1].whole:
        return found[-1]
    rules = load_protocol1()
    (condition,) = (each for each in rules.conditions if each.name == "all")
    records = [record for record in read(rules) if record["condition"] == condition.name]
    return Setting(condition, len(rules.tables), records)


def lines(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return the picture and what came of C-Mixup on its tables, and of an ensemble on those that have one."""
    first = lead(found)
    count = counts(first.changes(METHOD), rules.level, rules.equal)
    equal = f"makes no difference of {rules.equal:g} % on {count[EQUAL]}"
    told = joined([f"gains on {count[GAINS]}", f"loses on {count[LOSES]}", equal])
    about = f"On {len(first.tables)} real tables, tuned with as many trials as training without mixing (ERM), C-Mixup"
    said = [f"{about} {told}; on {count[UNTOLD]} it cannot be told."]
    for setting in (each for each in found if each.whole and each.condition != first.condition):
        own = counts(setting.changes(METHOD), rules.level, rules.equal)
        told = joined([f"{verdict} {n}" for verdict, n in own.items()])
        said.append(f"{setting.title} ({setting.of} tables): {told}.")
    if (mean := over_tables(found[-1].changes(ENSEMBLE))) is not None:
        change = f"{mean.mean:+.1f} % on the mean of {mean.n} tables"
        said.append(f"Averaging five networks that do not mix changes the error by {change}.")
    caption = f"A point is a table: the mean over splits with its 95 % interval. The band is {rules.equal:g} %."
    return "\n\n".join([" ".join(said), f"![C-Mixup against ERM on every table](results/study/{PICTURE})", caption])


def figure(found: Sequence[Setting], rules: Protocol2) -> Figure:
    """Draw C-Mixup's change on every table."""
    first = lead(found)
    rows = {t: (c.interval, c.verdict(rules.level, rules.equal)) for t, c in first.changes(METHOD).items()}
    return draw_ordered(rows, VERDICTS, rules.equal, "C-Mixup's test error against ERM's, %")
