"""A test that reaches another machine fails, whoever asked and whatever became of the error."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.guard.sitecustomize import is_here

REPO = Path(__file__).resolve().parents[1]
#: Errors are swallowed, as code under test may do. Each `test_asks_...` is followed by one that asks nobody.
PLANTED = """
import contextlib, multiprocessing, os, socket, subprocess, sys, threading
import pytest

def asks():
    with contextlib.suppress(OSError), socket.socket() as made:
        made.settimeout(1)
        made.connect(("192.0.2.1", 9))

@pytest.fixture
def asking():
    asks()

def test_asks_in_a_fixture(asking): pass
def test_nothing_1(): pass
def test_asks_itself(): asks()
def test_nothing_2(): pass

def test_asks_for_a_name():
    with contextlib.suppress(OSError):
        socket.getaddrinfo("example.org", 80)

def test_nothing_3(): pass

def test_asks_by_a_datagram():
    with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as made:
        made.sendto(b"", ("192.0.2.1", 9))

def test_nothing_4(): pass

def test_asks_in_a_thread():
    thread = threading.Thread(target=asks)
    thread.start()
    thread.join()

def test_nothing_5(): pass

def test_asks_in_a_child():
    code = "import socket\\ntry: socket.create_connection(('192.0.2.1', 9), 1)\\nexcept OSError: pass"
    subprocess.run([sys.executable, "-c", code], check=True)

def test_nothing_6(): pass

@pytest.mark.parametrize("way", ["spawn", "fork"])
def test_asks_in_a_worker(way):
    child = multiprocessing.get_context(way).Process(target=asks)
    child.start()
    child.join()

def test_nothing_7(): pass

def test_asks_nobody_but_starts_what_is_not_watched():
    with contextlib.suppress(OSError):
        subprocess.run([sys.executable, "-c", "pass"], env={})

def test_this_machine_may_be_asked(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(("localhost", server.getsockname()[1]), 5).close()
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        os.chdir(tmp_path)
        server.bind("socket")
        server.listen()
        client.connect("socket")
    socket.getaddrinfo(None, 80)
    subprocess.run([sys.executable, "-c", "pass"], check=True)

def test_raw_files_are_hidden():
    assert "CMIXUP_MIRROR" not in os.environ
    assert not os.path.exists(os.environ["CMIXUP_DATA"])

@pytest.mark.data
def test_raw_files_are_shown_to_data():
    assert os.environ["CMIXUP_MIRROR"] == "mirror"
    assert not os.path.exists(os.environ["CMIXUP_DATA"])
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """How each planted test ended in a worker of pytest-xdist, by its name."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "test_planted.py").write_text(PLANTED)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = data: needs the real data files\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "xdist.plugin", "-p", "tests.connections", "-n", "1"],
        cwd=folder, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": f"{os.environ['PYTHONPATH']}{os.pathsep}{REPO}", "CMIXUP_MIRROR": "mirror",
                          "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
    )  # fmt: skip
    found = {name: word for word, name in re.findall(r"^([A-Z]+) \S+::test_(\S+)", done.stdout, re.MULTILINE)}
    assert len(found) == len(re.findall("def test_", PLANTED)) + 1, done.stdout + done.stderr
    return found | {"said": done.stdout}


def test_who_asks_another_machine_fails_and_nobody_else(outcomes: dict[str, str]) -> None:
    asking = {name for name in outcomes if name.startswith("asks_")}
    assert len(asking) == 9
    for name, word in outcomes.items():
        if name != "said":
            assert word == ("ERROR" if "fixture" in name else "FAILED" if name in asking else "PASSED"), name


def test_the_failure_says_what_was_asked_and_where(outcomes: dict[str, str]) -> None:
    whole = outcomes["said"].partition("short test summary")[0]  # which repeats them where CI is set
    told = re.findall(r"^(?:connect|sendto|getaddrinfo|start of) .*", whole, re.MULTILINE)
    assert len(told) == 9
    for asked, lines in (("'192.0.2.1', 9", 6), ("getaddrinfo 192.0.2.1", 1), ("example.org", 1), ("without", 1)):
        assert sum(asked in line for line in told) == lines, told
    assert sum("test_planted.py:" in line for line in told) == len(told) - 1  # the child's code is no file


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("127.8.0.1", True), ("::1", True), (b"localhost", True), ("", True), ("::", True),
     ("127.0.0.1.example.org", False), ("10.0.0.1", False), (b"example.org", False), ("2001:db8::1", False)],
)  # fmt: skip
def test_what_this_machine_is(host: str | bytes, here: bool) -> None:
    assert is_here(host) == here
