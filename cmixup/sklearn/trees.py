"""Gradient-boosted trees beside the networks of `TabularRegressor`: each on a member's rows, and kept as arrays.

scikit-learn's `HistGradientBoostingRegressor` trains them, with its defaults but without its own early stopping, which
would hold out other rows than the member. Its `TreePredictor` runs the trees that a saved estimator holds, so that
nothing has to be unpickled.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
from threadpoolctl import threadpool_limits

from cmixup.sampling.inputs import Floats, Ints
from cmixup.sklearn.columns import Levels, many_levels
from cmixup.sklearn.held_out import Part
from cmixup.sklearn.losses import Loss
from cmixup.sklearn.rows import Rows

#: A leaf has so many rows, so a column of fewer known values is never split; of many rows the trees look at a sample.
LEAF_ROWS, SAMPLED = 20, 10_000


class Trees(NamedTuple):
    """The trees of all members and outputs, in standard deviations of the labels; of d_y labels there are D outputs."""

    nodes: np.ndarray  # (n,) scikit-learn's records of nodes, tree after tree, each from its root
    sets: np.ndarray  # (s, 8) uint32, the sets of levels that go left as 256 bits, tree after tree
    sizes: Ints  # (T, 4) member, output, nodes and sets of each tree
    starts: Floats  # (M, D) to which the trees of a member and output are added
    codes: Floats  # (M, L) number of each level among those that a member is trained on, NaN for one that is not


def level_sets(levels: Sequence[Levels]) -> list[int]:
    """Return the columns of levels, which are split by sets."""
    return [place for place, column_levels in enumerate(levels) if column_levels is not None]


def tree_levels(levels: Sequence[Levels], effects: int) -> list[Levels]:
    """Return the levels of the columns that trees take: all but those of many levels, then so many effects."""
    many = many_levels(levels)
    return [names for place, names in enumerate(levels) if place not in many] + [None] * effects


def fit_trees(
    rows: Rows, levels: Sequence[Levels], parts: Sequence[Part], threads: int | None, effects: Floats, *,
    options: Sequence[Mapping[str, Any]],
) -> Trees:  # fmt: skip
    """Train the trees of every member on the rows that its network is trained on; members of equal rows share them.

    Rows have columns as they came, with the numbers of levels for categories, and standardised labels; NaN for gaps.
    `levels` are of the columns and of the effects (M, N, E) after them (`tree_levels`). `threads` are scikit-learn's;
    None leaves their number. `options` are further arguments for each output, those of a label one after another.
    """
    by_rows: dict[bytes, Trees] = {}
    by_member = []
    with nullcontext() if threads is None else threadpool_limits(threads, user_api="openmp"):
        for part, columns in zip(parts, effects, strict=True):
            if (key := part.train.tobytes()) not in by_rows:
                x = np.concatenate([rows.x, columns], axis=1)[part.train]
                by_rows[key] = _fit_member(Rows(x, rows.y[part.train], rows.weight[part.train]), levels, options)
            by_member.append(by_rows[key])
    all_trees = Trees(*(np.concatenate(field) for field in zip(*by_member, strict=True)))
    all_trees.sizes[:, 0] = np.repeat(np.arange(len(by_member)), [len(trees.sizes) for trees in by_member])
    return all_trees


def predict_trees(trees: Trees, x: Floats, levels: Sequence[Levels], members: Sequence[int], threads: int) -> Floats:
    """Return the predictions of trees for rows (n, d) or (members, n, d) of columns and effects: `(members, n, D)`."""
    sizes = trees.sizes
    first_node, first_set = (np.cumsum(sizes[:, column]) - sizes[:, column] for column in (2, 3))
    x = np.broadcast_to(x, (len(members), *x.shape[-2:]))
    predicted = np.repeat(trees.starts[list(members), None], x.shape[1], axis=1)
    known_sets = np.full((len(level_sets(levels)), 8), 2**32 - 1, dtype=np.uint32)  # a level that is not is NaN by now
    places = np.arange(len(levels), dtype=np.uint32)
    for out, rows, member in zip(predicted, x, members, strict=True):
        inputs = _encode_levels(rows, levels, trees.codes[member])
        for tree in np.flatnonzero(sizes[:, 0] == member):
            nodes = trees.nodes[first_node[tree] : first_node[tree] + sizes[tree, 2]]
            sets = trees.sets[first_set[tree] : first_set[tree] + sizes[tree, 3]]
            out[:, sizes[tree, 1]] += TreePredictor(nodes, sets, sets).predict(inputs, known_sets, places, threads)
    return predicted


def weigh_trees(
    nets: Sequence[Floats], trees: Sequence[Floats], labels: Sequence[Floats], weight: Floats, loss: Loss
) -> Floats:
    """Return the weight of trees beside networks, (D,) in [0, 1]: that of least loss on the rows that members held out.

    Stacking (Wolpert 1992; Breiman 1996) of two predictors whose weights sum to 1. Of the squared loss it is exact, of
    others the best hundredth. `nets` and `trees` are of each member the predictions (k_m, D) for the rows that it holds
    out, `labels` (k_m, d_y) theirs, NaN where one is missing; `weight` is of all these rows.
    """
    net_outputs, tree_outputs, y = (np.concatenate(values) for values in (nets, trees, labels))
    if loss.name != "squared":
        shares, target = np.linspace(0, 1, 101), torch.from_numpy(y)
        blends = (torch.from_numpy(net_outputs + share * (tree_outputs - net_outputs)) for share in shares)
        errors = (np.nan_to_num(loss.of_outputs(blend, target).numpy()).reshape(len(y), -1) for blend in blends)
        return shares[np.argmin([weight @ share_errors for share_errors in errors], axis=0)]
    gap, residual = (np.where(np.isnan(y), 0.0, values) for values in (tree_outputs - net_outputs, y - net_outputs))
    squares = weight @ gap**2
    return (weight @ (gap * residual) / np.maximum(squares, np.finfo(np.float64).tiny)).clip(0, 1)


def check_trees(trees: Trees, levels: Sequence[Levels], members: int, outputs: int) -> None:
    """Raise `ValueError` for trees that are not of these levels, members and outputs, or that a walk never ends in."""
    nodes, sizes, sets = trees.nodes, trees.sizes, level_sets(levels)
    dtypes = (PREDICTOR_RECORD_DTYPE, np.uint32, np.int64, np.float64, np.float64)
    in_sets = sum(len(levels[place] or ()) for place in sets)
    shapes = ((len(nodes),), (len(trees.sets), 8), (len(sizes), 4), (members, outputs), (members, in_sets))
    forms = [(array.dtype, array.shape) for array in trees]
    if forms != list(zip(dtypes, shapes, strict=True)):
        raise ValueError("its trees must have the shapes of its features, members and outputs")
    limits = [members, outputs, len(nodes) + 1, len(trees.sets) + 1]
    complete = (sizes[:, 2:].sum(axis=0) == [len(nodes), len(trees.sets)]).all()
    if not (complete and ((sizes >= [0, 0, 1, 0]) & (sizes < limits)).all()):
        raise ValueError("its trees must hold all nodes, and be of its members and outputs")
    place = np.arange(len(nodes)) - np.repeat(np.cumsum(sizes[:, 2]) - sizes[:, 2], sizes[:, 2])
    size, set_count = (np.repeat(sizes[:, column], sizes[:, 2]) for column in (2, 3))
    leads_on = [(nodes[side] > place) & (nodes[side] < size) for side in ("left", "right")]
    by_set, column = nodes["is_categorical"] != 0, nodes["feature_idx"]
    valid_column = (column >= 0) & (column < np.where(by_set, len(sets), len(levels)))
    valid_set = ~by_set | (nodes["bitset_idx"] < set_count)
    if not ((nodes["is_leaf"] != 0) | leads_on[0] & leads_on[1] & valid_column & valid_set).all():
        raise ValueError("its trees must lead from the root to leaves, by columns of the features")


def _encode_levels(x: Floats, levels: Sequence[Levels], codes: Floats) -> Floats:
    """Return columns (n, d) as the trees of a member take them: categories first, by its codes (L,), see `Trees`."""
    sets = level_sets(levels)
    counts = np.array([len(levels[column] or ()) for column in sets], dtype=np.int64)
    values = x[:, sets]
    place = np.where(values >= 0, values + np.cumsum(counts) - counts, -1)  # -1: missing or new
    return np.hstack([np.append(codes, np.nan)[place.astype(np.int64)], np.delete(x, sets, axis=1)])


def _fit_member(rows: Rows, levels: Sequence[Levels], options: Sequence[Mapping[str, Any]]) -> Trees:
    """Return the trees of one member, as member 0, trained on all rows given."""
    x, y, weight = rows.x, rows.y, rows.weight
    codes = []
    for place in level_sets(levels):
        column_codes = np.full(len(levels[place] or ()), np.nan)
        seen = np.unique(x[x[:, place] >= 0, place]).astype(np.int64)
        column_codes[seen] = np.arange(len(seen))
        codes.append(column_codes)
    all_codes = np.concatenate([np.empty(0), *codes])
    inputs, equal_weights = _encode_levels(x, levels, all_codes), bool((weight == weight[0]).all())
    nodes, sets = [np.empty(0, PREDICTOR_RECORD_DTYPE)], [np.empty((0, 8), np.uint32)]
    sizes: list[Ints] = [np.empty((0, 4), np.int64)]
    starts = np.zeros((1, len(options)))
    for output, output_options in enumerate(options):
        labels = y[:, output * y.shape[1] // len(options)]
        known: Ints = np.flatnonzero(~np.isnan(labels))
        if not len(known):
            continue
        model = HistGradientBoostingRegressor(
            categorical_features=list(range(len(codes))) or None, early_stopping=False, random_state=0, **output_options
        )
        share = None if equal_weights else weight[known] / weight[known].mean()
        columns = inputs[known]
        columns[:, (~np.isnan(columns)).sum(axis=0) < max(LEAF_ROWS, len(columns) // SAMPLED)] = 0.0  # none: not binned
        model.fit(columns, labels[known], sample_weight=share)
        starts[0, output] = float(np.ravel(model._baseline_prediction)[0])  # noqa: SLF001 - kept nowhere else
        for (tree,) in model._predictors:  # noqa: SLF001
            nodes.append(tree.nodes)
            sets.append(tree.raw_left_cat_bitsets.reshape(-1, 8))
            sizes.append(np.array([[0, output, len(nodes[-1]), len(sets[-1])]]))
    return Trees(np.concatenate(nodes), np.concatenate(sets), np.concatenate(sizes), starts, all_codes[None])
