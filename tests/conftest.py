"""Settings every test shares."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

pytest_plugins = ["tests.connections"]


@pytest.fixture
def float64() -> Iterator[None]:
    """Models and tensors made in the test are float64."""
    import torch

    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tests on two cores run one thread each. Not imported above: pytest-xdist's controller needs no PyTorch."""
    import torch

    torch.set_num_threads(1)


def pytest_configure() -> None:
    """Collect no garbage while everything is imported."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of garbage collection, which would walk through PyTorch again and again."""
    gc.enable()
    gc.freeze()
