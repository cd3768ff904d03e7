"""Simulations of C-Mixup's Theorems 1, 2 and 3 (Yao et al., NeurIPS 2022, section 4), in NumPy.

The paper proves the theorems and simulates nothing: models are the theorems', all numbers in them are ours. All methods
of a seed share data, lambda and the uniform numbers by which partners are chosen, so they are compared in pairs.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cmixup.sampling.inputs import Floats, Ints
from scripts.analysis.estimators import (
    Sample,
    distance_spread,
    draw_partners,
    fit_direction,
    mixed_sample,
    nadaraya_watson,
    ridge_fit,
)

FEATURE = {"feature_1": 1.0, "feature_0.1": 0.1}  # the factor f of s_d by method
METHODS = ("erm", "mixup", *FEATURE, "cmixup")
CLUSTERS, NONZERO, ALPHA, COPIES = 5, 5, 2.0, 2
Z_STD, X_NOISE, Y_NOISE = 0.05, 0.25, 0.05  # of z in its cluster, of x around z, of y


class Finding(NamedTuple):
    """One number of a simulation: of a method, with estimated or true theta where that matters."""

    method: str
    theta: str
    metric: str
    value: float


def named_stream(seed: int, name: str) -> np.random.Generator:
    """Return the generator called `name` of a seed; a draw from one shifts no other."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(zlib.crc32(name.encode()),)))


def sparse_theta(p: int) -> Floats:
    """Return the direction (p,) of the index: five equal entries and zeros, length 1."""
    theta = np.zeros(p)
    theta[:NONZERO] = 1 / np.sqrt(min(NONZERO, p))
    return theta


class Index(NamedTuple):
    """Rows of the single-index model y = a exp(b theta^T z) + noise, x = z + noise, z from a mixture of Gaussians."""

    x: Floats  # (N, p)
    y: Floats  # (N,)
    cluster: Ints  # (N,) which Gaussian z comes from, 1 to 5: its mean is that number times theta


def index_rows(n: int, p: int, rng: np.random.Generator, scale: float = 1.0, rate: float = 0.5) -> Index:
    """Draw n rows of the model with link g(t) = scale exp(rate t)."""
    theta = sparse_theta(p)
    cluster = rng.integers(1, CLUSTERS + 1, n)
    z = cluster[:, None] * theta + rng.normal(0, Z_STD, (n, p))
    y = scale * np.exp(rate * (z @ theta)) + rng.normal(0, Y_NOISE, n)
    return Index(z + rng.normal(0, X_NOISE, (n, p)), y, cluster)


def _chosen_partners(
    method: str, rows: Sample, among: Sample, bandwidth: float, level: Floats, *, others: bool = False
) -> Ints:
    """Return the partners (C, N) that a method chooses for rows among other rows; see `draw_partners` for `others`."""
    (x, y), (other_x, other_y) = rows, among
    if method in FEATURE:
        width = np.sqrt(FEATURE[method] * distance_spread(x, other_x, others=others))
        return draw_partners(x, other_x, width, level, others=others)
    width = np.inf if method == "mixup" else bandwidth
    return draw_partners(y[:, None], other_y[:, None], width, level, others=others)


def _link_errors(
    method: str, rows: Sample, new: Sequence[tuple[Sample, Index]], theta: Floats, width: float
) -> list[Finding]:
    """Return cos(theta_hat, theta), and the error of links estimated from each of `new`, tested on the rows beside."""
    estimate = fit_direction(*rows)
    findings = [Finding(method, "", "cosine", float(estimate @ theta))]
    for name, used in (("estimated", estimate), ("true", theta)):
        guesses = [(nadaraya_watson(x @ used, y, test.x @ used, width), test.y) for (x, y), test in new]
        findings.append(Finding(method, name, "mse", float(np.mean([np.mean(np.square(g - y)) for g, y in guesses]))))
    return findings


@dataclass(frozen=True)
class Theorem1:
    """Regression on one data set: theta by least squares and g by Nadaraya-Watson, both from mixed rows."""

    n: int = 4000  # rows
    p: int = 50  # features
    bandwidth: float = 0.1  # of C-Mixup's kernel, in label units
    width: float = 0.15  # of the Nadaraya-Watson kernel
    test: int = 400  # rows on which the error is measured

    def run(self, seed: int, methods: Sequence[str] = METHODS) -> list[Finding]:
        """Return test errors of a seed, cos(theta_hat, theta) and the share of pairs of one cluster."""
        rows = index_rows(self.n, self.p, named_stream(seed, "rows"))
        test = index_rows(self.test, self.p, named_stream(seed, "test"))
        level = named_stream(seed, "partners").random((COPIES, self.n))
        lam = named_stream(seed, "lam").beta(ALPHA, ALPHA, (COPIES, self.n))
        findings = []
        for method in methods:
            sample: Sample = rows.x, rows.y
            if method != "erm":
                partner = _chosen_partners(method, sample, sample, self.bandwidth, level, others=True)
                sample = mixed_sample(sample, sample, partner, lam)
                findings.append(Finding(method, "", "same_cluster", np.mean(rows.cluster[partner] == rows.cluster)))
            findings += _link_errors(method, sample, [(sample, test)], sparse_theta(self.p), self.width)
        return findings


