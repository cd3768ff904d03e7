"""Settings every test shares."""

import gc
import os
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
    """Collect no garbage while everything is imported, and forget the repository of a hook that runs the tests.

    No test loses power: nobody waits for the disk, which 5,000 times takes as long as a tenth of all tests.
    """
    gc.disable()
    os.fsync = lambda _: None
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        del os.environ[name]


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of garbage collection, which would walk through PyTorch again and again."""
    gc.enable()
    gc.freeze()
