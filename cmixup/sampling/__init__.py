"""This package draws a partner j for i from a kernel over arrays; it knows neither splits nor batches.

`PartnerSampler` chooses an exact algorithm by size and dimension, `BatchPartnerSampler` draws inside two batches,
`within` inside one, and `diagnose` reports the effect of a bandwidth on the pairs.
"""

from cmixup.sampling.bandwidth import BandwidthReport, bandwidth_for_fraction, diagnose
from cmixup.sampling.sampler import BatchPartnerSampler, PartnerSampler
from cmixup.sampling.space import LabelSpace

__all__ = [
    "BandwidthReport",
    "BatchPartnerSampler",
    "LabelSpace",
    "PartnerSampler",
    "bandwidth_for_fraction",
    "diagnose",
]
