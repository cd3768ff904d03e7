"""Figures: a function returns the `Figure`, `write_figures` makes files; how each method looks; pictures of docs/."""

from __future__ import annotations

import contextlib
import io
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from cmixup.files import write_atomically
from cmixup.sampling.bandwidth import BandwidthReport
from scripts.records.experiment import RESULTS
from scripts.report.register import draws

IDLE = 0.99  # where rows are their own partners with this probability, nothing is mixed
MARKERS = "os^vPX<>dph*"  # of series that are no methods


def new_subplots(n_rows: int, n_columns: int, figsize: tuple[float, float], **shared: Any) -> tuple[Figure, Any]:
    """Return a new figure and its axes `(n_rows, n_columns)`; no global state of pyplot holds it."""
    figure = Figure(figsize=figsize)
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)


def legend_below(figure: Figure, handles: Mapping[str, Any], title: str | None = None) -> None:
    """Put one legend, of handles by label, below all panels, which are laid out in the room above it.

    It has as many columns as the figure is wide enough for.
    """
    canvas: Any = FigureCanvasAgg(figure)
    renderer = canvas.get_renderer()
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(list(handles.values()), list(handles), loc="lower center", ncols=columns, frameon=False,
                               fontsize=9, title=title, title_fontsize=9)  # fmt: skip
        size = legend.get_window_extent(renderer)
        if size.width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
    figure.tight_layout(rect=(0, size.height / figure.bbox.height, 1, 1))


PARTNERS, ONESELF = "effective partners / N (1: mixup)", "probability of oneself (1: ERM)"


def bandwidth_figure(
    datasets: Mapping[str, tuple[Sequence[BandwidthReport], Sequence[BandwidthReport], float]],
) -> Figure:
    """Draw effective fraction and self-pairing over the bandwidth in units of the labels' spread.

    Each of `datasets`, by title, has reports along a grid, reports to mark, and the labels' standard deviation.
    """
    figure, ((left, right),) = new_subplots(1, 2, figsize=(10.5, 3.6), sharex=True)
    looks = zip(itertools.cycle(SERIES), itertools.cycle(MARKERS), datasets.items(), strict=False)
    for colour, marker, (title, (along, marked, spread)) in looks:
        every = sorted([*along, *marked], key=lambda report: report.bandwidth)
        x, at = ([r.bandwidth / spread for r in reports] for reports in (every, marked))
        for axis, name in ((left, "effective_fraction"), (right, "self_probability")):
            axis.plot(x, [getattr(r, name) for r in every], color=colour)
            axis.plot(at, [getattr(r, name) for r in marked], marker, color=colour, label=title)
        for place, report in zip(at, marked, strict=True):
            if report.self_probability > IDLE:
                right.annotate("no mixing", (place, report.self_probability), (9, 0), textcoords="offset points",
                               ha="left", va="center", fontsize=8)  # fmt: skip
    for axis, label in ((left, PARTNERS), (right, ONESELF)):
        axis.set(xscale="log", xlabel="bandwidth / standard deviation of the labels", ylabel=label)
        axis.grid(alpha=0.3)
    left.legend(frameon=False, title="marks: published bandwidths", fontsize=9, title_fontsize=9)
    figure.tight_layout()
    return figure


