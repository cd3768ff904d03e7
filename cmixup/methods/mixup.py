"""mixup (Zhang et al. 2018, arXiv 1710.09412; facebookresearch/mixup-cifar10).

Differences from the original: labels are regression targets, mixed as values (for the squared error this has the
same gradient as mixing the losses); partners come from the whole training set as in the released C-Mixup code
(the pairing `Permutation` gives the original's permutation of the batch).
"""

from __future__ import annotations

from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.base import Pairing
from cmixup.pairing.uniform import Uniform


def mixup(alpha: float, lam_per: str = "example", pairing: Pairing | None = None) -> Mix:
    """Return mixup: inputs are mixed with partners drawn uniformly.

    Args:
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        pairing: `Uniform()` over the training set by default; `Permutation()` of the batch is the original's.
    """
    return Mix(pairing or Uniform(), Beta(alpha, lam_per), layer="input")
