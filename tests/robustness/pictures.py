"""What is wrong with the published pictures, as sentences: `python -m tests.robustness.pictures`, `make verify-pages`.

Faults are series that look alike, marks out of their place, and text that is cut. An artist says what it
stands for: its series by the label, and its row of a categorical axis by the `gid`, which is that row's tick label; an
artist with a mark a row needs none.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.path import Path as Outline
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Affine2D

from cmixup.errors import InputError
from scripts.config.arguments import parse_args
from scripts.driver.cli import user_errors
from scripts.report.figures import renderer_of

NEAR = 0.12  # colours no further apart than this, of RGB in [0, 1], are one to a reader
SLACK = 1.0  # pixels by which a mark or a text may pass an edge


def faults_of(figures: Mapping[str, Figure]) -> list[str]:
    """Return the faults of several figures, each with the name of its figure."""
    return [f"{name}: {fault}" for name, figure in figures.items() for fault in faults(figure)]


def faults(figure: Figure) -> list[str]:
    """Return what is wrong with a figure, a sentence each; none if a reader can tell all that it shows.

    A fault is: two series of a panel or of a legend with the same colour and mark; a series in another colour than in
    the legend; a mark or an error bar that is cut by the edge of its panel, lies outside it, or outside its row of a
    categorical axis; text that passes the edge of the figure, touches other text, stands in a panel that is not its
    own, or covers a mark.
    """
    renderer = renderer_of(figure)
    figure.draw(renderer)
    found, marks = _legend_faults(figure), []
    for axes in figure.axes:
        title = axes.get_title() or axes.get_title(loc="left") or axes.get_ylabel() or "a panel"
        mine = [mark for mark in _marks(axes) if np.isfinite(mark.extent).all()]
        wrong = [*_alike(_looks(axes)), *(fault for mark in mine for fault in _place_faults(mark, axes))]
        found += [f"in {title!r} {fault}" for fault in wrong]
        marks += mine
    return list(dict.fromkeys([*found, *_text_faults(figure, renderer, marks)]))


@dataclass(frozen=True)
class Look:
    """What tells a series from others: its colour (RGB in [0, 1]) and its marker and line style, or "area"."""

    colour: tuple[float, float, float]
    style: str

    def near(self, other: Look) -> bool:
        """Return whether the two colours are one to a reader."""
        return float(np.linalg.norm(np.subtract(self.colour, other.colour))) < NEAR


def _look(artist: Any) -> Look | None:
    """Return the look of a series or of a legend's handle; None for what is no line, error bar or area."""
    if isinstance(artist, ErrorbarContainer):
        artist = artist.lines[0]
    if isinstance(artist, Line2D):
        return Look(to_rgb(artist.get_color()), f"{artist.get_marker()} {artist.get_linestyle()}")
    return Look(to_rgb(artist.get_facecolor()), "area") if isinstance(artist, Patch) else None


def _looks(axes: Axes) -> dict[str, list[Look]]:
    """Return the looks of every series of a panel, by label: one has several where seeds and means are drawn."""
    found: dict[str, list[Look]] = {}
    artists: tuple[Any, ...] = (*axes.lines, *axes.patches, *axes.containers)
    for artist in artists:
        label, look = str(artist.get_label()), _look(artist)
        if look and label and not label.startswith("_"):
            found.setdefault(label, []).append(look)
    return found


def _alike(looks: Mapping[str, Sequence[Look]]) -> Iterator[str]:
    for first, second in itertools.combinations(looks, 2):
        if any(a.near(b) and a.style == b.style for a in looks[first] for b in looks[second]):
            yield f"{first!r} and {second!r} have the same colour and mark"


def _legend_faults(figure: Figure) -> list[str]:
    """Return what is wrong with the legends: each is held against the panels that it can be meant for."""
    found = []
    own = [(legend, [axes]) for axes in figure.axes if (legend := axes.get_legend())]
    for legend, panels in [*own, *((legend, figure.axes) for legend in figure.legends)]:
        handles = zip(legend.get_texts(), legend.legend_handles, strict=True)
        entries = {text.get_text(): look for text, handle in handles if (look := _look(handle))}
        found += [f"in the legend {fault}" for fault in _alike({label: [look] for label, look in entries.items()})]
        for label, look in entries.items():
            drawn = [looks[label] for looks in map(_looks, panels) if label in looks]
            if not all(any(look.near(other) for other in looks) for looks in drawn):
                found.append(f"{label!r} has another colour than in the legend")
    return found


@dataclass(frozen=True)
class Mark:
    """A mark, or an error bar.

    Attributes:
        series: the label of what it belongs to.
        row: the label of its row of a categorical axis, or "" where no artist says so.
        number, of: which mark of its artist it is, from 0, and how many there are.
        extent: lowest and highest x and y in pixels (2, 2).
    """

    series: str
    row: str
    number: int
    of: int
    extent: np.ndarray


