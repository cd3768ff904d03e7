"""Partners of labels on a device are on that device, and the same as those of the labels on the CPU."""

from typing import Any

import numpy as np
import pytest
import torch

from cmixup import BatchPartnerSampler, PartnerSampler

ALGORITHMS = ("cells", "uniform", "kd", "rows")


@pytest.mark.parametrize("method", ALGORITHMS)
@pytest.mark.parametrize("shape", [(300,), (300, 2)])
def test_partners_stay_on_the_device(method: str, shape: tuple[int, ...], device: torch.device) -> None:
    if method == "cells" and len(shape) == 2:
        pytest.skip("cells are for one dimension")
    labels = torch.as_tensor(np.random.default_rng(0).normal(size=shape))
    here = PartnerSampler(labels.to(device), 0.3, method=method)
    drawn = here.epoch(np.random.default_rng(3))
    assert (drawn.device, drawn.dtype, len(drawn)) == (device, torch.int64, 300)
    there = PartnerSampler(labels, 0.3, method=method)
    assert drawn.cpu().equal(there.epoch(np.random.default_rng(3)))


@pytest.mark.parametrize("candidates", ["b2", "b1+b2"])
def test_partners_in_a_batch_stay_on_the_device(candidates: str, device: torch.device) -> None:
    first, second = torch.arange(8.0), torch.arange(3.0, 9.0)
    sampler: Any = BatchPartnerSampler(0.5, candidates=candidates)
    drawn = sampler.draw(first.to(device), second.to(device), np.random.default_rng(0))
    assert drawn.device == device
    rows = sampler.probabilities(first.to(device), second.to(device))
    torch.testing.assert_close(rows.cpu(), sampler.probabilities(first, second))
