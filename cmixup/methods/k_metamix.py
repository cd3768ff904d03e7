"""k-MetaMix: MetaMix with k-Mixup's pairs (Greenewald et al. 2021, arXiv 2106.02933). No code was released for it.

The support is permuted, cut into blocks of k like the query, and each block is matched to its query block by the
assignment of least cost on the images; one lambda a task.
"""

from __future__ import annotations

from cmixup.methods.metamix import MetaMix
from cmixup.pairing.support import SupportBlocks


def k_metamix(
    inner_lr: float,
    alpha: float,
    lam_per: str = "task",
    layer: str = "input",
    *,
    k: int = 5,
    metric: str = "sqeuclidean",
    inner_steps: int = 5,
    report_steps: int = 20,
    first_order: bool = False,
    adapt_encoder: bool = False,
) -> MetaMix:
    """Mix blocks of k query examples along their optimal assignment to a block of the support.

    Args:
        inner_lr, alpha, layer, inner_steps, report_steps, first_order, adapt_encoder: see `metamix`.
        lam_per: one lambda a "task" or a "query".
        k: examples a block, a divisor of their number (15: 1, 3, 5, 15); 1 is MetaMix.
        metric: "sqeuclidean" (k-Mixup's paper) or "euclidean" (its code), between the images.
    """
    return MetaMix(
        SupportBlocks(k, metric), inner_lr, alpha, lam_per, layer, inner_steps=inner_steps, report_steps=report_steps,
        first_order=first_order, adapt_encoder=adapt_encoder,
    )  # fmt: skip
