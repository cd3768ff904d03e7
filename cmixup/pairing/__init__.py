"""Who is mixed with whom."""

from cmixup.pairing.batch import BatchPartnerSampler
from cmixup.pairing.sampler import PartnerSampler

__all__ = ["BatchPartnerSampler", "PartnerSampler"]
