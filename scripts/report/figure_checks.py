"""What is wrong with a picture, as sentences: series that look alike, marks out of their place, text that is cut.

An artist says what it stands for: its series by the label, and its row of a categorical axis by the `gid`, which is
that row's tick label; an artist with a mark a row needs none.
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
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.markers import MarkerStyle
from matplotlib.patches import Patch
from matplotlib.path import Path as Outline
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from matplotlib.transforms import Affine2D

from scripts.report.figures import renderer_of

NEAR = 0.12  # colours no further apart than this, of RGB in [0, 1], are one to a reader
SLACK = 1.0  # pixels by which a mark or a text may pass an edge


def faults_of(figures: Mapping[str, Figure]) -> list[str]:
    """Return the faults of several figures, each with the name of its figure."""
    return [f"{name}: {fault}" for name, figure in figures.items() for fault in faults(figure)]


def faults(figure: Figure) -> list[str]:
    """Return what is wrong with a figure, a sentence each; none if a reader can tell all that it shows.

    A fault is: two series of a panel or of a legend with the same colour and mark; a series in another colour than in
    the legend; a mark, an error bar or a bar that is cut by the edge of its panel, lies outside it, or outside its row
    of a categorical axis; text that passes the edge of the figure, touches other text, stands in a panel that is not
    its own, or covers a mark.
    """
    renderer = renderer_of(figure)
    figure.draw(renderer)
    found, marks = _legend_faults(figure), []
    for axes in figure.axes:
        title = axes.get_title() or axes.get_title(loc="left") or axes.get_ylabel() or "a panel"
        mine = [mark for mark in _marks(axes) if np.isfinite(mark.extent).all()]
        wrong = [*_alike(_looks(axes)), *(fault for mark in mine for fault in mark.faults(axes))]
        found += [f"in {title!r} {fault}" for fault in wrong]
        marks += mine
    return list(dict.fromkeys([*found, *_text_faults(figure, renderer, marks)]))


@dataclass(frozen=True)
class Look:
    """What tells a series from others: its colour (RGB in [0, 1]), its marker ("area" for a patch) and line style."""

    colour: tuple[float, float, float]
    marker: str
    line: str

    def near(self, other: Look) -> bool:
        """Return whether the two colours are one to a reader."""
        return float(np.linalg.norm(np.subtract(self.colour, other.colour))) < NEAR

    def like(self, other: Look) -> bool:
        """Return whether a reader takes the two series for one."""
        return self.near(other) and (self.marker, self.line) == (other.marker, other.line)


def _look(artist: Any) -> Look | None:
    """Return the look of a series or of a legend's handle; None for what is no line, error bar or area."""
    if isinstance(artist, ErrorbarContainer):
        artist = artist.lines[0]
    if isinstance(artist, Line2D):
        return Look(to_rgb(artist.get_color()), str(artist.get_marker()), str(artist.get_linestyle()))
    return Look(to_rgb(artist.get_facecolor()), "area", "") if isinstance(artist, Patch) else None


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
        if any(a.like(b) for a in looks[first] for b in looks[second]):
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
    """A mark, an end of an error bar, or a bar.

    Attributes:
        name: what it is called in a sentence.
        extent: lowest and highest x and y in pixels (2, 2).
        rows: for every categorical axis of the panel, 0 for x and 1 for y, the label of the row that it belongs to;
            empty where no artist says so.
    """

    name: str
    extent: np.ndarray
    rows: Mapping[int, str]

    def faults(self, axes: Axes) -> Iterator[str]:
        """Return where it is drawn outside its place."""
        if not _within(self.extent, axes.bbox.get_points()):
            yield f"{self.name} is cut by the edge of the panel, or outside it"
        for way, label in self.rows.items():
            place = _categories(axes, way).get(label)
            if place is None:
                yield f"{self.name} does not say which row it belongs to (its gid)"
                continue
            row = np.sort(axes.transData.transform([[place - 0.5] * 2, [place + 0.5] * 2]), axis=0)
            if not _within(self.extent[:, way], row[:, way]):
                yield f"{self.name} is outside its row, {label!r}"


def _within(extent: np.ndarray, limits: np.ndarray) -> bool:
    return bool((extent[0] >= limits[0] - SLACK).all() and (extent[1] <= limits[1] + SLACK).all())


