"""The cut is the minimum: every labelling of small grids is tried."""

import builtins
import itertools
from typing import Any

import numpy as np
import pytest

from cmixup.errors import InputError
from cmixup.mixing.graph_cut import min_cut


def grids(size: tuple[int, int, int], m: int, strength: float, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    n, h, w = size
    shapes = ((n, h - 1, w), (n, h, w - 1))
    weights = [strength * rng.random(shape) * (rng.random(shape) > 0.1) for shape in shapes]
    return [rng.normal(size=(n, h, w, m)), *weights]


def energies(labels: np.ndarray, unary: np.ndarray, down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The energies of labellings `(K, h, w)` of one grid."""
    own = np.take_along_axis(unary[None], labels[..., None], axis=-1).sum(axis=(1, 2, 3))
    vertical = (down * np.diff(labels, axis=1) ** 2).sum(axis=(1, 2))
    return own + vertical + (right * np.diff(labels, axis=2) ** 2).sum(axis=(1, 2))


@pytest.mark.parametrize(("h", "w", "m"), [(3, 3, 2), (3, 3, 3), (2, 3, 4), (1, 4, 3), (1, 1, 5)])
@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0, 100.0])
def test_the_energy_is_the_least_of_all_labellings(h: int, w: int, m: int, strength: float) -> None:
    n = 12
    costs = grids((n, h, w), m, strength)
    every = np.array(list(itertools.product(range(m), repeat=h * w))).reshape(-1, h, w)
    labels = min_cut(*costs)
    assert labels.shape == (n, h, w)
    for k in range(n):
        own = [cost[k] for cost in costs]
        assert energies(labels[k : k + 1], *own)[0] == pytest.approx(energies(every, *own).min(), abs=1e-5)


def test_grids_of_a_batch_do_not_touch() -> None:
    unary, down, right = grids((7, 4, 4), 3, 0.4, 1)
    unary[3] *= 1e6  # of another scale than the others
    together = min_cut(unary, down, right)
    for k in range(7):
        assert (min_cut(*(cost[k : k + 1] for cost in (unary, down, right)))[0] == together[k]).all()


def test_of_equal_labellings_it_is_the_lowest() -> None:
    assert (min_cut(np.zeros((2, 3, 3, 3)), np.ones((2, 2, 3)), np.ones((2, 3, 2))) == 0).all()


def test_costs_that_are_not_finite_are_refused() -> None:
    unary, down, right = grids((1, 2, 2), 2, 1.0)
    unary[0, 0, 0, 0] = np.nan
    with pytest.raises(InputError, match="costs of a graph cut must be finite numbers"):
        min_cut(unary, down, right)


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any, **named: Any) -> Any:
        if name.startswith("scipy"):
            raise ImportError(name)
        return real(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match="graph cuts need SciPy, which is not installed: pip install scipy"):
        min_cut(*grids((1, 2, 2), 2, 1.0))
