"""What commands share at their start."""

import os
from pathlib import Path

import pytest

from scripts.driver.cli import spell_in_any_encoding


def test_a_stream_whose_file_has_become_a_closed_pipe_stops_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / "out").open("w") as stream:
        print("a line", file=stream, flush=True)
        reading, writing = os.pipe()
        os.close(reading)
        kept = os.dup(stream.fileno())
        os.dup2(writing, stream.fileno())
        os.close(writing)
        monkeypatch.setattr("sys.stdout", stream)
        spell_in_any_encoding()
        os.dup2(kept, stream.fileno())
        os.close(kept)
