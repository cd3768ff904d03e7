"""Does mixing stand in for shuffling? Methods with rows in a fixed order, as the released code trains, or reshuffled.

The interaction is (C-Mixup minus ERM, reshuffled) minus (C-Mixup minus ERM, fixed order), paired by seed.
"""

import itertools

from matplotlib.figure import Figure

from scripts.records import names
from scripts.report.evidence import Query, Sample, published_evidence
from scripts.report.figures import COLOURS, legend_below, new_subplots
from scripts.report.rendering import draws, fills
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import Interval, interval_text, paired_or_none

METHODS = ("erm", "mixup", "manifold_mixup", "cmixup")
METRICS = {"skillcraft": ("rmse", "worst_rmse"), "crime": ("rmse", "worst_rmse"), "rcf_mnist": ("rmse",)}
PRESET = {"rcf_mnist": "cpu"}  # of all others `released`
ORDERS = ("fixed order", "reshuffled")
RESHUFFLED = {"rcf_mnist"}  # whose preset reshuffles; that of the others does not
OURS, AUTHORS = "", ", the authors' code"
CHANGES = dict(zip(ORDERS, ("", "need_shuffle=True"), strict=True))  # to that code: the one line


def order_sample(dataset: str, order: str, method: str, metric: str, code: str = OURS) -> Sample | None:
    """Return the scores by seed of a method with rows in an order, or None where nothing is published of it."""
    preset, as_preset = PRESET.get(dataset, "released"), (order == ORDERS[1]) == (dataset in RESHUFFLED)
    options = {} if as_preset else {"train.shuffle": order == ORDERS[1]}
    query: Query = {"experiment": "table3" if as_preset else "shuffling", "preset": preset, "options": options}
    if code == AUTHORS:
        query = {"from": "authors", "change": CHANGES[order]}
    return published_evidence().find({**query, "dataset": dataset, "method": method, "metric": metric})


def gains(dataset: str, metric: str, code: str = OURS) -> list[Interval]:
    """Return C-Mixup minus ERM in a fixed order and reshuffled, and the interaction; empty without these runs."""
    by_order, intervals = list[dict[int, float]](), list[Interval | None]()
    for order in ORDERS:
        ours, erm = (order_sample(dataset, order, method, metric, code) for method in ("cmixup", "erm"))
        if not (ours and erm):
            return []
        by_order.append({s: ours.values[s] - erm.values[s] for s in ours.values if s in erm.values})
        intervals.append(paired_or_none(ours.values, erm.values))
    intervals.append(paired_or_none(*by_order[::-1]))
    return [interval for interval in intervals if interval] if all(intervals) else []


HEAD = ("C-Mixup minus ERM, test RMSE", "n", *ORDERS, "reshuffled minus fixed order")


@fills
def shuffling_parts() -> dict[str, dict[str, str]]:
    """Return the table of ours and of the authors' code, and by how much reshuffling alone changes ERM."""
    body, alone = [], list[str]()
    for code, (dataset, metrics) in itertools.product((OURS, AUTHORS), METRICS.items()):
        for metric in metrics:
            if intervals := gains(dataset, metric, code):
                decimals = 4 if abs(intervals[0].mean) < 0.02 else 2
                title = names.dataset_title(dataset) + ", worst domain" * metric.startswith("worst") + code
                body.append([title, str(intervals[2].n), *(interval_text(one, decimals) for one in intervals)])
                if title == names.dataset_title(dataset):
                    fixed, reshuffled = (order_sample(dataset, order, "erm", metric) for order in ORDERS)
                    assert fixed
                    assert reshuffled
                    change = interval_text(paired_or_none(reshuffled.values, fixed.values), decimals)
                    alone.append(f"{change} on {title}")
    return {"results/README.md": {"shuffling": markdown_table(HEAD, body), "erm": " and ".join(alone)}}


@draws
def shuffling_picture() -> dict[str, Figure]:
    """Return each method's error with rows in a fixed order and reshuffled, a panel a dataset and score."""
    panels = [(d, m) for d, metrics in METRICS.items() for m in metrics if gains(d, m)]
    figure, axes = new_subplots(1, len(panels), (2.9 * len(panels), 3.2))
    for axis, (dataset, metric) in zip(axes[0], panels, strict=True):
        for k, method in enumerate(METHODS):
            samples = [order_sample(dataset, order, method, metric) for order in ORDERS]
            values = [sample.summary for sample in samples if sample]
            if len(values) < len(ORDERS):
                continue
            x, error = [place + 0.03 * (k - 1.5) for place in range(2)], [1.96 * v.std / v.n**0.5 for v in values]
            axis.errorbar(x, [v.mean for v in values], yerr=error, marker="o", markersize=4, color=COLOURS[method],
                          label=names.method_title(method))  # fmt: skip
        worst = ", worst domain" * metric.startswith("worst")
        axis.set_title(f"{names.dataset_title(dataset)}{worst}", fontsize=10)
        axis.set_xticks(range(2), ORDERS)
        axis.set_xlim(-0.25, 1.25)
    axes[0][0].set_ylabel("test RMSE, 95 % intervals")
    handles, labels = axes[0][0].get_legend_handles_labels()
    legend_below(figure, dict(zip(labels, [h[0] for h in handles], strict=True)))
    return {"figures/shuffling.png": figure}
