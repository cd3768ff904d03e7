"""The study on pages: its own, lines of others, its pictures, and the effects on each table as CSV."""

import functools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.records.names import method_title as config_title
from scripts.report.figures import BLUE, COLOURS, GREY, VERMILION, legend_below, new_subplots
from scripts.report.rendering import draws, fills, writes
from scripts.report.result_table import markdown_table
from scripts.report.study_evidence import (
    AGAIN,
    FIRST,
    LIKELIHOOD,
    LITE_SETTING,
    NETWORKS,
    NO_SEARCH,
    Setting,
    entry_settings,
    leading_setting,
    lite_runs,
    mean_summaries,
    read_settings,
    summaries_table,
)
from scripts.stats.effects import BASE, Effect, sign_text
from scripts.stats.intervals import interval_text
from scripts.study.ensembles import ENSEMBLE, METHOD
from scripts.study.rules import PROTOCOL2, Rules, load_rules
from scripts.study.try_method import degenerate_splits, method_summary

ENTRY = "[{0}](../examples/entries/{0}.py)"
ARMS = {
    "cmixup_alpha02": "C-Mixup, alpha 0.2", "cmixup_alpha2": "C-Mixup, alpha 2", "mixup_alpha02": "mixup, alpha 0.2",
    "input_noise": "Gaussian noise on inputs",
}  # fmt: skip
TUNED, ENTRIES = "tuned", "entries"
#: Averages of networks against as many of ERM.
AVERAGES = ("C-Mixup x 5", "ERM x 3 + C-Mixup x 2")


class Row(NamedTuple):
    """A row of a table of effects: the part of the study in words, the setting, the method and its rival."""

    part: str
    setting: Setting
    method: str
    base: str
    effect: Effect

    @property
    def title(self) -> str:
        """How the page calls the method."""
        if self.part == ENTRIES:
            return ENTRY.format(self.method)
        return method_title(self.method) + (f" against {ENSEMBLE}" if self.base == ENSEMBLE else "")


@functools.cache
def study_rows() -> tuple[Row, ...]:
    """Return the effects of every method, ensemble and control in every setting, in the order of the pages."""
    parts = {TUNED: [leading_setting(), *read_settings(PROTOCOL2)], "no search": read_settings(NO_SEARCH)}
    parts |= {title: read_settings(name) for name, title in NETWORKS.items()}
    parts |= {LIKELIHOOD: read_settings(LIKELIHOOD), ENTRIES: entry_settings()}
    return tuple(
        Row(part, setting, method, base, effect) for part, settings in parts.items() for setting in settings
        for method, base in method_pairs(setting) if (effect := setting.effect(method, base))
    )  # fmt: skip


def method_pairs(setting: Setting) -> Iterator[tuple[str, str]]:
    """Yield the methods of a setting, each with its rival, whether or not it has runs of both."""
    yield from ((method, BASE) for method in setting.methods)
    yield (ENSEMBLE if setting.effect(ENSEMBLE) else "ERM x 2"), BASE
    yield AGAIN, FIRST
    yield from ((name, ENSEMBLE) for name in AVERAGES)


@writes
def effects_csv() -> dict[str, str]:
    """Return the effect of every method on every table as CSV, by its path: mean over n splits, corrected interval."""
    rows = [
        {"part": row.part, "setting": row.setting.condition.name, "splits": row.setting.splits, "method": row.method,
         "against": row.base, "unit": row.setting.rules.unit, "table": table, "n": interval.n, "mean": interval.mean,
         "low": interval.low, "high": interval.high}
        for row in study_rows() for table, interval in row.effect.tables.items()
    ]  # fmt: skip
    return {"study/effects.csv": pd.DataFrame(rows).to_csv(index=False, float_format="%.3f")}


@fills
def study_parts() -> dict[str, dict[str, str]]:
    """Return the parts of pages on the study, by page and place."""
    entries, lead = entry_settings(), leading_setting()
    first = next(s.methods[0] for s in entries if any("entry" in shared for shared in s.runs["shared"]))
    lines = method_summary(lite_runs(), LITE_SETTING, first, load_rules()).splitlines()
    excerpt = "\n".join([*lines[:3], "...", *lines[len(lines) - 7 :]])
    return {
        "results/study.md": {
            "helps": short_answer(),
            "summaries": summaries_table(lead),
            "tuned": effect_table(rows_of(TUNED)),
            "untuned": effect_table(rows_of("no search")),
            "networks": effect_table(rows_of(*NETWORKS.values()), named=True),
            **tuning_facts(read_settings(PROTOCOL2), load_rules()),
        },
        "results/study_more.md": {
            "likelihood": effect_table(rows_of(LIKELIHOOD)), "entries": effect_table(rows_of(ENTRIES)),
        },
        "docs/new_method.md": {"entry": f"```text\n{excerpt}\n```"},
    }  # fmt: skip


def rows_of(*parts: str) -> list[Row]:
    """Return the rows of some parts of the study."""
    return [row for row in study_rows() if row.part in parts]


def method_title(method: str) -> str:
    """Return how the page calls a method or an ensemble."""
    return ARMS.get(method) or config_title(method)


