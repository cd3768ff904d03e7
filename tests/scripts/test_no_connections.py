"""Nothing connects anywhere that the user did not ask for, and no name is looked up."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import data
from scripts.driver.job import execute
from tests.scripts.jobs import planned

REPO = Path(__file__).resolve().parents[2]
HERE = ("127.", "::1", "localhost")
DEFAULT = ("-m", "scripts.train", "dataset=no2", "dataset.synthetic=true", "train.epochs=1")

#: Python reads it at its start; every connection that is no socket of this machine is written down and refused.
GUARD = """
import os, socket

def refused(kind):
    real = getattr(socket.socket, kind)
    def call(self, address, *more):
        if self.family != socket.AF_UNIX and not str(address[0]).startswith(("127.", "::1", "localhost")):
            note(f"{kind} {address}")
        return real(self, address, *more)
    return call

def note(what):
    with open(os.environ["GUARD_FILE"], "a") as stream:
        stream.write(what + "\\n")
    raise OSError(f"guard: {what}")

class Guarded(socket.socket):
    connect, connect_ex = refused("connect"), refused("connect_ex")

look_up = socket.getaddrinfo
def getaddrinfo(host, *more, **options):
    if host and not str(host).startswith(("127.", "::1", "localhost")):
        note(f"getaddrinfo {host}")
    return look_up(host, *more, **options)

socket.socket, socket.getaddrinfo = Guarded, getaddrinfo
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was asked for in this process; every attempt is refused."""
    found: list[Any] = []

    def refuse(*given: Any, **_: Any) -> None:
        found.append(given)
        raise OSError("guard")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return found


@pytest.mark.usefixtures("no_git")
def test_training_without_a_logger_and_the_status_of_data_connect_nowhere(
    tmp_path: Path, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path / "data"))
    execute(planned(tmp_path, "method=erm", "logger=none", "train.epochs=1"))
    data.status()
    assert asked == []


def test_wilds_is_imported_without_asking_for_its_latest_version() -> None:
    from datasets.poverty_map import no_version_check

    before = sys.modules.get("outdated")
    with no_version_check(), pytest.raises(ImportError):
        import outdated  # noqa: F401
    assert sys.modules.get("outdated") is before


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    """The environment of a user who has set nothing, with the guard in it."""
    (tmp_path / "sitecustomize.py").write_text(GUARD)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("WANDB_", "CMIXUP_"))}
    return {
        **kept,
        "PYTHONPATH": f"{tmp_path}{os.pathsep}{REPO}",
        "GUARD_FILE": str(tmp_path / "asked"),
        "CMIXUP_OUT": str(tmp_path / "out"),
        "CMIXUP_DATA": str(tmp_path / "data"),
        "OMP_NUM_THREADS": "1",
        **more,
    }


WILDS = (
    "from datasets.poverty_map import no_version_check\nwith no_version_check():\n import wilds, time; time.sleep(2)"
)
EVERY = """
import pkgutil, importlib
for p in ("cmixup", "datasets", "models", "scripts"):
    for m in pkgutil.walk_packages(importlib.import_module(p).__path__, p + "."):
        importlib.import_module(m.name)
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "words", [DEFAULT, (*DEFAULT, "logger=none"), ("-m", "scripts.data", "status"), ("-c", EVERY), ("-c", WILDS)]
)
def test_commands_and_imports_connect_nowhere(tmp_path: Path, words: tuple[str, ...]) -> None:
    if words[-1] == WILDS:
        pytest.importorskip("outdated")
    done = subprocess.run(
        [sys.executable, *words],
        cwd=REPO,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not (tmp_path / "asked").exists(), (tmp_path / "asked").read_text()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_guard_sees_a_connection(tmp_path: Path) -> None:
    code = "import socket\ntry: socket.create_connection(('192.0.2.1', 9), 1)\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", code], env=environment(tmp_path), timeout=60, check=True)
    assert "192.0.2.1" in (tmp_path / "asked").read_text()


def far(trace: str) -> list[str]:
    """Return the lines of a trace that name an address or port of another machine, or look a name up."""
    lines = [line for line in trace.splitlines() if re.search(r"sin6?_port", line)]
    ours = re.compile(r'inet_addr\("127\.|"::1"|sin6?_port=htons\(0\)')
    return [line for line in lines if not ours.search(line) or "htons(53)" in line]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("more", [(), ("logger=none",)])
def test_no_process_of_the_default_command_connects(tmp_path: Path, more: tuple[str, ...]) -> None:
    """The guard sees Python alone; wandb's own process is another program."""
    trace = tmp_path / "trace"
    tracing = ["strace", "-f", "-qq", "-o", str(trace), "-e", "trace=connect,sendto,sendmsg,sendmmsg"]
    if subprocess.run([*tracing, "true"], capture_output=True, check=False).returncode:
        pytest.skip("strace may not trace here")
    done = subprocess.run(
        [*tracing, sys.executable, *DEFAULT, *more],
        cwd=REPO,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert far(trace.read_text()) == []


def test_a_trace_tells_our_machine_from_others() -> None:
    near = '1 connect(3, {sa_family=AF_INET, sin_port=htons(4), sin_addr=inet_addr("127.0.0.1")}, 16) = 0'
    other = '1 connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("192.0.2.1")}, 16) = 0'
    name = '1 connect(3, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("127.0.0.53")}, 16) = 0'
    assert far(f"{near}\n{other}\n{name}\n1 sendto(3, 0x1, 2) = 2") == [other, name]
