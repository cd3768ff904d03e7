"""Files are whole or absent."""

from __future__ import annotations

import os
from pathlib import Path

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


def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "fdopen", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", "after")
    assert os.listdir(tmp_path) == []  # noqa: PTH208
