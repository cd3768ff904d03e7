"""What `scripts.render` makes of the published study: its page, pictures, and README's lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scripts.effects.verdicts import (
    EQUAL,
    GAINS,
    LOSES,
    UNTOLD,
    VERDICTS,
    against_erm,
    chosen_erm,
    critical_difference,
    friedman_p,
    mean_ranks,
    percent_differences,
    sign_text,
    verdict_name,
    win_rates,
)
from scripts.protocol.protocols import COMMITS, SEA_LEVEL, Protocol2, load_protocol2, load_rules
from scripts.protocol.published import FOLDER, read_store
from scripts.protocol.rules import BASE, Rules
from scripts.records.experiment import RESULTS
from scripts.records.register import draws, fills, writes
from scripts.records.stats import Interval
from scripts.records.tables import interval_text, markdown_rows
from scripts.report.cost_figure import draw_costs
from scripts.report.effect_figures import draw_forest, draw_wins
from scripts.report.places import joined_words, splice_page
from scripts.study import answers, front
from scripts.study.effect_tables import (
    TITLES,
    calibration_rows,
    control_rows,
    four_counts,
    method_title,
    row_head,
    table_row,
    trait_rows,
)
from scripts.study.evidence import (
    ENSEMBLE,
    ENSEMBLES,
    METHOD,
    Setting,
    leading_settings,
    model_seconds,
    study_settings,
    with_later_splits,
)
from scripts.study.front import effect_headline

CONTROL = "resample"  # which mixes nothing
OTHERS = {"test_balanced": "label-balanced", "test_worst": "worst group"}
FEWEST = 2  # tables that a picture or a mean over tables needs


@writes
def study_texts() -> dict[str, str]:
    """Return the text of the pages by their paths below results/."""
    rules, found = load_protocol2(), study_settings()
    return {"study/when.md": splice_page((FOLDER / "when.md").read_text(), page_parts(found, rules))}


@fills
def front_pages() -> dict[str, dict[str, str]]:
    """Return what README, results/README.md and docs/bench.md say of the study, by page and place."""
    rules, found = load_protocol2(), leading_settings()
    lines = front.front_lines(found, rules)
    return {
        "README.md": {"study": front.sentences(found, rules), "helps": front.short_answer(found, rules)},
        f"{RESULTS.name}/README.md": {"study": lines.replace(f"({RESULTS.name}/", "(")},
        "docs/bench.md": {"entry": front.submission_output(front.lite_records(rules), rules)},
    }


@draws
def study_figures() -> dict[str, Figure]:
    """Return the pictures by their paths below results/."""
    rules, every = load_protocol2(), leading_settings()
    found = drawable_settings(study_settings())
    made = {front.PICTURE: front.effect_figure(every, rules), front.FIRST: front.first_figure(every, rules)} | {
        forest_name(setting): forest_figure(setting, rules) for setting in found
    }
    if found:
        led = [found[-1], *found[:-1]]  # the setting that the text leads with is the last
        made |= {"wins.png": draw_wins({s.wrapped: win_shares(s) for s in led}, method_title(BASE)),
                 "cost.png": draw_costs({s.heading: cost_rows(s, rules) for s in led}, method_title(BASE))}  # fmt: skip
    return {f"study/{name}": figure for name, figure in made.items()}


def drawable_settings(found: Sequence[Setting]) -> list[Setting]:
    """Return the settings with tables enough to draw."""
    return [setting for setting in found if len(setting.tables) >= FEWEST]


def forest_name(setting: Setting) -> str:
    """Return the file of a setting's forest plot."""
    return f"forest_{setting.condition.name}.png"


def verdict_lines(found: Sequence[Setting], rules: Protocol2, lead: Setting) -> str:
    """Return what mixing and an ensemble change, by one rule: a sentence each, then the counts over all settings.

    Args:
        found: the settings of protocol 2.
        rules: of it.
        lead: the setting that the first sentences are about.
    """
    said = [text for who in (METHOD, ENSEMBLE) if lead.whole and (text := effect_headline(lead, who, rules))]
    whole = [setting for setting in found if setting.whole]
    each = [own for s in whole for m in mixing_methods(rules) if (own := s.effect(m, rules))]
    if each:
        total = {kind: sum(own.counts()[kind] for own in each) for kind in VERDICTS}
        methods = joined_words([method_title(method) for method in mixing_methods(rules)])
        said.append(
            f"{methods} have {sum(total.values())} pairs of a method and a table over {len(whole)} settings "
            f"({'; '.join(s.title for s in whole)}). The error changes by less than {rules.equal:g} % on "
            f"{total[EQUAL] or 'none'} of them. It is lower by as much or more on {total[GAINS] or 'none'}, higher on "
            f"{total[LOSES] or 'none'}, and {total[UNTOLD] or 'none'} cannot be told."
        )
    if missing := [setting.heading for setting in found if not setting.whole]:
        said.append(f"Not all tables are trained: {'; '.join(missing)}.")
    return " ".join(said)


