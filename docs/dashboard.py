"""Draws what a dashboard of wandb shows, from the files of offline runs: `python -m docs.dashboard OUT`.

OUT is the `out=` of a sweep, whose runs wandb has logged offline:

    python -m scripts.train -m dataset=no2 method=cmixup method.bandwidth=0.1,1,10 'seed=range(0,3)' out=OUT
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from tests.scripts.wandb_file import OfflineRun, read_offline

from scripts.report.rendering import to_png

PICTURE = Path(__file__).parent / "figures" / "wandb_dashboard.png"


def main() -> None:
    """Draw the runs of a folder."""
    runs = [read_offline(path) for path in sorted(Path(sys.argv[1]).rglob("*.wandb"))]
    PICTURE.write_bytes(to_png(draw_dashboard(runs)))


def draw_dashboard(runs: list[OfflineRun]) -> Figure:
    """Return curves, final scores by group, and the plots of one run."""
    groups = defaultdict[float, list[OfflineRun]](list)
    for run in runs:
        groups[run.config["method"]["bandwidth"]].append(run)
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    curves, losses, scores, points, residuals, line = figure.subplots(2, 3).ravel()
    for place, (bandwidth, mine) in enumerate(sorted(groups.items())):
        rows = [[row for row in run.history if "val/rmse" in row] for run in mine]
        epochs = [row["epoch"] for row in rows[0]]
        for axes, name in ((curves, "val/rmse"), (losses, "train/loss")):
            values = np.array([[row[name] for row in group] for group in rows])
            axes.plot(epochs, values.mean(0), color=f"C{place}", label=f"bandwidth={bandwidth:g}")
            axes.fill_between(epochs, values.min(0), values.max(0), color=f"C{place}", alpha=0.2, linewidth=0)
            axes.set(title=name, xlabel="epoch")
        predicted = [run.summary["test/rmse"] for run in mine]
        scores.plot(predicted, [place] * len(predicted), ".", color=f"C{place}", markersize=8)
        scores.plot([np.mean(predicted)], [place], "|", color="black", markersize=20)
    scores.set(title="test/rmse of runs, group mean", ylim=(-0.5, len(groups) - 0.5))
    scores.set_yticks(range(len(groups)), [f"bandwidth={bandwidth:g}" for bandwidth in sorted(groups)])
    curves.legend(fontsize=8)
    example = runs[0]
    table = example.table("test/predictions")
    truth, predicted, rest = (np.array([row[name] for row in table]) for name in ("truth", "prediction", "residual"))
    points.plot(truth, predicted, ".", markersize=4)
    points.axline((truth.mean(), truth.mean()), slope=1, color="black", linewidth=0.8)
    points.set(title="test/prediction_against_truth", xlabel="truth", ylabel="prediction")
    residuals.plot(predicted, rest, ".", markersize=4)
    residuals.axhline(0, color="black", linewidth=0.8)
    residuals.set(title="test/residuals", xlabel="prediction", ylabel="residual")
    line.axis("off")
    facts = [
        example.settings["display_name"].replace("-cmixup-", "\ncmixup "),
        f"one of {len(runs)} runs in {len(groups)} groups",
    ]
    facts += [f"{name} = {example.summary[name]:.4g}" for name in ("test/rmse", "val/rmse", "best_epoch")]
    facts += ["verdict = " + example.summary["verdict"], "tags = " + ", ".join(example.settings["tags"][:4])]
    line.text(0, 1, "summary of a run\n\n" + "\n".join(facts), va="top", fontsize=9, transform=line.transAxes)
    return figure


if __name__ == "__main__":
    main()
