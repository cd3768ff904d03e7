"""Python runs this at its start in every process that a test starts: connections to other machines are refused.

`tests/connections.py` puts this folder on PYTHONPATH and names in TESTS_ASKED the file where each attempt is noted: the
code under test may swallow the error, and the test fails all the same.
"""

import os
import sys
import sysconfig

#: The events of Python in which a socket is given an address, and those in which a host is looked up.
ADDRESSES = ("socket.connect", "socket.sendto", "socket.sendmsg")
HOSTS = ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr", "socket.getnameinfo")
HERE = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - pathlib would be imported everywhere
LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def is_here(host):
    """Return whether a host, a text or bytes or nothing, is this machine."""
    import ipaddress
    import socket

    name = host.decode() if isinstance(host, bytes | bytearray) else host or "localhost"
    try:
        found = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return name in ("localhost", socket.gethostname())
    return found.is_loopback or found.is_unspecified


def caller():
    """Return the innermost line that belongs to no library, as `file:line`."""
    frame = sys._getframe(2)
    while frame.f_back and frame.f_code.co_filename.startswith((*LIBRARIES, "<frozen")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def watch(event, given):
    """Note and refuse what asks for another machine, and a Python that would not be watched."""
    if event in ADDRESSES or event in HOSTS:
        address = given[event in ADDRESSES]
        host = address[0] if isinstance(address, tuple) else "" if event in ADDRESSES else address  # a path: no host
        if not isinstance(host, str | bytes | bytearray) or is_here(host):
            return
        said = f"{event.removeprefix('socket.')} {address}"
    elif event == "subprocess.Popen":
        program, environment = given[0], given[3]
        watched = environment is None or HERE in str(environment.get("PYTHONPATH"))
        if watched or "python" not in os.path.basename(os.fsdecode(program)):  # noqa: PTH119
            return
        said = f"start of {os.fsdecode(program)} without {HERE} on its PYTHONPATH"
    else:
        return
    said = f"{said}, from {caller()}"
    if path := os.environ.get("TESTS_ASKED"):
        with open(path, "a") as stream:  # noqa: PTH123
            stream.write(said + "\n")
    raise OSError(f"tests connect to no other machine: {said}")


if not hasattr(sys, "tests_are_watched"):
    sys.tests_are_watched = True
    sys.addaudithook(watch)
