"""`DONE` lists the files of a run, and a file is what it says when it is read."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.files import DONE, Listed, checked, done_text, listed_files, read_tensors


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files and their `DONE`."""
    for name, text in (("a", "one"), ("b", "three")):
        (tmp_path / name).write_text(text)
    (tmp_path / DONE).write_text(done_text([tmp_path / "a", tmp_path / "b"]))
    return tmp_path


def test_what_is_listed_reads_back(folder: Path) -> None:
    expected = {
        "a": Listed(3, hashlib.sha256(b"one").hexdigest()),
        "b": Listed(5, hashlib.sha256(b"three").hexdigest()),
    }
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


def test_without_done_nothing_is_compared(folder: Path) -> None:
    (folder / "a").write_text("two")
    (folder / DONE).unlink()
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
