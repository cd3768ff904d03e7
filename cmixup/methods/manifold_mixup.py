"""Manifold Mixup (Verma et al. 2019, arXiv 1806.05236; vikasverma1077/manifold_mixup).

Differences from the original, as in the released C-Mixup code: a fixed mix point per backbone instead of a random
one, two forward passes up to it, partners from the whole training set.
"""

from __future__ import annotations

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.uniform import Uniform


def manifold_mixup(alpha: float, lam_per: str = "example", layer: str = "hidden") -> Mix:
    """Return Manifold Mixup: hidden states are mixed with partners drawn uniformly.

    Args:
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        layer: "hidden" for the backbone's own mix point, or the name of one.
    """
    return Mix(Uniform(), Beta(alpha, lam_per), layer=layer)
