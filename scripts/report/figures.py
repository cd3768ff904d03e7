"""Figures: a function returns the `Figure`, `write_figures` makes files; how each method looks; pictures of docs/."""

import contextlib
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from matplotlib import pyplot
from matplotlib.figure import Figure

from cmixup.sampling.bandwidth import BandwidthReport
from scripts.records.experiment import RESULTS
from scripts.report.rendering import draws

IDLE = 0.99  # where rows are their own partners with this probability, nothing is mixed
MARKERS = "os^vPX<>dph*"  # of series that are no methods


def new_subplots(n_rows: int, n_columns: int, figsize: tuple[float, float], **shared: Any) -> tuple[Figure, Any]:
    """Return a new figure and its axes `(n_rows, n_columns)`; no global state of pyplot holds it."""
    figure = Figure(figsize=figsize)
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)


def legend_below(figure: Figure, handles: Mapping[str, Any] | None = None) -> None:
    """Put one legend, of handles by label or of the first panel, below all panels, laid out in the room above it."""
    panel_handles, labels = figure.axes[0].get_legend_handles_labels()
    handles = dict(zip(labels, panel_handles, strict=True)) if handles is None else handles
    figure.set_layout_engine("constrained")
    columns = len(handles) if len(handles) < 5 else -(-len(handles) // 2)
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=columns, frameon=False,
                  fontsize=9)  # fmt: skip


def bandwidth_figure(
    datasets: Mapping[str, tuple[Sequence[BandwidthReport], Sequence[BandwidthReport], float]],
    unit: str = "standard deviation of the labels", marks: str = "published bandwidths",
) -> Figure:  # fmt: skip
    """Draw effective fraction and self-pairing over the bandwidth in some unit.

    Each of `datasets`, by title, has reports along a grid, reports to mark, and the unit's size in that of the labels.
    """
    figure, ((left, right),) = new_subplots(1, 2, figsize=(10.5, 3.6), sharex=True)
    looks = zip(itertools.cycle(SERIES), itertools.cycle(MARKERS), datasets.items(), strict=False)
    for colour, marker, (title, (along, marked, size)) in looks:
        every = sorted([*along, *marked], key=lambda report: report.bandwidth)
        x, at = ([r.bandwidth / size for r in reports] for reports in (every, marked))
        for axis, name in ((left, "effective_fraction"), (right, "self_probability")):
            axis.plot(x, [getattr(r, name) for r in every], color=colour)
            axis.plot(at, [getattr(r, name) for r in marked], marker, color=colour, label=title.replace("$", r"\$"))
        for place, report in zip(at, marked, strict=True):
            if report.self_probability > IDLE:
                right.annotate("no mixing", (place, report.self_probability), (9, 0), textcoords="offset points",
                               ha="left", va="center", fontsize=8)  # fmt: skip
    for axis, label in ((left, "effective partners / N (1: mixup)"), (right, "probability of oneself (1: ERM)")):
        axis.set(xscale="log", xlabel=f"bandwidth / {unit}", ylabel=label)
        axis.grid(alpha=0.3)
    left.legend(frameon=False, title=f"marks: {marks}", fontsize=9, title_fontsize=9)
    figure.tight_layout()
    return figure


BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C"

#: Colour and marker of methods that stand in one figure with others; C-Mixup's forms are vermilion.
LOOKS = {
    "erm": (BLACK, "o"), "cmixup": (VERMILION, "D"), "mixup": (BLUE, "s"), "manifold_mixup": (GREEN, "^"),
    "irm": (SKY, "^"), "ib_irm": (SKY, "v"), "vrex": (ORANGE, "o"), "coral": (PURPLE, "o"), "group_dro": (GREEN, "o"),
    "fish": (GREY, "o"), "drnn": (GREY, "v"),
}  # fmt: skip
COLOURS = {name: colour for name, (colour, _) in LOOKS.items()}
#: Of series that are no methods, such as presets and datasets, and of methods without a look.
SERIES = [BLUE, ORANGE, GREEN, PURPLE, SKY, GREY]


def method_looks(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return colour and marker of the methods of a figure, as options of `Axes.plot`.

    Methods without a look share the colours that are free, in turns, and have different markers.
    """
    methods = list(dict.fromkeys(methods))
    looks = {name: LOOKS[name] for name in methods if name in LOOKS}
    looks |= {name: (VERMILION, "8") for name in methods if name.startswith("cmixup") and name not in looks}
    free = [colour for colour in SERIES if colour not in {used for used, _ in looks.values()}] or SERIES
    for k, name in enumerate(name for name in methods if name not in looks):
        looks[name] = free[k % len(free)], MARKERS[k % len(MARKERS)]
    return {name: dict(zip(("color", "marker"), looks[name], strict=True)) for name in methods}


ROOT = RESULTS.parent
DRAWN = re.compile(r"```python\n((?:(?!```).)*?)```\n\n!\[[^]]*\]\(\.\./results/(figures/[\w.]+)\)", re.DOTALL)
DRAWN_PAGES = ("bandwidth.md", "scikit_learn.md")


@draws
def doc_figures() -> dict[str, Figure]:
    """Return what a block of a page calls `figure`, by the path of the picture below it, below results/."""
    figures = {}
    with contextlib.chdir(ROOT):
        for code, path in DRAWN.findall("\n".join((ROOT / "docs" / page).read_text() for page in DRAWN_PAGES)):
            block: dict[str, Figure] = {}
            exec(compile(code, path, "exec"), block)  # noqa: S102 - our own pages
            figures[path] = block["figure"]
            pyplot.close(block["figure"])
    return figures
