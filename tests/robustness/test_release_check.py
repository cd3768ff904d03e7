"""What stops a release before its upload: another tag, and builds that differ."""

import io
import tarfile
from pathlib import Path

import pytest

import cmixup
from cmixup.errors import InputError
from tests.robustness.release_check import check_bytes, check_tag, write_dated


def pack(path: Path, names: list[str], mtime: int, owner: str) -> Path:
    """Write a .tar.gz as a machine of some clock, owner and order of files makes it."""
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.uname, member.mode = 3, mtime, owner, 0o600
            archive.addfile(member, io.BytesIO(b"abc"))
    return path


def test_an_archive_depends_on_neither_clock_nor_owner_nor_order(tmp_path: Path) -> None:
    one, other = pack(tmp_path / "one", ["a", "b"], 5, "me"), pack(tmp_path / "other", ["b", "a"], 7, "you")
    assert one.read_bytes() != other.read_bytes()
    write_dated(one, 1_000_000_000)
    write_dated(other, 1_000_000_000)
    assert one.read_bytes() == other.read_bytes()
    with tarfile.open(one) as archive:
        assert [(m.name, m.mtime, m.mode) for m in archive] == [(n, 1_000_000_000, 0o644) for n in "ab"]
        assert all(stream.read() == b"abc" for m in archive if (stream := archive.extractfile(m)))


def test_builds_that_differ_are_named(tmp_path: Path) -> None:
    paths = [tmp_path / folder / name for folder in "xy" for name in ("same", "changed")]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_text(path.name if path.name == "same" else str(path))
    with pytest.raises(InputError, match=r"must have the same bytes, got other ones for changed$"):
        check_bytes(paths[:2], paths[2:])
    check_bytes(paths[:1], paths[2:3])


def test_a_tag_names_the_version() -> None:
    check_tag(f"v{cmixup.__version__}")
    check_tag("")
    with pytest.raises(InputError, match=f"tag must be v{cmixup.__version__}, .*, got 'v9'"):
        check_tag("v9")
