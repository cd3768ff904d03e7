"""Motion-JPEG AVI files: a RIFF file whose `movi` list holds one JPEG image a frame.

The images are decoded by Pillow, each by itself, so any frame can be read without those before it. Other codecs are
refused: they need FFmpeg, which is none of our packages (torchvision 0.28 reads no video any more).
"""

from __future__ import annotations

import io
import struct
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from cmixup.errors import InputError
from cmixup.files import write_atomically

CHANNELS = 3
MOST_PIXELS = 1 << 24  # of a frame
KEY_FRAME, HAS_INDEX = 0x10, 0x10  # flags of an index entry, and of the main header


class DamagedVideo(InputError):
    """A file that is no whole Motion-JPEG AVI; the message names it and says what is wrong."""


class Avi:
    """The frames of one Motion-JPEG AVI file; opening it reads the file and finds the frames, decoding none.

    Args:
        path: the file.

    Raises:
        InputError: no such file.
        DamagedVideo: another kind of file, another codec, a file that is cut short or without a frame.
    """

    def __init__(self, path: Path):
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise InputError(f"video {path} is missing") from None
        self.path = path
        if content[:4] != b"RIFF" or content[8:12] != b"AVI ":
            raise DamagedVideo(f"video {path} is no AVI file: it begins with {content[:12]!r}")
        codec, expected, self._frames = b"", 0, list[memoryview]()
        for name, data in self._chunks(memoryview(content), 12):
            if name == b"avih" and len(data) >= 20:
                expected = struct.unpack_from("<I", data, 16)[0]
            elif name == b"strh" and bytes(data[:4]) == b"vids":
                codec = bytes(data[4:8])
            elif name[:2].isdigit() and name[2:] in (b"dc", b"db"):
                # An empty chunk stands for the frame before it.
                self._frames.append(data if len(data) or not self._frames else self._frames[-1])
        if codec.upper() != b"MJPG":
            raise DamagedVideo(f"video {path} has codec {codec!r}: only Motion-JPEG (b'MJPG') can be read")
        if not self._frames or len(self._frames) < expected:
            raise DamagedVideo(f"video {path} holds {len(self._frames)} frames, its header says {expected}")

    def __len__(self) -> int:
        return len(self._frames)

    def read(self, numbers: Sequence[int] | np.ndarray) -> np.ndarray:
        """Return the frames `numbers: (L,)`, counted from 0, as `(L, height, width, 3)` uint8 RGB.

        Raises:
            DamagedVideo: a frame is no whole JPEG image, or of another size than the first of them.
        """
        frames = [self._decode(int(number)) for number in numbers]
        for number, frame in zip(numbers, frames, strict=True):
            if frame.shape != frames[0].shape:
                raise DamagedVideo(
                    f"video {self.path}: frame {number} is {frame.shape[0]} x {frame.shape[1]} pixels, "
                    f"others {frames[0].shape[0]} x {frames[0].shape[1]}"
                )
        return np.stack(frames)

    def _decode(self, number: int) -> np.ndarray:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", Image.DecompressionBombWarning)
                image = Image.open(io.BytesIO(self._frames[number]), formats=["JPEG"])
            with image:
                if image.width * image.height > MOST_PIXELS:  # known before they are decoded
                    raise OSError(f"it says {image.width} x {image.height} pixels, at most {MOST_PIXELS} are read")
                return np.asarray(image.convert("RGB"))
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Image.DecompressionBombError) as error:
            raise DamagedVideo(f"video {self.path}: frame {number} cannot be decoded ({error})") from None

    def _chunks(self, content: memoryview, start: int) -> Iterator[tuple[bytes, memoryview]]:
        """Yield name and data of every chunk from `start` on; lists are entered."""
        while start + 8 <= len(content):
            name, size = bytes(content[start : start + 4]), struct.unpack_from("<I", content, start + 4)[0]
            if name in (b"LIST", b"RIFF"):
                start += 12
                continue
            end = start + 8 + size
            if end > len(content):
                raise DamagedVideo(
                    f"video {self.path} is cut short: its chunk {name!r} at byte {start} ends at byte {end}, "
                    f"the file at {len(content)}"
                )
            yield name, content[start + 8 : end]
            start = end + size % 2  # chunks begin at even bytes


def write_avi(path: Path, frames: np.ndarray, fps: float = 50.0, quality: int = 95) -> None:
    """Write frames as a Motion-JPEG AVI, atomically.

    Args:
        path: the file.
        frames: `(T, height, width, 3)` uint8 RGB, T at least 1.
        fps: frames a second.
        quality: of the JPEG images, 1 to 100.

    Raises:
        InputError: frames of another shape or type.
    """
    if frames.ndim != 4 or frames.shape[3] != CHANNELS or not len(frames) or frames.dtype != np.uint8:
        raise InputError(f"frames must be (T, height, width, 3) uint8, got {frames.shape} {frames.dtype}")
    count, height, width, _ = frames.shape
    images = [_jpeg(frame, quality) for frame in frames]
    largest = max(map(len, images))
    micros, rate = round(1e6 / fps), round(1000 * fps)
    main = struct.pack("<14I", micros, 0, 0, HAS_INDEX, count, 0, 1, largest, width, height, 0, 0, 0, 0)
    stream = struct.pack("<4s4sIHHIIIIIIII4H", b"vids", b"MJPG", 0, 0, 0, 0, 1000, rate, 0, count, largest, 0, 0,
                         0, 0, width, height)  # fmt: skip
    bitmap = struct.pack("<IiiHH4sIiiII", 40, width, height, 1, 24, b"MJPG", 3 * width * height, 0, 0, 0, 0)
    header = _chunk(b"avih", main) + _list(b"strl", _chunk(b"strh", stream) + _chunk(b"strf", bitmap))
    movie, index, offset = [], [], 4  # offsets count from the list's name
    for image in images:
        movie.append(_chunk(b"00dc", image))
        index.append(struct.pack("<4sIII", b"00dc", KEY_FRAME, offset, len(image)))
        offset += len(movie[-1])
    body = _list(b"hdrl", header) + _list(b"movi", b"".join(movie)) + _chunk(b"idx1", b"".join(index))
    write_atomically(path, b"RIFF" + struct.pack("<I", len(body) + 4) + b"AVI " + body)


def _jpeg(frame: np.ndarray, quality: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(frame).save(stream, "JPEG", quality=quality)
    return stream.getvalue()


def _chunk(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def _list(name: bytes, data: bytes) -> bytes:
    return b"LIST" + struct.pack("<I", len(data) + 4) + name + data
