"""Files are whole or absent."""

import errno
import os
import signal
from pathlib import Path

import pytest

from cmixup import files, processes
from cmixup.files import write_atomically


@pytest.mark.parametrize("content", ["text ä\n", b"\x00bytes"])
def test_writing_makes_folders_and_replaces(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, "before")
    write_atomically(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == ["file"]  # noqa: PTH208 - hidden files, too


@pytest.mark.parametrize("existing", [None, "before"])
def test_a_failed_write_leaves_nothing_behind(
    tmp_path: Path, existing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if existing:
        path.write_text(existing)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "after")
    assert os.listdir(tmp_path) == (["file"] if existing else [])  # noqa: PTH208
    if existing:
        assert path.read_text() == existing


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
    """/proc may hide those of other users (hidepid)."""

    def hidden(*_: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(Path, "read_text", hidden)
    child = os.fork()
    if not child:
        signal.pause()
    assert processes.is_alive(child)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not processes.is_alive(child)
    assert not processes.is_alive(10**30)

    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(processes.os, "kill", refuse)  # as for the process of another user
    assert processes.is_alive(child)


def test_temporary_files_go_when_they_are_a_day_old(tmp_path: Path) -> None:
    old = [".file.abcd_123", ".file.abcd_123.part", ".file.00000000-1.abcdefgh", ".file.txt", ".other.abcdefgh"]
    for name in (*old, ".file.00000002"):
        (tmp_path / name).touch()
    for name in old:
        os.utime(tmp_path / name, (1, 1))
    write_atomically(tmp_path / "file", "text")
    assert sorted(os.listdir(tmp_path)) == [".file.00000002", ".file.txt", ".other.abcdefgh", "file"]  # noqa: PTH208


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_an_error_of_fsync_is_an_error(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "file").write_text("before")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match=str(tmp_path)) as raised:
        write_atomically(tmp_path / "file", "after")
    assert raised.value.errno == number
    assert (tmp_path / "file").read_text() == "before"
    assert os.listdir(tmp_path) == ["file"]  # noqa: PTH208


@pytest.mark.parametrize("number", files.NOT_SUPPORTED)
def test_a_file_system_without_fsync_is_written_to(
    tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(handle: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)
    write_atomically(tmp_path / "file", "after")
    assert (tmp_path / "file").read_text() == "after"
