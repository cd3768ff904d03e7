"""Training methods, one file each. Most are compositions of pairing x mixing x layer x lambda."""

from cmixup.methods.base import Batch, Method
from cmixup.methods.cmixup import cmixup
from cmixup.methods.cmixup_batch import cmixup_batch
from cmixup.methods.erm import ERM
from cmixup.methods.k_mixup import k_mixup
from cmixup.methods.local_mixup import local_mixup
from cmixup.methods.manifold_mixup import manifold_mixup
from cmixup.methods.mix import Mix
from cmixup.methods.mixrl import mixrl
from cmixup.methods.mixup import mixup

__all__ = [
    "ERM",
    "Batch",
    "Method",
    "Mix",
    "cmixup",
    "cmixup_batch",
    "k_mixup",
    "local_mixup",
    "manifold_mixup",
    "mixrl",
    "mixup",
]
