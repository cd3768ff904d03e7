"""What is rendered of the study: results/study.md, the lines of other pages, and the effects on each table as CSV."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from scripts.records.names import method_title as config_title
from scripts.report.rendering import fills, writes
from scripts.report.result_table import markdown_table
from scripts.report.study_evidence import (
    AGAIN,
    ENSEMBLE,
    FIRST,
    LIKELIHOOD,
    LITE_SETTING,
    METHOD,
    MORE_SPLITS,
    NETWORKS,
    NO_SEARCH,
    Setting,
    entry_settings,
    leading_setting,
    lite_runs,
    mean_summaries,
    read_settings,
    recalibrated,
    summaries_table,
)
from scripts.stats.effects import BASE, OVERLAP, Effect, errors_of, percent_differences
from scripts.stats.hierarchical import left_out
from scripts.stats.intervals import interval_text
from scripts.study.rules import PROTOCOL2, Rules, load_rules
from scripts.study.try_method import chance_text, degenerate_splits, method_verdict

PAGE = "study.md"
ENTRY = "[{0}](../examples/entries/{0}.py)"
ARMS = {
    "cmixup_alpha02": "C-Mixup, alpha 0.2", "cmixup_alpha2": "C-Mixup, alpha 2", "mixup_alpha02": "mixup, alpha 0.2",
    "input_noise": "Gaussian noise on inputs",
}  # fmt: skip
MIXED = ("C-Mixup", "C-Mixup, alpha 0.2", "C-Mixup, alpha 2")
PARTS = {PROTOCOL2: "tuned", MORE_SPLITS: "tuned", NO_SEARCH: "no search", **NETWORKS}


class Row(NamedTuple):
    """A row of a table of effects: the setting in words, the method's title, its effect and the effect's unit."""

    where: str
    method: str
    effect: Effect
    unit: str = "%"

    @property
    def means(self) -> list[str]:
        """The mean effect and the unweighted one, with their intervals."""
        digits = 1 if self.unit == "%" else 2
        return [interval_text(mean, digits) for mean in (self.effect.posterior.overall, self.effect.unweighted)]

    @property
    def chances(self) -> list[str]:
        """The predictive probabilities that the error improves, and worsens, on a new table."""
        new = self.effect.posterior.new
        return [chance_text(new.gain), chance_text(new.loss)]


@writes
def effects_csv() -> dict[str, str]:
    """Return the effect of every method on every table as CSV, with its interval and verdict, by its path."""
    rows = [
        {"setting": setting.condition.name, "table": table, "method": method, "effect": one.mean, "low": one.low,
         "high": one.high, "verdict": verdict}
        for setting in read_settings(PROTOCOL2) for method in setting.methods if (effect := setting.effect(method))
        for table, (one, verdict) in effect.tables.items()
    ]  # fmt: skip
    return {"study/effects.csv": pd.DataFrame(rows).to_csv(index=False, float_format="%.2f")}


@fills
def study_parts() -> dict[str, dict[str, str]]:
    """Return what pages have of the study, by page and place."""
    rules, settings, entries = load_rules(), read_settings(PROTOCOL2), entry_settings()
    lead = list(effect_rows([leading_setting()], [METHOD, ENSEMBLE]))
    page = {
        "study": effect_table(lead),
        "helps": short_answer(),
        "summaries": summaries_table(leading_setting()),
        "recalibration": recalibration_text(leading_setting()),
        "answers": answers_table(),
        "settings": effect_table(effect_rows(settings)),
        "controls": effect_table(control_rows(settings)),
        "calibration": calibration_text(settings),
        "untuned": effect_table(effect_rows(read_settings(NO_SEARCH))),
        "networks": effect_table(network_rows()),
        "likelihood": effect_table(likelihood_rows()),
        "entries": effect_table(row._replace(method=ENTRY.format(row.method)) for row in effect_rows(entries)),
        **tuning_facts(settings, rules),
    }
    first = next(s.methods[0] for s in entries if any("entry" in shared for shared in s.runs["shared"]))
    verdict = method_verdict(lite_runs(), LITE_SETTING, first, rules.level, rules.equal)
    return {
        "README.md": {"study": effect_table(lead, by_model=False), "helps": short_answer()},
        f"results/{PAGE}": page,
        "docs/new_method.md": {"entry": f"```text\n{verdict}\n```"},
    }


def method_title(method: str) -> str:
    """Return how the page calls a method or an ensemble."""
    return ARMS.get(method) or config_title(method)


def effect_rows(settings: Iterable[Setting], methods: Sequence[str] = (), place: str = "") -> Iterator[Row]:
    """Yield a row for each method of settings, by default those of the rules."""
    for setting in settings:
        for method in methods or setting.methods:
            if effect := setting.effect(method, FIRST if method == AGAIN else BASE):
                yield Row(place + setting.where, method_title(method), effect, setting.unit)


def network_rows() -> Iterator[Row]:
    """Yield the rows of all methods on other networks."""
    for name, title in NETWORKS.items():
        yield from effect_rows(read_settings(name), place=f"{title}; ")


def likelihood_rows() -> Iterator[Row]:
    """Yield the rows of networks that predict distributions, with their controls."""
    for setting in read_settings(LIKELIHOOD):
        yield from effect_rows([setting], [*setting.methods, ENSEMBLE, AGAIN])


def every_row() -> Iterator[Row]:
    """Yield the rows of all effects of the page."""
    yield from effect_rows([leading_setting()], [METHOD, ENSEMBLE])
    settings = read_settings(PROTOCOL2)
    for some in (settings, read_settings(NO_SEARCH), entry_settings()):
        yield from effect_rows(some)
    for rows in (control_rows(settings), network_rows(), likelihood_rows()):
        yield from rows


def effect_table(rows: Iterable[Row], *, by_model: bool = True) -> str:
    """Return a Markdown table of effects, all in one unit, in the order of the rows.

    Without `by_model` it leaves out the mean effect by the hierarchical model.
    """
    rows = list(rows)
    unit, size = rows[0].unit, "1 %" if rows[0].unit == "%" else "0.01 nats"
    means = [f"mean effect, {unit}", f"unweighted mean, {unit}"]
    first = 0 if by_model else 1
    head = ["setting", "method", *means[first:],
            "datasets: improves / worsens / equivalent / inconclusive",
            f"probability that a new dataset improves, worsens by {size}"]  # fmt: skip
    body, last = [], ""
    for row in rows:
        counts = " / ".join(map(str, row.effect.counts().values()))
        where, last = "" if row.where == last else row.where, row.where
        body.append([where, row.method, *row.means[first:], counts, ", ".join(row.chances)])
    return markdown_table(head, body, left=2)


def answers_table() -> str:
    """Return the first table of the page: what C-Mixup changes, the most probable improvement first."""
    rows = list(effect_rows([leading_setting()], [METHOD], place=f"{PARTS[MORE_SPLITS]}: "))
    for name in (PROTOCOL2, NO_SEARCH, *NETWORKS):
        rows += [row for row in effect_rows(read_settings(name), place=f"{PARTS[name]}: ") if row.method in MIXED]
    return effect_table(sorted(rows, key=lambda row: -row.effect.posterior.new.gain))


def control_rows(settings: Sequence[Setting]) -> Iterator[Row]:
    """Yield what averages of networks change, also against as many of ERM, and ERM from other initial weights."""
    for setting in settings:
        positive = ENSEMBLE if setting.effect(ENSEMBLE) else "ERM x 2"
        yield from effect_rows([setting], [positive, AGAIN])
        for name in ("C-Mixup x 5", "ERM x 3 + C-Mixup x 2"):
            if effect := setting.effect(name, ENSEMBLE):
                yield Row(setting.where, f"{name} against {ENSEMBLE}", effect)


def calibration_text(settings: Sequence[Setting]) -> str:
    """Return how often a table's mean lies where the other tables predict it, its noise included."""
    from scipy.stats import binom  # slow to import

    places: list[float] = []
    for setting, method in [(s, METHOD) for s in settings] + [(s, ENSEMBLE) for s in settings if s.effect(ENSEMBLE)]:
        differences = percent_differences(errors_of(setting.runs), method)
        places += left_out({t: list(by_split.values()) for t, by_split in differences.items()}, OVERLAP).values()
    counts = []
    for share in (0.5, 0.95):
        inside = sum((1 - share) / 2 <= place <= (1 + share) / 2 for place in places)
        low, high = (int(binom.ppf(q, len(places), share)) for q in (0.005, 0.995))
        counts.append(f"{inside} of {len(places)} lie in the {100 * share:g} % interval (expected: {low} to {high})")
    return f"{counts[0]}, and {counts[1]}"


