"""Mean ranks over datasets, against ranks counted by hand."""

import pytest

from scripts.records.names import titles_of
from scripts.report.result_table import Block, Score
from scripts.report.tables import rank_lines, ranks_beside_paper
from scripts.stats.intervals import Summary


def block(dataset: str, metric: str, ours: dict, paper: dict) -> Block:
    cells = {
        m: {metric: Score(None if ours[m] is None else Summary(ours[m], 0.1, 3), paper[m])} for m in ours
    }  # fmt: skip
    return Block(dataset, [metric], cells, titles=titles_of(["airfoil", "no2", dataset], ours, [metric]))


PAPER = {"erm": 3.0, "mixup": 2.0, "cmixup": 1.0}


def test_ranks_beside_paper_are_those_counted_by_hand():
    blocks = [
        block("airfoil", "rmse", {"erm": 1.0, "mixup": 5.0, "cmixup": 2.0}, PAPER),
        block("no2", "rmse", {"erm": 0.5, "mixup": 0.5, "cmixup": 0.7}, PAPER),
    ]
    datasets, ours, paper = ranks_beside_paper(blocks, "rmse")
    assert datasets == ["airfoil", "no2"]
    assert ours == {"erm": (1 + 1.5) / 2, "mixup": (3 + 1.5) / 2, "cmixup": (2 + 3) / 2}
    assert paper == {"erm": 3.0, "mixup": 2.0, "cmixup": 1.0}
    (line,) = rank_lines(blocks, "rmse")
    assert "over Airfoil, NO2" in line
    assert "ERM 1.2 (3.0); mixup 2.2 (2.0); C-Mixup 2.5 (1.0)." in line


@pytest.mark.parametrize("metric", ["r", "worst_r"])
def test_where_higher_is_better_the_highest_is_first(metric):
    blocks = [block(d, metric, {"erm": 0.1, "cmixup": 0.9}, {"erm": 0.8, "cmixup": 0.2}) for d in ("a", "b")]
    _, ours, paper = ranks_beside_paper(blocks, metric)
    assert ours == {"erm": 2.0, "cmixup": 1.0}
    assert paper == {"erm": 1.0, "cmixup": 2.0}


def test_a_dataset_without_every_method_does_not_count():
    whole = block("airfoil", "rmse", {"erm": 1.0, "cmixup": 2.0}, {"erm": 1.0, "cmixup": 2.0})
    for hole in (
        block("no2", "rmse", {"erm": 1.0, "cmixup": None}, {"erm": 1.0, "cmixup": 2.0}),
        block("no2", "rmse", {"erm": 1.0, "cmixup": 2.0}, {"erm": None, "cmixup": 2.0}),
    ):
        assert ranks_beside_paper([whole, hole], "rmse")[0] == ["airfoil"]
        assert rank_lines([whole, hole], "rmse") == []
    assert ranks_beside_paper([], "rmse") == ([], {}, {})
