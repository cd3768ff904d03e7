"""C-Mixup on tasks (Yao et al. 2022, arXiv 2210.05775, Algorithm 2): MetaMix whose pairs are drawn by label distance.

No code was released for it, and the paper gives no bandwidth. The distance is between the labels of query and support
of one task, not within either.
"""

from __future__ import annotations

from cmixup.methods.metamix import MetaMix
from cmixup.pairing.support import SupportLabels


def cmixup_meta(
    bandwidth: float,
    inner_lr: float,
    alpha: float,
    lam_per: str = "query",
    layer: str = "input",
    *,
    inner_steps: int = 5,
    report_steps: int = 20,
    first_order: bool = False,
    adapt_encoder: bool = False,
) -> MetaMix:
    """Mix query i with support example j of its task, P(j|i) ~ exp(-(y_i - y_j)^2 / (2 bandwidth^2)).

    Args:
        bandwidth: sigma in label units; infinity is MetaMix with uniform partners, 0 takes the nearest label.
        inner_lr, alpha, lam_per, layer, inner_steps, report_steps, first_order, adapt_encoder: see `metamix`.
    """
    return MetaMix(
        SupportLabels(bandwidth), inner_lr, alpha, lam_per, layer, inner_steps=inner_steps, report_steps=report_steps,
        first_order=first_order, adapt_encoder=adapt_encoder,
    )  # fmt: skip
