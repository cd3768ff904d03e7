"""What every test shares: one thread, no connection to another machine, and raw files for tests marked `data` alone."""

import gc
import ipaddress
import os
import socket
import sys
from collections.abc import Iterator

import pytest

#: Connections and look-ups of other machines that code under test tried; it may have swallowed the error.
REFUSED: list[str] = []


def is_local(host: str | bytes | None) -> bool:
    """Whether a host, a name or an address, is this machine."""
    name = host.decode() if isinstance(host, bytes) else host or "localhost"
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name in ("localhost", socket.gethostname())
    return address.is_loopback or address.is_unspecified


def refuse_connections(event: str, args: tuple[object, ...]) -> None:
    """Raise where Python connects to another machine or looks up its name: an audit hook."""
    if event in ("socket.connect", "socket.sendto"):
        address = args[1]
        host = address[0] if isinstance(address, tuple) else "localhost"  # a path or bytes: no other machine
    elif event == "socket.getaddrinfo":
        host = args[0]
    else:
        return
    if isinstance(host, str | bytes | None) and not is_local(host):
        REFUSED.append(f"{event} {host!r}")
        raise OSError(f"tests connect to no other machine: {event} {host!r}")


def pytest_configure() -> None:
    """Hide the raw files, refuse connections, and collect no garbage while everything is imported.

    No test loses power, so none waits for the disk: 5,000 calls of fsync take a tenth of the whole suite's time.
    """
    gc.disable()
    os.fsync = lambda _: None
    ours = ("CMIXUP_OUT", "CMIXUP_TRACEBACK")
    for name in [name for name in os.environ if name.startswith("GIT_") or name in ours]:  # GIT_: of a commit hook
        del os.environ[name]
    os.environ.setdefault("TESTS_MIRROR", os.environ.pop("CMIXUP_MIRROR", ""))  # workers of pytest-xdist inherit it
    os.environ["CMIXUP_DATA"] = "/nonexistent/data"
    sys.addaudithook(refuse_connections)


def pytest_collection_finish() -> None:
    """Leave what is imported by now out of garbage collection, which would walk through PyTorch again and again."""
    gc.freeze()
    gc.set_threshold(100_000)  # of new objects; after every 700 it takes a twentieth of the time
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Tests on two cores run one thread each. Not imported above: pytest-xdist's controller needs no PyTorch."""
    import torch

    torch.set_num_threads(1)
    torch.testing._comparison._HAS_DTENSOR = False  # whose import, for a comparison, takes three seconds


@pytest.fixture(autouse=True)
def no_connections() -> Iterator[None]:
    """Fail a test in which something tried to reach another machine."""
    yield
    refused = REFUSED.copy()
    REFUSED.clear()
    assert not refused


@pytest.fixture(autouse=True)
def raw_files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Show the mirror of the raw files to a test marked `data`; skip it where there is none."""
    if request.node.get_closest_marker("data"):
        if not os.environ["TESTS_MIRROR"]:
            pytest.skip("CMIXUP_MIRROR is not set")
        monkeypatch = request.getfixturevalue("monkeypatch")
        monkeypatch.setenv("CMIXUP_MIRROR", os.environ["TESTS_MIRROR"])
        monkeypatch.setenv("CMIXUP_DATA", str(tmp_path_factory.getbasetemp() / "raw"))


@pytest.fixture
def float64() -> Iterator[None]:
    """Models and tensors made in the test are float64."""
    import torch

    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)
