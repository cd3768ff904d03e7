"""Figures of records; a function returns the `Figure`, `write_figures` makes files, `stale_figures` compares them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import imread

from cmixup.errors import InputError
from cmixup.files import write_atomically
from cmixup.sampling.bandwidth import BandwidthReport
from scripts.records import names
from scripts.records.curves import Curve
from scripts.records.experiment import RESULTS, Experiment

VISIBLE = 0.1  # of a pixel's colour, which is in [0, 1]
MARKERS = "os^vPX<>dph*"  # of series; "D" is the paper's own value


def subplots(n_rows: int, n_columns: int, figsize: tuple[float, float], **shared: Any) -> tuple[Figure, Any]:
    """Return a new figure and its axes `(n_rows, n_columns)`; no global state of pyplot holds it."""
    figure = Figure(figsize=figsize)
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, **shared)


def looks(n: int) -> list[dict[str, Any]]:
    """Return colours and markers of `n` series, as options of `Axes.plot`: no two colours are the same.

    Of more than ten the later ones are hollow, since the colours at both ends are dark.
    """
    colours = [f"C{k}" for k in range(n)] if n <= 10 else [to_hex(colormaps["turbo"](k / (n - 1))) for k in range(n)]
    filled = [{"color": colour, "marker": MARKERS[k % len(MARKERS)]} for k, colour in enumerate(colours)]
    return [look | ({"markerfacecolor": "white"} if n > 10 and k > 8 else {}) for k, look in enumerate(filled)]


def renderer_of(figure: Figure) -> Any:
    """Return what draws a figure and tells the extents of its text."""
    canvas: Any = FigureCanvasAgg(figure)
    return canvas.get_renderer()


def legend_below(figure: Figure, handles: Mapping[str, Any], title: str | None = None) -> None:
    """Put one legend, of handles by label, below all panels, which are laid out in the room above it.

    It has as many columns as the figure is wide enough for.
    """
    renderer = renderer_of(figure)
    for columns in range(len(handles), 0, -1):
        legend = figure.legend(list(handles.values()), list(handles), loc="lower center", ncols=columns, frameon=False,
                               fontsize=9, title=title, title_fontsize=9)  # fmt: skip
        size = legend.get_window_extent(renderer)
        if size.width <= figure.bbox.width or columns == 1:
            break
        legend.remove()
    figure.tight_layout(rect=(0, size.height / figure.bbox.height, 1, 1))


def invariance_figure(rows: Sequence[Mapping[str, str]], order: Sequence[str]) -> Figure:
    """Draw, for each dataset and choice of domains, every method's divergence between domains.

    Seeds are dots with their mean ± standard deviation; a value below 0, which an estimate may have, is drawn at 0.

    Args:
        rows: of results/invariance.csv, of one preset.
        order: of the methods, from above; others follow, and the dotted line is at the first.
    """
    panels = sorted({(r["dataset"], r["domains"]) for r in rows})
    methods = names.in_order((r["method"] for r in rows), order)
    height = 1.4 + 0.27 * len(methods)
    figure, axes = subplots(1, len(panels), figsize=(4.2 * len(panels), height), sharey=True)
    for axis, (dataset, domains) in zip(axes[0], panels, strict=True):
        mine = [r for r in rows if (r["dataset"], r["domains"]) == (dataset, domains)]
        for row, method in enumerate(methods):
            seeds = [max(float(r["value"]), 0.0) for r in mine if r["method"] == method]
            if not seeds:
                continue
            colour, title = "C3" if method == "cmixup" else "C0", names.method_title(method)
            axis.plot(seeds, [row + 0.2] * len(seeds), ".", color=colour, alpha=0.35, gid=title)
            spread = np.std(seeds, ddof=1) if len(seeds) > 1 else None
            axis.errorbar(np.mean(seeds), row - 0.1, xerr=spread, fmt="D", color=colour, capsize=3, markersize=5,
                          gid=title)  # fmt: skip
            if method == methods[0]:
                axis.axvline(np.mean(seeds), color="black", linewidth=0.8, linestyle=":")
        which = "" if domains == "all" else f", {domains} domains"
        counts = sorted({sum(r["method"] == m for r in mine) for m in methods} - {0})
        share = f"{100 * float(mine[0]['valid_fraction']):.0f} % of the pairs have enough points"
        axis.set_title(f"{names.dataset_title(dataset)}{which}\n{share}", fontsize=10)
        axis.set_xlabel(f"mean KL between domains (n = {'/'.join(map(str, counts))})")
        axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
        axis.grid(axis="x", alpha=0.3)
    axes[0][0].set_yticks(range(len(methods)), [names.method_title(m) for m in methods])
    axes[0][0].set_ylim(len(methods) - 0.4, -0.6)
    figure.suptitle(
        f"Divergence of representations given the label, preset {rows[0]['preset']}: seeds, mean ± std; "
        f"dotted: {names.method_title(methods[0])}", fontsize=10,
    )  # fmt: skip
    figure.tight_layout()
    return figure


def angle_figure(pictures: Mapping[str, np.ndarray], title: str) -> Figure:
    """Draw pictures, one below the other, over an axis of 0 to 360 degrees.

    Args:
        pictures: by title, `(H, W, 3)` in [0, 1].
        title: of all of them.
    """
    figure, axes = subplots(len(pictures), 1, figsize=(9, 2.4 * len(pictures)))
    for axis, (shown, picture) in zip(axes[:, 0], pictures.items(), strict=True):
        height = 360 * picture.shape[0] / picture.shape[1]
        axis.imshow(picture, extent=(0, 360, 0, height), interpolation="nearest")
        axis.set_title(shown, fontsize=10, loc="left")
        axis.set_yticks([])
        axis.set_xticks(range(0, 361, 45))
    axes[-1, 0].set_xlabel("rotation in degrees (label g = rotation / 360)")
    figure.suptitle(title, fontsize=11)
    figure.tight_layout()
    return figure


def bandwidth_figure(
    datasets: Mapping[str, tuple[Sequence[BandwidthReport], Sequence[BandwidthReport], float]],
) -> Figure:
    """Draw effective fraction and self-pairing over the bandwidth in units of the labels' spread.

    Args:
        datasets: by title: reports along a grid, reports to mark, and the labels' standard deviation.
    """
    figure, ((left, right),) = subplots(1, 2, figsize=(10.5, 3.6), sharex=True)
    for title, (along, marked, spread) in datasets.items():
        x = [r.bandwidth / spread for r in along]
        (line,) = left.plot(x, [r.effective_fraction for r in along], label=title)
        right.plot(x, [r.self_probability for r in along], color=line.get_color(), label=title)
        at = [r.bandwidth / spread for r in marked]
        left.plot(at, [r.effective_fraction for r in marked], "o", color=line.get_color())
        right.plot(at, [r.self_probability for r in marked], "o", color=line.get_color())
    for axis, label in ((left, "effective partners / N (1: mixup)"), (right, "probability of oneself (1: ERM)")):
        axis.set_xscale("log")
        axis.set_xlabel("bandwidth / standard deviation of the labels")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
    left.legend(frameon=False, title="dots: published or asked for", fontsize=9, title_fontsize=9)
    figure.tight_layout()
    return figure


def overfitting_figure(experiment: Experiment, curves: Sequence[Curve], preset: str) -> Figure:
    """Draw test error, and its gap to the training error, over epochs; a line and band (± std) a method.

    Args:
        experiment: the order of datasets and methods.
        curves: with columns `train_*` and `test_*` of the selection metric, scored on whole splits; those of other
            experiments and presets are left out.
        preset: whose curves are drawn.

    Raises:
        InputError: no curve belongs to it.
    """
    curves = [
        c for c in curves if c.experiment == experiment.recorded_under(c.method, c.dataset) and c.preset == preset
    ]
    if not curves:
        raise InputError(f"experiment {experiment.name} has no finished run of preset {preset!r} to draw")
    present = [d for d in experiment.datasets if any(c.dataset == d for c in curves)]
    figure, axes = subplots(len(present), 2, figsize=(10, 3.2 * len(present)))
    for (left, right), dataset in zip(axes, present, strict=True):
        for k, method in enumerate(experiment.methods_for(dataset, experiment.methods)):
            mine = [c.columns for c in curves if (c.dataset, c.method) == (dataset, method)]
            if not mine:
                continue
            metric = next(name for name in mine[0] if name.startswith("test_")).removeprefix("test_")
            epochs = mine[0]["epoch"]
            test, train = (np.array([c[f"{split}_{metric}"] for c in mine]) for split in ("test", "train"))
            label = f"{names.method_title(method)} (n = {len(mine)})"
            for axis, values in ((left, test), (right, test - train)):
                mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1) if len(mine) > 1 else 0.0
                axis.plot(epochs, mean, color=f"C{k}", label=label)
                axis.fill_between(epochs, mean - spread, mean + spread, color=f"C{k}", alpha=0.2, linewidth=0)
            shown = names.metric_title(metric)
            left.set_ylabel(f"test {shown}")
            right.set_ylabel(f"test {shown} - training {shown}")
        for axis in (left, right):
            axis.set_title(names.dataset_title(dataset))
            axis.set_xlabel("epoch")
            axis.grid(alpha=0.3)
        # The first epochs are far off and would flatten what matters.
        later = np.concatenate([line.get_ydata()[len(line.get_ydata()) // 10 :] for line in left.lines])
        left.set_ylim(0, 1.5 * np.quantile(later, 0.99))
        left.legend(frameon=False, fontsize=9)
    figure.suptitle("Scores of whole splits, nothing mixed, in evaluation mode; band: ± standard deviation over seeds")
    figure.tight_layout()
    return figure


def objects_figure(means: Mapping[str, Mapping[str, float]], constant: str, title: str) -> Figure:
    """Draw each method's error on each object, objects in the order of their mean error.

    Args:
        means: error by method and object.
        constant: the method that is drawn as a grey line.
        title: of the figure.
    """
    methods = [m for m in means if m != constant]
    objects = sorted(means[methods[0]], key=lambda o: np.mean([means[m][o] for m in methods]))
    figure, axes = subplots(1, 1, figsize=(2.5 + 0.62 * len(objects), 4.2))
    axis = axes[0][0]
    at = np.arange(len(objects))
    axis.plot(at, [means[constant][o] for o in objects], "--", color="grey", linewidth=1.2, label=constant)
    for k, (method, look) in enumerate(zip(methods, looks(len(methods)), strict=True)):
        offset = 0.63 / len(methods) * (k - (len(methods) - 1) / 2)
        axis.plot(at + offset, [means[method][o] for o in objects], linestyle="", **look, markersize=5, label=method)
    axis.set_xticks(at, objects, rotation=35, ha="right")
    axis.set_ylim(bottom=0)
    axis.set_ylabel("MSE of 10 x azimuth")
    axis.grid(axis="y", alpha=0.3)
    axis.set_title(title, fontsize=11)
    figure.legend(*axis.get_legend_handles_labels(), loc="center right", frameon=False, fontsize=9)
    figure.tight_layout(rect=(0, 0, 1 - 1.9 / figure.get_figwidth(), 1))
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


def stale_figures(figures: Mapping[str, Figure], results: Path = RESULTS) -> list[str]:
    """Return which figures have no file below `results`, or one that shows something else.

    Pixels are compared, not bytes: another machine may pack the same picture otherwise, round a shade, or put an edge
    that falls between two pixels on the other one. So a shade may be a neighbour's; what is two pixels away is found.
    """
    return [f"{results.name}/{name}" for name, figure in figures.items() if not _shows(results / name, figure)]


def _shows(path: Path, figure: Figure) -> bool:
    if not path.is_file():
        return False
    there, drawn = imread(path), imread(io.BytesIO(to_png(figure)))
    if there.shape != drawn.shape:
        return False
    changed = (np.abs(there - drawn) >= VISIBLE).any(axis=-1)
    return _near(there, drawn, changed) and _near(drawn, there, changed)


def _near(picture: np.ndarray, other: np.ndarray, where: np.ndarray) -> bool:
    """Return whether each pixel of a picture has a shade among those of the other's pixel there and its neighbours.

    Args:
        picture, other: `(H, W, C)` in [0, 1].
        where: `(H, W)` bool, the pixels that are looked at.
    """
    padded = np.pad(other, ((1, 1), (1, 1), (0, 0)), mode="edge")
    shades = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(0, 1))[where]
    low, high = shades.min(axis=(-1, -2)) - VISIBLE, shades.max(axis=(-1, -2)) + VISIBLE
    return bool(((low < picture[where]) & (picture[where] < high)).all())
