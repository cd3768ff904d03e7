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
with noise is twice as likely as that they do. tests/scripts/stats/test_hierarchical.py simulates studies of known
effects and counts what intervals cover.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, ndtr, polygamma, roots_genlaguerre

from scripts.stats.intervals import Estimate

GROWTHS = {0.0: 2.0, 1.0: 1.0}  # with how likely each is, before anything was seen
SHARES = np.array([0.0, 0.5, 1.0])  # of the most that splits may share, which the data choose among
TINY = 1e-6  # noise is at least so much
HEAVY = 4.0  # degrees of freedom of the heavy-tailed effects
SPREADS = np.geomspace(0.03, 200.0, 17)
NODES = 6  # normals that make a Student's t
STEPS = 50  # at most, of the fixed point for mu
LEAST = 1e-4  # of the probability, that a point of the grid must have
ENDS = (0.025, 0.975)


class Observed(NamedTuple):
    """What the splits of each table say, `(T,)` each.

    Attributes:
        mean: of the differences over splits.
        n: how many splits.
        noise: the standard deviation of a split, pooled.
        freedom: degrees of freedom of the noise; infinite where it is known.
    """

    mean: np.ndarray
    n: np.ndarray
    noise: np.ndarray
    freedom: np.ndarray

    def relative(self, growth: float, to: Observed | None = None) -> np.ndarray:
        """Return r_t `(T,)`: the noise to the power of `growth`, over the mean of that on the tables of `to`."""
        scale, others = (np.maximum(tables.noise, TINY) ** growth for tables in (self, to or self))
        return scale / others.mean()


@dataclass(frozen=True)
class Marginal(Estimate):
    """The posterior of one effect: its mean with the central 95 % interval, and probabilities.

    Attributes:
        gain, within, loss: of a gain above a size, of a difference within it and of a loss above it.
    """

    gain: float
    within: float
    loss: float


def student_nodes(freedom: float) -> tuple[np.ndarray, np.ndarray]:
    """Return precisions and weights `(k,)` of the normals of variance 1 / precision that make a Student's t.

    They are Gauss' for the gamma distribution of the precision. One normal stands for infinite degrees of freedom.
    """
    if not np.isfinite(freedom):
        return np.ones(1), np.ones(1)
    nodes, weights = roots_genlaguerre(NODES, freedom / 2 - 1)
    return nodes * 2 / freedom, weights / weights.sum()


class Grid(NamedTuple):
    """The posterior of what is common to the tables, on H points, each with a normal mu.

    Attributes:
        weight: `(H,)`.
        overlap, growth, kind, spread: `(H,)`; the kind is z's degrees of freedom.
        relative: `(H, T)`, r_t.
        mu, variance: `(H,)`.
    """

    weight: np.ndarray
    overlap: np.ndarray
    growth: np.ndarray
    kind: np.ndarray
    spread: np.ndarray
    relative: np.ndarray
    mu: np.ndarray
    variance: np.ndarray

    def between(self) -> tuple[np.ndarray, np.ndarray]:
        """Return variance `(H, T, A)` and weight `(H, A)` of the normals that make each table's effect."""
        pairs = [student_nodes(scale) for scale in self.kind]
        size = max(len(precision) for precision, _ in pairs)
        precision = np.stack([np.pad(p, (0, size - len(p)), constant_values=1.0) for p, _ in pairs])
        share = np.stack([np.pad(w, (0, size - len(w))) for _, w in pairs])
        return (self.relative * self.spread[:, None])[..., None] ** 2 / precision[:, None, :], share


def solve_posterior(
    seen: Observed,
    overlaps: Sequence[float] | np.ndarray,
    growths: Mapping[float, float] = GROWTHS,
    kinds: Sequence[float] = (np.inf, HEAVY),
) -> Grid:
    """Return the posterior of what is common to the tables.

    `overlaps`, how much of a split's variance stays in the mean of any number of splits, and `kinds`, the degrees of
    freedom of z, are equally likely each; `growths` of effects with noise come with how likely each is.
    """
    points = [(overlap, growth, spread) for overlap in overlaps for growth in growths for spread in SPREADS]
    overlap, growth, spread = map(np.array, zip(*points, strict=True))
    relative = np.stack([seen.relative(shape) for shape in growth])
    likely, none = np.log([growths[shape] for shape in growth]), np.zeros(len(points))
    parts = [_mode_grid(seen, Grid(likely, overlap, growth, none + kind, spread, relative, none, none))
             for kind in kinds]  # fmt: skip
    grid = Grid(*map(np.concatenate, zip(*parts, strict=True)))
    weight = np.exp(grid.weight - grid.weight.max())
    keep = weight > LEAST * weight.sum()
    return Grid(*(array[keep] for array in grid._replace(weight=weight / weight[keep].sum())))


