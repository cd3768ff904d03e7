"""Training methods, one file each. Most are compositions of pairing x mixing x layer x lambda."""

from cmixup.methods.base import Batch, Method
from cmixup.methods.cmixup import cmixup
from cmixup.methods.cmixup_batch import cmixup_batch
from cmixup.methods.cmixup_meta import cmixup_meta
from cmixup.methods.erm import ERM
from cmixup.methods.k_metamix import k_metamix
from cmixup.methods.k_mixup import k_mixup
from cmixup.methods.local_metamix import local_metamix
from cmixup.methods.local_mixup import local_mixup
from cmixup.methods.maml import MAML
from cmixup.methods.manifold_mixup import manifold_mixup
from cmixup.methods.meta_aug import MetaAug
from cmixup.methods.metamix import metamix
from cmixup.methods.mix import Mix
from cmixup.methods.mixrl import mixrl
from cmixup.methods.mixup import mixup
from cmixup.methods.mr_maml import MRMAML

__all__ = [
    "ERM",
    "MAML",
    "MRMAML",
    "Batch",
    "MetaAug",
    "Method",
    "Mix",
    "cmixup",
    "cmixup_batch",
    "cmixup_meta",
    "k_metamix",
    "k_mixup",
    "local_metamix",
    "local_mixup",
    "manifold_mixup",
    "metamix",
    "mixrl",
    "mixup",
]
