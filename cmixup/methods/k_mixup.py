"""k-Mixup (Greenewald et al. 2021, arXiv 2106.02933; AnmingGu/kmixup-cifar10 train.py).

Differences from the original: one assignment a block of k rows instead of one matrix of the batch padded with a large
constant (which breaks where true distances exceed it); squared Euclidean cost as in the paper (`metric: euclidean` is
the released code's); blocks are matched on inputs, at a hidden mix point too, where the released code can match on
hidden states; alpha is not rescaled with k; one lambda an example where the preset says so (the original draws one a
step: `lam_per: batch`); labels are regression targets, mixed as values.
"""

from __future__ import annotations

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.blocks import Blocks


def k_mixup(
    alpha: float,
    lam_per: str = "example",
    layer: str = "input",
    *,
    k: int = 4,
    metric: str = "sqeuclidean",
    second: str = "permutation",
) -> Mix:
    """Return k-Mixup: blocks of k rows are mixed along their optimal assignment to a block of a second batch.

    Args:
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        layer: "input", "hidden" for the backbone's own mix point, or the name of one. Matching is on inputs.
        k: rows a block, at most the batch size; 1 is mixup with a permutation of the batch.
        metric: "sqeuclidean" (paper) or "euclidean" (released code).
        second: the second batch is a "permutation" of the batch, or "independent" training rows.
    """
    return Mix(Blocks(k, metric, second), Beta(alpha, lam_per), layer=layer)