def _mode_grid(seen: Observed, grid: Grid) -> Grid:
    """Return a grid of one kind, whose weight is the log prior, with the log posterior, mu and its variance."""
    variance, weight = mean_components(seen, grid)
    mu, relative, spread = np.full(len(grid.spread), np.median(seen.mean)), grid.relative, grid.spread
    for _ in range(STEPS):
        _, chance = component_chances(seen.mean - mu[:, None] * relative, variance, weight)
        pull = (chance / variance).sum(axis=(-2, -1)) * relative
        last, mu = mu, (pull * seen.mean).sum(axis=1) / (pull * relative).sum(axis=1)
        if np.allclose(last, mu, rtol=1e-3, atol=1e-3):
            break
    residual = seen.mean - mu[:, None] * relative
    log, chance = component_chances(residual, variance, weight)
    first, second = ((chance / variance**power).sum(axis=(-2, -1)) for power in (1, 2))
    bend = np.maximum(first - (second - first**2) * residual**2, 0.1 * first)
    information = (bend * relative**2).sum(axis=1)
    step = np.log(SPREADS[1] / SPREADS[0])
    flat = np.log(spread * np.where(spread == SPREADS[0], 1 + step / 2, step))  # in steps of the logarithm
    evidence = grid.weight + flat + log.sum(axis=1) - 0.5 * np.log(information)
    return grid._replace(weight=evidence, mu=mu, variance=1 / information)


def mean_components(seen: Observed, grid: Grid) -> tuple[np.ndarray, np.ndarray]:
    """Return variance and weight `(H, T, A, B)` of the normals that make the mean of each table's splits."""
    noise, weights = (np.stack(column) for column in zip(*map(student_nodes, seen.freedom), strict=True))
    errors = np.maximum(seen.noise**2 * (1 / seen.n + grid.overlap[:, None]), TINY**2)
    within = errors[..., None] / noise
    between, share = grid.between()
    return between[..., None] + within[:, :, None, :], share[:, None, :, None] * weights[None, :, None, :]


