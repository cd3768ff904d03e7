"""How much better one method is than the best of several others, with bootstrap draws over seeds."""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

DRAWS = 2000


def drawn_gains(
    scores: np.ndarray, chosen: np.ndarray | None, rng: np.random.Generator, draws: int = DRAWS
) -> tuple[int, np.ndarray, np.ndarray]:
    """Return the best prior's column, the first's gains in percent over priors (K,), and their deviations in draws.

    Scores are (n, 1 + K), those of the first method and of K priors, NaN where a prior lacks a seed. Where others than
    the scores choose the best prior, in each draw anew, the gain is over this one alone (K = 1).
    """
    places = np.vstack([np.arange(len(scores))[None], rng.integers(len(scores), size=(draws, len(scores)))])
    mean = _drawn_means(scores, places)  # (1 + draws, 1 + K)
    gain, n = 100 * (1 - mean[:, :1] / mean[:, 1:]), np.isfinite(scores[:, 1:]).sum(axis=0)
    factor = np.sqrt(n / (n - 1)) * stdtrit(n - 1, 0.975) / stdtrit(np.inf, 0.975)  # draws of few seeds are too alike
    gain[1:] = gain[0] + np.nan_to_num(gain[1:] - gain[0]) * factor
    best = gain.argmin(axis=1) if chosen is None else np.nanargmin(_drawn_means(chosen, places)[:, 1:], axis=1)
    if chosen is not None:
        gain = np.take_along_axis(gain, best[:, None], axis=1)
    return int(best[0]) + 1, gain[0], gain[1:] - gain[0]


def gain_over_best(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[float, float, float]:
    """Return the mean over datasets of the gain over the best prior, and its 95 % interval; `parts` are `drawn_gains`.

    It is the least over all choices of a prior for each dataset. The upper end is the least of their simultaneous upper
    ends, so that it is right also where priors are equal (intersection bounds, Chernozhukov, Lee and Rosen 2013,
    Econometrica 81(2)); the lower end is the least of their lower ends, since any of them may be the best prior.
    """
    gain, off = np.zeros(1), np.zeros((len(parts[0][1]), 1))
    for gains, deviations in parts:
        gain = (gain[:, None] + gains / len(parts)).reshape(-1)
        off = (off[:, :, None] + deviations[:, None] / len(parts)).reshape(len(off), -1)
    spread = np.maximum(off.std(axis=0), np.finfo(float).tiny)
    farthest = np.quantile((-off / spread).max(axis=1), 0.975)
    return gain.min(), (gain - np.quantile(off, 0.975, axis=0)).min(), (gain + farthest * spread).min()


def _drawn_means(scores: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return the mean of each method in draws of seeds, the first's and its difference from it over seeds of both."""
    differences = (scores - scores[:, :1])[places]  # (draws, seeds, methods)
    known = (~np.isnan(differences)).sum(axis=1)
    return scores[places, 0].mean(axis=1)[:, None] + np.nansum(differences, axis=1) / np.where(known, known, np.nan)
