"""The torch forms: on CPU tensors by force, and on a CUDA device where there is one."""

import numpy as np
import pytest
import torch

from cmixup import BatchPartnerSampler, PartnerSampler
from cmixup.sampling import torch_forms
from tests.helpers import refuses
from tests.sampling.goodness import exact_row, p_value

ALGORITHMS = ("cells", "uniform", "kd", "rows")


@pytest.mark.parametrize("method", ALGORITHMS)
def test_same_state_same_draws_and_kinds(method):
    labels = torch.as_tensor(np.random.default_rng(0).normal(size=200))
    built = PartnerSampler(labels, 0.4, method=method, torch_form=True)
    first = built.epoch(torch.Generator().manual_seed(1))
    assert first.dtype == torch.int64
    assert torch.equal(first, built.epoch(torch.Generator().manual_seed(1)))
    assert torch.equal(built.epoch(np.random.default_rng(1)), built.epoch(np.random.default_rng(1)))
    assert not torch.equal(first, built.epoch(torch.Generator().manual_seed(2)))
    assert built.draw(np.array([], dtype=int), np.random.default_rng(0)).shape == (0,)
    assert built.draw_labels(np.array([0.5, 900.0]), np.random.default_rng(0)).dtype == torch.int64
    assert "method='" + method in repr(built)


def test_blocks_merge_to_the_dense_row(monkeypatch):
    monkeypatch.setattr(torch_forms, "COORDINATES_PER_BLOCK", 3 * torch_forms.ANCHORS_PER_BLOCK)
    labels = np.random.default_rng(0).normal(size=40)
    built = PartnerSampler(torch.as_tensor(labels), 0.7, method="rows", torch_form=True)
    drawn = built.draw(np.full(4096, 11), np.random.default_rng(2))
    assert p_value(drawn, exact_row(labels, 0.7, 11)) > 1e-3


@pytest.mark.filterwarnings("ignore:bandwidth 0.5 leaves every row its own partner")
@pytest.mark.parametrize(
    ("shape", "bandwidth", "budget", "method"),
    [
        ((500,), 0.1, 1 << 30, "cells"),
        ((500,), 0.1, 0, "rows"),
        ((500, 2), 3.0, 1 << 30, "uniform"),
        ((4000, 2), 0.05, 1 << 30, "kd"),
        ((300, 20), 0.5, 1 << 30, "rows"),
    ],
)
def test_auto_crosses_every_branch(shape, bandwidth, budget, method):
    labels = torch.as_tensor(np.random.default_rng(0).normal(size=shape))
    built = PartnerSampler(labels, bandwidth, memory_budget=budget, torch_form=True)
    assert built.method == method
    assert built.epoch(np.random.default_rng(0)).shape == (shape[0],)


test_what_torch_cannot_do_is_refused = refuses(
    [({"method": "cdf"}, r"method .*'cdf'"), ({"method": "cells", "memory_budget": 0}, r"cells .*memory_budget=0")],
    lambda arguments: PartnerSampler(torch.arange(50.0), 0.1, torch_form=True, **arguments),
)


@pytest.mark.gpu
@pytest.mark.parametrize("method", ALGORITHMS)
@pytest.mark.parametrize("kernel", ["gaussian", "tophat", "laplace"])
def test_cuda_labels_draw_on_their_device_from_the_exact_row(method, kernel):
    labels = np.random.default_rng(0).normal(size=90)
    built = PartnerSampler(torch.as_tensor(labels, device="cuda"), 0.4, method=method, kernel=kernel)
    for rng in (torch.Generator("cuda").manual_seed(1), torch.Generator().manual_seed(1), np.random.default_rng(1)):
        drawn = built.draw(torch.full((20_000,), 7, device="cuda"), rng)
        assert drawn.device.type == "cuda"
        assert drawn.dtype == torch.int64
        assert p_value(drawn.cpu(), exact_row(labels, 0.4, 7, kernel)) > 1e-4
    assert built.draw_labels(torch.tensor([0.1], device="cuda"), np.random.default_rng(1)).device.type == "cuda"


@pytest.mark.gpu
def test_cuda_batches_draw_on_their_device():
    labels = torch.arange(8.0, device="cuda")
    drawn = BatchPartnerSampler(0.5).draw(labels, labels, torch.Generator("cuda").manual_seed(0))
    assert drawn.device.type == "cuda"
