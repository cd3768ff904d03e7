"""The device that on_device.py runs on: the pretended one, or CUDA if CMIXUP_TEST_DEVICE says so."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from cmixup.training.batch import Batch
from cmixup.training.loader import BatchLoader

Steps = list[tuple[set[str], set[str]]]
REQUESTED = os.environ.get("CMIXUP_TEST_DEVICE", "")


@pytest.fixture(scope="session")
def _registered() -> torch.device:
    if REQUESTED == "cuda":
        torch.backends.cudnn.allow_tf32 = False  # convolutions as precise as the CPU's
        return torch.device("cuda", 0)
    from tests.device.pretended import register

    return register()


@pytest.fixture
def device(_registered: torch.device, monkeypatch: pytest.MonkeyPatch) -> Iterator[torch.device]:
    """The device; while a test runs, tensors of the pretended one can be made."""
    if REQUESTED == "cuda":
        yield _registered
        return
    from tests.device.pretended import DeviceGenerator, PretendedDevice

    monkeypatch.setattr(torch, "Generator", DeviceGenerator)
    with PretendedDevice():
        yield _registered


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    """For every step on the pretended device, in which operations the host waited, or sent a tensor."""
    seen: Steps = []
    if not REQUESTED:
        from tests.device.pretended import moves, waits

        right = BatchLoader.batches

        def watched(*given: Any) -> Iterator[Batch]:
            for batch in right(*given):
                waits.clear()
                moves.clear()
                yield batch  # the step is taken before the next batch is asked for
                if given[0].device.type != "cpu":
                    seen.append((set(waits), set(moves)))

        monkeypatch.setattr(BatchLoader, "batches", watched)
    return seen
