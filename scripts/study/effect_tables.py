"""How pages print effects in tables, and whether the model may be believed: controls, tables left out, and traits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.effects.effects import left_out
from scripts.effects.verdicts import OVERLAP, Effect, chance_text, percent_differences
from scripts.protocol.protocols import Protocol2
from scripts.records import names
from scripts.records.stats import Interval
from scripts.records.tables import interval_text, markdown_rows
from scripts.study.evidence import AGAIN, ENSEMBLE, ENSEMBLES, METHOD, Setting

HALF, MOST = (0.25, 0.75), (0.025, 0.975)  # of predictions, what half and 95 % of the tables must lie between
#: Of models that are no networks.
TITLES = {
    "ridge": "ridge", "hist_gradient_boosting": "HistGradientBoosting", "lightgbm": "LightGBM", "catboost": "CatBoost",
}  # fmt: skip


def method_title(method: str) -> str:
    """Return how the page of protocol 2 calls a method, a model or an ensemble."""
    return TITLES.get(method) or (method if method in ENSEMBLES else names.method_title(method))


def four_counts(own: Effect | None) -> str:
    """Return the four counts between strokes; a dash where there is nothing."""
    return " / ".join(map(str, own.counts().values())) if own else "—"


def row_head(rules: Protocol2, unit: str = "%") -> list[str]:
    """Return the heads of the columns of `table_row`, of effects in a unit."""
    sizes = f"gains / loses / within {rules.equal:g} {unit} / cannot be told"
    new = f"a new table gains {rules.equal:g} {unit}, loses {rules.equal:g} {unit}"
    of = [f"{what}, {unit}" for what in ("mean effect", "each table alike", "between tables")]
    return [*of[:2], "direction", of[2], f"tables: {sizes}", new]


def table_row(own: Effect, digits: int = 1) -> list[str]:
    """Return the mean by the model and the plain one, the direction, the spread, the tables and a new one."""
    new, spread = own.posterior.new.chances, own.posterior.spread
    of_spread = interval_text(Interval(*spread, len(own.means)), digits).replace("+", "")
    means = [interval_text(own.overall, digits), interval_text(own.plain, digits)]
    return [*means, own.direction(), of_spread, four_counts(own), f"{chance_text(new.gain)}, {chance_text(new.loss)}"]


def control_rows(found: Sequence[Setting], rules: Protocol2) -> list[str]:
    """Return what the rule says where the answer is known: five averaged networks, and ERM against itself."""
    body = []
    for setting in found:
        known = [("positive", ENSEMBLE, setting.effect(ENSEMBLE, rules) if setting.has(ENSEMBLE) else None),
                 ("negative", AGAIN, setting.against_itself(rules))]  # fmt: skip
        for kind, name, own in known:
            if own:
                below, above = own.sided()
                body.append([kind, f"{name}, {setting.heading}", *table_row(own), f"{below}, {above}"])
    heads = ["control", "against ERM", *row_head(rules), "tables below 0, above 0"]
    return markdown_rows(heads, body) if body else []


def calibration_rows(found: Sequence[Setting]) -> list[str]:
    """Return how often each table's mean lies where the other tables let one expect it, its own noise included."""
    body, total = [], np.zeros(3, int)
    for setting, method in [(s, METHOD) for s in found] + [(s, ENSEMBLE) for s in found if s.has(ENSEMBLE)]:
        own = {t: list(each.values()) for t, each in percent_differences(setting.errors(), method).items()}
        places = np.array(list(left_out(own, OVERLAP).values()))
        inside = [int(((places >= low) & (places <= high)).sum()) for low, high in (HALF, MOST)]
        total += [*inside, len(places)]
        ends = [binom_ends(len(places), share) for share in (0.5, 0.95)]
        cells = [f"{n} of {len(places)} ({low} to {high})" for n, (low, high) in zip(inside, ends, strict=True)]
        body.append([setting.heading, method_title(method), *cells])
    if body:
        ends = [binom_ends(int(total[2]), share) for share in (0.5, 0.95)]
        body.append(["all", "", *(f"{n} of {total[2]} ({low} to {high})" for n, (low, high) in
                                  zip(total[:2], ends, strict=True))])  # fmt: skip
    return markdown_rows(["setting", "method", "in the 50 % interval", "in the 95 % interval"], body) if body else []


def binom_ends(n: int, share: float) -> tuple[int, int]:
    """Return between which counts the central 99 % of a binomial lie."""
    from scipy.stats import binom  # slow to import

    return int(binom.ppf(0.005, n, share)), int(binom.ppf(0.995, n, share))


def trait_rows(found: Sequence[Setting], rules: Protocol2) -> list[str]:
    """Return whether effects go with a table's noise and rows: rank correlations, and what the model says of noise."""
    from scipy.stats import spearmanr  # slow to import

    body = []
    for setting, method in [(s, METHOD) for s in found] + [(s, ENSEMBLE) for s in found if s.has(ENSEMBLE)]:
        each = percent_differences(setting.errors(), method)
        means = [float(np.mean(list(own.values()))) for own in each.values()]
        rows = {table.name: table.rows for table in rules.tables}
        known = ([float(np.std(list(own.values()))) for own in each.values()], [rows[table] for table in each])
        cells = ["{:+.2f} (p {:.2g})".format(*spearmanr(means, trait)) for trait in known]
        own = setting.effect(method, rules)
        assert own is not None
        body.append([setting.heading, method_title(method), *cells, chance_text(own.posterior.growth)])
    heads = [
        "setting",
        "method",
        "with the noise of splits",
        "with the rows",
        "probability that effects grow with noise",
    ]
    return markdown_rows(heads, body) if body else []
