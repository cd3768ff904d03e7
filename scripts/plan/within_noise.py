"""Whether a published cell and the same cell trained again with other kernels differ by more than the kernels' noise.

Kernels round otherwise, so no seed has its digits again, and a cell is judged by its seeds together: the differences
again - published, seed by seed, of the score that the cell selects by, on the test split.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from scripts.records.stats import Summary, holm_adjusted, summarise_values

LEVEL = 0.001  # of the t tests, over all cells that are compared
CLOSE = 0.02  # of the published mean
ERRORS = 2  # standard errors of the mean difference
FEWEST = 3  # seeds
ROUNDING = 1e-6  # of the published mean: scores are of float32 predictions


@dataclass(frozen=True)
class Paired:
    """The published score of each seed and the one found again."""

    pairs: Sequence[tuple[float, float]]

    @cached_property
    def published(self) -> float:
        """The published mean."""
        return summarise_values([published for published, _ in self.pairs]).mean

    @cached_property
    def difference(self) -> Summary:
        """The differences again - published."""
        return summarise_values([again - published for published, again in self.pairs])

    @property
    def decided(self) -> bool:
        """Whether there are enough seeds to judge by."""
        return len(self.pairs) >= FEWEST

    @property
    def error(self) -> float:
        """The standard error of the mean difference."""
        return self.difference.std / math.sqrt(self.difference.n)

    @property
    def rounded(self) -> bool:
        """Whether the mean difference is no larger than what rounding a prediction makes."""
        return abs(self.difference.mean) <= ROUNDING * abs(self.published)

    @property
    def p(self) -> float:
        """The p value of the two-sided t test that the mean difference is 0; 0 where a score is not finite."""
        from scipy.special import stdtr  # scipy.stats is slow to import

        if self.rounded:
            return 1.0
        if not self.error > 0:
            return 0.0
        return float(2 * stdtr(self.difference.n - 1, -abs(self.difference.mean) / self.error))

    @property
    def close(self) -> bool:
        """Whether the mean is near the published one, by its size or by the spread of the differences."""
        return abs(self.difference.mean) <= max(CLOSE * abs(self.published), ERRORS * self.error)

    def __str__(self) -> str:
        found, n = self.difference, len(self.pairs)
        seeds = f"{n} seed{'s' if n > 1 else ''}, mean {self.published:.4g} -> {self.published + found.mean:.4g}"
        if not self.decided:
            return f"{seeds}; not decided by fewer than {FEWEST} seeds"
        return f"{seeds}, {100 * found.mean / self.published:+.2f} ± {100 * self.error / self.published:.2f} %"


def beyond_noise(cells: Mapping[str, Paired]) -> dict[str, str]:
    """Return the cells that differ by more than noise, each with what is wrong; those of too few seeds are left out.

    A cell differs if its mean difference is significant by Holm's correction (1979) over the cells, or if its mean is
    neither within 2 % of the published one nor within two standard errors of it.
    """
    decided = {name: cell for name, cell in cells.items() if cell.decided}
    wrong: dict[str, str] = {}
    for (name, cell), corrected in zip(
        decided.items(), holm_adjusted([cell.p for cell in decided.values()]), strict=True
    ):
        if corrected <= LEVEL:
            wrong[name] = f"{cell}: p = {cell.p:.2g} of the paired t test"
        elif not cell.close:
            wrong[name] = f"{cell}: further than {100 * CLOSE:g} % and than {ERRORS} standard errors"
    return wrong
