"""What is rendered of the study: results/study.md, the lines of first pages, two pictures and the effects as CSV."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from textwrap import fill

import numpy as np
import torch
from matplotlib.figure import Figure

from cmixup import CMixup
from scripts.records.experiment import RESULTS
from scripts.records.names import method_title
from scripts.report import study_tables
from scripts.report.figures import COLOURS, method_look, new_subplots
from scripts.report.register import draws, fills, writes
from scripts.report.rendering import WIDTH
from scripts.report.result_table import markdown_rows
from scripts.report.study_evidence import (
    ENSEMBLE,
    METHOD,
    NO_SEARCH,
    Setting,
    leading_setting,
    read_settings,
    unfinished_text,
)
from scripts.report.study_tables import effect_rows, effect_table
from scripts.stats.effects import BASE, HIGHER, LOWER, VERDICTS, Effect
from scripts.stats.intervals import interval_text
from scripts.study.cells import Record, read_store
from scripts.study.rules import PROTOCOL2, load_rules
from scripts.study.try_method import chance_text, counts_text, direction_text, mean_text, method_verdict, new_text

PAGE = "study.md"
WHO = {METHOD: "C-Mixup", ENSEMBLE: "An average of five networks of ERM"}
LITE_SETTING = "random"  # in which methods are tried first, on the lite tables


@writes
def effect_files() -> dict[str, str]:
    """Return the effects of every method on every table by their path below results/."""
    return {"study/effects.csv": study_tables.effects_csv(read_settings(PROTOCOL2))}


def page_parts(settings: Sequence[Setting]) -> dict[str, str]:
    """Return what is filled into the page, by its place; `settings` are those of protocol 2."""
    return {
        "study": lead_text(),
        "answers": study_tables.answers_table(),
        "settings": effect_table(effect_rows(settings)),
        "pairs": study_tables.pairs_text(settings),
        "controls": effect_table(study_tables.control_rows(settings)),
        "calibration": study_tables.calibration_text(settings),
        "models": study_tables.models_table(settings),
        "untuned": effect_table(effect_rows(read_settings(NO_SEARCH))),
        "networks": study_tables.networks_table(),
        "likelihood": study_tables.likelihood_table(),
        "entries": effect_table(study_tables.entry_rows(entry_settings())),
        "unfinished": unfinished_text(),
        **study_tables.tuning_facts(settings, load_rules()),
    }


@fills
def study_places() -> dict[str, dict[str, str]]:
    """Return what pages have of the study, by page and place."""
    every = lite_records()
    first = next((setting for setting in entry_settings() if any("entry" in r for r in setting.records)), None)
    assert first is not None
    verdict = method_verdict(every, LITE_SETTING, first.methods[0], first.rules.level, first.rules.equal)
    return {
        "README.md": {"study": f"{lead_text()}\n\n{lead_table()}", "helps": short_answer()},
        f"{RESULTS.name}/{PAGE}": page_parts(read_settings(PROTOCOL2)),
        f"{RESULTS.name}/README.md": {"study": lead_text()},
        "docs/new_method.md": {"entry": f"```text\n{verdict}\n```"},
    }


@draws
def study_figures() -> dict[str, Figure]:
    """Return the picture that README begins with, by its path below results/."""
    lead = leading_setting()
    effect, equal = effect_of(lead), lead.rules.equal
    counts = effect.counts()
    improves, worsens = (counts[verdict] or "none" for verdict in VERDICTS[:2])
    title = f"{len(effect.means)} tables: {improves} surely improve by {equal:g} %, {worsens} worsen as much"
    return {"study/first.png": draw_first(effect, equal, method_title(METHOD), title)}


def draw_first(effect: Effect, equal: float, method: str, title: str) -> Figure:
    """Draw what C-Mixup does, on rows of a curve, and what it changes on real tables: the project's first picture.

    Args:
        effect: what the method changes, in percent of ERM's error.
        equal: the band within which an effect is neither a gain nor a loss, in percent.
        method: title of the method.
        title: of the right panel: its finding.
    """
    figure, ((left, right),) = new_subplots(1, 2, (10.4, 3.9))
    rng = np.random.default_rng(0)
    x = np.sort(3 * rng.random((60, 1), dtype=np.float32), axis=0)
    data = torch.from_numpy(x), torch.from_numpy(np.exp(x))
    left.plot(x, np.exp(x), ".", color="0.45", markersize=5, label="rows", zorder=3)
    for name, bandwidth in (("mixup", math.inf), ("cmixup", 1.0)):
        mixed = CMixup(bandwidth, alpha=1.0, seed=0)(*data)
        look = method_look(name) | {"markersize": 5, "alpha": 0.8, "linestyle": ""}
        left.plot(mixed[0][:, 0], mixed[1][:, 0], label=f"mixed by {method_title(name)}", **look)
    left.set(xlabel="input", ylabel="label")
    left.set_title("mixup leaves the curve, C-Mixup stays on it", fontsize=11)
    left.legend(frameon=False, fontsize=9)
    rows = sorted((interval for interval, _ in effect.tables.values()), key=lambda interval: interval.mean)
    more = {"mean over tables": effect.overall, "for a new table": effect.of_new}
    order = [*rows, *more.values()]
    right.axvspan(-equal, equal, color="0.92", linewidth=0, zorder=0)
    right.axvline(0, color=COLOURS["erm"], linewidth=1)
    for k, interval in enumerate(order):
        whole = k >= len(rows)
        place = k + 2 * (k - len(rows) + 1) * whole  # more room below the tables
        look = {"color": method_look(METHOD)["color"], "linewidth": 2.2} if whole else {"color": "0.6", "linewidth": 1}
        ends = [[interval.mean - interval.low], [interval.high - interval.mean]]
        right.errorbar(interval.mean, place, xerr=ends, markersize=6 if whole else 3, fmt="D" if whole else "o", **look)
        if whole:
            name = list(more)[k - len(rows)]
            right.annotate(name, (interval.high, place), (5, 0), textcoords="offset points", va="center", fontsize=9)
    right.text(-0.5 * equal, -2.4, f"within\n{equal:g} %", ha="center", va="center", fontsize=8, color="0.35")
    right.set_yticks([])
    right.set_ylim(len(order) + 2 * len(more) + 1, -4.5)
    right.set_ylabel(f"{len(rows)} tables, one row each")
    right.set_xlim(left=min(-1.4 * equal, right.get_xlim()[0]))
    right.set_xlabel(f"← better          worse →\n{method}'s error against training without mixing, %")
    right.set_title(title, fontsize=11)
    figure.tight_layout()
    return figure


def effect_of(setting: Setting, method: str = METHOD) -> Effect:
    """Return the effect of a method that a setting has."""
    effect = setting.effect(method)
    assert effect is not None, method
    return effect


def short_answer() -> str:
    """Return whether C-Mixup helps, in a sentence: the direction of its mean effect, and what to expect of a table."""
    lead = leading_setting()
    effect = effect_of(lead)
    way = {LOWER: "On average it lowers the error", HIGHER: "On average it raises the error"}.get(
        effect.direction(), "On average that is inconclusive"
    )
    where = f"over {len(effect.means)} real tables, {lead.splits} splits each,"
    return f"{way}: {where} {mean_text(effect)}. {new_text(effect, lead.rules.equal).rstrip('.')}"


def lead_text() -> str:
    """Return in sentences what C-Mixup and an average of networks change."""
    lead = leading_setting()
    effects = {method: effect_of(lead, method) for method in WHO}
    where = f"{len(effects[METHOD].means)} tables, {lead.splits} splits each"
    first, second = (f"**{WHO[m]}: {direction_text(effect)} ({where}).**" for m, effect in effects.items())
    text = f"{first} With C-Mixup {counts_text(effects[METHOD], lead.rules.equal)}. {second}"
    return fill(text, WIDTH, break_on_hyphens=False)


def lead_table() -> str:
    """Return a row for C-Mixup and for the average of networks, for README."""
    lead = leading_setting()
    heads = ["against ERM", "mean effect (hierarchical model), %", "unweighted mean, %", "direction",
             f"predictive probability that the error improves by at least {lead.rules.equal:g} % on a new table",
             "worsens as much"]  # fmt: skip
    body = [
        [WHO[method], interval_text(effect.overall, 1), interval_text(effect.unweighted, 1), effect.direction(),
         chance_text(effect.posterior.new.chances.gain), chance_text(effect.posterior.new.chances.loss)]
        for method in WHO for effect in [effect_of(lead, method)]
    ]  # fmt: skip
    return "\n".join(markdown_rows(heads, body))


def lite_records() -> list[Record]:
    """Return the records of all methods, entries among them, in the setting at random on the lite tables."""
    rules = load_rules()
    tables = rules.lite_tables()
    every = read_store(rules, entries=True)
    return [record for record in every if record["condition"] == LITE_SETTING and record["table"] in tables]


def entry_settings() -> list[Setting]:
    """Return a setting for each entry, by name: its records and those of ERM, on the tables that it has."""
    rules, records = load_rules(), lite_records()
    (condition,) = (condition for condition in rules.conditions if condition.name == LITE_SETTING)
    settings = []
    for name in sorted({record["method"] for record in records} - rules.methods.keys()):
        tables = {record["table"] for record in records if record["method"] == name}
        mine = [r for r in records if r["method"] in (BASE, name) and r["table"] in tables]
        title = f"{len(tables)} smallest tables"
        settings.append(Setting(rules, replace(condition, methods=(BASE, name)), title, mine))
    return settings