def tuning_facts(settings: Sequence[Setting], rules: Rules) -> dict[str, str]:
    """Return on how many splits validation selected no mixing, by method, and how many runs are best at the end."""
    runs = pd.concat([s.runs[s.runs["method"].isin(s.condition.methods) & s.runs["trial"].isna()] for s in settings])
    late = runs.loc[runs["best_epoch"] > rules.epochs - rules.patience, "table"]
    methods = dict.fromkeys(method for setting in settings for method in setting.methods)
    counts = {m: np.sum([degenerate_splits(s.runs, m) for s in settings], axis=0) for m in methods}
    return {
        "degenerate": ", ".join(f"{method_title(m)} {erm} of {splits}" for m, (erm, splits) in counts.items()),
        "late": f"{len(late)} of {len(runs)} runs, on {late.nunique()} datasets",
    }


def recalibration_text(lead: Setting) -> str:
    """Return the predictive probabilities by the model, and after re-calibration on the tables left out."""
    parts = []
    for method in (METHOD, ENSEMBLE):
        (row,), after = effect_rows([lead], [method]), map(chance_text, recalibrated(lead, method))
        parts.append(f"those of {row.method} ({' and '.join(row.chances)}) become {' and '.join(after)}")
    return "; ".join(parts)


def short_answer() -> str:
    """Return whether C-Mixup helps: no gain where all summaries of its mean effect are above 0, and the mean."""
    lead = leading_setting()
    effect, means = lead.effect(METHOD), [one.mean for one in mean_summaries(lead, METHOD).values()]
    assert effect
    assert effect.unweighted
    expect = "no gain" if min(means) > 0 else "little"
    return (
        f"Expect {expect}: on {len(effect.means)} tabular datasets C-Mixup changes the test RMSE of tuned small "
        f"networks by {interval_text(effect.unweighted, 2)} % on average, against the same networks without mixing "
        "(a 95 % interval over datasets; below 0 would be better)"
    )
