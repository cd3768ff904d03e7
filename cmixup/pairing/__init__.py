"""Who is mixed with whom."""

from cmixup.pairing.bandwidth import BandwidthReport, bandwidth_for_fraction, diagnose
from cmixup.pairing.batch import BatchPartnerSampler
from cmixup.pairing.sampler import PartnerSampler

__all__ = [
    "BandwidthReport",
    "BatchPartnerSampler",
    "PartnerSampler",
    "bandwidth_for_fraction",
    "diagnose",
]
