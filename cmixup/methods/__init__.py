"""Training methods, one file each. Most are compositions of pairing x mixing x layer x lambda."""

from cmixup.methods.base import Batch, Method
from cmixup.methods.cmixup import cmixup
from cmixup.methods.erm import ERM
from cmixup.methods.manifold_mixup import manifold_mixup
from cmixup.methods.mix import Mix
from cmixup.methods.mixup import mixup

__all__ = ["ERM", "Batch", "Method", "Mix", "cmixup", "manifold_mixup", "mixup"]
