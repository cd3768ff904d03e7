"""C-Mixup (Yao et al., NeurIPS 2022) and mixing for regression.

`PartnerSampler` draws whom to mix with, `mix` mixes; `methods`, `trainer` and `data` train with them.
"""

from cmixup.errors import InputError
from cmixup.mixing import Beta, mix
from cmixup.sampling.batch import BatchPartnerSampler
from cmixup.sampling.sampler import PartnerSampler

__all__ = ["BatchPartnerSampler", "Beta", "InputError", "PartnerSampler", "mix"]
__version__ = "0.1.0"
