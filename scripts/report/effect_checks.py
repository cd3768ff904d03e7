"""The hierarchical model's mean effect beside simpler summaries of the same tables, and its predictions beside tables.

The README says what all of the summaries say.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from scipy.stats import norm, quantile_test
from scipy.stats.mstats import trimmed_mean_ci

from scripts.report.result_table import markdown_table
from scripts.report.study_evidence import ENSEMBLE, METHOD, Setting
from scripts.stats.effects import BASE, OVERLAP, errors_of, percent_differences
from scripts.stats.hierarchical import ENDS, SHARES, TINY, Mixture, left_out, observe_splits, solve_posterior
from scripts.stats.intervals import LEVEL, Estimate, clustered_interval, interval_text

GROWTHS = dict.fromkeys(np.arange(0, 1.51, 0.25).tolist(), 1.0)  # powers of the noise, as likely as each other
TRIMMED = 0.1  # of the tables on each side
HEAD = ("summary of the effects over datasets, %", "C-Mixup", "ERM x 5")


def differences_of(setting: Setting, method: str) -> dict[str, list[float]]:
    """Return a method's differences from ERM over the splits of each table, in percent."""
    differences = percent_differences(errors_of(setting.runs, weights=setting.rules.weights), method)
    return {table: list(by_split.values()) for table, by_split in differences.items()}


def mean_summaries(setting: Setting, method: str) -> dict[str, Estimate]:
    """Return the mean effect of a method by each summary, with its 95 % interval, by the summary's name."""
    effect, differences = setting.effect(method), differences_of(setting, method)
    assert effect
    assert effect.unweighted
    means = np.array(list(effect.means.values()))
    errors = errors_of(setting.runs, weights=setting.rules.weights)
    logs = {t: float(np.mean([100 * math.log(errors[t][method][s] / errors[t][BASE][s]) for s in errors[t][BASE]]))
            for t in differences}  # fmt: skip
    log_ratio, middle = clustered_interval(list(logs.values()), list(logs)), quantile_test(means).confidence_interval()
    assert log_ratio
    seen = observe_splits(list(differences.values()))
    precision = seen.n / np.maximum(seen.noise, TINY) ** 2
    centre, half = float(precision @ means / precision.sum()), norm.ppf(0.5 + LEVEL / 2) * precision.sum() ** -0.5
    ends = trimmed_mean_ci(means, (TRIMMED, TRIMMED), alpha=1 - LEVEL)
    return {
        "hierarchical model": effect.posterior.overall,
        "the same, growth with noise as a curve": grown_mean(differences),
        "unweighted mean": effect.unweighted,
        "unweighted mean of log ratios": log_ratio,
        "median": Estimate(float(np.median(means)), float(middle.low), float(middle.high)),
        f"mean without {TRIMMED:.0%} on each side": Estimate(float(np.mean(ends)), *map(float, ends)),
        "weighted by inverse variance": Estimate(centre, centre - half, centre + half),
    }


def grown_mean(differences: Mapping[str, list[float]]) -> Estimate:
    """Return the mean effect where effects grow with any power of a table's noise from 0 to 1.5."""
    grid = solve_posterior(observe_splits(list(differences.values())), OVERLAP * SHARES, GROWTHS)
    mixture = Mixture(grid.weight, grid.mu, np.sqrt(grid.variance))
    return Estimate(float(grid.weight @ grid.mu), *map(mixture.quantile, ENDS))


def summaries_table(setting: Setting) -> str:
    """Return the Markdown table of all summaries, of C-Mixup and of the 5-network ensemble."""
    ours, ensemble = (mean_summaries(setting, method) for method in (METHOD, ENSEMBLE))
    return markdown_table(
        HEAD, [[name, interval_text(ours[name], 2), interval_text(ensemble[name], 2)] for name in ours]
    )


def recalibrated(setting: Setting, method: str) -> tuple[float, float]:
    """Return the probabilities that a new table improves and worsens, re-calibrated on tables that were left out.

    They are the shares of tables, of n with half a table added at either end, that lie as far out as the model's
    probability says when it predicts each from the others.
    """
    effect, places = setting.effect(method), left_out(differences_of(setting, method), OVERLAP).values()
    assert effect
    new, n = effect.posterior.new, len(places)
    gain, loss = sum(p <= new.gain for p in places), sum(p > 1 - new.loss for p in places)
    return (gain + 0.5) / (n + 1), (loss + 0.5) / (n + 1)
