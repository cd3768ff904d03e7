"""The model of effects over tables: against brute-force integrals and limma's formulas, and on known effects.

Simulated studies are slow: their intervals cover what they should, and seldom a table is misjudged.
"""

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import signal, stats

from scripts.stats import hierarchical
from scripts.stats.effects import OVERLAP
from scripts.stats.hierarchical import (
    SHARES,
    Grid,
    Mixture,
    Observed,
    fit_effects,
    left_out,
    observe_splits,
    of_tables,
    pool_variances,
    solve_posterior,
)

NOISE = np.geomspace(0.35, 7.0, 30)  # of a split, in percent, like the published tables'


def simulated(
    rng: np.random.Generator, mean: float, spread: float, growth: float, shared: float, *, noise: np.ndarray = NOISE
) -> tuple[np.ndarray, dict[str, list[float]]]:
    """Return true effects and the differences of five splits; `shared` is the correlation between splits of a table."""
    relative = noise**growth / (noise**growth).mean()
    true = (mean + spread * rng.standard_normal(len(noise))) * relative
    common, noise_of_split = rng.standard_normal((len(noise), 1)), rng.standard_normal((len(noise), 5))
    error = (math.sqrt(shared / (1 - shared)) * common + noise_of_split) * noise[:, None]
    return true, {f"t{t}": [float(d) for d in row] for t, row in enumerate(true[:, None] + error)}


def mean_of(grid: Grid) -> float:
    """Return the posterior mean of mu."""
    return float(grid.weight @ grid.mu)


def integrated(
    seen: Observed, overlap: float, growth: float, kind: float
) -> tuple[np.ndarray, np.ndarray, float, float]:
    """Return each table's posterior mean and P(effect < -1), and mean and deviation of mu, by sums over a fine grid.

    The spread runs over 60 values for the model's 17, and mu and each effect over a line, by convolutions.
    """
    step, spreads = 0.03, np.geomspace(0.03, 200.0, 60)
    line = step * np.arange(-6000, 6001)
    relative = seen.noise**growth / (seen.noise**growth).mean()
    scale = seen.noise * np.sqrt(1 / seen.n + overlap)
    likely = np.stack([stats.t.pdf((y - r * line) / e, f) for y, r, e, f in
                       zip(seen.mean, relative, scale, seen.freedom, strict=True)])  # fmt: skip
    steps = np.gradient(spreads)
    steps[0] += spreads[0]  # what is below the first
    of_mu, of_effects = np.zeros_like(line), np.zeros_like(likely)
    for spread, weight in zip(spreads, steps, strict=True):
        kernel = stats.t.pdf(line / spread, kind) / spread * step
        posteriors = np.maximum([signal.fftconvolve(density, kernel, mode="same") for density in likely], 0)
        of_mu += weight * posteriors.prod(axis=0)
        for t, density in enumerate(likely):
            others = np.delete(posteriors, t, axis=0).prod(axis=0)
            of_effects[t] += weight * density * np.maximum(signal.fftconvolve(others, kernel, mode="same"), 0)
    of_mu, of_effects = of_mu / of_mu.sum(), of_effects / of_effects.sum(axis=1, keepdims=True)
    below = [float(density[r * line < -1].sum()) for density, r in zip(of_effects, relative, strict=True)]
    mean = float(of_mu @ line)
    return of_effects @ line * relative, np.array(below), mean, math.sqrt(of_mu @ (line - mean) ** 2)


