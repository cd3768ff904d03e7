"""C-Mixup (Yao et al. 2022, arXiv 2210.05775, Algorithm 1 and Eq. 6; huaxiuyao/C-Mixup src/algorithm.py).

Differences from the released code: the kernel is normalised in log space instead of exponentiating a density.
"""

from __future__ import annotations

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance


def cmixup(bandwidth: float | str | list, alpha: float, lam_per: str = "example", layer: str = "input") -> Mix:
    """Return C-Mixup: partners are drawn by label distance, P(j|i) ~ exp(-||y_i - y_j||^2 / (2 bandwidth^2)).

    Args:
        bandwidth: sigma in label units (0 pairs equal labels, infinity is plain mixup), "auto",
            ["fraction", f] for the sigma that leaves the fraction f of the data as effective partners, or ["std", c]
            for c standard deviations of the labels.
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        layer: "input", "hidden" for the backbone's own mix point, or the name of one.
    """
    return Mix(LabelDistance(bandwidth), Beta(alpha, lam_per), layer=layer)
