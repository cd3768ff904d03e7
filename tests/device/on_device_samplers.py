"""Partners of labels on a device are on that device, and the same as those of the labels on the CPU."""

import numpy as np
import pytest
import torch

from cmixup import BatchPartnerSampler, PartnerSampler


@pytest.mark.parametrize("shape", [(300,), (300, 2)])
def test_partners_stay_on_the_device(shape: tuple[int, ...], device: torch.device) -> None:
    labels = torch.as_tensor(np.random.default_rng(0).normal(size=shape))
    drawn, wanted = (PartnerSampler(some, 0.3).epoch(np.random.default_rng(3)) for some in (labels.to(device), labels))
    assert (drawn.device, drawn.dtype, len(drawn)) == (device, torch.int64, 300)
    assert drawn.cpu().equal(wanted)
    first, sampler = labels[:8], BatchPartnerSampler(0.5, candidates="b1+b2")
    assert sampler.draw(first.to(device), labels.to(device), np.random.default_rng(0)).device == device
    rows = sampler.probabilities(first.to(device), labels.to(device))
    torch.testing.assert_close(rows.cpu(), sampler.probabilities(first, labels))
