"""Training methods, one file each. Most are compositions of pairing x mixing x layer x lambda."""

from cmixup.methods.base import Batch, Method
from cmixup.methods.cmixup import cmixup
from cmixup.methods.cmixup_batch import cmixup_batch
from cmixup.methods.cmixup_meta import cmixup_meta
from cmixup.methods.coral import coral
from cmixup.methods.drnn import DRNN
from cmixup.methods.erm import ERM
from cmixup.methods.fish import Fish
from cmixup.methods.group_dro import GroupDRO
from cmixup.methods.ib_irm import ib_irm
from cmixup.methods.irm import irm
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
from cmixup.methods.penalised import Penalised
from cmixup.methods.vrex import vrex

__all__ = [
    "DRNN",
    "ERM",
    "MAML",
    "MRMAML",
    "Batch",
    "Fish",
    "GroupDRO",
    "MetaAug",
    "Method",
    "Mix",
    "Penalised",
    "cmixup",
    "cmixup_batch",
    "cmixup_meta",
    "coral",
    "ib_irm",
    "irm",
    "k_metamix",
    "k_mixup",
    "local_metamix",
    "local_mixup",
    "manifold_mixup",
    "metamix",
    "mixrl",
    "mixup",
    "vrex",
]
