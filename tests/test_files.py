"""Files are whole or absent."""

import contextlib
import errno
import os
from pathlib import Path
from unittest.mock import Mock

import pytest

from cmixup import files
from cmixup.files import write_atomically


@pytest.mark.parametrize("content", ["text ä\n", b"\x00bytes"])
def test_writing_makes_folders_and_replaces(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, "before")
    write_atomically(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == ["file"]  # noqa: PTH208 - hidden files, too


def test_an_error_of_writing_names_the_file(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(OSError, match=r"File too large: '.*file'") as raised:
            write_atomically(tmp_path / "file", bytes(5000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.errno == errno.EFBIG
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_what_is_written_is_on_the_disk_before_and_after_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    sync, replace = os.fsync, Path.replace

    def fsync(handle: int) -> None:
        kept = Path(f"/proc/self/fd/{handle}").readlink()
        done.append("folder" if kept.is_dir() else f"file of {kept.stat().st_size}")
        sync(handle)

    def replacing(self: Path, target: Path) -> Path:
        done.append("rename")
        return replace(self, target)

    monkeypatch.setattr(files.os, "fsync", fsync)
    monkeypatch.setattr(Path, "replace", replacing)
    write_atomically(tmp_path / "new" / "file", "text")
    assert done == ["folder", "file of 4", "rename", "folder"]


def test_a_process_that_is_not_listed_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """/proc may hide those of other users (hidepid), who may not be signalled either."""
    monkeypatch.setattr(Path, "read_text", Mock(side_effect=FileNotFoundError))
    for error, alive in ((None, True), (PermissionError, True), (ProcessLookupError, False), (OverflowError, False)):
        monkeypatch.setattr(files.os, "kill", Mock(side_effect=error))
        assert files.is_alive(1) is alive


def test_two_machines_of_one_name_are_two_places(monkeypatch: pytest.MonkeyPatch) -> None:
    places = set()
    for number in ("1", "2", "1"):
        files.place.cache_clear()
        monkeypatch.setattr(Path, "read_text", lambda _, number=number: number)
        places.add(files.place())
    files.place.cache_clear()
    assert len(places) == 2


def test_temporary_files_of_the_dead_go(tmp_path: Path) -> None:
    path, here = tmp_path / "file", files.place()
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    gone = [f".file.{here}-{child}.abcd_123", f".file.{here}-{child}.abcd_123.part", ".file.00000000-1.abcdefgh"]
    stay = [f".file.{here}-{os.getpid()}.abcdefgh", ".file.00000000-2.abcdefgh", ".file.txt", ".other.abcdefgh"]
    for name in (*gone, *stay):
        (tmp_path / name).touch()
    os.utime(tmp_path / gone[2], (1, 1))
    write_atomically(path, "text")
    assert sorted(os.listdir(tmp_path)) == sorted([*stay, "file"])  # noqa: PTH208


FSYNC = dict.fromkeys((errno.EIO, errno.ENOSPC), "before") | dict.fromkeys(files.NOT_SUPPORTED, "after")


@pytest.mark.parametrize(("number", "left"), FSYNC.items())
def test_an_error_of_fsync_is_an_error_but_where_the_file_system_has_none(
    tmp_path: Path, number: int, left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("before")
    monkeypatch.setattr(os, "fsync", Mock(side_effect=OSError(number, os.strerror(number))))
    with contextlib.nullcontext() if left == "after" else pytest.raises(OSError, match=str(tmp_path)):
        write_atomically(path, "after")
    assert path.read_text() == left
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208
