"""What README shows of the study: C-Mixup against ERM on every table, in a picture and in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from matplotlib.figure import Figure

from scripts.claims.prose import WIDTH
from scripts.effects.verdicts import (
    EQUAL,
    GAINS,
    HIGHER,
    LOSES,
    LOWER,
    UNTOLD,
    VERDICTS,
    Effect,
    direction_text,
    mean_text,
    new_text,
    verdict_name,
)
from scripts.protocol.protocols import Protocol2
from scripts.records.names import method_title
from scripts.records.tables import interval_text
from scripts.report.effect_figures import NEW, OVERALL, draw_first, draw_ordered
from scripts.study.evidence import Setting

METHOD = "cmixup"
PICTURE, FIRST = "front.png", "first.png"
ENSEMBLE = "ERM x 5"
WHO = {METHOD: "C-Mixup changes the test error", ENSEMBLE: "Averaging five networks of ERM changes it"}


def short_answer(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return whether C-Mixup helps, in a sentence: the direction of its mean effect, and what a new table may gain."""
    own = found[-1].effect(METHOD, rules)
    assert own is not None
    said = {LOWER: "On average it lowers the error", HIGHER: "On average it raises the error"}.get(
        own.direction(), "On average that cannot be told"
    )
    return f"{said}: over {len(own.means)} real tables {mean_text(own)}. {new_text(own, rules.equal).rstrip('.')}"


def effect_headline(own: Effect, who: str, equal: float, part: str = "") -> str:
    """Return the mean effect of a method, its direction and what to expect of a new table, in two sentences.

    Args:
        own: the effect.
        who: changes the error.
        equal: percent of ERM's error that count.
        part: what is said behind the number of tables, where they are not all.
    """
    return (
        f"**{who} by {mean_text(own)} ({len(own.means)} tables{part}); {direction_text(own)}.** {new_text(own, equal)}"
    )


def sentences(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return what C-Mixup does on its tables, and an ensemble on those that have one, by one rule."""
    first = found[-1]
    own, size = first.effect(METHOD, rules), f"{rules.equal:g} %"
    assert own is not None
    said = [effect_headline(own, WHO[METHOD], rules.equal)]
    gains, loses, equal, untold = (own.counts()[kind] or "none" for kind in (GAINS, LOSES, EQUAL, UNTOLD))
    said.append(
        f"Of these tables it gains {size} or more on {gains}, loses as much on {loses}, stays within on {equal}, and "
        f"on {untold} that cannot be told."
    )
    if ensemble := found[-1].effect(ENSEMBLE, rules):
        said.append(effect_headline(ensemble, WHO[ENSEMBLE], rules.equal, "" if found[-1].whole else " so far"))
    others = [s for s in found if s.whole and s.condition != first.condition]
    lines = [f"{s.title} {interval_text(one.overall, 1)} %" for s in others if (one := s.effect(METHOD, rules))]
    if lines:
        said.append(f"C-Mixup in {'other settings' if lines[1:] else 'another setting'}: {'; '.join(lines)}.")
    return fill(" ".join(said), WIDTH, break_on_hyphens=False)


def front_lines(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return the sentences, and the picture of every table with its caption."""
    caption = (
        "A point is the estimate of a table with its 95 % interval. Left of 0 C-Mixup has the lower error; the grey "
        f"band is {rules.equal:g} % to either side. One small network; both are tuned with as many trials. "
        f"Setting: {found[-1].title}."
    )
    picture = f"![C-Mixup against ERM on every table](results/study/{PICTURE})"
    return f"{sentences(found, rules)}\n\n{picture}\n\n{fill(caption, WIDTH, break_on_hyphens=False)}"


def effect_figure(found: Sequence[Setting], rules: Protocol2) -> Figure:
    """Draw C-Mixup's effect on every table, its mean, and what to expect of a new table."""
    own = found[-1].effect(METHOD, rules)
    assert own is not None
    more = {OVERALL: own.overall, NEW: own.of_new}
    rows, kinds = own.shown(rules.equal), [verdict_name(kind, rules.equal) for kind in VERDICTS]
    said = finding_counts(own, rules.equal)
    return draw_ordered(rows, more, kinds, rules.equal, method=method_title(METHOD), title=said)


def first_figure(found: Sequence[Setting], rules: Protocol2) -> Figure:
    """Draw the first picture of README: what C-Mixup does to rows, and what that changes on the tables."""
    own = found[-1].effect(METHOD, rules)
    assert own is not None
    size, counts = f"{rules.equal:g} %", own.counts()
    said = f"{counts[GAINS]} shown to gain {size}, {counts[LOSES]} to lose it"
    if not counts[GAINS] and not counts[LOSES]:
        said = f"none is shown to gain or lose {size}"
    title = f"{len(own.means)} real tables: {said}"
    more = {OVERALL: own.overall, NEW: own.of_new}
    return draw_first(own.tables, more, rules.equal, method_title(METHOD), title)


def finding_counts(own: Effect, equal: float) -> str:
    """Return on how many tables C-Mixup gains and loses as much as counts: the title of the picture."""
    gains, loses, within, untold = (own.counts()[kind] or "none" for kind in (GAINS, LOSES, EQUAL, UNTOLD))
    return (
        f"C-Mixup against ERM on {len(own.means)} tables: {equal:g} % or more is gained on\n"
        f"{gains} and lost on {loses}. {within} stay within {equal:g} %; {untold} cannot be told."
    )
