"""The table of results/theory.md and its figures, from results/theory.csv; the page's prose stands in the page.

Figures show errors over N, p and C-Mixup's bandwidth, mean and 95 % interval over seeds.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.records.experiment import RESULTS
from scripts.report.figures import COLOURS, GREEN, GREY, SKY, legend_below
from scripts.report.rendering import draws, fills
from scripts.report.result_table import markdown_table
from scripts.report.sweep import seed_interval
from scripts.stats.intervals import Interval, interval_text, paired_or_none

FILE = "theory.csv"
COLUMNS = ("theorem", "setting", "N", "p", "bandwidth", "method", "theta", "seed", "metric", "value")
COMPARED = ("mixup", "feature_1", "feature_0.1")  # the theorems order C-Mixup below these
TITLES = {
    "erm": "ERM", "mixup": "mixup", "feature_1": "feature kernel, f = 1", "feature_0.1": "feature kernel, f = 0.1",
    "cmixup": "C-Mixup", "erm_one_domain": "ERM, first domain", "exact": "exact pairing",
}  # fmt: skip
RENAMED = {(2, "mixup"): "MetaMix", (3, "erm"): "ERM, both domains"}
AXES = ("N", "p", "bandwidth")  # of figures
AXIS_LABELS = {
    (1, "bandwidth"): "C-Mixup's bandwidth (label units)", (2, "bandwidth"): "C-Mixup's bandwidth (label units)",
    (3, "bandwidth"): "C-Mixup's bandwidth / median nearest other label", (2, "N"): "rows of all training tasks",
    (3, "N"): "n, rows of a domain", (3, "p"): "p = p1 + p2",
}  # fmt: skip
#: Colour and marker of each method that is drawn.
LOOKS = {
    "erm": (COLOURS["erm"], "o"), "mixup": (COLOURS["mixup"], "s"), "feature_1": (GREEN, "v"),
    "feature_0.1": (SKY, "^"), "cmixup": (COLOURS["cmixup"], "D"), "erm_one_domain": (GREY, "P"),
}  # fmt: skip


class Quantity(NamedTuple):
    """A number that is shown: its metric, the theta it is of, its title in tables and its label in figures."""

    metric: str
    theta: str
    title: str
    label: str


_SINGLE_INDEX = (
    Quantity("mse", "estimated", "MSE, estimated theta", "test MSE, estimated θ"),
    Quantity("mse", "true", "MSE, true theta", "test MSE, true θ"),
)
#: The first two of a theorem are the errors that it orders; the third of Theorem 3 says whom C-Mixup pairs.
QUANTITIES: dict[int, tuple[Quantity, ...]] = {
    1: _SINGLE_INDEX,
    2: _SINGLE_INDEX,
    3: (
        Quantity("mse", "estimated", "MSE in the test domain", "MSE in the test domain"),
        Quantity("theta_error", "estimated", "error of theta", "‖θ\N{COMBINING CIRCUMFLEX ACCENT} - θ‖²"),
        Quantity("pairing_rate", "", "true partner", "rows with their true partner"),
    ),
}


class Place(NamedTuple):
    """A point of the grid; `setting` names the change from the base, the bandwidth is C-Mixup's."""

    theorem: int
    setting: str
    n: int
    p: int
    bandwidth: str

    def on(self, axis: str) -> float:
        """Return its value on one of `AXES`."""
        return float(getattr(self, axis.lower()))


class Numbers:
    """The numbers of results/theory.csv, from its rows with bandwidth and theta as text, by place and method."""

    def __init__(self, rows: pd.DataFrame) -> None:
        cells = rows.groupby(["theorem", "setting", "N", "p", "bandwidth", "method", "metric", "theta"], sort=False)
        self._values = {key: dict(zip(cell["seed"], cell["value"], strict=True)) for key, cell in cells}
        self.places = list(dict.fromkeys(Place(*key[:5]) for key in self._values if key[5] == "cmixup"))

    def base(self, theorem: int) -> Place:
        """Return the base of a theorem."""
        return next(place for place in self.places if (place.theorem, place.setting) == (theorem, "base"))

    def along(self, theorem: int, axis: str) -> list[Place]:
        """Return the base and the places where "N", "p" or "bandwidth" is changed, in ascending order."""
        places = [place for place in self.places if place.theorem == theorem and place.setting in ("base", axis)]
        return sorted(places, key=lambda place: place.on(axis))

    def values(self, place: Place, method: str, metric: str, theta: str = "") -> dict[int, float]:
        """Return the values by seed, {} if there are none; at another bandwidth other methods are those of the base."""
        if not method.startswith("cmixup"):
            place = place._replace(bandwidth="", setting="base" if place.setting == "bandwidth" else place.setting)
        return self._values.get((*place, method, metric, theta), {})

    def differences(self, place: Place, q: Quantity, methods: Sequence[str] = COMPARED) -> list[Interval]:
        """Return the paired 95 % intervals of C-Mixup minus methods, by default those that the theorem compares.

        There are none where a place has no numbers of its own: with true theta Theorem 2 uses no training tasks.
        """
        if (place.theorem, place.setting, q.theta) == (2, "N", "true"):
            return []
        ours = self.values(place, "cmixup", *q[:2])
        return [d for method in methods if (d := paired_or_none(ours, self.values(place, method, *q[:2])))]


