"""C-Mixup-batch (Yao et al. 2022, arXiv 2210.05775, Algorithm 3; huaxiuyao/C-Mixup, RCF-MNIST branch).

Differences from the released code: candidates are B2 alone, as in the paper, and B2 holds distinct training rows
outside B1, of any number. The released code (src/algorithm.py) draws B2 with replacement from all training rows, as
many as B1 has, and partners from both batches: `candidates: b1+b2`. P is normalised in log space.
"""

from __future__ import annotations

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.second_batch import SecondBatch


def cmixup_batch(
    bandwidth: float | str | list,
    alpha: float,
    lam_per: str = "example",
    layer: str = "input",
    *,
    candidates: str = "b2",
    factor: float = 1.0,
) -> Mix:
    """Return C-Mixup-batch: partners are drawn by label distance inside a second batch B2.

    Args:
        bandwidth: sigma in label units, as for `cmixup`; at 0 the nearest labels of B2 share the draw.
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        layer: "input", "hidden" for the backbone's own mix point, or the name of one.
        candidates: "b2" (paper) or "b1+b2" (released code).
        factor: rows of B2 as a multiple of the batch size, 1 or more; infinity is C-Mixup itself.
    """
    return Mix(SecondBatch(bandwidth, candidates, factor), Beta(alpha, lam_per), layer=layer)