def mixing_methods(rules: Protocol2) -> list[str]:
    """Return the methods of the rules that mix."""
    common = [set(condition.methods) for condition in rules.conditions]
    return [m for m in rules.methods if m not in (BASE, CONTROL) and all(m in each for each in common)]


def page_parts(found: Sequence[Setting], rules: Protocol2) -> dict[str, str]:
    """Return what is filled into the page of protocol 2, by its place."""
    seen, sea = drawable_settings(found), load_rules(SEA_LEVEL)
    return {
        **origin_lines(rules, read_store(rules)), **origin_lines(sea, read_store(sea), "sea_"),
        "verdict": verdict_lines(found, rules, with_later_splits()),
        "tables": str(len(rules.tables)), "splits": str(rules.splits),
        "trials": str(rules.trials_each), "shared": str(rules.shared), "epochs": str(rules.epochs),
        "patience": str(rules.patience), "weights": str(rules.weights),
        "equal": f"{rules.equal:g}", "sure": f"{1 - rules.level:g}",
        "controls": "\n".join(control_rows(seen, rules)), "calibration": "\n".join(calibration_rows(seen)),
        "traits": "\n".join(trait_rows(seen, rules)),
        "settings": "\n\n".join(setting_section(setting, rules) for setting in found),
        "pictures": "\n\n".join([f"![{what}]({name})" for name, what in
                                 (("wins.png", "Share of tables with a lower error than ERM"),
                                  ("cost.png", "Change of the error and CPU seconds, by method"))] if seen else []),
        "ranks": "\n".join(rank_rows(seen, rules)), "errors": "\n".join(other_errors(seen, rules)),
        "level_table": "\n".join(level_table(seen)), "ensembles": "\n".join(ensemble_table(seen, rules)),
        "entries": front.submission_rows(front.lite_records(rules), rules),
        "answers": answers.first_lines(found, rules),
    }  # fmt: skip


def origin_lines(rules: Rules, records: Sequence[Mapping[str, Any]], prefix: str = "") -> dict[str, str]:
    """Return where cells come from: the commit and checksum of the rules, the commits of the runs, and how many."""
    commits = ", ".join(sorted({record["commit"][:7] for record in records if record.get("commit")})) or "—"
    said = {"fixed": COMMITS[rules.name], "sha": rules.checksum[:12], "commits": commits}
    return {
        f"{prefix}{key}": text for key, text in (said | {"cells": f"{len(records)} of {len(rules.cells())}"}).items()
    }


def setting_section(setting: Setting, rules: Protocol2) -> str:
    """Return the part of the page on one setting: a row a method, and the picture of every table."""
    lines = [f"### {setting.heading}"]
    body = []
    for method in setting.methods if len(setting.tables) >= FEWEST else []:
        erm, splits = chosen_erm(setting.records, setting.condition.name, method)
        own = setting.effect(method, rules)
        assert own is not None
        body.append([method_title(method), *table_row(own), sign_text(own.means), f"{erm} of {splits}"])
    if body:
        heads = ["method", *row_head(rules), "below 0 (sign test)", "tuning chose ERM"]
        lines += ["", *markdown_rows(heads, body), "", f"![{setting.heading}]({forest_name(setting)})"]
    return "\n".join(lines if body else [*lines, "", "These are too few tables for a row of counts and a picture."])


def forest_figure(setting: Setting, rules: Protocol2) -> Figure:
    """Draw every table and method of a setting."""
    each = {method_title(m): own for m in setting.methods if (own := setting.effect(m, rules))}
    rows = {name: own.shown(rules.equal) for name, own in each.items()}
    means = {name: own.overall for name, own in each.items()}
    kinds = [verdict_name(kind, rules.equal) for kind in VERDICTS]
    what = f"{setting.heading}: test error against ERM's, %"
    return draw_forest(rows, means, kinds, rules.equal, what, first=method_title(METHOD))


