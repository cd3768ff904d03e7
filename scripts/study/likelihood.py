"""The page of likelihood: does mixing give better distributions, beyond one factor on all variances?

Rules: configs/study/likelihood.yaml, committed before the first run. Every arm is rescaled on validation, ERM too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cmixup.losses import STD
from scripts.driver.predictions import Scored
from scripts.effects.verdicts import LOWER, sign_text
from scripts.protocol.protocols import WEIGHTS, Protocol2, rules_named
from scripts.protocol.rules import BASE
from scripts.records.register import writes
from scripts.records.study_errors import normal_scores, row_key
from scripts.records.tables import interval_text, markdown_rows
from scripts.study.effect_tables import row_head, table_row
from scripts.study.evidence import TITLES, Record, kept_predictions
from scripts.study.parts import LIKELIHOOD, NATS, WholeSetting, arm_effect, arms_of, part_settings, upper_first

PAGE, DIGITS = "study/likelihood.md", 3
ENSEMBLE, AGAIN = "ERM x 5, positive control", "ERM with other weights, negative control"
OTHERS = {"test_nll": "likelihood as it is, nats", "test_crps_rescaled": "CRPS, %", "test": "RMSE, %"}


def mixture(members: Sequence[Scored]) -> Scored:
    """Return the normal distribution with the moments of the members' mixture (Lakshminarayanan 2017)."""
    means, stds = (np.stack([m.prediction[name].astype(np.float64) for m in members]) for name in ("", STD))
    mean = means.mean(axis=0)
    variance = (stds**2 + means**2).mean(axis=0) - mean**2
    return Scored({"": mean, STD: np.sqrt(variance)}, members[0].target, members[0].domain)


def ensembles(records: Sequence[Record], rules: Protocol2) -> Iterator[Record]:
    """Yield a record of five networks of ERM as one distribution, for each of ERM's records with so many."""
    for record in (r for r in records if r["method"] == BASE):
        runs, rows = kept_predictions(record, rules)[BASE], []
        for split in rules.split_numbers:
            members = [runs.get(WEIGHTS * split + number) for number in range(1, 6)]
            if all(members):
                val, test = (mixture([m[part] for m in members if m]) for part in ("val", "test"))
                found = normal_scores(test, val, np.array(record["std"]))
                rows.append({"seed": split, "split": split, **{row_key("test", k): v for k, v in found.items()}})
        if rows:
            yield {"table": record["table"], "condition": record["condition"], "method": ENSEMBLE, "seeds": rows}


def again(records: Sequence[Record]) -> Iterator[Record]:
    """Yield ERM's third and fourth networks of each split as another method, which changes nothing."""
    for record in (r for r in records if r["method"] == BASE):
        later = [row for row in record["seeds"] if row["seed"] % WEIGHTS in (3, 4)]
        yield {**record, "method": AGAIN, "seeds": later}


def coverage(records: Sequence[Record], name: str) -> list[str]:
    """Return the mean coverage of 90 % intervals over tables, as they are and rescaled."""
    own = [r for r in records if r["method"] == name]
    keys = ("test_coverage90", "test_coverage90_rescaled")
    return [f"{np.mean([np.mean([row[key] for row in r['seeds']]) for r in own]):.3f}" for key in keys]


def section(own: WholeSetting, rules: Protocol2) -> list[str]:
    """Return the part of the page on one setting: the score that was asked for, then what describes it."""
    known = [*own.records, *ensembles(own.records, rules), *again(own.records)]
    titles = arms_of(rules)
    effects = {arm: arm_effect(known, own.name, arm, rules) for arm in (*titles, ENSEMBLE, AGAIN)}
    body = [[titles.get(arm, arm), *table_row(each, DIGITS), sign_text(each.means)] for arm, each in effects.items()]
    others = []
    for arm, title in {BASE: "ERM", **titles}.items():
        cells = ["" if arm == BASE else interval_text(
            arm_effect(known, own.name, arm, rules, score).overall, 1 if head.endswith("%") else DIGITS)
            for score, head in OTHERS.items()]  # fmt: skip
        others.append([title, *cells, *coverage(known, arm)])
    blind = [] if effects[ENSEMBLE].direction() == LOWER else [
        "The rule cannot tell the direction of the positive control here, so it says nothing of the other directions.",
        "",
    ]  # fmt: skip
    heads = ["", *OTHERS.values(), "coverage of 90 %", "coverage, rescaled"]
    return [
        *markdown_rows(["rescaled likelihood", *row_head(rules, NATS), "below 0 (sign test)"], body), "",
        f"{upper_first(own.tables)}, {own.splits} splits. Negative log likelihood of a test label minus ERM's, both",
        "rescaled; below 0 is better.", "", *blind, *markdown_rows(heads, others), "",
    ]  # fmt: skip


@writes
def write_page() -> dict[str, str]:
    """Return the page by its path below results/."""
    rules = rules_named(LIKELIHOOD)
    whole = {each.name: each for each in part_settings(LIKELIHOOD)}
    lines = [
        "# Likelihood",
        "",
        "Does mixing give better distributions? Every network predicts a mean and a variance for each label, and is",
        "trained, stopped and tuned by likelihood ([rules](../../configs/study/likelihood.yaml), fixed before the",
        "first run). One number for each network, chosen on validation, rescales its standard deviations. So a gain",
        "is more than what rescaling gives to ERM.",
        "",
    ]
    for condition in rules.conditions:
        lines += [f"## {TITLES[condition.name]}", ""]
        lines += section(whole[condition.name], rules) if condition.name in whole else ["Not run yet.", ""]
    lines += [
        f"An effect of {rules.equal:g} nats is what 1 % of error is where variances are right.",
        "[When does mixing help?](when.md) has the model of effects and the rule of each verdict.",
        "The positive control is the normal distribution with mean and variance of five networks' mixture.",
        "",
        "`python -m scripts.study train rules=likelihood` trains these cells; `python -m scripts.render` writes this",
        "page.",
        "",
    ]
    return {PAGE: "\n".join(lines)}
