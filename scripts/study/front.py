"""What pages show first of the study: C-Mixup against ERM on every table, and the methods that somebody has entered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill

from matplotlib.figure import Figure

from scripts.effects.verdicts import (
    EQUAL,
    GAINS,
    HIGHER,
    LOSES,
    LOWER,
    UNTOLD,
    VERDICTS,
    Effect,
    chance_text,
    direction_text,
    mean_text,
    method_verdict,
    new_text,
    verdict_name,
)
from scripts.protocol.protocols import Protocol2
from scripts.protocol.published import read_store
from scripts.protocol.rules import BASE
from scripts.records.experiment import RESULTS
from scripts.records.names import method_title
from scripts.records.tables import interval_text, markdown_rows
from scripts.report.effect_figures import NEW, OVERALL, draw_first, draw_ordered
from scripts.report.places import WIDTH
from scripts.study.evidence import ENSEMBLE, METHOD, Record, Setting

PICTURE, FIRST = "front.png", "first.png"
WHO = {METHOD: "C-Mixup", ENSEMBLE: "An average of five networks of ERM"}
LITE_SETTING = "random"  # in which methods are tried first, on the lite tables
NO_ENTRY = "None is published yet."


def short_answer(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return whether C-Mixup helps, in a sentence: the direction of its mean effect, and what a new table may gain."""
    own = found[-1].effect(METHOD, rules)
    assert own is not None
    said = {LOWER: "On average it lowers the error", HIGHER: "On average it raises the error"}.get(
        own.direction(), "On average that cannot be told"
    )
    where = f"over {len(own.means)} real tables, {found[-1].splits} splits each,"
    return f"{said}: {where} {mean_text(own)}. {new_text(own, rules.equal).rstrip('.')}"


def effect_headline(setting: Setting, method: str, rules: Protocol2) -> str:
    """Return the direction of a method's mean effect in a sentence, or nothing where a setting lacks the method."""
    if (own := setting.effect(method, rules)) is None:
        return ""
    where = f"{len(own.means)} tables{'' if setting.whole else ' so far'}, {setting.splits} splits each"
    return f"**{WHO[method]}: {direction_text(own)} ({where}).**"


def sentences(found: Sequence[Setting], rules: Protocol2, *, every: bool = False) -> str:
    """Return what C-Mixup does on its tables, and an ensemble on those that have one, by one rule, then the numbers.

    The numbers are those of the first setting, or of every one.
    """
    first = found[-1]
    own, size = first.effect(METHOD, rules), f"{rules.equal:g} %"
    assert own is not None
    said = [effect_headline(first, METHOD, rules)]
    gains, loses, equal, untold = (own.counts()[kind] or "none" for kind in (GAINS, LOSES, EQUAL, UNTOLD))
    said.append(
        f"Of these tables it gains {size} or more on {gains}, loses as much on {loses}, stays within on {equal}, and "
        f"on {untold} that cannot be told."
    )
    rows = [(first.title, METHOD, own)]
    if ensemble := first.effect(ENSEMBLE, rules):
        said.append(effect_headline(first, ENSEMBLE, rules))
        rows.append((first.title, ENSEMBLE, ensemble))
    others = [s for s in found if every and s.whole and s.condition != first.condition]
    rows += [(s.title, METHOD, one) for s in others if (one := s.effect(METHOD, rules))]
    said_text = fill(" ".join(said), WIDTH, break_on_hyphens=False)
    return "\n".join([said_text, "", *effect_rows(rows, size)])


def effect_rows(rows: Sequence[tuple[str, str, Effect]], size: str) -> list[str]:
    """Return a table of effects, given with their setting and method."""
    heads = ["setting", "against ERM", "change of the error by a model of all tables, %", "all tables counted alike, %",
             "mean error", f"a new table gains {size}", "loses it"]  # fmt: skip
    body = [
        [title, WHO[method], interval_text(own.overall, 1), interval_text(own.plain, 1), own.direction(),
         chance_text(own.posterior.new.chances.gain), chance_text(own.posterior.new.chances.loss)]
        for title, method, own in rows
    ]  # fmt: skip
    return markdown_rows(heads, body, left=2)


def front_lines(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return the sentences, and the picture of every table with its caption."""
    caption = (
        "A point is the estimate of a table with its 95 % interval. Left of 0 C-Mixup has the lower error; the grey "
        f"band is {rules.equal:g} % to either side. One small network; both are tuned with as many trials. "
        f"Setting: {found[-1].title}, {found[-1].splits} splits."
    )
    picture = f"![C-Mixup against ERM on every table](results/study/{PICTURE})"
    return f"{sentences(found, rules, every=True)}\n\n{picture}\n\n{fill(caption, WIDTH, break_on_hyphens=False)}"


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


def lite_records(rules: Protocol2, store: Path = RESULTS) -> list[Record]:
    """Return the records of all methods, entries among them, in the setting at random on the lite tables."""
    tables, every = rules.lite_tables(), read_store(rules, store, entries=True)
    return [record for record in every if record["condition"] == LITE_SETTING and record["table"] in tables]


def entries_of(records: Sequence[Record], rules: Protocol2) -> list[Setting]:
    """Return a setting for each entry, by name: its records and those of ERM, on the tables that it has."""
    (condition,) = (each for each in rules.conditions if each.name == LITE_SETTING)
    found = []
    for name in sorted({record["method"] for record in records} - rules.methods.keys()):
        tables = {record["table"] for record in records if record["method"] == name}
        own = [r for r in records if r["method"] in (BASE, name) and r["table"] in tables]
        found.append(Setting(replace(condition, methods=(BASE, name)), rules.lite, own))
    return found


def submission_rows(records: Sequence[Record], rules: Protocol2) -> str:
    """Return a row for each entry: on how many lite tables it gains and so on, the mean change and the file."""
    body = []
    for setting in entries_of(records, rules):
        (name,), own = setting.methods, setting.effect(setting.methods[0], rules)
        assert own is not None
        (entry,) = {record.get("entry", {}).get("file", "") for record in setting.records if record["method"] == name}
        file = f"[{entry}](../../examples/entries/{entry})" if entry else f"`method={name}`"
        told = map(str, own.counts().values())
        means = [interval_text(own.overall, 1), interval_text(own.plain, 1)]
        body.append([name, f"{len(setting.tables)} of {setting.of}", *told, *means, file])
    names = [verdict_name(kind, rules.equal) for kind in VERDICTS]
    head = ["entry", "tables", *names, "mean effect, %", "each table alike, %", "file"]
    return "\n".join(markdown_rows(head, body)) if body else NO_ENTRY


def submission_output(records: Sequence[Record], rules: Protocol2) -> str:
    """Return what the command prints of the first entry that has a file, as a block of text."""
    for setting in entries_of(records, rules):
        if any("entry" in record for record in setting.records):
            own = [record for record in records if record["table"] in setting.tables]
            said = method_verdict(own, LITE_SETTING, setting.methods[0], rules.level, rules.equal)
            return f"```text\n{said}\n```"
    return NO_ENTRY
