"""Motion-JPEG AVI files: a RIFF file whose `movi` list holds one JPEG image a frame.

The images are decoded by Pillow, each by itself, so any frame can be read without those before it. Other codecs are
refused: they need FFmpeg, which is none of our packages (torchvision 0.28 reads no video any more).
"""

import io
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from cmixup.errors import InputError

CHANNELS = 3


class DamagedVideo(InputError):
    """A file that is no whole Motion-JPEG AVI; the message names it and says what is wrong."""


class Avi:
    """The frames of one Motion-JPEG AVI file; opening it reads the file and finds the frames, decoding none."""

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
        """Return the frames `numbers: (L,)`, counted from 0, as `(L, height, width, 3)` uint8 RGB."""
        frames = [self._decode(int(number)) for number in numbers]
        if len(sizes := {f"{frame.shape[0]} x {frame.shape[1]}" for frame in frames}) > 1:
            raise DamagedVideo(f"video {self.path}: frames have several sizes, {', '.join(sorted(sizes))} pixels")
        return np.stack(frames)

    def _decode(self, number: int) -> np.ndarray:
        try:
            with Image.open(io.BytesIO(self._frames[number]), formats=["JPEG"]) as image:
                return np.asarray(image.convert("RGB"))
        except Exception as error:  # damaged images raise anything
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
