"""What figures show: every seed, means, spreads and the paper's numbers, where they belong."""

import math

import numpy as np
import pandas as pd
import pytest

from cmixup.sampling.bandwidth import diagnose
from scripts.analysis.invariance import invariance_figure
from scripts.config.compose import option_names
from scripts.records.experiment import load_experiment
from scripts.report.figures import (
    COLOURS,
    DRAWN,
    DRAWN_PAGES,
    LOOKS,
    ROOT,
    SERIES,
    VERMILION,
    bandwidth_figure,
    doc_figures,
    method_looks,
)
from scripts.report.overfitting import overfitting_figure


def test_invariance_figure_has_seeds_means_spreads_and_every_method() -> None:
    values = {"cmixup": [0.2, 0.4], "unheard_of": [0.7], "erm": [-0.1, 0.5, 0.6]}
    rows = pd.DataFrame(
        [{"dataset": "crime", "domains": "all", "method": method, "preset": "paper", "value": value,
          "valid_fraction": 0.084} for method, numbers in values.items() for value in numbers]
    )  # fmt: skip
    (axis,) = invariance_figure(rows, ["erm", "mixup", "cmixup"]).axes
    assert [label.get_text() for label in axis.get_yticklabels()] == ["ERM", "C-Mixup", "unheard_of"]
    dots, means = (
        [np.sort(np.atleast_1d(line.get_xdata())).tolist() for line in axis.lines if line.get_marker() == marker]
        for marker in ".D"
    )
    assert dots == [[0.0, 0.5, 0.6], [0.2, 0.4], [0.7]]
    assert np.concatenate(means) == pytest.approx([1.1 / 3, 0.3, 0.7])
    spread = math.sqrt(0.02)
    bars = [bar for container in axis.containers for lines in container[2] for bar in lines.get_segments()]
    assert bars[1][:, 0] == pytest.approx([0.3 - spread, 0.3 + spread])
    assert "8 % of the pairs" in axis.get_title()
    (dotted,) = [line for line in axis.lines if line.get_linestyle() == ":"]
    assert dotted.get_xdata()[0] == pytest.approx(1.1 / 3)  # of ERM


def curve(method: str, seed: int, test: list[float], train: list[float]) -> pd.DataFrame:
    about = {"experiment": "figure_overfitting", "dataset": "exchange_rate", "method": method, "preset": "paper"}
    columns = {"epoch": [1.0, 2.0], "train_rmse": train, "test_rmse": test}
    return pd.DataFrame(columns).assign(**about, seed=seed, options="")


def test_overfitting_shows_the_mean_the_band_and_the_gap() -> None:
    experiment = load_experiment("figure_overfitting")
    curves = [
        curve("erm", 0, [4.0, 2.0], [3.0, 0.5]), curve("erm", 1, [6.0, 4.0], [3.0, 0.5]),
        curve("cmixup", 0, [3.0, 1.0], [3.0, 1.0]),
    ]  # fmt: skip
    left, right = overfitting_figure(experiment, pd.concat(curves), "paper").axes
    assert [line.get_ydata().tolist() for line in left.lines] == [[5.0, 3.0], [3.0, 1.0]]
    assert [line.get_ydata().tolist() for line in right.lines] == [[2.0, 2.5], [0.0, 0.0]]
    for axis in (left, right):
        assert [list(line.get_xdata()) for line in axis.lines] == [[1.0, 2.0]] * 2
        assert [line.get_label() for line in axis.lines] == ["ERM (n = 2)", "C-Mixup (n = 1)"]
    for axis, low, high in ((left, 3 - math.sqrt(2), 5 + math.sqrt(2)), (right, 2 - math.sqrt(2), 2.5 + math.sqrt(2))):
        assert len(axis.collections) == 2
        heights = axis.collections[0].get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == pytest.approx((low, high))
    assert (left.get_ylabel(), right.get_ylabel()) == ("test RMSE", "test minus training RMSE")
    assert left.get_title() == "Exchange-Rate: test error"
    assert right.get_title() == "test minus training error at the end:\nERM 2.5000, C-Mixup 0.0000"
    assert [line.get_color() for line in left.lines] == [COLOURS["erm"], COLOURS["cmixup"]]


def test_bandwidth_figure_is_in_units_of_the_spread() -> None:
    labels = np.linspace(0, 1, 50)
    along, marked = [diagnose(labels, b) for b in (0.1, 1.0)], [diagnose(labels, 0.5)]
    left, right = bandwidth_figure({"mine": (along, marked, 0.25)}).axes
    assert left.get_ylabel().startswith("effective partners")
    assert right.get_ylabel().startswith("probability of oneself")
    assert [text.get_text() for text in left.get_legend().get_texts()] == ["mine"]
    line, mark = left.lines
    assert (list(line.get_xdata()), list(mark.get_xdata())) == ([0.4, 2.0, 4.0], [2.0])
    every = [along[0], marked[0], along[1]]  # the line passes through the marks
    assert list(line.get_ydata()) == [r.effective_fraction for r in every]
    assert list(mark.get_ydata()) == [marked[0].effective_fraction]
    assert [list(line.get_ydata()) for line in right.lines] == [
        [r.self_probability for r in every], [marked[0].self_probability],
    ]  # fmt: skip


def test_no_two_methods_of_a_table_look_alike_and_c_mixup_s_forms_share_its_colour() -> None:
    assert LOOKS.keys() <= set(option_names("method"))
    assert len(set(LOOKS.values())) == len(LOOKS)
    assert [name for name, colour in COLOURS.items() if colour == VERMILION] == ["cmixup"]
    assert {VERMILION, COLOURS["erm"]}.isdisjoint(SERIES)

    looks = method_looks(["erm", "cmixup_batch", "mixup", "k_mixup", "local_mixup", "mixrl"])
    assert [looks[name]["color"] for name in ("erm", "cmixup_batch")] == [COLOURS["erm"], VERMILION]
    assert len({look["color"] for look in looks.values()}) == len(looks)


def test_every_block_has_its_picture_and_draws_it() -> None:
    page = "".join((ROOT / "docs" / name).read_text() for name in DRAWN_PAGES)
    paths = [path for _, path in DRAWN.findall(page)]
    assert len(set(paths)) == page.count("figure, ") == 4
    assert all((ROOT / "results" / path).is_file() for path in paths)
    assert list(doc_figures()) == paths
