"""k-MetaMix: MetaMix with k-Mixup's pairs (Greenewald et al. 2021, arXiv 2106.02933). No code was released for it.

The support is permuted, cut into blocks of k like the query, and each block is matched to its query block by the
assignment of least cost on the images; one lambda a task.
"""

from __future__ import annotations

from cmixup.methods.maml import InnerLoop
from cmixup.methods.metamix import MetaMix, metamix
from cmixup.pairing.support import SupportBlocks


def k_metamix(
    inner: InnerLoop,
    alpha: float,
    lam_per: str = "task",
    layer: str = "input",
    *,
    k: int = 5,
    metric: str = "sqeuclidean",
) -> MetaMix:
    """Return k-MetaMix: blocks of k query examples are mixed along their optimal assignment to a block of the support.

    Args:
        inner, alpha, layer: see `metamix`.
        lam_per: one lambda a "task" or a "query".
        k: examples a block, a divisor of their number (15: 1, 3, 5, 15); 1 is MetaMix.
        metric: "sqeuclidean" (k-Mixup's paper) or "euclidean" (its code), between the images.
    """
    return metamix(inner, alpha, lam_per, layer, pairing=SupportBlocks(k, metric))
