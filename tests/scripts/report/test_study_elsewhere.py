"""What others found: the change of each comparison, its state by one rule, and how many there are of each."""

import math
from typing import Any

import pytest

from scripts.report.study_elsewhere import change_of, counts_text, read_comparisons, state_of

HALF = 4.302652729911275 / math.sqrt(3)  # of a t interval of three values, in standard deviations


def comparison(**given: Any) -> dict[str, Any]:
    """Return a comparison whose words do not count."""
    return dict.fromkeys(("source", "task", "mixing", "tuned", "seeds", "error"), "") | given


def test_the_change_is_the_geometric_mean_of_the_ratios_with_their_t_interval() -> None:
    logs = (-0.1, -0.2, -0.3)
    found = change_of(comparison(pairs=[[c, c * math.exp(v)] for c, v in zip((1.0, 2.0, 4.0), logs, strict=True)]))
    assert found is not None
    assert found.mean == pytest.approx(100 * math.expm1(-0.2))
    assert found.low == pytest.approx(100 * math.expm1(-0.2 - 0.1 * HALF))
    assert found.high == pytest.approx(100 * math.expm1(-0.2 + 0.1 * HALF))


@pytest.mark.parametrize(
    ("given", "state"),
    [
        ({"pairs": [[1, 0.7], [2, 1.5], [3, 2.2]]}, "lower"),
        ({"pairs": [[1, 1.3], [2, 2.5], [3, 3.8]]}, "higher"),
        ({"pairs": [[1, 1.3], [2, 1.5], [3, 3.8]]}, "inconclusive"),
        ({"pairs": [[1, 1.3], [2, 2.5]]}, "inconclusive"),
        ({"pairs": [[1, 1.3], [1, 1.25], [1, 1.27]]}, "inconclusive"),
        ({"pairs": [[5.0, 5.5]], "interval": [0.1, 0.9]}, "higher"),
        ({"pairs": [[5.0, 4.5]], "interval": [-0.9, -0.1]}, "lower"),
        ({"pairs": [[5.0, 5.5]], "interval": [-0.1, 1.1]}, "inconclusive"),
    ],
    ids=["lower", "higher", "both", "two pairs", "one control", "its own", "its own below", "its own both"],
)
def test_the_state_is_told_where_the_interval_is_on_one_side_of_zero(given: dict[str, Any], state: str) -> None:
    assert state_of(comparison(**given)) == state


def test_pairs_and_states_are_counted() -> None:
    every = [comparison(pairs=[[1, 0.7], [2, 1.5], [3, 2.2]]), comparison(pairs=[[1, 1.2], [1, 1.0]])]
    assert counts_text(every) == (
        "In 3 of 5 pairs mixing has the lower error. By the rule the error is lower in 1, higher in 0 and "
        "inconclusive in 1 of 2 comparisons."
    )


def test_every_comparison_has_a_source_and_positive_errors() -> None:
    for own in read_comparisons():
        assert all(own[key] for key in ("source", "task", "mixing", "tuned", "seeds", "error")), own
        assert all(error > 0 for pair in own["pairs"] for error in pair), own
