"""How pages print effects: a row of a table, and the names of methods, models and ensembles."""

from __future__ import annotations

from scripts.effects.verdicts import Effect, chance_text
from scripts.protocol.protocols import Protocol2
from scripts.records import names
from scripts.records.stats import Interval
from scripts.records.tables import interval_text
from scripts.study.evidence import ENSEMBLES

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
