"""Views and videos made here, and the splits of data."""

import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cmixup.data import RegressionData, Split
from datasets.common.base import Dataset
from datasets.common.pose.views import Views


def views(n_objects: int = 3, n_views: int = 31, side: int = 4, seed: int = 0) -> Views:
    """Return views of noise at random azimuths."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 256, (n_objects, n_views, side, side), np.uint8)
    y = rng.random((n_objects, n_views), dtype=np.float32)
    return Views(x, y, tuple(f"object {k}" for k in range(n_objects)), {"sources": {}})


def parts(data: RegressionData) -> tuple[Split, Split, Split]:
    """Return the splits in their order."""
    return data.train, data.val, data.test


def put_needed(dataset: type[Dataset], root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `root` the data root, and put there all that the dataset's folders need, of no content."""
    monkeypatch.setenv("CMIXUP_DATA", str(root))
    for folder in dataset.folders:
        for name in folder.needs:
            (root / folder.path / name).parent.mkdir(parents=True, exist_ok=True)
            (root / folder.path / name).write_text("x\n")


def write_avi(path: Path, frames: np.ndarray) -> None:
    """Write frames `(T, height, width, 3)` uint8 RGB as a Motion-JPEG AVI of 50 frames a second."""
    count, height, width, _ = frames.shape
    images = [as_jpeg(frame) for frame in frames]
    largest = max(map(len, images))
    main = struct.pack("<14I", 20_000, 0, 0, 0x10, count, 0, 1, largest, width, height, 0, 0, 0, 0)
    stream = struct.pack("<4s4sIHHIIIIIIII4H", b"vids", b"MJPG", 0, 0, 0, 0, 1000, 50_000, 0, count, largest, 0, 0,
                         0, 0, width, height)  # fmt: skip
    bitmap = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MJPG", 3 * width * height, 0, 0, 0, 0)
    header = _chunk(b"avih", main) + _list(b"strl", _chunk(b"strh", stream) + _chunk(b"strf", bitmap))
    movie, index, offset = [], [], 4  # offsets count from the list's name
    for image in images:
        movie.append(_chunk(b"00dc", image))
        index.append(struct.pack("<4sIII", b"00dc", 0x10, offset, len(image)))
        offset += len(movie[-1])
    body = _list(b"hdrl", header) + _list(b"movi", b"".join(movie)) + _chunk(b"idx1", b"".join(index))
    path.write_bytes(b"RIFF" + struct.pack("<I", len(body) + 4) + b"AVI " + body)


def as_jpeg(frame: np.ndarray) -> bytes:
    """Return an image `(height, width, 3)` uint8 as JPEG."""
    stream = io.BytesIO()
    Image.fromarray(frame).save(stream, "JPEG", quality=95)
    return stream.getvalue()


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _list(name: bytes, data: bytes) -> bytes:
    return b"LIST" + struct.pack("<I", len(data) + 4) + name + data
