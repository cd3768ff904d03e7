"""What `scripts.render` makes of the published study: the pages of both protocols, pictures, and README's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scripts.claims.check import joined
from scripts.claims.prose import splice
from scripts.records import names
from scripts.records.stats import Interval
from scripts.records.tables import interval_text, markdown_rows
from scripts.report.effect_figures import draw_costs, draw_forest, draw_wins
from scripts.study import entries, front
from scripts.study.evidence import ENSEMBLES, Setting, seconds, settings
from scripts.study.objections import came_out
from scripts.study.protocols import COMMITS, SEA_LEVEL, SMALL, Protocol2, load_protocol1, load_protocol2, load_rules
from scripts.study.published import FOLDER, read
from scripts.study.rules import BASE, Rules
from scripts.study.verdicts import (
    EQUAL,
    GAINS,
    LOSES,
    UNTOLD,
    VERDICTS,
    Change,
    against_erm,
    changes,
    chosen_erm,
    counts,
    critical_difference,
    errors_of,
    friedman,
    mean_ranks,
    over_tables,
    sign_text,
    win_rates,
)

CONTROL = "resample"  # which mixes nothing
TITLES = {
    "ridge": "ridge", "hist_gradient_boosting": "HistGradientBoosting", "lightgbm": "LightGBM", "catboost": "CatBoost",
}  # fmt: skip
OTHERS = {"test_balanced": "label-balanced", "test_worst": "worst group"}
ROW = (*VERDICTS, "mean over tables, %", "below 0 (sign test)")
FEWEST = 2  # tables that a picture or a mean over tables needs
NAMED = 6  # gains or losses that are named one by one


def texts() -> dict[str, str]:
    """Return the text of the pages by their paths below results/."""
    rules, found = load_protocol2(), settings()
    made = {"when.md": parts(found, rules), "protocol1.md": earlier()}
    return {f"study/{page}": splice((FOLDER / page).read_text(), each) for page, each in made.items()}


def readme() -> str:
    """Return what README says of the published study, with its picture."""
    return front.lines(settings(), load_protocol2())


def short() -> str:
    """Return README's answer to whether mixing helps."""
    return front.short(settings(), load_protocol2())


def bench() -> str:
    """Return the verdict that docs/bench.md shows."""
    rules = load_protocol2()
    return entries.shown(entries.lite_records(rules), rules)


def figures() -> dict[str, Figure]:
    """Return the pictures by their paths below results/."""
    rules, every = load_protocol2(), settings()
    found = drawable(every)
    made = {front.PICTURE: front.figure(every, rules)} | {
        forest_name(setting): forest(setting, rules) for setting in found
    }
    if found:
        made |= {"wins.png": draw_wins({heading(s): wins(s) for s in found}),
                 "cost.png": draw_costs({heading(s): costs(s, rules) for s in found}, title(BASE))}  # fmt: skip
    return {f"study/{name}": figure for name, figure in made.items()}


def drawable(found: Sequence[Setting]) -> list[Setting]:
    """Return the settings with tables enough to draw."""
    return [setting for setting in found if len(setting.tables) >= FEWEST]


def title(method: str) -> str:
    """Return how the page of protocol 2 calls a method, a model or an ensemble."""
    return TITLES.get(method) or (method if method in ENSEMBLES else names.method_title(method))


def heading(setting: Setting) -> str:
    """Return the heading of a setting, which says how many of its tables there are."""
    return f"{setting.title} ({setting.progress})"


def forest_name(setting: Setting) -> str:
    """Return the file of a setting's forest plot."""
    return f"forest_{setting.condition.name}.png"