def _marks(axes: Axes) -> Iterator[Mark]:
    """Return all marks and error bars of a panel; a line without marks may leave it."""
    bars = [container for container in axes.containers if isinstance(container, ErrorbarContainer)]
    whole = {part: bar for bar in bars for part in (bar.lines[0], *bar.lines[1], *bar.lines[2])}
    for artist in (*axes.lines, *axes.collections):
        if artist.get_transform() != axes.transData:
            continue
        places: Sequence[np.ndarray] = []  # points (n, 2) in the data of each mark
        reach = np.zeros((2, 2))  # of a mark from its place, in pixels; 0 where no edge cuts it
        if isinstance(artist, LineCollection):
            places = [np.asarray(ends) for ends in artist.get_segments()]
        elif isinstance(artist, Line2D) and artist.get_marker() not in ("None", "", " ", None):
            places = list(np.asarray(artist.get_xydata())[:, None])
            if artist.get_clip_on():
                style, size = MarkerStyle(artist.get_marker()), artist.get_markersize() * axes.figure.dpi / 72
                reach = style.get_path().get_extents(style.get_transform() + Affine2D().scale(size)).get_points()
        series = whole.get(artist)
        label, row = str((series or artist).get_label()), (series.lines[0] if series else artist).get_gid() or ""
        for k, ends in enumerate(places):
            pixels = axes.transData.transform(ends)
            yield Mark(label, row, k, len(places), np.stack([pixels.min(axis=0), pixels.max(axis=0)]) + reach)


def _place_faults(mark: Mark, axes: Axes) -> Iterator[str]:
    """Return where a mark is drawn outside its place."""
    name = "a mark" if not mark.series or mark.series.startswith("_") else f"a mark of {mark.series!r}"
    if not _within(mark.extent, axes.bbox.get_points()):
        yield f"{name} is cut by the edge of the panel, or outside it"
    for way, axis in enumerate((axes.xaxis, axes.yaxis)):
        rows = _categories(axis)
        label = mark.row or (list(rows)[mark.number] if mark.of == len(rows) else "")
        if rows and label not in rows:
            yield f"{name} does not say which row it belongs to (its gid)"
        elif rows:
            edges = [[rows[label] - 0.5] * 2, [rows[label] + 0.5] * 2]
            row = np.sort(axes.transData.transform(edges), axis=0)
            if not _within(mark.extent[:, way], row[:, way]):
                yield f"{name} is outside its row, {label!r}"


def _within(extent: np.ndarray, limits: np.ndarray) -> bool:
    return bool((extent[0] >= limits[0] - SLACK).all() and (extent[1] <= limits[1] + SLACK).all())


def _categories(axis: Any) -> dict[str, float]:
    """Return the places of an axis by their labels, if it is categorical: one with other labels than numbers."""
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return {}
    places = axis.get_majorticklocs()
    labels = axis.get_major_formatter().format_ticks(list(places))
    numbers = all(label.replace(".", "").replace("\N{MINUS SIGN}", "").isdecimal() for label in labels if label)
    return {} if numbers else dict(zip(labels, places, strict=True))


def _text_faults(figure: Figure, renderer: Any, marks: Sequence[Mark]) -> Iterator[str]:
    texts = [(text, _outline(text, renderer)) for text in _texts(figure)]
    centres = np.array([mark.extent.mean(axis=0) for mark in marks]).reshape(-1, 2)
    for text, outline in texts:
        name = repr(text.get_text())
        if not _within(outline.get_extents().get_points(), figure.bbox.get_points()):
            yield f"text {name} is cut by the edge of the figure"
        if outline.contains_points(centres).any():
            yield f"text {name} covers a mark"
        for axes in figure.axes:
            foreign = text.axes is None or text.axes.bbox.bounds != axes.bbox.bounds
            if foreign and axes.axison and outline.intersects_bbox(axes.bbox.padded(-SLACK)):
                yield f"text {name} stands in a panel that is not its own"
    for (first, a), (second, b) in itertools.combinations(texts, 2):
        if a.get_extents().overlaps(b.get_extents()) and a.intersects_path(b, filled=True):
            yield f"text {first.get_text()!r} touches {second.get_text()!r}"


def _texts(figure: Figure) -> list[Text]:
    """Return all text that is drawn; labels of ticks beyond the limits of their axis are not."""
    beyond = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            if not (axis.get_visible() and axis.axes.axison and low - slack <= tick.get_loc() <= high + slack):
                beyond |= {tick.label1, tick.label2}
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text() and text not in beyond]


def _outline(text: Text, renderer: Any) -> Outline:
    """Return the rectangle that a text fills, in pixels and less `SLACK`, also where it is turned."""
    box, angle = text.get_window_extent(renderer), text.get_rotation()
    text.set_rotation(0)
    flat = text.get_window_extent(renderer)
    text.set_rotation(angle)
    size = max(flat.width - 2 * SLACK, 1), max(flat.height - 2 * SLACK, 1)
    place = Affine2D().rotate_deg(angle).translate((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
    return Outline.unit_rectangle().transformed(Affine2D().translate(-0.5, -0.5).scale(*size) + place)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point: draw every published picture, and fail by name for those that mislead."""
    from scripts.records.register import FIGURES
    from scripts.report.rendering import run_all

    with user_errors():
        parse_args(argv, {}, __doc__)
        if found := faults_of(run_all(FIGURES).figures):
            raise InputError(f"pictures that mislead: {'; '.join(found)}")
        print("no published picture misleads")


if __name__ == "__main__":
    main()
