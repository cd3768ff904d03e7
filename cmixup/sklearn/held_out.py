"""Which rows each member of `TabularRegressor` trains on, and which it holds out: by chance, by group, or as asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import check_cv
from sklearn.utils.validation import _num_samples

from cmixup.errors import InputError, format_value
from cmixup.sampling.inputs import Floats, Ints
from cmixup.sklearn.frames import as_array
from cmixup.sklearn.options import Settings
from cmixup.sklearn.rows import Rows
from cmixup.tables.levels import distinct, level_of, spelling

#: The sides of a split.
TRAIN, HELD = 1, 2


@dataclass(frozen=True)
class Part:
    """The rows of one member, both in rising order and apart."""

    train: Ints  # (n,) that it is trained on
    held: Ints  # (k,) that choose its epoch and score it


def parts_of(rows: Rows, patterns: Ints | None, settings: Settings, seed: int) -> list[Part]:
    """Return the part of each member; `patterns` are of `sides_by_splitter`."""
    all_rows, members = np.arange(len(rows)), settings.members
    if patterns is not None:
        splits = patterns[rows.apart].T[:members]
        parts = [Part(np.flatnonzero(side == TRAIN), np.flatnonzero(side == HELD)) for side in splits]
        if not all(len(part.train) and len(part.held) for part in parts):
            raise InputError("cv must leave rows of weight above 0 on both sides of each split, got none on one")
        return [parts[member % len(parts)] for member in range(members)]
    if not (settings.validated or settings.blend or settings.early_stopping) or len(rows) == 1:
        return [Part(all_rows, all_rows[:0])] * members
    if rows.apart is None:
        return parts_by_chance(len(rows), members, settings.share, seed)
    return parts_by_group(rows.apart, rows.weight, members, settings.share, seed)


def group_codes(groups: Any, n: int) -> Ints | None:
    """Return the number of each row's group (n,) int64, or None where no groups are given."""
    if groups is None:
        return None
    values = np.asarray(as_array("groups", groups), dtype=object)
    if values.shape != (n,):
        raise InputError(f"groups must have shape ({n},) as the rows of X, got {values.shape}")
    levels = [level for level in map(level_of, values) if level is not None]
    if len(levels) < n:
        row = [*map(level_of, values)].index(None)
        raise InputError(f"groups must have no gaps, got {values[row]!r} in row {row}")
    places = {spelling(name): code for code, name in enumerate(distinct(set(levels)))}
    if len(places) < 2:
        raise InputError(f"groups must have two values or more, got only {format_value(values[0])}")
    return np.array([places[spelling(level)] for level in levels], dtype=np.int64)


def parts_by_chance(n: int, members: int, share: float, seed: int) -> list[Part]:
    """Return a random share of the rows for each member to hold out, other ones for each until all have been."""
    order, all_rows = np.random.default_rng([seed, 0]).permutation(n), np.arange(n)
    count = min(max(1, round(share * n)), n - 1)
    held = [np.sort(np.roll(order, -member * count)[:count]) for member in range(members)]
    return [Part(np.setdiff1d(all_rows, rows), rows) for rows in held]


def parts_by_group(group: Ints, weight: Floats, members: int, share: float, seed: int) -> list[Part]:
    """Return whole groups (n,) for each member to hold out: about `share` of the weight, at least one group."""
    ids, code = np.unique(group, return_inverse=True)
    if len(ids) < 2:
        raise InputError("groups must have two values or more among the rows of weight above 0, got only one")
    sums = np.bincount(code, weights=weight)
    count = int(np.clip(round(1 / share), 2, len(ids)))
    fold, loads = np.empty(len(ids), dtype=np.int64), np.zeros(count)
    order = np.random.default_rng([seed, 0]).permutation(len(ids))
    for place in order[np.argsort(-sums[order], kind="stable")]:  # the heaviest first, each where there is least
        fold[place] = loads.argmin()
        loads[fold[place]] += sums[place]
    folds = fold[code]
    return [Part(*(np.flatnonzero(mask) for mask in (folds != m % count, folds == m % count))) for m in range(members)]


def sides_by_splitter(cv: Any, x: Any, y: Any, groups: Any, codes: Ints | None) -> tuple[Ints | None, Ints | None]:
    """Return which rows the splits of a scikit-learn splitter train on and hold out, for groups of `group_codes`.

    These are the different patterns of sides (P, splits), `TRAIN`, `HELD` or 0 for neither, and the pattern of each row
    (n,). Equal rows on the same sides of all splits may be taken as one; without a splitter those of one group may.
    """
    if cv is None:
        return None, codes
    n = _num_samples(x)
    columns = []
    try:
        for split in check_cv(cv).split(x, y, groups):
            train, held = (np.isin(np.arange(n), np.arange(n)[np.asarray(side)]) for side in split)
            columns.append(np.where(train, TRAIN, 0) + np.where(held, HELD, 0))
    except (TypeError, ValueError, IndexError) as error:
        raise InputError(f"cv must split the {n} rows, got {format_value(cv)}: {error}") from None
    if not columns:
        raise InputError(f"cv must give at least one split, got none from {format_value(cv)}")
    for side in columns:
        counts = [int((side == side_code).sum()) for side_code in (TRAIN, HELD, TRAIN + HELD)]
        if not (counts[0] and counts[1]) or counts[2]:
            problem = f"{counts[0]} and {counts[1]} rows, and {counts[2]} on both sides"
            raise InputError(f"cv must give rows to train on and others to hold out, got {problem}")
        shared = np.intersect1d(codes[side == TRAIN], codes[side == HELD]) if codes is not None else np.arange(0)
        if len(shared):
            name = np.asarray(groups, dtype=object)[codes == shared[0]][0]
            raise InputError(f"cv must hold whole groups out, got the group {format_value(name)} on both sides")
    patterns, code = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return patterns, code.reshape(-1)


def held_out_means(parts: Sequence[Part], predictions: Sequence[Floats]) -> tuple[Ints, Floats]:
    """Return the rows (k,) that members held out, and the means (k, D) of their predictions (k_m, D) for them."""
    index, place = np.unique(np.concatenate([part.held for part in parts]), return_inverse=True)
    sums = np.zeros((len(index), predictions[0].shape[1]))
    np.add.at(sums, place, np.concatenate(predictions))
    return index, sums / np.bincount(place, minlength=len(index))[:, None]
