"""The picture of our differences between methods beside those that the paper prints."""

from __future__ import annotations

from matplotlib.figure import Figure

from scripts.report.figures import COLOURS, GREY, legend_below, new_subplots
from scripts.report.paper.statements import published_statements
from scripts.report.paper.verdicts import IDLE, OPPOSITE, REPRODUCES, SAME, SMALL
from scripts.report.rendering import draws
from scripts.study.ensembles import METHOD

#: Legend, colour and marker of an outcome.
LOOKS = {
    REPRODUCES: ("same direction and compatible size", COLOURS[METHOD], "D"),
    SAME: ("same direction", COLOURS[METHOD], "o"),
    OPPOSITE: ("opposite direction", "#0072b2", "o"),
    SMALL: ("inconclusive, smaller than the paper's", GREY, "v"),
    "": ("inconclusive", GREY, "o"),
}  # fmt: skip


@draws
def differences_picture() -> dict[str, Figure]:
    """Return the picture: our difference and its 95 % interval in multiples of the paper's, a row a difference.

    At 0 the two methods are equally good, at 1 their difference is the paper's.
    """
    rows = [one for one in published_statements() if one.finding.direction != IDLE]
    figure, ((axis,),) = new_subplots(1, 1, (9.0, 1.2 + 0.23 * len(rows)))
    for at, style in ((0, "-"), (1, "--")):
        axis.axvline(at, color="0.3", linewidth=1, linestyle=style)
    names = []
    for place, statement in enumerate(rows):
        one = statement.finding
        assert one.ours
        assert one.paper
        mean, *ends = (end / one.paper.mean for end in (one.ours.mean, one.ours.low, one.ours.high))
        kind = next(kind for kind in LOOKS if one.outcome.startswith(kind))
        label, colour, marker = LOOKS[kind]
        bar = [[mean - min(ends)], [max(ends) - mean]]
        axis.errorbar(mean, place, xerr=bar, fmt=marker, markersize=6, color=colour, label=label)
        words = statement.title.partition(" (")[0], one.where, one.label, one.preset and f"preset {one.preset}"
        name = ", ".join(filter(None, words))
        names.append(f"{name}, last epoch" if name in names else name)
    axis.set_yticks(range(len(rows)), names, fontsize=8)
    axis.set_ylim(len(rows) - 0.4, -0.6)
    axis.set_xlim(-2.8, 3.8)
    axis.set_title("C-Mixup minus another method: results/README.md names both", fontsize=10)
    axis.set_xlabel("our difference / the paper's (0: none, 1: as in the paper), 95 % intervals,\n"
                    "cut at the edge; colours and marks count the paper's uncertainty, too", fontsize=9)  # fmt: skip
    handles, labels = axis.get_legend_handles_labels()
    legend_below(figure, dict(zip(labels, handles, strict=True)))
    return {"figures/differences.png": figure}
