"""C-Mixup on tasks (Yao et al. 2022, arXiv 2210.05775, Algorithm 2): MetaMix whose pairs are drawn by label distance.

No code was released for it, and the paper gives no bandwidth. The distance is between the labels of query and support
of one task, not within either.
"""

from __future__ import annotations

from cmixup.methods.maml import InnerLoop
from cmixup.methods.metamix import MetaMix, metamix
from cmixup.pairing.support import SupportLabels


def cmixup_meta(
    bandwidth: float, inner: InnerLoop, alpha: float, lam_per: str = "query", layer: str = "input"
) -> MetaMix:
    """Return C-Mixup on tasks: query i meets support j of its task, P(j|i) ~ exp(-(y_i - y_j)^2 / (2 bandwidth^2)).

    Args:
        bandwidth: sigma in label units; infinity is MetaMix with uniform partners, 0 takes the nearest label.
        inner, alpha, lam_per, layer: see `metamix`.
    """
    return metamix(inner, alpha, lam_per, layer, pairing=SupportLabels(bandwidth))