def _marks(axes: Axes) -> Iterator[Mark]:
    """Return all marks, ends of error bars and bars of a panel; a line without marks may leave it."""
    whole: dict[Any, ErrorbarContainer] = {}  # by its parts
    for container in axes.containers:
        if isinstance(container, ErrorbarContainer):
            line, caps, bars = container.lines
            whole |= dict.fromkeys([line, *caps, *bars], container)
        elif isinstance(container, BarContainer):
            for k, bar in enumerate(container.patches):
                extent = axes.transData.transform_bbox(bar.get_bbox()).get_points()
                yield Mark(_name(container), extent, _rows(axes, bar, k, len(container.patches)))
    for artist in (*axes.lines, *axes.collections):
        series = whole.get(artist)
        places = _places(artist) if artist.get_transform() == axes.transData else []
        for k, ends in enumerate(places):
            rows = _rows(axes, (series.lines[0] if series else None) or artist, k, len(places))
            for end in axes.transData.transform(ends):
                yield Mark(_name(series or artist), end + _reach(artist, axes.figure.dpi), rows)


def _name(artist: Any) -> str:
    label = str(artist.get_label())
    return "a mark" if not label or label.startswith("_") else f"a mark of {label!r}"


def _places(artist: Any) -> Sequence[np.ndarray]:
    """Return the points (n, 2) in the data of each mark of a line, and of each bar of an error bar."""
    if isinstance(artist, LineCollection):
        return [np.asarray(ends) for ends in artist.get_segments()]
    if isinstance(artist, Line2D) and artist.get_marker() not in ("None", "", " ", None):
        return list(np.asarray(artist.get_xydata())[:, None])
    return []


def _reach(artist: Any, dpi: float) -> np.ndarray:
    """Return how far a mark reaches from its place in pixels, (2, 2) as `Mark.extent`; 0 where no edge cuts it."""
    if not isinstance(artist, Line2D) or not artist.get_clip_on():
        return np.zeros((2, 2))
    style, size = MarkerStyle(artist.get_marker()), artist.get_markersize() * dpi / 72
    return style.get_path().get_extents(style.get_transform() + Affine2D().scale(size)).get_points()


def _rows(axes: Axes, artist: Any, k: int, n: int) -> dict[int, str]:
    """Return the rows of an artist's mark `k` of `n`: what its `gid` names, or the `k`-th where each has a mark."""
    found = {}
    for way in (0, 1):
        if labels := list(_categories(axes, way)):
            found[way] = artist.get_gid() or (labels[k] if n == len(labels) else "")
    return found


def _categories(axes: Axes, way: int) -> dict[str, float]:
    """Return the places of an axis by their labels, if it is categorical: one with other labels than numbers."""
    axis = (axes.xaxis, axes.yaxis)[way]
    if not isinstance(axis.get_major_locator(), FixedLocator):
        return {}
    places = axis.get_majorticklocs()
    labels = axis.get_major_formatter().format_ticks(list(places))
    return {} if all(map(_is_number, labels)) else dict(zip(labels, places, strict=True))


def _is_number(text: str) -> bool:
    try:
        return not text or float(text) is not None
    except ValueError:
        return False


def _text_faults(figure: Figure, renderer: Any, marks: Sequence[Mark]) -> Iterator[str]:
    page = figure.bbox.get_points()
    texts = [(text, _outline(text, renderer)) for text in _texts(figure)]
    centres = np.array([mark.extent.mean(axis=0) for mark in marks]).reshape(-1, 2)
    for text, outline in texts:
        name = repr(text.get_text())
        if not _within(outline.get_extents().get_points(), page):
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


def _texts(figure: Figure) -> Iterator[Text]:
    """Return all text that is drawn; labels of ticks beyond the limits of their axis are not."""
    of_ticks = set()
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        slack = 1e-9 * (high - low)
        for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
            of_ticks |= {tick.label1, tick.label2}
            shown = axis.get_visible() and axis.axes.axison and low - slack <= tick.get_loc() <= high + slack
            yield from (t for t in (tick.label1, tick.label2) if shown and t.get_visible() and t.get_text())
    for text in figure.findobj(Text):
        if text not in of_ticks and text.get_visible() and text.get_text():
            yield text


def _outline(text: Text, renderer: Any) -> Outline:
    """Return the rectangle that a text fills, in pixels and less `SLACK`, also where it is turned."""
    box, angle = text.get_window_extent(renderer), text.get_rotation()
    x, y = (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2
    if angle % 90:
        text.set_rotation(0)
        box = text.get_window_extent(renderer)
        text.set_rotation(angle)
    else:
        angle = 0
    flat = Affine2D().translate(-0.5, -0.5).scale(max(box.width - 2 * SLACK, 1), max(box.height - 2 * SLACK, 1))
    return Outline.unit_rectangle().transformed(flat + Affine2D().rotate_deg(angle).translate(x, y))
