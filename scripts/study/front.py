"""What README shows of the study: C-Mixup against ERM on every table, in a picture and in sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

from matplotlib.figure import Figure

from scripts.claims.prose import WIDTH
from scripts.report.effect_figures import draw_ordered
from scripts.study.evidence import Setting
from scripts.study.protocols import Protocol2, load_protocol1
from scripts.study.published import read
from scripts.study.verdicts import EQUAL, GAINS, LOSES, UNTOLD, VERDICTS, Change, counts, over_tables, sign_test

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


def told(each: Mapping[str, Change], rules: Protocol2, what: str = "the error", of: str = "") -> str:
    """Return on how many tables the test error is shown to fall and to rise, as the end of a sentence."""
    count = counts(each, rules.level, rules.equal)
    falls, rises = (count[kind] or "none" for kind in (GAINS, LOSES))
    return f"is shown to lower {what} on {falls}{of}, and to raise it on {rises}"


def side(each: Mapping[str, Change]) -> tuple[str, int, int, float]:
    """Return whether most tables have a lower or a higher error, how many of how many, and the sign test's p value."""
    lower, n, p = sign_test([change.interval.mean for change in each.values()])
    return ("lower", lower, n, p) if 2 * lower > n else ("higher", n - lower, n, p)


def short(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return whether C-Mixup helps, in a few words."""
    gained = counts(each := lead(found).changes(METHOD), rules.level, rules.equal)[GAINS]
    said, (word, count, n, _) = f"Shown on {gained}" if gained else "Not that we could show", side(each)
    return f"{said}: on {count} of {n} real tables the error is {word} than without mixing"


def lines(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return the picture and what came of C-Mixup on its tables, and of an ensemble on those that have one."""
    each = (first := lead(found)).changes(METHOD)
    equal, untold = (counts(each, rules.level, rules.equal)[kind] or "none" for kind in (EQUAL, UNTOLD))
    said = [f"**C-Mixup {told(each, rules, 'the test error', f' of {len(each)} real tables')}.**"]
    said.append("It is tuned with as many trials as training without mixing (ERM).")
    said.append(f"On {equal} a difference of {rules.equal:g} % or more is ruled out, on {untold} the runs cannot tell.")
    word, count, n, p = side(each)
    whole = f"{mean.mean:+.1f} % on their mean, " if (mean := over_tables(each)) else ""
    said.append(f"Its error is {word} than ERM's on {count} of the {n} tables ({whole}sign test p = {p:.2g}).")
    others: dict[str, list[str]] = {}
    for setting in (s for s in found if s.whole and s.condition != first.condition):
        others.setdefault(told(setting.changes(METHOD), rules), []).append(f"{setting.title}: {setting.of} tables")
    for text, titles in others.items():
        said.append(f"In {'other settings' if titles[1:] else 'another setting'} ({'; '.join(titles)}) it {text}.")
    if (mean := over_tables(found[-1].changes(ENSEMBLE))) is not None:
        does = "lowers" if mean.high < 0 else "raises" if mean.low > 0 else "is not shown to change"
        over = f"{mean.n} tables{'' if found[-1].whole else ' so far'}"
        said.append(f"Averaging five networks of ERM {does} the error ({mean.mean:+.1f} % on the mean of {over}).")
    caption = (
        "A point is a table with its 95 % interval over splits. Left of 0 C-Mixup has the lower error; the grey band "
        f"is {rules.equal:g} % to either side. Verdicts stand after Holm's correction. Setting: {first.title}."
    )
    picture = f"![C-Mixup against ERM on every table](results/study/{PICTURE})"
    text, below = (fill(each, WIDTH, break_on_hyphens=False) for each in (" ".join(said), caption))
    return f"{text}\n\n{picture}\n\n{below}"


def figure(found: Sequence[Setting], rules: Protocol2) -> Figure:
    """Draw C-Mixup's change on every table."""
    first = lead(found)
    rows = {t: (c.interval, c.verdict(rules.level, rules.equal)) for t, c in first.changes(METHOD).items()}
    return draw_ordered(rows, VERDICTS, rules.equal, "C-Mixup's test error against ERM's, %")