def shown_methods(setting: Setting) -> list[str]:
    """Return networks and models of a setting in the order of their mean rank."""
    here = [BASE, *setting.methods, *(m for m in TITLES if any(r["method"] == m for r in setting.others))]
    found, _ = mean_ranks(setting.errors(), here)
    return sorted(here, key=lambda method: found.get(method, 0.0))


def win_shares(setting: Setting) -> tuple[int, dict[str, float]]:
    """Return the number of tables, and by title the share of them on which each has a lower error than ERM."""
    methods = shown_methods(setting)
    rates = win_rates(setting.errors(), methods)
    return len(setting.tables), {method_title(one): rates[one, BASE] for one in methods if (one, BASE) in rates}


def cost_rows(setting: Setting, rules: Protocol2) -> dict[str, tuple[float, Interval]]:
    """Return seconds for a model and the mean change against ERM, of all that there is in a setting."""
    spent = model_seconds(setting, rules)
    order = [*setting.methods, *(m for m in (*TITLES, *ENSEMBLES) if m in spent)]
    found = {method_title(m): (spent[m], own.overall) for m in order if (own := setting.effect(m, rules))}
    return {method_title(BASE): (spent[BASE], Interval(0.0, 0.0, 0.0, len(setting.tables))), **found}


def rank_rows(found: Sequence[Setting], rules: Protocol2) -> list[str]:
    """Return mean ranks of the methods that all settings have, a column a setting, with tests over tables."""
    methods = [BASE, *mixing_methods(rules), CONTROL]
    columns, tests = [], []
    for setting in found:
        own, n = mean_ranks(setting.errors(), methods)
        p = against_erm(setting.errors(), methods)
        columns.append([f"{own[m]:.2f}" + (f" (p {p[m]:.2g})" if m in p else "") for m in methods])
        apart = critical_difference(len(methods), n, rules.level)
        tests.append(f"p {friedman_p(own, n):.2g}; {apart:.2f}")
    body = [[method_title(m), *(column[k] for column in columns)] for k, m in enumerate(methods)]
    body.append(["Friedman's test; critical difference", *tests])
    return markdown_rows(["method", *(s.heading for s in found)], body) if found else []


def other_errors(found: Sequence[Setting], rules: Protocol2) -> list[str]:
    """Return the four counts and the mean change of the errors that are not RMSE."""
    body = []
    for setting in found:
        for score, name in OTHERS.items():
            each = [setting.effect(m, rules, score) for m in (*mixing_methods(rules), CONTROL)]
            known = [own for own in each if own and len(own.means) >= FEWEST]
            if len(known) == len(each):
                cells = [f"{four_counts(own)}; {interval_text(own.overall, 1)}" for own in known]
                body.append([setting.title, f"{name}, {len(known[-1].means)} of {setting.of}", *cells])
    return (
        markdown_rows(["setting", "error, tables", *map(method_title, (*mixing_methods(rules), CONTROL))], body)
        if body
        else []
    )


def level_table(found: Sequence[Setting]) -> list[str]:
    """Return how far common models with their defaults are from tuned ERM."""
    body = []
    for setting in found:
        for model in (m for m in TITLES if any(r["method"] == m for r in setting.others)):
            each = percent_differences(setting.errors(), model)
            means = {table: float(np.mean(list(own.values()))) for table, own in each.items()}
            low, median, high = np.quantile(list(means.values()), [0.25, 0.5, 0.75])
            quartiles = f"{low:+.1f} to {high:+.1f}"
            body.append([setting.heading, method_title(model), f"{median:+.1f}", quartiles, sign_text(means)])
    head = ["setting", "model", "median against ERM, %", "quartiles", "below ERM (sign test)"]
    return markdown_rows(head, body) if body else []


def ensemble_table(found: Sequence[Setting], rules: Protocol2) -> list[str]:
    """Return what averaging networks changes, against one ERM and against as many networks of ERM."""
    body = []
    for setting in found:
        for name, members in ENSEMBLES.items():
            own = setting.effect(name, rules) if setting.has(name) else None
            if own is None or len(own.means) < FEWEST:
                continue
            control = f"ERM x {sum(map(len, members.values()))}"
            body.append([setting.heading, name, "one ERM", *table_row(own)])
            if name != control and (more := setting.effect(name, rules, base=control)):
                body.append([setting.heading, name, control, *table_row(more)])
    return markdown_rows(["setting", "networks", "against", *row_head(rules)], body) if body else []
