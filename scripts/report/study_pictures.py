"""Pictures of the study: changes by C-Mixup on every table, and by mixing in every setting."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.report.figures import BLUE, COLOURS, GREY, VERMILION, legend_below, new_subplots
from scripts.report.rendering import draws
from scripts.report.study_evidence import leading_setting
from scripts.report.study_page import study_rows
from scripts.stats.effects import Effect
from scripts.study.ensembles import ENSEMBLE, METHOD

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
    """Draw what C-Mixup changes on every table, and in the mean, in percent of ERM's error.

    Within the band `equal`, in percent, a change makes no difference.
    """
    axis.axvspan(-equal, equal, color="0.92", linewidth=0, zorder=0)
    axis.axvline(0, color=COLOURS["erm"], linewidth=1)
    rows = sorted(effect.tables.items(), key=lambda pair: pair[1].mean)
    for place, (_, one) in enumerate(rows):
        axis.errorbar(one.mean, place, xerr=one.bar, markersize=3, fmt="o", color="0.5", linewidth=1)
    assert effect.mean
    mean, last = effect.mean, len(rows) + 1
    axis.errorbar(mean.mean, last, xerr=mean.bar, markersize=5, fmt="D", color=COLOURS[METHOD], linewidth=2.2)
    names = [*(name.replace("_", " ") for name, _ in rows), "mean of the datasets"]
    axis.set_yticks([*range(len(rows)), last], names, fontsize=7.5)
    axis.set_ylim(len(rows) + 2, -1)
    axis.set_xlabel(f"{AWAY}C-Mixup's error against training without mixing, %")
    about = f"{len(rows)} datasets, {splits} splits, a tuned network"
    axis.set_title(f"{about}: lower error on {effect.lower}\nbars: 95 % intervals; band: {equal:g} %", fontsize=10)


def draw_settings(axis: Axes) -> dict[str, Any]:
    """Draw the mean change by mixing and by averaging in every setting; returns the handles of the legend."""
    handles, ticks, place, last = dict[str, Any](), dict[str, float](), 0.0, ""
    for row in study_rows():
        name, look = SERIES.get(row.title, ("", {}))
        if not name or row.setting.unit != "%" or not row.effect.mean:
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
