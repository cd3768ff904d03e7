"""The divergence between domains given the label: what it must not depend on, and an independent computation."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from scripts.analysis import invariance as divergence
from scripts.analysis.invariance import Invariance, learned_invariance

Rows = tuple[Tensor, Tensor, Tensor]


def setting(monkeypatch: pytest.MonkeyPatch, bins: int, components: int = 2, min_points: int = 5) -> None:
    for name, value in (("BINS", bins), ("COMPONENTS", components), ("MIN_POINTS", min_points)):
        monkeypatch.setattr(divergence, name, value)


def rows(n: int = 240, domains: int = 3, d: int = 6, shift: float = 0.0, seed: int = 0) -> Rows:
    """Features that carry the label and noise; those of the last domain are moved by `shift`."""
    rng = np.random.default_rng(seed)
    y = rng.normal(size=n)
    h = np.outer(y, rng.normal(size=d)) + rng.normal(size=(n, d)) @ np.diag(np.linspace(1, 2, d))
    domain = rng.integers(0, domains, n)
    h[domain == domains - 1] += shift
    return torch.from_numpy(h), torch.from_numpy(y), torch.from_numpy(domain)


def reference(data: Rows, bins: int, r: int, min_points: int) -> tuple[float, int]:
    """The definition, cell by cell, with scikit-learn's scaling, components and densities."""
    # Imported here, as every worker imports this file, and one runs it.
    from sklearn.decomposition import PCA
    from sklearn.neighbors import KernelDensity
    from sklearn.preprocessing import StandardScaler

    h, y, domain = (tensor.numpy() for tensor in data)
    z = PCA(r).fit_transform(StandardScaler().fit_transform(h))
    edges = np.quantile(y, np.arange(1, bins) / bins)
    bin_of = np.array([sum(value >= edge for edge in edges) for value in y])
    cells = {
        (c, e): z[(bin_of == c) & (domain == e)]
        for c in range(bins)
        for e in np.unique(domain)
        if ((bin_of == c) & (domain == e)).sum() >= min_points
    }
    points = sum(map(len, cells.values()))
    spread = np.sqrt(sum(((p - p.mean(axis=0)) ** 2).sum(axis=0) for p in cells.values()) / points)
    cells = {key: p / spread for key, p in cells.items()}
    width = (points / len(cells)) ** (-1 / (r + 4))

    def log_density(at: np.ndarray, of: np.ndarray) -> float:
        return max(KernelDensity(bandwidth=width).fit(of).score_samples(at[None])[0], math.log(1e-12))

    found = []
    for (c, e), p in cells.items():
        for (c2, e2), q in cells.items():
            if c == c2:
                ratios = [log_density(x, np.delete(p, k, axis=0)) - log_density(x, q) for k, x in enumerate(p)]
                found.append(0.0 if e == e2 else float(np.mean(ratios)))
    return float(np.mean(found)), len(found)


@pytest.mark.parametrize(("bins", "r", "min_points", "shift"), [(3, 2, 5, 0.5), (2, 1, 12, 0.0), (3, 3, 8, 3.0)])
def test_it_is_what_the_definition_gives(
    bins: int, r: int, min_points: int, shift: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    h, y, domain = rows(n=90, shift=shift)
    domain = domain * 7 - 3
    setting(monkeypatch, bins, r, min_points)
    found = learned_invariance(h, y, domain)
    value, pairs = reference((h, y, domain), bins, r, min_points)
    assert found.value == pytest.approx(value, rel=1e-9)
    assert found == Invariance(found.value, pairs, pairs / (bins * 9))


def test_names_of_domains_order_of_rows_and_affine_maps_of_features_do_not_matter() -> None:
    h, y, domain = rows(shift=1)
    found = learned_invariance(h, y, domain).value
    assert found > 0.1
    order = torch.from_numpy(np.random.default_rng(1).permutation(len(y)))
    scale = torch.tensor([1e-4, -2, 3, 50, -0.1, 1e3], dtype=torch.float64)
    constant = torch.full((len(h), 2), 0.1, dtype=h.dtype)
    for same in (
        (h, y, torch.tensor([17, -4, 5])[domain]),
        (h[order], y[order, None], domain[order]),
        (h * scale + torch.arange(6), y, domain),
        (torch.cat([h, constant], dim=1), y, domain),
    ):
        assert learned_invariance(*same).value == pytest.approx(found, rel=1e-6)


def test_it_grows_with_the_shift_of_a_domain_and_stays_finite() -> None:
    values = [learned_invariance(*rows(n=600, shift=s)).value for s in (0, 1, 2, 4, 8, 1e6)]
    assert values == sorted(values)
    assert abs(values[0]) < 0.05
    assert values[2] > 5 * abs(values[0])
    assert math.isfinite(values[-1])


def test_small_cells_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    h, y, domain = rows(n=200, domains=2)
    domain[:4] = 9  # four rows cannot fill a cell
    with_small, without = learned_invariance(h, y, domain), learned_invariance(h[4:], y[4:], domain[4:])
    assert with_small.pairs == without.pairs == 40
    assert with_small.valid_fraction == pytest.approx(40 / 90)
    setting(monkeypatch, 10, min_points=150)
    none = learned_invariance(h, y, domain)
    assert math.isnan(none.value)
    assert (none.pairs, none.valid_fraction) == (0, 0.0)


def test_of_a_collapsed_representation_only_what_is_left_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    h, y, domain = rows(shift=1)
    assert learned_invariance(torch.ones(len(y), 3), y, domain).value == pytest.approx(0, abs=1e-9)
    line = h[:, :1] * torch.tensor([1.0, -3.0, 0.5])
    assert math.isfinite(learned_invariance(line, y, domain).value)
    setting(monkeypatch, 10, 1)
    one = learned_invariance(h[:, :1], y, domain)
    assert learned_invariance(line, y, domain).value == pytest.approx(one.value, rel=1e-6)
