"""The figure of training and test error over epochs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from cmixup.errors import InputError
from scripts.plan.selection import recorded_under, selected_methods
from scripts.records import names
from scripts.records.curves import Curve, published_curves
from scripts.records.experiment import Experiment, all_experiments
from scripts.records.register import draws
from scripts.report.figures import new_subplots
from scripts.report.palette import COLOURS, GREY


@draws
def overfitting_figures() -> dict[str, Figure]:
    """Return the figure of every experiment and preset whose curves are published."""
    curves, figures = published_curves(), {}
    for experiment in all_experiments():
        for preset in sorted({c.preset for c in curves if c.experiment == experiment.name and experiment.figure}):
            figures[f"figures/{experiment.name}_{preset}.png"] = overfitting_figure(experiment, curves, preset)
    return figures


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
        c for c in curves if c.experiment == recorded_under(experiment, c.method, c.dataset) and c.preset == preset
    ]
    if not curves:
        raise InputError(f"experiment {experiment.name} has no finished run of preset {preset!r} to draw")
    present = [d for d in experiment.datasets if any(c.dataset == d for c in curves)]
    figure, axes = new_subplots(len(present), 2, figsize=(10, 3.2 * len(present)))
    for (left, right), dataset in zip(axes, present, strict=True):
        gaps: dict[str, float] = {}
        for method in selected_methods(experiment, dataset, experiment.methods):
            mine = [c.columns for c in curves if (c.dataset, c.method) == (dataset, method)]
            if not mine:
                continue
            metric = next(name for name in mine[0] if name.startswith("test_")).removeprefix("test_")
            epochs = mine[0]["epoch"]
            test, train = (np.array([c[f"{split}_{metric}"] for c in mine]) for split in ("test", "train"))
            title, colour = names.method_title(method), COLOURS.get(method, GREY)
            label = f"{title} (n = {len(mine)})"
            gaps[title] = float((test - train).mean(axis=0)[-1])
            for axis, values in ((left, test), (right, test - train)):
                mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1) if len(mine) > 1 else 0.0
                axis.plot(epochs, mean, color=colour, label=label)
                axis.fill_between(epochs, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
            score = names.metric_title(metric)
            left.set_ylabel(f"test {score}")
            right.set_ylabel(f"test minus training {score}")
        left.set_title(f"{names.dataset_title(dataset)}: test error", fontsize=10)
        right.set_title(
            f"test minus training error at the end:\n{', '.join(f'{name} {gap:.4f}' for name, gap in gaps.items())}",
            fontsize=10,
        )
        for axis in (left, right):
            axis.set_xlabel("epoch")
            axis.grid(alpha=0.3)
        # The first epochs are far off and would flatten what matters.
        later = np.concatenate([line.get_ydata()[len(line.get_ydata()) // 10 :] for line in left.lines])
        left.set_ylim(0, 1.5 * np.quantile(later, 0.99))
        left.legend(frameon=False, fontsize=9)
    figure.suptitle("Errors of whole splits, without mixing; band: ± standard deviation over seeds", fontsize=10)
    figure.tight_layout()
    return figure