def effect_table(rows: Iterable[Row], *, named: bool = False) -> str:
    """Return a Markdown table of effects, all in one unit; with `named` the setting begins with its part's name."""
    rows, body, last = list(rows), list[list[str]](), ""
    unit = rows[0].setting.rules.unit
    for row in rows:
        where = f"{row.part}: {row.setting.where}" if named else row.setting.where
        mean = interval_text(row.effect.mean, 1 if unit == "%" else 2)
        body.append(["" if where == last else where, row.title, mean, sign_text(row.effect)])
        last = where
    return markdown_table(["setting", "method", f"mean change, {unit}", "lower on (p of sign test)"], body, left=2)


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


def short_answer() -> str:
    """Return whether C-Mixup helps: no gain where all summaries of its mean effect are above 0, and the mean."""
    lead = leading_setting()
    effect, means = lead.effect(METHOD), [summary.mean for summary in mean_summaries(lead, METHOD).values()]
    assert effect
    expect = "no gain" if min(means) > 0 else "little"
    return (
        f"Expect {expect}. On {len(effect.tables)} tabular datasets C-Mixup changes the test RMSE of tuned small "
        f"networks by {interval_text(effect.mean, 2)} % on average, and lowers it on {effect.lower}. The comparison is "
        "with the same networks without mixing; the 95 % interval is over datasets, and below 0 is better"
    )


#: Methods of the picture of settings, by their titles: the name in the legend and how each is drawn.
SERIES: dict[str, tuple[str, dict[str, Any]]] = {
    "C-Mixup": ("C-Mixup, tuned or alpha 0.2", {"fmt": "D", "color": VERMILION}),
    "C-Mixup, alpha 0.2": ("C-Mixup, tuned or alpha 0.2", {"fmt": "D", "color": VERMILION}),
    "C-Mixup, alpha 2": ("C-Mixup, alpha 2", {"fmt": "D", "color": VERMILION, "markerfacecolor": "white"}),
    "mixup": ("mixup, tuned or alpha 0.2", {"fmt": "s", "color": BLUE}),
    "mixup, alpha 0.2": ("mixup, tuned or alpha 0.2", {"fmt": "s", "color": BLUE}),
    "ERM x 2": ("2 networks averaged, no mixing", {"fmt": "o", "color": GREY, "markerfacecolor": "white"}),
    ENSEMBLE: ("5 networks averaged, no mixing", {"fmt": "o", "color": GREY}),
}
AWAY = "← better          worse →\n"


@draws
def pictures() -> dict[str, Figure]:
    """Return the picture of effects on tables and that of settings, by their paths below results/."""
    lead = leading_setting()
    effect = lead.effect(METHOD)
    assert effect
    effects, ((axis,),) = new_subplots(1, 1, (7.0, 6.4))
    draw_effects(axis, effect, lead.rules.equal, lead.splits)
    effects.tight_layout(pad=1.5)
    settings, ((axis,),) = new_subplots(1, 1, (9.0, 7.2))
    legend_below(settings, draw_settings(axis))
    return {"study/effects.png": effects, "study/settings.png": settings}


def draw_effects(axis: Axes, effect: Effect, equal: float, splits: int) -> None:
    """Draw what C-Mixup changes on every table and in the mean, in % of ERM's error, and the band of no difference."""
    axis.axvspan(-equal, equal, color="0.92", linewidth=0, zorder=0)
    axis.axvline(0, color=COLOURS["erm"], linewidth=1)
    rows = sorted(effect.tables.items(), key=lambda pair: pair[1].mean)
    for place, (_, interval) in enumerate(rows):
        axis.errorbar(interval.mean, place, xerr=interval.bar, markersize=3, fmt="o", color="0.5", linewidth=1)
    assert effect.mean
    mean, last = effect.mean, len(rows) + 1
    axis.errorbar(mean.mean, last, xerr=mean.bar, markersize=5, fmt="D", color=COLOURS[METHOD], linewidth=2.2)
    names = [*(name.replace("_", " ") for name, _ in rows), "mean of the datasets"]
    axis.set_yticks([*range(len(rows)), last], names, fontsize=7.5)
    axis.set_ylim(len(rows) + 2, -1)
    axis.set_xlabel(f"{AWAY}C-Mixup's error against training without mixing, %")
    about = f"a tuned network, {splits} splits: lower error on {effect.lower} of {len(rows)} datasets"
    axis.set_title(f"{about}\nbars: 95 % intervals; grey band: within {equal:g} %", fontsize=10)


def draw_settings(axis: Axes) -> dict[str, Any]:
    """Draw the mean change by mixing and by averaging in every setting; returns the handles of the legend."""
    handles, ticks, place, last = dict[str, Any](), dict[str, float](), 0.0, ""
    for row in study_rows():
        name, look = SERIES.get(row.title, ("", {}))
        if not name or row.setting.rules.unit != "%" or not row.effect.mean:
            continue
        where = f"{row.part}: {row.setting.where}".replace(", split", ",\nsplit").replace("rows, n", "rows,\nn")
        place += 1 if where == last else 2
        ticks[where] = place if where != last else ticks[where]
        last = where
        mean = row.effect.mean
        handles.setdefault(name, axis.errorbar(mean.mean, place, xerr=mean.bar, markersize=5, linewidth=1.2, **look))
    axis.axvline(0, color=COLOURS["erm"], linewidth=1, zorder=0)
    axis.set_yticks(list(ticks.values()), list(ticks), fontsize=8)
    axis.set_ylim(place + 1, 1)
    axis.grid(axis="x", alpha=0.3)
    axis.set_xlabel(f"{AWAY}mean change of the test error over datasets, %; bars: 95 % intervals")
    return handles
