"""What `scripts.render` makes of the published study: its pages, its rule, its picture."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

from scripts.claims.prose import splice
from scripts.study import cures_page, page, rule_page
from scripts.study.effects import scores_of
from scripts.study.published import FOLDER, read, read_traits
from scripts.study.rule import FILE, cases_of, choose, fit_rule, judge, to_json
from scripts.study.rules import SMALL, Rules, load_rules

LEAST_TABLES = 5  # of a rule


def texts() -> dict[str, str]:
    """Return the text of every rendered file by its path below results/, of what is published."""
    parts, found = dict[str, dict[str, str]](), dict[str, str]()
    if given := cures_page.read():
        parts["cures.md"] = cures_page.parts(given)
    if records := read(load_rules()):
        parts["when.md"] = page.parts(records, load_rules(), *_small())
        cases = cases_of(records, read_traits())
        if len({case.table for case in cases}) >= LEAST_TABLES:
            judged = judge(cases)
            rule = fit_rule(choose(cases), cases, judged)
            parts["rule.md"], found[f"study/{FILE}"] = rule_page.parts(cases, rule, judged), to_json(rule)
    return found | {f"study/{name}": splice((FOLDER / name).read_text(), filled) for name, filled in parts.items()}


def headline() -> str:
    """Return the sentence of README on the study; empty if nothing is published."""
    return page.headline(read(load_rules()), load_rules(), *_small())


def _small() -> tuple[list[dict[str, Any]], Rules]:
    return read(load_rules(SMALL)), load_rules(SMALL)


def figures() -> dict[str, Figure]:
    """Return the picture of the study's mean ranks, by its path below results/; none if too little is published."""
    rules = load_rules()
    figure = page.draw_ranks(scores_of(read(rules), "all"), list(rules.methods), rules.level)
    return {"study/ranks.png": figure} if figure else {}
