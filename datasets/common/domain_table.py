"""Tables whose splits are whole domains."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from cmixup.errors import InputError, check_choice
from datasets.common.base import SPLITS, Indices, RawTable, TabularDataset


class DomainTable(TabularDataset):
    """A table that is split by whole domains, with unknown features.

    Args:
        scaling, synthetic: see `TabularDataset`.
        row_order: "file" keeps the order of the file in every split; "released" is the order of the authors' loaders,
            see `released_order`. It matters to runs that do not shuffle every epoch (`train.shuffle=false`).
    """

    domains: ClassVar[bool] = True
    worst: ClassVar[tuple[str, ...]] = ("rmse",)
    may_miss: ClassVar[bool] = True

    def __init__(self, scaling: str = "train", row_order: str = "file", synthetic: bool = False):
        super().__init__(scaling, synthetic)
        self.row_order = check_choice("row_order", row_order, ("file", "released"))

    def split(self, table: RawTable, seed: int) -> Indices:
        """Keep domains whole; the run's seed has a say in the order of the rows alone."""
        rows = split_by_domain(table.domain)
        return rows if self.row_order == "file" else released_order(rows, table.domain, seed)


def split_by_domain(domain: np.ndarray) -> Indices:
    """Split whole domains, by ascending id, about 70 / 10 / 20 by rows (released code of Crime and SkillCraft).

    With c the cumulative rows of the sorted domains, validation starts at the first domain with c >= int(0.7 N), and
    test at the first with c >= c[start of validation] + int(0.1 N).

    Raises:
        InputError: too few domains for three parts.
    """
    ids, counts = np.unique(domain, return_counts=True)
    rows = np.cumsum(counts)
    first = int(np.argmax(rows >= int(0.7 * len(domain))))
    reached = rows >= rows[first] + int(0.1 * len(domain))
    second = int(np.argmax(reached))
    if first == 0 or not reached.any() or second == first:
        raise InputError(f"domain has {len(ids)} domains, too few for train, val and test")
    parts = (ids[:first], ids[first:second], ids[second:])
    return {name: np.flatnonzero(np.isin(domain, part)) for name, part in zip(SPLITS, parts, strict=True)}


def released_order(rows: Indices, domain: np.ndarray, seed: int) -> Indices:
    """Return the rows of every split in the order of the authors' loaders.

    They group the rows of a split by ascending domain, and permute them once: the run's seed goes to NumPy's legacy
    generator, whose first draws are the permutations of train, val and test (src/data/communities_and_crime.py,
    src/data/skillcraft.py of C-Mixup).
    """
    legacy = np.random.RandomState(seed)
    grouped = {part: rows[part][np.argsort(domain[rows[part]], kind="stable")] for part in SPLITS}
    return {part: own[legacy.permutation(len(own))] for part, own in grouped.items()}
