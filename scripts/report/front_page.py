"""The tables of README's first screen: what was found, in one short cell each, and the regressor beside its rivals."""

from __future__ import annotations

from scripts.report.evidence import Evidence, published_evidence
from scripts.report.paper.claims import claim_rows
from scripts.report.paper.statements import held_by_network, outcome_counts
from scripts.report.paper.verdicts import Finding
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table
from scripts.report.sentences import regressor_mixed, regressor_reserve, rival_numbers
from scripts.report.study_evidence import leading_setting, read_settings
from scripts.stats.effects import Effect
from scripts.stats.intervals import HIGHER, LOWER, Estimate, Interval, interval_text
from scripts.study.ensembles import ENSEMBLE, METHOD
from scripts.study.rules import PROTOCOL2

RIVALS = {
    "tabular_catboost": "`TabularRegressor(blend=CatBoost)`", "tabular": "`TabularRegressor`", "catboost": "CatBoost",
    "catboost_5": "mean of five CatBoosts", "lightgbm": "LightGBM", "realmlp": "RealMLP",
}  # fmt: skip
HEAD = ("question", "answer", "measured on")


@fills
def first_screen() -> dict[str, dict[str, str]]:
    """Return the two tables of README, and its sentences on the regressor."""
    e = published_evidence()
    tables = {"found": found_table(e), "rivals": rivals_table(e)}
    return {"README.md": {**tables, "regressor_reserve": regressor_reserve(e), "regressor_mixed": regressor_mixed(e)}}


def found_table(e: Evidence) -> str:
    """Return a row a question, each with its interval and where it was measured."""
    lead, at_random = leading_setting(), read_settings(PROTOCOL2)[-1]
    mix, five, both = lead.effect(METHOD), lead.effect(ENSEMBLE), at_random.effect("C-Mixup x 5", ENSEMBLE)
    assert mix
    full, small = held_by_network()
    gains, others = (len({one.published for one in some}) for some in (full, small))
    fresh = rival_numbers(e, "tabular"), rival_numbers(e, "tabular_catboost")
    seen = rival_numbers(e, "tabular_catboost", "reserved")
    tables = f"[{len(mix.tables)} tables](results/study.md), at most 3,000 training rows"
    body = [
        ["Does C-Mixup lower a tuned network's error?", _effect(mix), tables],
        ["Does averaging five such networks lower it?", _effect(five), "the same"],
        ["Does C-Mixup lower the error of such an average?", _effect(both), f"the same, {at_random.splits} splits"],
        ["Is `TabularRegressor`'s error below CatBoost's?", _rival(fresh[0]),
         f"[{fresh[0][1].n} fresh tables](results/estimators.md#estimators), used for no choice"],
        ["Is that of `TabularRegressor(blend=CatBoost)`?", _rival(fresh[1]), "the same"],
        ["Is that of `TabularRegressor(blend=CatBoost)`, on older tables?", _rival(seen),
         f"[{seen[1].n} tables](results/estimators.md#estimators) of earlier comparisons"],
        ["In mixup, are similar partners better than random ones?", _similar_partner(),
         "[Tables 1 and 3](results/findings.md#claims)"],
        ["Is C-Mixup better than ERM where the paper's gain is clear?", _outcomes(full),
         f"{gains} gains of [Tables 1 and 3](results/README.md), each with two sets of hyperparameters"],
        ["Do the paper's other clear gains appear with smaller networks?", _outcomes(small),
         f"{others} gains of [Tables 2 to 4](results/README.md), one scored at two epochs"],
    ]  # fmt: skip
    return markdown_table(HEAD, body, left=3)


def _similar_partner() -> str:
    rows = [row for row in claim_rows() if row["claim"] == "similar_partner"]
    yes, no, unknown = (sum(row[side] for row in rows) for side in ("for", "against", "undecided"))
    return f"in {yes + no + unknown} comparisons: {yes} better, {no} worse, {unknown} undecided"


def _outcomes(some: list[Finding]) -> str:
    *counts, (word, smaller) = outcome_counts(some).items()
    compared = ", ".join(f"{n} {word}" for word, n in counts)
    return f"{len(some)} results: {compared}; {smaller} of {len(some)} {word}"


def _effect(one: Effect | None) -> str:
    assert one
    return _answer(one.mean, one.lower, len(one.tables))


def _rival(numbers: tuple[float, Interval, int]) -> str:
    _, d, below = numbers
    return _answer(d, below, d.n)


def _answer(d: Estimate | None, lower: int, tables: int) -> str:
    assert d
    word = {LOWER: "yes", HIGHER: "no, worse"}.get(d.side, "not shown")
    mean, space, ends = interval_text(d, 1 if round(abs(d.low), 1) else 2).partition(" ")
    most, side = max((lower, "lower"), (tables - lower, "higher"))
    return f"{word}: {mean} %{space}{ends}, {side} on {most} of {tables}"


def rivals_table(e: Evidence) -> str:
    """Return each model's error beside CatBoost's on the fresh tables, and the median seconds of a fit."""
    body = []
    for model, title in RIVALS.items():
        seconds, behind, _ = rival_numbers(e, model)
        body.append([title, "0" if model == "catboost" else interval_text(behind, 1), f"{seconds:.2g}"])
    return markdown_table(("model", "RMSE against CatBoost's, %", "median seconds of a fit"), body)
