"""Files are whole or absent, `DONE` lists those of a run, and a damaged file is refused when it is read."""

import contextlib
import errno
import hashlib
import json
import os
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from cmixup import files
from cmixup.errors import InputError
from cmixup.files import DONE, checked, done_text, listed_files, read_tensors, write_atomically


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


def test_temporary_files_that_are_a_day_old_go(tmp_path: Path) -> None:
    gone = [".file.abcd_123", ".file.0123abcd.part", ".file.00000000-1.abcdefgh"]
    stay = [".file.abcdefgh", ".file.txt", ".other.abcdefgh"]
    for name in (*gone, *stay):
        (tmp_path / name).touch()
    for name in (*gone, *stay[1:]):
        os.utime(tmp_path / name, (1, 1))
    write_atomically(tmp_path / "file", "text")
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


# ---- DONE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files and their `DONE`."""
    for name, text in (("a", "one"), ("b", "three")):
        (tmp_path / name).write_text(text)
    (tmp_path / DONE).write_text(done_text([tmp_path / "a", tmp_path / "b"]))
    return tmp_path


def test_what_is_listed_reads_back(folder: Path) -> None:
    expected = {"a": (3, hashlib.sha256(b"one").hexdigest()), "b": (5, hashlib.sha256(b"three").hexdigest())}
    assert listed_files(folder) == expected
    assert json.loads((folder / DONE).read_text())["format"] == 3


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": 3}', '{"files": {"a": {"size": 3}}}', "[" * 100_000])
def test_what_is_no_list_is_one_line(text: str, folder: Path) -> None:
    (folder / DONE).write_text(text)
    with pytest.raises(InputError, match=r"^\S*DONE is no list of files$"):
        listed_files(folder)


def test_a_file_with_other_bytes_is_refused_and_no_other(folder: Path) -> None:
    assert checked(folder / "a") == folder / "a"
    (folder / "a").write_text("two")
    with pytest.raises(InputError, match=rf"^{folder / 'a'} is damaged: .*; rerun=true trains the run again$"):
        checked(folder / "a")
    assert checked(folder / "b").read_text() == "three"
    (folder / "c").write_text("later")
    with pytest.raises(InputError, match="c is not among the files that DONE lists"):
        checked(folder / "c")
    assert checked(folder / "gone") == folder / "gone"  # whoever reads it says so
    (folder / DONE).unlink()  # then nothing is compared
    assert checked(folder / "a").read_text() == "two"


def test_a_flipped_bit_of_a_tensor_is_seen_without_done(tmp_path: Path) -> None:
    path, numbers = tmp_path / "checkpoint.pt", torch.arange(1000.0)
    torch.save({"w": numbers}, path)
    assert torch.equal(read_tensors(path)["w"], numbers)
    whole = path.read_bytes()
    start = whole.index(numbers.numpy().tobytes())
    for place in np.random.default_rng(0).integers(start, start + 4000, 20):
        content = bytearray(whole)
        content[place] ^= 1
        path.write_bytes(content)
        assert not torch.equal(torch.load(path, weights_only=True)["w"], numbers)  # PyTorch reads on
        with pytest.raises(ValueError, match="has another checksum"):
            read_tensors(path)