def labels_figure(
    title: str, along: Sequence[BandwidthReport], marked: Sequence[BandwidthReport], searched: tuple[float, float]
) -> Figure:
    """Draw what bandwidths do to the labels called `title`, over the bandwidth in label units.

    Reports are `along` ascending bandwidths and `marked` those that were asked for or published; between the bandwidths
    `searched` a search is worth it.
    """
    figure, ((axis,),) = new_subplots(1, 1, figsize=(7, 4))
    axis.axvspan(*searched, color="0.9", label=f"worth searching: {searched[0]:.3g} to {searched[1]:.3g}")
    for reports, name, line, label in (
        (along, "effective_fraction", "-", PARTNERS),
        (along, "self_probability", "--", ONESELF),
        (marked, "effective_fraction", "o", "asked for or published"),
    ):
        if reports:
            x, values = [r.bandwidth for r in reports], [getattr(r, name) for r in reports]
            axis.plot(x, values, line, color=COLOURS["cmixup"], label=label)
    axis.set(xscale="log", xlabel="bandwidth, in label units", ylabel="share", ylim=(-0.03, 1.03))
    axis.set_title(title.replace("$", r"\$"))
    axis.grid(alpha=0.3)
    axis.legend(frameon=False, fontsize=9)
    figure.tight_layout()
    return figure


def to_png(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=130, metadata={"Software": ""})
    return stream.getvalue()


def write_figures(figures: Mapping[str, Figure], results: Path = RESULTS) -> list[Path]:
    """Write figures as PNG files, given by their paths below `results`; returns the files."""
    for name, figure in figures.items():
        write_atomically(results / name, to_png(figure))
    return [results / name for name in figures]


BLACK, ORANGE, SKY, GREEN = "#000000", "#E69F00", "#56B4E9", "#009E73"
BLUE, VERMILION, PURPLE, GREY = "#0072B2", "#D55E00", "#CC79A7", "#8C8C8C"

#: Colour and marker of methods that stand in one figure with others; C-Mixup's forms are vermilion.
LOOKS = {
    "erm": (BLACK, "o"), "cmixup": (VERMILION, "D"), "mixup": (BLUE, "s"), "manifold_mixup": (GREEN, "^"),
    "irm": (SKY, "^"), "ib_irm": (SKY, "v"), "vrex": (ORANGE, "o"), "coral": (PURPLE, "o"), "group_dro": (GREEN, "o"),
    "fish": (GREY, "o"), "drnn": (GREY, "v"),
    "maml": (BLACK, "o"), "mr_maml": (SKY, "v"), "meta_aug": (GREEN, "^"), "metamix": (BLUE, "s"),
    "k_metamix": (PURPLE, "P"), "local_metamix": (ORANGE, "<"), "cmixup_meta": (VERMILION, "D"),
}  # fmt: skip
COLOURS = {name: colour for name, (colour, _) in LOOKS.items()}
#: Of series that are no methods, such as presets and datasets, and of methods without a look.
SERIES = [BLUE, ORANGE, GREEN, PURPLE, SKY, GREY]


def method_looks(methods: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return colour and marker of the methods of a figure, as options of `Axes.plot`.

    Those without a look have the colours that no other has, in turns, and other markers than each other.
    """
    methods = list(dict.fromkeys(methods))
    looks = {name: LOOKS[name] for name in methods if name in LOOKS}
    looks |= {name: (VERMILION, "8") for name in methods if name.startswith("cmixup") and name not in looks}
    free = [colour for colour in SERIES if colour not in {used for used, _ in looks.values()}] or SERIES
    for k, name in enumerate(name for name in methods if name not in looks):
        looks[name] = free[k % len(free)], MARKERS[k % len(MARKERS)]
    return {name: dict(zip(("color", "marker"), looks[name], strict=True)) for name in methods}


ROOT = RESULTS.parent
DRAWN = re.compile(r"```python\n((?:(?!```).)*?)```\n\n!\[[^]]*\]\((figures/[\w.]+)\)", re.DOTALL)


@draws
def doc_figures() -> dict[str, Figure]:
    """Return what a block of the page calls `figure`, by the path of the picture below it, below results/."""
    figures = {}
    with contextlib.chdir(ROOT):
        for code, path in DRAWN.findall((ROOT / "docs" / "bandwidth.md").read_text()):
            block: dict[str, Figure] = {}
            exec(compile(code, path, "exec"), block)  # noqa: S102 - our own page
            figures[path] = block["figure"]
            pyplot.close(block["figure"])
    return figures
