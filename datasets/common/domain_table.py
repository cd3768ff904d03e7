"""Tables whose splits are whole domains."""

from typing import ClassVar

import numpy as np

from cmixup.errors import InputError, check_choice, check_count
from datasets.common.base import SPLITS, Indices, RawTable, TabularDataset


class DomainTable(TabularDataset):
    """A table that is split by whole domains, with unknown features.

    Args:
        scaling, synthetic: see `TabularDataset`.
        row_order: "file" keeps the order of the file in every split; "released" is the order of the authors' loaders,
            see `released_order`. It matters to runs that do not shuffle every epoch (`train.shuffle=false`).
        folds: 0, or into how many groups the training domains are cut to validate on them in turn, see
            `leave_domains_out`: the run's seed picks one. Options are chosen so, tables are not made so.
    """

    domains: ClassVar[bool] = True
    worst: ClassVar[tuple[str, ...]] = ("rmse",)
    may_miss: ClassVar[bool] = True

    def __init__(self, scaling: str = "train", row_order: str = "file", folds: int = 0, synthetic: bool = False):
        super().__init__(scaling, synthetic)
        self.row_order = check_choice("row_order", row_order, ("file", "released"))
        self.folds = check_count("folds", folds, what="0 (the table's own validation) or a number of groups")

    def notes(self) -> tuple[str, ...]:
        folds = f"validation: the training domains, in {self.folds} groups; the seed picks one"
        return (*super().notes(), *([folds] if self.folds else []))

    def split(self, table: RawTable, seed: int) -> Indices:
        """Keep domains whole; the seed has a say in the order of the rows, and in which of the folds validates."""
        rows = split_by_domain(table.domain)
        if self.folds:
            rows = leave_domains_out(rows, table.domain, self.folds, seed)
        return rows if self.row_order == "file" else released_order(rows, table.domain, seed)


def number_or_unknown(text: str) -> float:
    """Return the number in a cell, NaN where the file has a question mark."""
    return np.nan if text == "?" else float(text)


def split_by_domain(domain: np.ndarray) -> Indices:
    """Split whole domains, by ascending id, about 70 / 10 / 20 by rows (released code of Crime and SkillCraft).

    With c the cumulative rows of the sorted domains, validation starts at the first domain with c >= int(0.7 N), and
    test at the first with c >= c[start of validation] + int(0.1 N).
    """
    ids, counts = np.unique(domain, return_counts=True)
    rows = np.cumsum(counts)
    first = int(np.argmax(rows >= int(0.7 * len(domain))))
    past_val = rows >= rows[first] + int(0.1 * len(domain))
    second = int(np.argmax(past_val))
    if first == 0 or not past_val.any() or second == first:
        raise InputError(f"domain has {len(ids)} domains, too few for train, val and test")
    parts = (ids[:first], ids[first:second], ids[second:])
    return {name: np.flatnonzero(np.isin(domain, part)) for name, part in zip(SPLITS, parts, strict=True)}


def leave_domains_out(rows: Indices, domain: np.ndarray, folds: int, seed: int) -> Indices:
    """Validate on training domains that do not train; the split's own validation rows are left out.

    The training domains are cut, by ascending id, into `folds` groups of as many domains, and group number
    `seed % folds` validates. As many folds as there are domains leave one out at a time.
    """
    train = rows["train"]
    ids = np.unique(domain[train])
    if not 2 <= folds <= len(ids):
        raise InputError(f"folds must be 0 or from 2 to the {len(ids)} training domains, got {folds}")
    left_out = np.isin(domain[train], np.array_split(ids, folds)[seed % folds])
    return {**rows, "train": train[~left_out], "val": train[left_out]}


def released_order(rows: Indices, domain: np.ndarray, seed: int) -> Indices:
    """Return the rows of every split in the order of the authors' loaders.

    They group the rows of a split by ascending domain, and permute them once: the run's seed goes to NumPy's legacy
    generator, whose first draws are the permutations of train, val and test (src/data/communities_and_crime.py,
    src/data/skillcraft.py of C-Mixup).
    """
    legacy = np.random.RandomState(seed)
    grouped = {part: rows[part][np.argsort(domain[rows[part]], kind="stable")] for part in SPLITS}
    return {part: group[legacy.permutation(len(group))] for part, group in grouped.items()}