def verdict(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return what came of mixing in the settings of which all tables are there: a plain sentence, then the counts."""
    said, whole = [], [setting for setting in found if setting.whole]
    each = {(s.title, m, t): c for s in whole for m in mixing(rules) for t, c in s.changes(m).items()}
    told = {key: change.verdict(rules.level, rules.equal) for key, change in each.items()}
    having = {kind: [key for key, own in told.items() if own == kind] for kind in VERDICTS}
    if whole:
        falls, rises = (len({table for *_, table in having[kind]}) or "none" for kind in (GAINS, LOSES))
        equal, untold = (len(having[kind]) or "none" for kind in (EQUAL, UNTOLD))
        part = f"In the {len(whole)} of {len(found)} settings whose tables are all trained, mixing"
        tables, methods = {table for *_, table in told}, joined([title(method) for method in mixing(rules)])
        said.append(
            f"**{'Mixing' if len(whole) == len(found) else part} is shown to lower the test error on {falls} of "
            f"{len(tables)} real tables, and to raise it on {rises}.** That is said of {methods} in these settings "
            f"({'; '.join(s.title for s in whole)}). For {equal} of {len(told)} pairs of a method and a table a "
            f"difference of {rules.equal:g} % or more is ruled out, and for {untold} the runs cannot tell."
        )
    for kind in (GAINS, LOSES):
        if 0 < len(having[kind]) <= NAMED:
            named = [f"{title(m)} on {t} by {each[s, m, t].interval.mean:+.1f} % ({s})" for s, m, t in having[kind]]
            said.append(f"What {kind}: {joined(named)}.")
    if missing := [heading(setting) for setting in found if not setting.whole]:
        said.append(f"Without a verdict, as not all tables are trained: {'; '.join(missing)}.")
    return " ".join(said)


def mixing(rules: Protocol2) -> list[str]:
    """Return the methods of the rules that mix."""
    common = [set(condition.methods) for condition in rules.conditions]
    return [m for m in rules.methods if m not in (BASE, CONTROL) and all(m in each for each in common)]


def four(each: Mapping[str, Change], rules: Protocol2) -> str:
    """Return the four counts between strokes; a dash where there is nothing."""
    return " / ".join(map(str, counts(each, rules.level, rules.equal).values())) if each else "—"


def parts(found: Sequence[Setting], rules: Protocol2) -> dict[str, str]:
    """Return what is filled into the page of protocol 2, by its place."""
    seen, sea = drawable(found), load_rules(SEA_LEVEL)
    return {
        **origin(rules, read(rules)), **origin(sea, read(sea), "sea_"),
        "verdict": verdict(found, rules), "tables": str(len(rules.tables)), "splits": str(rules.splits),
        "trials": str(rules.trials_each), "shared": str(rules.shared), "epochs": str(rules.epochs),
        "patience": str(rules.patience), "weights": str(rules.weights),
        **dict.fromkeys(("equal", "equal_again"), f"{rules.equal:g}"), "level": f"{rules.level:g}",
        "settings": "\n\n".join(section(setting, rules) for setting in found),
        "pictures": "\n\n".join([f"![{what}]({name})" for name, what in
                                 (("wins.png", "win rates"), ("cost.png", "error against cost"))] if seen else []),
        "ranks": "\n".join(ranks(seen, rules)), "errors": "\n".join(other_errors(seen, rules)),
        "level_table": "\n".join(level_table(seen)), "ensembles": "\n".join(ensemble_table(seen, rules)),
        "entries": entries.table(entries.lite_records(rules), rules), **came_out(found, rules, title),
    }  # fmt: skip


def origin(rules: Rules, records: Sequence[Mapping[str, Any]], prefix: str = "") -> dict[str, str]:
    """Return where cells come from: the commit and checksum of the rules, the commits of the runs, and how many."""
    commits = ", ".join(sorted({record["commit"][:7] for record in records if record.get("commit")})) or "—"
    said = {"fixed": COMMITS[rules.name], "sha": rules.checksum[:12], "commits": commits}
    return {
        f"{prefix}{key}": text for key, text in (said | {"cells": f"{len(records)} of {len(rules.cells())}"}).items()
    }


def section(setting: Setting, rules: Protocol2) -> str:
    """Return the part of the page on one setting: a row a method, and the picture of every table."""
    lines = [f"### {heading(setting)}"]
    body = []
    for method in setting.methods if len(setting.tables) >= FEWEST else []:
        each = setting.changes(method)
        erm, splits = chosen_erm(setting.records, setting.condition.name, method)
        low, median, high = np.quantile([change.detectable for change in each.values()], [0.25, 0.5, 0.75])
        tuned = [f"{erm} of {splits}", f"{median:.1f} ({low:.1f} to {high:.1f})"]
        body.append([title(method), *row(each, rules), *tuned])
    if body:
        head = ["method", *ROW, "tuning chose ERM", "detectable, %"]
        lines += ["", *markdown_rows(head, body), "", f"![{heading(setting)}]({forest_name(setting)})"]
    return "\n".join(lines if body else [*lines, "", "These are too few tables for a row of counts and a picture."])


def row(each: Mapping[str, Change], rules: Protocol2) -> list[str]:
    """Return the four counts, the mean over tables, and on how many tables the effect is below 0."""
    told = map(str, counts(each, rules.level, rules.equal).values())
    return [*told, interval_text(over_tables(each), 1), sign_text(each)]


def forest(setting: Setting, rules: Protocol2) -> Figure:
    """Draw every table and method of a setting."""
    each = {method: setting.changes(method) for method in setting.methods}
    rows = {
        title(m): {t: (c.interval, c.verdict(rules.level, rules.equal)) for t, c in own.items()}
        for m, own in each.items()
    }
    means = {title(m): whole for m, own in each.items() if (whole := over_tables(own))}
    return draw_forest(rows, means, VERDICTS, rules.equal, f"{heading(setting)}: test error against ERM's, %")


def shown(setting: Setting) -> list[str]:
    """Return networks and models of a setting in the order of their mean rank."""
    here = [BASE, *setting.methods, *(m for m in TITLES if any(r["method"] == m for r in setting.others))]
    found, _ = mean_ranks(setting.errors(), here)
    return sorted(here, key=lambda method: found.get(method, 0.0))


def wins(setting: Setting) -> tuple[list[str], dict[tuple[str, str], float]]:
    """Return the titles of all that compete in a setting, and the share of tables that each pair's first wins."""
    methods = shown(setting)
    rates = win_rates(setting.errors(), methods)
    return list(map(title, methods)), {(title(a), title(b)): share for (a, b), share in rates.items()}


def costs(setting: Setting, rules: Protocol2) -> dict[str, tuple[float, Interval]]:
    """Return seconds for a model and the mean change against ERM, of all that there is in a setting."""
    spent = seconds(setting, rules)
    order = [*setting.methods, *(m for m in (*TITLES, *ENSEMBLES) if m in spent)]
    found = {title(m): (spent[m], whole) for m in order if (whole := over_tables(setting.changes(m)))}
    return {title(BASE): (spent[BASE], Interval(0.0, 0.0, 0.0, len(setting.tables))), **found}


def ranks(found: Sequence[Setting], rules: Protocol2) -> list[str]:
    """Return mean ranks of the methods that all settings have, a column a setting, with tests over tables."""
    methods = [BASE, *mixing(rules), CONTROL]
    columns, tests = [], []
    for setting in found:
        own, n = mean_ranks(setting.errors(), methods)
        p = against_erm(setting.errors(), methods)
        columns.append([f"{own[m]:.2f}" + (f" (p {p[m]:.2g})" if m in p else "") for m in methods])
        apart = critical_difference(len(methods), n, rules.level)
        tests.append(f"p {friedman(own, n):.2g}; {apart:.2f}")
    body = [[title(m), *(column[k] for column in columns)] for k, m in enumerate(methods)]
    body.append(["Friedman's test; critical difference", *tests])
    return markdown_rows(["method", *map(heading, found)], body) if found else []


def other_errors(found: Sequence[Setting], rules: Protocol2) -> list[str]:
    """Return the four counts and the mean change of the errors that are not RMSE."""
    body = []
    for setting in found:
        for score, name in OTHERS.items():
            each = {m: setting.changes(m, score) for m in (*mixing(rules), CONTROL)}
            if all(len(own) >= FEWEST for own in each.values()):
                cells = [f"{four(own, rules)}; {interval_text(over_tables(own), 1)}" for own in each.values()]
                body.append([setting.title, f"{name}, {len(each[CONTROL])} of {setting.of}", *cells])
    return markdown_rows(["setting", "error, tables", *map(title, (*mixing(rules), CONTROL))], body) if body else []


def level_table(found: Sequence[Setting]) -> list[str]:
    """Return how far common models with their defaults are from tuned ERM."""
    body = []
    for setting in found:
        for model in (m for m in TITLES if any(r["method"] == m for r in setting.others)):
            each = setting.changes(model)
            low, median, high = np.quantile([change.interval.mean for change in each.values()], [0.25, 0.5, 0.75])
            quartiles = f"{low:+.1f} to {high:+.1f}"
            body.append([heading(setting), title(model), f"{median:+.1f}", quartiles, sign_text(each)])
    head = ["setting", "model", "median against ERM, %", "quartiles", "below ERM (sign test)"]
    return markdown_rows(head, body) if body else []


def ensemble_table(found: Sequence[Setting], rules: Protocol2) -> list[str]:
    """Return what averaging networks changes, against one ERM and against as many networks of ERM."""
    body = []
    for setting in found:
        for name, members in ENSEMBLES.items():
            each = setting.changes(name)
            if len(each) < FEWEST:
                continue
            control = f"ERM x {sum(map(len, members.values()))}"
            against = setting.changes(name, base=control) if name != control else {}
            own = [four(against, rules), interval_text(over_tables(against), 1), sign_text(against)]
            body.append([heading(setting), name, four(each, rules),
                         interval_text(over_tables(each), 1), *(own if against else ["—"] * 3)])  # fmt: skip
    head = [
        "setting",
        "networks",
        "against one ERM",
        "mean, %",
        "against as many of ERM",
        "mean, %",
        "below 0 (sign test)",
    ]
    return markdown_rows(head, body) if body else []


def earlier() -> dict[str, str]:
    """Return what is filled into the page of protocol 1, by its place; its effects are told by protocol 2's tests."""
    rules, other, judge = load_protocol1(), load_protocol1(SMALL), load_protocol2()
    whole, small = read(rules), read(other)
    rows = [
        [condition.name, {"cmixup": "C-Mixup, input", "cmixup_hidden": "C-Mixup, hidden"}.get(method) or title(method),
         str(len(each)), *row(each, judge)]
        for condition in (*rules.conditions, *other.conditions)
        for method in condition.methods
        if (each := changes(errors_of([*whole, *small], condition.name), method)) and method != BASE
    ]  # fmt: skip
    return {
        **origin(rules, whole), **origin(other, small, "small_"), "budget": str(len(rules.rates) * rules.points),
        "seeds": str(rules.seeds), "effects": "\n".join(markdown_rows(["setting", "method", "tables", *ROW], rows)),
    }  # fmt: skip