@pytest.mark.parametrize(
    ("freedom", "overlap", "growth", "kind"),
    [(np.inf, 0.0, 0.0, np.inf), (5.0, 1 / 3, 1.0, np.inf), (5.0, 1 / 6, 1.0, 4.0)],
)
def test_posteriors_are_those_of_brute_force(freedom: float, overlap: float, growth: float, kind: float) -> None:
    """All effects and mu itself are about 1, so that 0.015 is a sixtieth of what is known of them.

    Of normals with known noise Laplace's method is exact: that the spread has 17 values, a factor of 1.7 apart, leaves
    0.01 of a probability and 2 % of mu's deviation. Of heavy tails it leaves out 7 % of that deviation.
    """
    seen = Observed(
        np.array([-1.6, -0.4, 0.3, -2.4, -0.9]), np.array([5.0, 5.0, 5.0, 4.0, 3.0]),
        np.array([0.5, 1.0, 0.4, 2.5, 0.8]), np.full(5, freedom),
    )  # fmt: skip
    means, below, mean, deviation = integrated(seen, overlap, growth, kind)
    grid = solve_posterior(seen, [overlap], {growth: 1.0}, [kind])
    tables = of_tables(seen, grid)
    assert [posterior.estimate(1.0).mean for posterior in tables] == pytest.approx(means, abs=0.015)
    assert [float(posterior.below(-1.0)) for posterior in tables] == pytest.approx(below, abs=0.015)
    assert mean_of(grid) == pytest.approx(mean, abs=0.015)
    spread = math.sqrt(grid.weight @ (grid.variance + grid.mu**2) - mean_of(grid) ** 2)
    assert spread == pytest.approx(deviation, rel=0.08 if kind < np.inf else 0.04)


def test_pooled_noise_is_smyths() -> None:
    """Of his formulas for the two parameters, solved by hand with another root finder."""
    variance, freedom = np.array([0.5, 1.0, 2.0, 4.0, 16.0]), np.array([4.0, 4.0, 4.0, 2.0, 9.0])
    pooled, total = pool_variances(variance, freedom)
    assert total - freedom == pytest.approx(2.90704633)
    assert pooled == pytest.approx([1.18111071, 1.47067009, 2.04978883, 2.88523594, 12.61085094])


def test_tables_that_are_alike_have_their_noise_known_and_a_variance_of_zero_breaks_nothing() -> None:
    pooled, freedom = pool_variances(np.full(6, 2.0), np.full(6, 4.0))
    assert np.isinf(freedom).all()
    assert len(set(pooled)) == 1
    some, more = np.array([0.1, 1.0, 3.0, 30.0]), np.array([0.1, 0.0, 1.0, 3.0, 30.0])
    (without, few), (beside, many) = pool_variances(some, np.full(4, 4.0)), pool_variances(more, np.full(5, 4.0))
    assert np.delete(beside, 1) == pytest.approx(without)
    assert many == pytest.approx(few[0])
    assert 0 < beside[1] < beside[0]
    nothing, four = np.zeros(3), np.full(3, 4.0)
    assert [one.tolist() for one in pool_variances(nothing, four)] == [nothing.tolist(), four.tolist()]


def test_a_mixture_has_the_quantiles_of_its_normals() -> None:
    one = Mixture(np.ones(1), np.array([0.7]), np.array([1.3]))
    for share in (0.025, 0.5, 0.9):
        assert one.quantile(share) == pytest.approx(stats.norm.ppf(share, 0.7, 1.3), abs=1e-8)
    assert one.below(np.array([-1.0, 0.0, 3.0])) == pytest.approx(stats.norm.cdf([-1.0, 0.0, 3.0], 0.7, 1.3))
    two = Mixture(np.array([0.3, 0.1]), np.array([-5.0, 5.0]), np.array([0.1, 0.1])).estimate(1.0)
    assert two.mean == pytest.approx(-2.5)
    assert (two.gain, two.within, two.loss) == pytest.approx((0.75, 0.0, 0.25))


def test_the_other_sign_is_the_mirror_image_and_the_second_fit_the_first() -> None:
    _, splits = simulated(np.random.default_rng(6), 0.5, 1.0, 1.0, 0.25, noise=NOISE[::3])
    one, other = (
        fit_effects(splits, OVERLAP, 1.0),
        fit_effects({t: [-d for d in values] for t, values in splits.items()}, OVERLAP, 1.0),
    )
    for name, values in one.tables.items():
        mirror = other.tables[name]
        assert (mirror.mean, mirror.low, mirror.high) == pytest.approx((-values.mean, -values.high, -values.low))
        assert mirror.gain == pytest.approx(values.loss)
    hierarchical._fit_cached.cache_clear()
    again = fit_effects(splits, OVERLAP, 1.0)
    assert again is not one
    assert again == one  # to the last bit: there are no random numbers


