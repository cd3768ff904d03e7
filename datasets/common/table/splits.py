"""How the rows of own data are split: at random, by whole groups, or as a column says."""

from collections.abc import Mapping

import numpy as np

from cmixup.errors import InputError, format_value
from datasets.common.base import SPLITS, Indices, permuted

TRAIN_SHARE, VAL_SHARE = 0.6, 0.2
#: Words for the parts.
PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val",
         "test": "test", "testing": "test"}  # fmt: skip


def split_rows(n: int, rng: np.random.Generator, source: str = "table") -> Indices:
    """Permute the rows and cut them 60 / 20 / 20, one row at least to each."""
    if n < len(SPLITS):
        raise InputError(f"{source}: rows with a target are {n}; train, val and test need one each")
    n_held = max(1, round(VAL_SHARE * n))
    return permuted(rng.permutation(n), (n - 2 * n_held, n_held, n_held))


def split_groups(domain: np.ndarray, rng: np.random.Generator, source: str = "table") -> Indices:
    """Permute the domains and cut them where their rows are nearest to 60 / 20 / 20, one domain at least to each.

    Rows of a part stay in the order of the table.
    """
    ids, counts = np.unique(domain, return_counts=True)
    if len(ids) < len(SPLITS):
        raise InputError(f"{source}: groups are {len(ids)}; train, val and test need one each")
    order = rng.permutation(len(ids))
    shares = np.cumsum(counts[order]) / len(domain)
    first = 1 + int(np.argmin(np.abs(shares[:-2] - TRAIN_SHARE)))
    second = first + 1 + int(np.argmin(np.abs(shares[first:-1] - TRAIN_SHARE - VAL_SHARE)))
    parts = np.split(ids[order], [first, second])
    return {name: np.flatnonzero(np.isin(domain, part)) for name, part in zip(SPLITS, parts, strict=True)}


def split_user_rows(
    n: int, rng: np.random.Generator, source: str, domain: np.ndarray | None = None,
    part_words: tuple[Mapping[int, object], str] | None = None,
) -> Indices:  # fmt: skip
    """Split n rows by the words of a column, by row of its file, if `part_words`; else by whole domains, or at random.

    Beside the words stands how errors call the column.
    """
    if part_words is not None:
        return split_named(part_words[0], rng, part_words[1])
    return split_rows(n, rng, source) if domain is None else split_groups(domain, rng, source)


def split_named(words: Mapping[int, object], rng: np.random.Generator, source: str = "table") -> Indices:
    """Return the rows of each part as their words say; without any for validation a fifth of training validates."""
    parts = [PARTS.get(str(word).strip().lower(), "") for word in words.values()]
    if "" in parts:
        row, word = [*words.items()][parts.index("")]
        raise InputError(f"{source}, row {row}: the part must be train, val or test, got {format_value(word)}")
    rows = {part: np.flatnonzero(np.array(parts) == part) for part in SPLITS}
    if not len(rows["val"]) and len(rows["train"]) > 1:
        order = rng.permutation(rows["train"])
        n_held = max(1, round(VAL_SHARE * len(order)))
        rows |= {"val": np.sort(order[:n_held]), "train": np.sort(order[n_held:])}
    for part, part_rows in rows.items():
        if not len(part_rows):
            raise InputError(f"{source}: no row is of {part}; train, val and test need one each")
    return rows