def component_chances(residual: np.ndarray, variance: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the log density of residuals, `(H, T)`, and how likely each normal made them, `(H, T, A, B)`.

    `variance` and `weight`, `(H, T, A, B)`, are those of the normals that make the mean of each table's splits.
    """
    power = -0.5 * residual[..., None, None] ** 2 / variance
    most = power.max(axis=(-2, -1), keepdims=True)  # taken out, so that no density is 0 however far a residual
    density = weight / np.sqrt(2 * np.pi * variance) * np.exp(power - most)
    whole = density.sum(axis=(-2, -1), keepdims=True)
    return (np.log(whole) + most)[..., 0, 0], density / whole


class Mixture:
    """A mixture of normals, whose arguments may have any shape: an effect's posterior."""

    def __init__(self, weight: np.ndarray, mean: np.ndarray, deviation: np.ndarray):
        weight, mean, deviation = (np.ravel(array) for array in np.broadcast_arrays(weight, mean, deviation))
        heavy = np.argsort(-weight, kind="stable")
        keep = heavy[: 1 + int(np.searchsorted(np.cumsum(weight[heavy]), (1 - 1e-5) * weight.sum()))]
        self.weight, self.mean, self.deviation = weight[keep] / weight[keep].sum(), mean[keep], deviation[keep]

    def below(self, value: float | np.ndarray) -> np.ndarray:
        """Return the probability of a smaller effect, for each of `value`."""
        z = (np.asarray(value)[..., None] - self.mean) / np.maximum(self.deviation, 1e-12)
        share: np.ndarray = (self.weight * ndtr(z)).sum(axis=-1)
        return share

    def quantile(self, share: float) -> float:
        """Return the effect below which a share of the probability lies."""
        low, high = (self.mean - 8 * self.deviation).min() - 1e-9, (self.mean + 8 * self.deviation).max() + 1e-9
        return float(brentq(lambda value: self.below(value) - share, low, high))

    def estimate(self, size: float) -> Marginal:
        """Return its summary; `size` is that of an effect that counts."""
        gain, least = (float(chance) for chance in self.below(np.array([-size, size])))
        low, high = map(self.quantile, ENDS)
        return Marginal(float(self.weight @ self.mean), low, high, gain, least - gain, 1 - least)


def of_tables(seen: Observed, grid: Grid) -> list[Mixture]:
    """Return the posterior of each table's effect."""
    variance, weight = mean_components(seen, grid)
    centre = grid.mu[:, None] * grid.relative
    _, chance = component_chances(seen.mean - centre, variance, weight)
    between = grid.between()[0][..., None]
    trust = between / variance  # in the table's own splits
    mean = trust * seen.mean[None, :, None, None] + (1 - trust) * centre[..., None, None]
    of_mu = (grid.variance[:, None] * grid.relative**2)[..., None, None]
    spread = between * (1 - trust) + (1 - trust) ** 2 * of_mu
    whole = grid.weight[:, None, None, None] * chance
    return [Mixture(whole[:, t], mean[:, t], np.sqrt(spread[:, t])) for t in range(len(seen.mean))]


def of_new(grid: Grid) -> Mixture:
    """Return the effect of a table never seen, as noisy as one of those that were."""
    between, share = grid.between()
    weight = (grid.weight[:, None] * share)[:, None, :] / between.shape[1]
    deviation = np.sqrt(between + (grid.variance[:, None] * grid.relative**2)[..., None])
    return Mixture(np.broadcast_to(weight, between.shape), (grid.mu[:, None] * grid.relative)[..., None], deviation)


class Posterior(NamedTuple):
    """What is known of a method's effects, in the unit of the differences.

    Attributes:
        overall: the mean effect of the tables.
        tables: of each table.
        new: of a table never seen.
    """

    overall: Marginal
    tables: Mapping[str, Marginal]
    new: Marginal


def observe_splits(differences: Sequence[Sequence[float]]) -> Observed:
    """Return what the splits of each table say, two or more, with the noise of tables pooled."""
    n = np.array([len(values) for values in differences], dtype=float)
    mean = np.array([np.mean(values) for values in differences])
    variance, freedom = pool_variances(np.array([np.var(values, ddof=1) for values in differences]), n - 1)
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
    prior = 2 * brentq(lambda half: polygamma(1, half) - excess, 1e-9, 1e12)
    centre = np.exp(logs.mean() + digamma(prior / 2) - np.log(prior / 2))
    return (prior * centre + freedom * variance) / (prior + freedom), prior + freedom


def fit_effects(differences: Mapping[str, Sequence[float]], overlap: float, size: float) -> Posterior:
    """Return the posterior of a method's effects, given the differences of two splits or more of each table.

    `overlap` are test rows for each training row, the most of what splits share; 0 takes them as independent. `size` is
    that of an effect that counts, in the unit of the differences.
    """
    return _fit_cached(tuple(differences), tuple(map(tuple, differences.values())), overlap, size)


@functools.lru_cache(maxsize=1024)  # several tables and pages use the same one
def _fit_cached(
    names: tuple[str, ...], values: tuple[tuple[float, ...], ...], overlap: float, size: float
) -> Posterior:
    seen = observe_splits(values)
    grid = solve_posterior(seen, overlap * SHARES)
    return Posterior(
        Mixture(grid.weight, grid.mu, np.sqrt(grid.variance)).estimate(size),
        {name: mixture.estimate(size) for name, mixture in zip(names, of_tables(seen, grid), strict=True)},
        of_new(grid).estimate(size),
    )


def left_out(differences: Mapping[str, Sequence[float]], overlap: float) -> dict[str, float]:
    """Return the probability of a lower mean than each table's own, by what the other tables let one expect of it.

    The table's noise is in the prediction. Of a model that fits, these are uniform: half of them lie between 0.25 and
    0.75. What all tables have pooled of the noise is used for each of them.
    """
    seen, places = observe_splits(list(differences.values())), {}
    for t, name in enumerate(differences):
        others, table = Observed(*(np.delete(a, t) for a in seen)), Observed(*(a[[t]] for a in seen))
        grid = solve_posterior(others, overlap * SHARES)
        relative = np.stack([table.relative(growth, to=others) for growth in grid.growth])
        one = grid._replace(relative=relative)
        variance, weight = mean_components(table, one)
        spread = variance + (grid.variance * relative[:, 0] ** 2)[:, None, None, None]
        centre = (grid.mu * relative[:, 0])[:, None, None, None]
        whole = Mixture(grid.weight[:, None, None, None] * weight, centre, np.sqrt(spread))
        places[name] = float(whole.below(seen.mean[t]))
    return places