def answer_table(numbers: Numbers) -> str:
    """Return the answers: differences at each theorem's base, and at how many places all three lie below 0."""
    body = []
    for theorem, quantities in QUANTITIES.items():
        base = numbers.base(theorem)
        for q in quantities[:2]:
            compared = [interval_text(d, 2) for d in numbers.differences(base, q, (*COMPARED, "erm"))]
            grid = [place for place in numbers.places if place.theorem == theorem and place.setting != "bandwidth"]
            everywhere = list(filter(None, (numbers.differences(place, q) for place in grid)))
            n_below = sum(all(d.high < 0 for d in intervals) for intervals in everywhere)
            body.append([f"{theorem}: {q.title}", *compared, f"{n_below} / {len(everywhere)}"])
    minus = ["minus mixup / MetaMix", *(f"minus {TITLES[m]}" for m in COMPARED[1:])]
    return markdown_table(["theorem", *minus, "minus ERM", "holds at"], body)


def read_numbers(results: Path = RESULTS) -> Numbers:
    """Return the numbers that `results/theory.csv` holds."""
    return Numbers(pd.read_csv(results / FILE, dtype={"bandwidth": str, "theta": str}, keep_default_na=False))


@fills
def answers() -> dict[str, dict[str, str]]:
    """Return the table of results/theory.md."""
    return {"results/theory.md": {"answers": answer_table(read_numbers())}}


@draws
def theory_figures(results: Path = RESULTS) -> dict[str, Figure]:
    """Return a figure a theorem from `results/theory.csv`, by its path below `results`."""
    numbers = read_numbers(results)
    return {f"figures/theory_{theorem}.png": theorem_figure(numbers, theorem) for theorem in QUANTITIES}


def theorem_figure(numbers: Numbers, theorem: int) -> Figure:
    """Draw a theorem's figure: a row a quantity, columns over N, p and the bandwidth."""
    quantities = QUANTITIES[theorem]
    figure = Figure(figsize=(13, 3.3 * len(quantities)))
    for axes, q in zip(figure.subplots(len(quantities), 3, squeeze=False), quantities, strict=True):
        for axis, name in zip(axes, AXES, strict=True):
            if q.metric == "pairing_rate" and name != "bandwidth":  # the same at every N and p
                axis.set_axis_off()
                continue
            axis.set_xscale("linear" if name == "bandwidth" else "log")
            for method in LOOKS:
                _draw_line(axis, numbers, (theorem, name), method, q)
            axis.set(xlabel=AXIS_LABELS.get((theorem, name), name), ylabel=q.label)
            axis.grid(alpha=0.3)
            if q.metric != "pairing_rate":
                axis.set_ylim(bottom=0)
    figure.suptitle(
        f"Theorem {theorem} orders C-Mixup below mixup and the feature kernels; it says nothing of ERM. "
        "Mean and 95 % t interval over seeds", fontsize=11,
    )  # fmt: skip
    legend_below(figure)
    return figure


def _draw_line(axis: Axes, numbers: Numbers, where: tuple[int, str], method: str, q: Quantity) -> None:
    """Draw a method's line; over the bandwidth, whose values stand side by side, all but C-Mixup are constant."""
    theorem, name = where
    (colour, marker), title = LOOKS[method], RENAMED.get((theorem, method), TITLES[method])
    if name == "bandwidth" and method != "cmixup":
        if base := numbers.values(numbers.base(theorem), method, *q[:2]):
            axis.axhline(seed_interval(base).mean, color=colour, linestyle="--", linewidth=1.2, label=title)
        return
    places = {at.on(name): numbers.values(at, method, *q[:2]) for at in numbers.along(theorem, name)}
    means = {place: seed_interval(values) for place, values in places.items() if values}
    if not means:
        return
    x = list(range(len(means))) if name == "bandwidth" else list(means)
    half = [m.high - m.mean for m in means.values()]
    axis.errorbar(x, [m.mean for m in means.values()], yerr=half, color=colour, marker=marker, markersize=5, capsize=3,
                  label=title, clip_on=False)  # fmt: skip
    axis.set_xticks(x, ["inf" if at == math.inf else f"{at:.3g}" if at < 1 else f"{at:g}" for at in means], fontsize=8)
    axis.minorticks_off()