EDGES: Mapping[str, Mapping[str, list[float]]] = {
    "one table": {"a": [1.0, 2.0, 3.0]},
    "two tables": {"a": [1.0, 2.0], "b": [0.0, -1.0, 1.0]},
    "the same method": {name: [0.0] * 5 for name in "abcdef"},
    "a table without noise": {"a": [1.0, 1.0, 1.0], "b": [0.0, -1.0, 1.0], "c": [0.0, 0.1, 0.3]},
    "no table within reach of the median": {"a": [8.3, 8.31, 8.32], "b": [-8.3, -8.31, -8.32]},
    "constants apart": {"a": [50.0, 50.0], "b": [-50.0, -50.0], "c": [1.0, 1.0], "d": [-1.0, -1.0]},
    "one table far away": {"a": [0.1, 0.2], "b": [0.1, 0.3], "c": [900.0, 901.0]},
}


@pytest.mark.parametrize("name", EDGES)
def test_whatever_the_tables_numbers_are_finite_and_chances_add_up(name: str) -> None:
    fitted = fit_effects(EDGES[name], OVERLAP, 1.0)
    estimates = [fitted.overall, fitted.new, *fitted.tables.values()]
    for one in estimates:
        chances = (one.gain, one.within, one.loss)
        assert sum(chances) == pytest.approx(1)
        assert all(-1e-9 <= p <= 1 + 1e-9 for p in chances)
        assert np.isfinite([one.mean, one.low, one.high]).all()
        assert one.low <= one.mean <= one.high
    for table, splits in EDGES[name].items():  # which say where it lies, as no other does
        one = fitted.tables[table]
        assert one.low - 1e-3 <= np.mean(splits) <= one.high + 1e-3


def test_effects_that_grow_with_noise_are_known_as_such() -> None:
    rng = np.random.default_rng(8)
    studies = [list(simulated(rng, 2.0, 0.2, growth, 0.0)[1].values()) for growth in (0.0, 1.0)]
    grids = [solve_posterior(observe_splits(splits), OVERLAP * SHARES) for splits in studies]
    grow = [float(grid.weight[grid.growth > 0].sum()) for grid in grids]
    assert grow[0] < 0.05
    assert grow[1] > 0.95


def test_a_table_unlike_the_others_is_where_few_are_expected() -> None:
    _, splits = simulated(np.random.default_rng(10), 0.0, 0.5, 0.0, 0.0, noise=NOISE[:8])
    places = left_out({**splits, "high": [9.0, 9.1, 9.3, 9.2, 9.0], "low": [-9.0, -9.1, -9.3, -9.2, -9.0]}, OVERLAP)
    assert places["high"] > 0.97
    assert places["low"] < 0.03
    assert all(0.1 < places[name] < 0.9 for name in splits)


STUDIES = 1000  # simulated for each spread of effects


@functools.cache
def studied(spread: float) -> dict[str, list[Any]]:
    """Return what `STUDIES` simulated studies say of known effects: a row for each study or table."""
    results: dict[str, list[Any]] = {"mean": [], "tables": [], "false": []}
    kinds = [(mean, growth, shared) for mean in (0.0, 0.4) for growth in (0.0, 1.0) for shared in (0.0, 0.25)]
    for number, (mean, growth, shared) in enumerate(kinds):
        rng = np.random.default_rng([7, int(10 * spread), number])
        for _ in range(STUDIES // len(kinds)):
            true, splits = simulated(rng, mean, spread, growth, shared)
            fitted = fit_effects(splits, OVERLAP, 1.0)
            results["mean"].append(fitted.overall.low <= mean <= fitted.overall.high)
            for effect, estimate in zip(true, fitted.tables.values(), strict=True):
                results["tables"].append(estimate.low <= effect <= estimate.high)
                if abs(effect) < 1:
                    results["false"].append(max(estimate.gain, estimate.loss) >= 0.95)
    return results


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("spread", [0.0, 0.5, 2.0])
def test_means_of_known_effects_are_covered_and_tables_seldom_misjudged(spread: float) -> None:
    results = studied(spread)
    hits, n = sum(results["mean"]), len(results["mean"])
    assert stats.binom.ppf(0.005, n, 0.92) <= hits <= stats.binom.ppf(0.995, n, 0.98)
    assert np.mean(results["false"]) <= 0.05
    assert np.mean(results["tables"]) >= 0.92
