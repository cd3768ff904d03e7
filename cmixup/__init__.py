"""C-Mixup (Yao et al., NeurIPS 2022) and mixing for regression.

`CMixup` mixes a batch in one call, `PairDataset` takes partners from the whole training set, `mixing_at` mixes a hidden
layer. `PartnerSampler` draws whom to mix with, `mix` mixes; `diagnose` reports the effect of a bandwidth; `load_run`
predicts with a finished run. `methods`, `training` and `data` train the runs of this repository.
"""

from cmixup.adapters.batch import CMixup
from cmixup.adapters.hidden import mixing_at
from cmixup.adapters.pairs import PairBatchSampler, PairDataset
from cmixup.errors import InputError
from cmixup.mixing.lam import Beta
from cmixup.mixing.linear import mix
from cmixup.sampling.bandwidth import bandwidth_for_fraction, diagnose
from cmixup.sampling.sampler import BatchPartnerSampler, PartnerSampler
from cmixup.saved_run import load_run

__all__ = [
    "BatchPartnerSampler", "Beta", "CMixup", "InputError", "PairBatchSampler", "PairDataset",
    "PartnerSampler", "bandwidth_for_fraction", "diagnose", "load_run", "mix", "mixing_at",
]  # fmt: skip
__version__ = "0.1.0"
