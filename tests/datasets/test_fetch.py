"""Raw files: where they come from, what is checked, and how damage is named."""

import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cmixup.errors import InputError
from datasets.common import fetch as module
from datasets.common.damaged import LONGEST_REASON, naming
from datasets.common.fetch import FetchError, RawFile, fetch

CONTENT = b"frequency\tangle\n" * 500
OTHER = b"other bytes\n" * 500


def raw(*urls: str, path: str = "toy/table.dat", content: bytes = CONTENT) -> RawFile:
    return RawFile(
        path, hashlib.sha256(content).hexdigest(), len(content), urls, page="https://example.org/toy", licence="MIT"
    )


class Server(ThreadingHTTPServer):
    """Serves `files` by path; those of `/breaks` break off half-way, those of `/stalls` hold still half-way."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.hits: list[str] = []
        self.stopped = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        server, path = self.server, self.path
        server.hits.append(path)
        content = server.files.get(path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if path in ("/breaks", "/stalls"):
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            if path == "/stalls":
                server.stopped.wait(10)
            return
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.stopped.set()
        running.shutdown()
        thread.join()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("CMIXUP_MIRROR", raising=False)
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def files_below(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def put(folder: Path, path: str, content: bytes) -> Path:
    target = folder / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    return target


def test_a_damaged_file_at_hand_is_an_error_and_stays(root: Path) -> None:
    target = put(root, "toy/table.dat", OTHER)
    with pytest.raises(FetchError, match=r"table.dat has SHA-256 .*damaged or was changed.*Remove it"):
        fetch(raw("http://127.0.0.1:9/never"))
    assert target.read_bytes() == OTHER


#: Where a file comes from: its addresses, the mirror, and the requests that the server hears; `/all.zip` has the file
#: as a member.
WAYS: dict[str, tuple[list[str], str, list[str]]] = {
    "a mirror folder": ([], "{tmp}/mirror", []),
    "a mirror's file address": ([], "file://{tmp}/mirror/", []),
    "a mirror's address": (["{url}/canonical"], "{url}/copy/", ["/copy/toy/table.dat"]),
    "the canonical address": (["{url}/canonical", "{url}/second"], "", ["/canonical"]),
    "another address than a mirror of wrong bytes": (
        ["{url}/canonical"], "{url}/wrong", ["/wrong/toy/table.dat", "/canonical"],
    ),
    "another than an archive without it": (["{url}/all.zip#none", "{url}/second"], "", ["/all.zip", "/second"]),
    "the first that answers": (["{url}/none", "http://127.0.0.1:9/refused", "{url}/second"], "", ["/none", "/second"]),
    "a member of an archive": (["{url}/all.zip#folder/table.dat"], "", ["/all.zip"]),
    "the next of what breaks off": (["{url}/breaks", "{url}/second"], "", ["/breaks", "/second"]),
    "the next of what stalls": (["{url}/stalls", "{url}/second"], "", ["/stalls", "/second"]),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_file_comes_from_where_it_can_be_had(
    way: str, root: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = put(tmp_path / "mirror", "toy/table.dat", CONTENT)
    for name in ("copy/toy/table.dat", "canonical", "second", "breaks", "stalls"):
        server.files[f"/{name}"] = CONTENT
    with zipfile.ZipFile(buffer := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/table.dat", CONTENT)
        archive.writestr("other", OTHER)
    server.files["/all.zip"] = buffer.getvalue()
    server.files["/wrong/toy/table.dat"] = OTHER
    monkeypatch.setattr(module, "TIMEOUT", 0.3)
    urls, mirror, requests = WAYS[way]
    monkeypatch.setenv("CMIXUP_MIRROR", mirror.format(url=server.url, tmp=tmp_path))
    _, path = fetch(raw(*(url.format(url=server.url) for url in urls)))
    assert path == root / "toy/table.dat"
    assert path.read_bytes() == source.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o644
    assert server.hits == requests
    assert files_below(root) == ["toy/table.dat"]


def test_missing_everywhere_names_every_address_and_the_manual_way(
    root: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMIXUP_MIRROR", str(tmp_path / "mirror"))
    file = raw(f"{server.url}/first", "http://127.0.0.1:9/refused")
    with pytest.raises(FetchError) as caught:
        fetch(file)
    message = str(caught.value)
    assert "could not get toy/table.dat (8,000 bytes)" in message
    assert f"{tmp_path}/mirror/toy/table.dat: no such file" in message
    assert f"{server.url}/first: answered: 404" in message
    assert "http://127.0.0.1:9/refused: out of reach (ConnectionError)" in message
    assert f"By hand: get it from https://example.org/toy and save it as {root}/toy/table.dat" in message
    assert file.sha256 in message
    assert "CMIXUP_MIRROR" in message
    assert files_below(root) == []


def test_no_password_of_an_address_is_printed(
    root: Path, server: Server, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = server.url.replace("//", "//me:se%20cret@")
    monkeypatch.setenv("CMIXUP_MIRROR", f"{named}/none")
    server.files["/breaks"] = CONTENT
    with pytest.raises(FetchError) as caught:
        fetch(raw(f"{named}/breaks", "ftp://me:se@cret@127.0.0.1/x"))
    for text in (str(caught.value), capsys.readouterr().err):
        assert "cret" not in text
        assert "me:" not in text
    assert f"{server.url}/none/toy/table.dat: answered: 404" in str(caught.value)
    assert module.without_user("a@b.org: http://127.0.0.1:9/x?a=b@c") == "a@b.org: http://127.0.0.1:9/x?a=b@c"


def test_alternatives_at_hand_come_first_then_the_mirrors_then_canonical(
    root: Path, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preferred = raw(f"{server.url}/preferred", path="toy/a.csv")
    second = raw(f"{server.url}/second", path="toy/b.tsv", content=OTHER)
    server.files.update({"/preferred": CONTENT, "/second": OTHER})
    put(tmp_path / "mirror", "toy/b.tsv", OTHER)
    monkeypatch.setenv("CMIXUP_MIRROR", str(tmp_path / "mirror"))
    assert fetch(preferred, second) == (second, root / "toy/b.tsv")
    monkeypatch.delenv("CMIXUP_MIRROR")
    _, path = fetch(preferred, second)  # it is at hand now
    assert (path, server.hits) == (root / "toy/b.tsv", [])
    path.unlink()
    assert fetch(preferred, second) == (preferred, root / "toy/a.csv")
    assert server.hits == ["/preferred"]


def test_a_reason_is_one_short_line() -> None:
    with pytest.raises(InputError) as caught, naming("x", "a thing"):
        raise MemoryError("a\nb " * 1000)
    assert str(caught.value).startswith("x is not a thing: a b a b")
    assert len(str(caught.value)) <= len("x is not a thing: ") + LONGEST_REASON
