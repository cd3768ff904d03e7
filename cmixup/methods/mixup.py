"""mixup (Zhang et al. 2018, arXiv 1710.09412; facebookresearch/mixup-cifar10).

Differences from the original: labels are regression targets, mixed as values (for the squared error this has the
same gradient as mixing the losses); partners come from the whole training set as in the released C-Mixup code
(`pairing: permutation` gives the original's permutation of the batch).
"""

from __future__ import annotations

from cmixup.errors import check_choice
from cmixup.methods.mix import Mix
from cmixup.mixing import Beta
from cmixup.pairing.uniform import Permutation, Uniform


def mixup(alpha: float, lam_per: str = "example", pairing: str = "uniform") -> Mix:
    """Mix inputs with partners drawn uniformly.

    Args:
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        pairing: "uniform" over the training set, or a "permutation" of the batch.
    """
    check_choice("pairing", pairing, ("uniform", "permutation"))
    return Mix(Uniform() if pairing == "uniform" else Permutation(), Beta(alpha, lam_per), layer="input")
