"""Effects over tables: a hierarchical model of what a method changes, solved by quadrature.

It follows the Bayesian hierarchical correlated t-test of Corani, Benavoli, Demsar, Mangili and Zaffalon (Machine
Learning 106, 2017). A table's effect theta_t is a draw from the tables that there might be; the mean of its n splits
scatters about theta_t, more than splits without shared rows would (Nadeau and Bengio 2003).

    mean of splits ~ theta_t + sigma_t sqrt(1 / n + overlap) e_t,    e_t normal, overlap 0, 1/6 or 1/3
    sigma_t^2      ~ scaled inverse chi-square, fitted to all tables (Smyth 2004), so that noise is pooled
    theta_t        = (mu + spread z_t) r_t,                          z_t normal, or Student's t of 4 degrees
    r_t            ~ sigma_t^growth, with mean 1 over tables,        growth 0 or 1

Differences from that paper. The overlap that Nadeau and Bengio take from the shares of test and training rows, here
1/3, is the most of three values that the data choose among, since splits of these tables scatter as if they shared
hardly any rows (results/study.md, tables left out). Effects may grow with a table's noise (`growth`), as those of
averaging networks do: a model without would give noisy tables hardly any weight in mu, which is then no mean over
tables. Noise is pooled by the distribution that the tables show, not within a uniform prior. There are no random
numbers: spread, growth and the kind of z run over a grid, mu is integrated by Laplace's method at each point, and
Student's t are mixtures of normals, so that the rest has closed forms.

Priors: mu and spread are flat; the values of overlap and the kinds of z are equally likely; that effects do not grow
with noise is twice as likely as that they do. tests/scripts/stats/test_simulated_studies.py simulates studies of known
effects and counts what intervals cover.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import digamma, polygamma

from scripts.stats.quadrature import (
    ENDS,
    Estimate,
    Grid,
    Mixture,
    Observed,
    mean_components,
    of_new,
    of_tables,
    solve_posterior,
)


@dataclass(frozen=True)
class Posterior:
    """What is known of a method's effects, in the unit of the differences.

    Attributes:
        overall: the mean effect of the tables.
        spread: posterior median and ends of the 95 % interval of the standard deviation between tables.
        tables: of each table.
        new: of a table never seen.
    """

    overall: Estimate
    spread: tuple[float, float, float]
    tables: Mapping[str, Estimate]
    new: Estimate


def observe_splits(differences: Sequence[Sequence[float]]) -> Observed:
    """Return what the splits of each table say, two or more, with the noise of tables pooled."""
    n = np.array([len(each) for each in differences], dtype=float)
    mean = np.array([np.mean(each) for each in differences])
    variance, freedom = pool_variances(np.array([np.var(each, ddof=1) for each in differences]), n - 1)
    return Observed(mean, n, np.sqrt(variance), freedom)


def pool_variances(variance: np.ndarray, freedom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return variances shrunk to their common distribution, and the degrees of freedom that they then have.

    The prior is a scaled inverse chi-square whose two parameters are those that give the mean and the variance of the
    log variances (Smyth 2004, Section 6.2). Variances of 0 do not enter it, and get what it says of them.
    """
    seen = variance > 0
    if seen.sum() < 2:
        return variance, freedom
    half = freedom[seen] / 2
    logs = np.log(variance[seen]) - digamma(half) + np.log(half)
    excess = logs.var(ddof=1) - polygamma(1, half).mean()
    if excess <= 0:  # all tables are as noisy as each other
        return np.full_like(variance, np.exp(logs.mean())), np.full_like(freedom, np.inf)
    prior = 2 * inverse_trigamma(excess)
    centre = np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2))
    return (prior * centre + freedom * variance) / (prior + freedom), prior + freedom


def inverse_trigamma(value: float) -> float:
    """Return x with trigamma(x) = `value`, which is above 0, by Newton's steps on 1 / trigamma."""
    x = 0.5 + 1 / value
    for _ in range(50):
        x += polygamma(1, x) * (1 - polygamma(1, x) / value) / polygamma(2, x)
    return float(x)


def fit_effects(differences: Mapping[str, Sequence[float]], overlap: float, size: float) -> Posterior:
    """Return the posterior of a method's effects.

    Args:
        differences: of the splits of each table, two or more.
        overlap: test rows for each training row, the most of what splits share; 0 takes them as independent.
        size: of an effect that counts, in the unit of the differences.
    """
    return _fit_cached(tuple((name, tuple(each)) for name, each in differences.items()), overlap, size)


@functools.lru_cache(maxsize=1024)
def _fit_cached(differences: tuple[tuple[str, tuple[float, ...]], ...], overlap: float, size: float) -> Posterior:
    """Return the posterior of what can be a key: several tables and pages use the same one."""
    seen = observe_splits([values for _, values in differences])
    grid = solve_posterior(seen, overlap_values(overlap))
    return posterior_summary([name for name, _ in differences], seen, grid, size)


def overlap_values(most: float) -> list[float]:
    """Return the values that the overlap may have, the largest of which is `most`."""
    return [share * most for share in (0.0, 0.5, 1.0)]


def posterior_summary(names: Sequence[str], seen: Observed, grid: Grid, size: float) -> Posterior:
    """Return what a solved posterior says of the mean, of each table and of a new one."""
    order = np.argsort(grid.total)
    running = np.cumsum(grid.weight[order])
    median, low, high = (float(np.interp(q, running, grid.total[order])) for q in (0.5, *ENDS))
    return Posterior(
        Mixture(grid.weight, grid.mu, np.sqrt(grid.variance)).estimate(size),
        (median, low, high),
        {name: each.estimate(size) for name, each in zip(names, of_tables(seen, grid), strict=True)},
        of_new(grid).estimate(size),
    )


def left_out(differences: Mapping[str, Sequence[float]], overlap: float) -> dict[str, float]:
    """Return the probability of a lower mean than each table's own, by what the other tables let one expect of it.

    The table's noise is in the prediction. Of a model that fits, these are uniform: half of them lie between 0.25 and
    0.75. What all tables have pooled of the noise is used for each of them.
    """
    seen, places = observe_splits(list(differences.values())), {}
    for t, name in enumerate(differences):
        others, table = seen.part(np.arange(len(seen.mean)) != t), seen.part(np.array([t]))
        grid = solve_posterior(others, overlap_values(overlap))
        relative = np.stack([table.relative(growth, to=others) for growth in grid.growth])
        one = replace(grid, relative=relative)
        variance, weight = mean_components(table, one)
        spread = variance + (grid.variance * relative[:, 0] ** 2)[:, None, None, None]
        centre = (grid.mu * relative[:, 0])[:, None, None, None]
        whole = Mixture(grid.weight[:, None, None, None] * weight, centre, np.sqrt(spread))
        places[name] = float(whole.below(seen.mean[t]))
    return places