@dataclass(frozen=True)
class Theorem2:
    """Regression on tasks that share theta: their query rows are mixed with their support rows.

    theta comes from the mixed rows of all tasks; the link of a new task from its own mixed rows.
    """

    n: int = 20000  # rows of all training tasks together, 200 a task
    p: int = 40  # features
    bandwidth: float = 0.15  # of C-Mixup's kernel, in label units
    width: float = 0.2  # of the Nadaraya-Watson kernel
    test: int = 500  # rows of a new task on which the error is measured

    support = 100  # rows of a training task, and as many of its query
    new_support = 200
    new_tasks = 5

    def task(
        self, name: str, seed: int, size: int, methods: Sequence[str], test: int = 0
    ) -> tuple[dict[str, Sample], Index, dict[str, float]]:
        """Return the rows (x, y) of a task by method, test rows, and the share of pairs of one cluster."""
        rng = named_stream(seed, name)
        scale, rate = rng.uniform(0.5, 1.5), rng.uniform(0.3, 0.6)
        query, support, tested = (index_rows(k, self.p, rng, scale, rate) for k in (size, size, test))
        level, lam = rng.random((COPIES, size)), rng.beta(ALPHA, ALPHA, (COPIES, size))
        rows, same_cluster = {}, {}
        for method in methods:
            if method == "erm":
                rows[method] = np.concatenate([query.x, support.x]), np.concatenate([query.y, support.y])
                continue
            partner = _chosen_partners(method, query[:2], support[:2], self.bandwidth, level)
            rows[method] = mixed_sample(query[:2], support[:2], partner, lam)
            same_cluster[method] = float(np.mean(support.cluster[partner] == query.cluster))
        return rows, tested, same_cluster

    def run(self, seed: int, methods: Sequence[str] = METHODS) -> list[Finding]:
        """Return errors on new tasks of a seed, cos(theta_hat, theta) and the share of pairs of one cluster."""
        tasks = [self.task(f"task {m}", seed, self.support, methods) for m in range(self.n // (2 * self.support))]
        new = [self.task(f"new task {m}", seed, self.new_support, methods, self.test) for m in range(self.new_tasks)]
        findings = []
        for method in methods:
            if method != "erm":
                findings.append(Finding(method, "", "same_cluster", float(np.mean([s[method] for *_, s in tasks]))))
            x, y = (np.concatenate([rows[method][k] for rows, *_ in tasks]) for k in (0, 1))
            links = [(rows[method], tested) for rows, tested, _ in new]
            findings += _link_errors(method, (x, y), links, sparse_theta(self.p), self.width)
        return findings


@dataclass(frozen=True)
class Theorem3:
    """Ridge regression under covariate shift: rows of one domain are mixed with rows of another, lambda 1/2."""

    n: int = 400  # rows of a domain
    # features, a quarter of them invariant (p1) and the others (a, p2) of opposite sign in the other domain
    p: int = 160
    # of C-Mixup's kernel, in units of the median distance of a label of the first domain from the nearest label of
    # another row of the second
    bandwidth: float = 1 / 3
    noise: float = 1e-7  # standard deviation of all noise
    penalty: float = 50.0  # of the ridge
    scale: float = 3.0  # by which a is larger in the test domain

    @property
    def invariant(self) -> int:
        """Return p1."""
        return self.p // 4

    def rows(self, seed: int) -> tuple[Sample, Sample, Floats]:
        """Draw the rows of both domains, and theta (p,), whose entries for a are zero.

        Features (n, p1 + p2) are z beside a in the first domain, and z + noise beside -a + noise in the second. Rows i
        of both belong together.
        """
        rng, p1 = named_stream(seed, "rows"), self.invariant
        theta = np.zeros(self.p)
        theta[:p1] = rng.normal(size=p1)
        theta /= np.linalg.norm(theta)
        x = rng.normal(size=(self.n, self.p))
        e = rng.normal(0, self.noise, (2, self.n, self.p)) if self.noise else np.zeros((2, self.n, self.p))
        sign = np.where(np.arange(self.p) < p1, 1.0, -1.0)
        other = sign * x + e[0]
        noise = self.noise * rng.normal(size=(2, self.n))
        return (x, x @ theta + noise[0]), (other, other @ theta + noise[1]), theta

    def run(self, seed: int, methods: Sequence[str] = (*METHODS, "erm_one_domain", "exact")) -> list[Finding]:
        """Return ||theta_hat - theta||^2, the error in the test domain and the share of true partners."""
        first, second, theta = self.rows(seed)
        p1 = self.invariant
        distance = np.abs(first[1][:, None] - second[1])
        paired = distance.diagonal().copy()
        np.fill_diagonal(distance, np.inf)
        bandwidth = self.bandwidth * float(np.median(distance.min(axis=1)))
        bound = float(distance.min()) / np.sqrt(np.log(self.n**2 / p1))
        level = named_stream(seed, "partners").random((1, self.n))
        half = np.full((1, self.n), 0.5)
        findings = [Finding("", "", "gap", float(distance.min() / paired.max()) if paired.max() else np.inf)]
        for method in methods:
            x, y = first
            if method == "erm":
                x, y = np.concatenate([first[0], second[0]]), np.concatenate([first[1], second[1]])
            elif method != "erm_one_domain":
                truth = np.arange(self.n)[None]  # the pairing of the model
                partner = truth if method == "exact" else _chosen_partners(method, first, second, bandwidth, level)
                x, y = mixed_sample(first, second, partner, half)
                findings.append(Finding(method, "", "pairing_rate", float(np.mean(partner == truth))))
            error = ridge_fit(x, y, self.penalty) - theta
            findings.append(Finding(method, "estimated", "theta_error", float(error @ error)))
            # Features of the test domain are independent with variance 1 (z) and scale^2 (a): no test rows are needed.
            shifted = error @ error + (self.scale**2 - 1) * (error[p1:] @ error[p1:]) + self.noise**2
            findings.append(Finding(method, "estimated", "mse", float(shifted)))
            if method == "cmixup":
                findings.append(Finding(method, "", "bandwidth_over_bound", bandwidth / bound))
        return findings
