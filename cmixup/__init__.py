"""C-Mixup and mixing for regression."""

from cmixup.pairing import BatchPartnerSampler, PartnerSampler

__all__ = ["BatchPartnerSampler", "PartnerSampler"]
