"""The labelling of a grid that minimises a convex energy, by one minimum cut (Ishikawa 2003, IEEE PAMI 25(10)).

The grids of a whole batch are one flow problem: they touch at source and sink alone, so each is solved by itself.
"""

from functools import lru_cache

import numpy as np

from cmixup.errors import InputError

CAPACITY = 2**28  # of all edges between a grid and the source or the sink, together; flows are int32
FORBIDDEN = 2**29  # more than any flow through a grid


def min_cut(unary: np.ndarray, down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the labels `(N, h, w)` int64 in 0 .. m-1 of N grids that have the least energy; of several the lowest.

    The energy of a grid is `sum_b unary[b, l_b] + sum_bb' weight_bb' (l_b - l_b')^2` over its blocks and pairs of
    neighbours. This is its global minimum for every m, up to costs rounded to about 2^-28 of their sum.

    A block has m - 1 nodes; node k (1 to m - 1) is on the source's side where the block's label is k or more. The
    square of a difference is a sum of cuts: `(l - l')^2 = sum_k [k lies between them] + 2 sum_{k > k'} ([l >= k and
    l' < k'] + [l' >= k and l < k'])`.

    Args:
        unary: `(N, h, w, m)` cost of each label; m is 2 or more.
        down, right: `(N, h - 1, w)` and `(N, h, w - 1)` weights, 0 or more, of a block and the one below it, or to its
            right.
    """
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow
    except ImportError:
        raise InputError("graph cuts need SciPy, which is not installed: pip install scipy") from None
    if not all(np.isfinite(costs).all() for costs in (unary, down, right)):
        raise InputError("costs of a graph cut must be finite numbers")
    n, h, w, m = unary.shape
    rises = np.diff(unary.astype(np.float64), axis=-1)  # what a node costs on the source's side
    total = np.abs(rises).sum(axis=(1, 2, 3))
    scale = (CAPACITY / np.where(total > 0, total, 1)).reshape(n, 1, 1, 1)
    rises = np.rint(rises * scale).ravel()
    # A weight above all of `CAPACITY` is never cut, whatever it is.
    weights = [np.minimum(np.rint(pairs[..., None] * scale), CAPACITY) for pairs in (down, right)]
    within = [np.repeat(part, m - 1) for part in weights]
    between = [np.repeat(2 * part, (m - 1) * (m - 2) // 2) for part in weights]
    one_way = [np.maximum(-rises, 0), np.maximum(rises, 0), np.full(n * h * w * (m - 2), FORBIDDEN), *between, *between]
    forth = np.concatenate([*one_way, *within])
    back = np.concatenate([np.zeros(sum(map(len, one_way))), *within])
    indptr, indices, place = _edges(n, h, w, m)
    capacity = np.concatenate([forth, back]).astype(np.int32)[place]
    size = len(indptr) - 1
    graph = csr_array((capacity, indices, indptr), shape=(size, size))
    residual = graph - maximum_flow(graph, size - 2, size - 1).flow
    residual.eliminate_zeros()
    above = np.zeros(size, dtype=bool)
    above[breadth_first_order(residual, size - 2, return_predecessors=False)] = True
    return above[:-2].reshape(n, h, w, m - 1).sum(axis=-1)


@lru_cache(maxsize=16)
def _edges(n: int, h: int, w: int, m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the graph's rows as CSR, `(indptr, indices)`, and which of the capacities each of its edges has.

    Capacities are those of all edges in the order of `min_cut`, and then of their reverses. Source and sink are last.
    """
    node = np.arange(n * h * w * (m - 1), dtype=np.int32).reshape(n, h, w, m - 1)
    source, sink = np.full(node.size, node.size), np.full(node.size, node.size + 1)
    pairs = [(node[:, :-1], node[:, 1:]), (node[:, :, :-1], node[:, :, 1:])]
    low, high = np.triu_indices(m - 1, 1)
    tails = [source, node, node[..., 1:], *(a[..., high] for a, _ in pairs), *(b[..., high] for _, b in pairs)]
    heads = [node, sink, node[..., :-1], *(b[..., low] for _, b in pairs), *(a[..., low] for a, _ in pairs)]
    tail = np.concatenate([np.ravel(part) for part in (*tails, *(a for a, _ in pairs))])
    head = np.concatenate([np.ravel(part) for part in (*heads, *(b for _, b in pairs))])
    both, other = np.concatenate([tail, head]), np.concatenate([head, tail])
    place = np.lexsort((other, both))
    indptr = np.concatenate([[0], np.cumsum(np.bincount(both, minlength=node.size + 2))])
    return indptr.astype(np.int32), other[place].astype(np.int32), place
