"""Of simulated studies the model's intervals cover what they should, and seldom a table is misjudged."""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import stats

from scripts.effects import effects
from scripts.effects.effects import Posterior, left_out, observe_splits
from scripts.effects.quadrature import Grid, Observed, solve_posterior
from scripts.effects.verdicts import OVERLAP
from scripts.study import effect_tables
from tests.scripts.study.simulated import simulated

STUDIES = 1000  # simulated for each spread of effects


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("growth", [0.0, 1.0])
def test_tables_lie_where_the_others_let_one_expect_them(growth: float) -> None:
    rng, places = np.random.default_rng([11, int(growth)]), list[float]()
    for _ in range(10):
        _, splits = simulated(rng, 0.4, 1.0, growth, 0.1)
        places += left_out(splits, OVERLAP).values()
    for (low, high), share in ((effect_tables.HALF, 0.5), (effect_tables.MOST, 0.95)):
        least, most = effect_tables.binom_ends(len(places), share)
        assert least <= sum(low <= place <= high for place in places) <= most
    assert np.mean(places) == pytest.approx(0.5, abs=3 / math.sqrt(12 * len(places)))


@functools.cache
def studied(spread: float) -> dict[str, list[Any]]:
    """Return what `STUDIES` simulated studies say of known effects: a row for each study or table."""
    found: dict[str, list[Any]] = {"mean": [], "tables": [], "false": []}
    kinds = [(mean, growth, shared) for mean in (0.0, 0.4) for growth in (0.0, 1.0) for shared in (0.0, 0.25)]
    for number, (mean, growth, shared) in enumerate(kinds):
        rng = np.random.default_rng([7, int(10 * spread), number])
        for _ in range(STUDIES // len(kinds)):
            true, splits = simulated(rng, mean, spread, growth, shared)
            told: Posterior = effects.posterior_summary(list(splits), *_solved(splits), 1.0)
            found["mean"].append(told.overall.low <= mean <= told.overall.high)
            for effect, own in zip(true, told.tables.values(), strict=True):
                found["tables"].append(own.low <= effect <= own.high)
                if abs(effect) < 1:
                    found["false"].append(max(own.chances.gain, own.chances.loss) >= 0.95)
    return found


def _solved(splits: Mapping[str, list[float]]) -> tuple[Observed, Grid]:
    seen = observe_splits(list(splits.values()))
    return seen, solve_posterior(seen, effects.overlap_values(OVERLAP))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0])
def test_means_of_known_effects_are_covered_and_tables_seldom_misjudged(spread: float) -> None:
    found = studied(spread)
    hits, n = sum(found["mean"]), len(found["mean"])
    assert stats.binom.ppf(0.005, n, 0.92) <= hits <= stats.binom.ppf(0.995, n, 0.98)
    assert np.mean(found["false"]) <= 0.05
    assert np.mean(found["tables"]) >= 0.92


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_effects_of_tables_are_covered() -> None:
    assert 0.92 <= np.mean([*studied(0.5)["tables"], *studied(2.0)["tables"]]) <= 0.98
