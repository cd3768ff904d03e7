import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from cmixup.errors import InputError
from datasets.common.video.avi import Avi, DamagedVideo, write_avi

SIZE = (12, 20)  # height, width


def frames(count: int = 5, seed: int = 0) -> np.ndarray:
    """Smooth colour gradients, which differ from frame to frame."""
    rng = np.random.default_rng(seed)
    y, x = np.linspace(0, 1, SIZE[0])[:, None, None], np.linspace(0, 1, SIZE[1])[None, :, None]
    slopes = rng.uniform(0, 127, (2, count, 1, 1, 3))
    return (slopes[0] * y + slopes[1] * x).astype(np.uint8)


def jpegs_of(path: Path) -> list[bytes]:
    """The JPEG images in a file, found by their chunk's name alone."""
    content, found, at = path.read_bytes(), [], 0
    end = content.index(b"idx1")
    while (at := content.find(b"00dc", at, end)) >= 0:
        size = struct.unpack("<I", content[at + 4 : at + 8])[0]
        found.append(content[at + 8 : at + 8 + size])
        at += 8 + size
    return found


@pytest.fixture
def video(tmp_path: Path) -> Path:
    path = tmp_path / "a.avi"
    write_avi(path, frames())
    return path


def test_frames_are_as_pillow_decodes_them(video: Path) -> None:
    images = jpegs_of(video)
    read = Avi(video).read(range(5))
    assert len(Avi(video)) == len(images) == 5
    assert read.shape == (5, *SIZE, 3)
    assert read.dtype == np.uint8
    for frame, image in zip(read, images, strict=True):
        assert np.array_equal(frame, np.asarray(Image.open(io.BytesIO(image)).convert("RGB")))


def without_tables(image: bytes) -> bytes:
    """A JPEG image without its Huffman tables, as many Motion-JPEG writers leave them out."""
    at, kept = 2, image[:2]
    while image[at + 1] != 0xDA:
        size = 2 + struct.unpack_from(">H", image, at + 2)[0]
        kept += b"" if image[at + 1] == 0xC4 else image[at : at + size]
        at += size
    return kept + image[at:]


def test_images_without_huffman_tables_are_read(video: Path) -> None:
    """They are decoded with the standard's tables, which Pillow's encoder uses, too."""
    image = jpegs_of(video)[2]
    bare = without_tables(image)
    assert len(bare) < len(image)
    expected = Avi(video).read([2])
    video.write_bytes(video.read_bytes().replace(image, bare.ljust(len(image), b"\0")))
    assert np.array_equal(Avi(video).read([2]), expected)


def test_an_empty_chunk_repeats_the_frame_before(video: Path) -> None:
    content = video.read_bytes()
    end = content.index(b"idx1")
    video.write_bytes(content[:end] + b"00dc" + struct.pack("<I", 0) + content[end:])
    assert len(Avi(video)) == 6
    one, other = Avi(video).read([4, 5])
    assert np.array_equal(one, other)


# ---- what is wrong with a file


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"video .*none\.avi is missing"):
        Avi(tmp_path / "none.avi")


@pytest.mark.parametrize("content", [b"", b"RIFF", b"RIFF\0\0\0\0WAVE", b"\x89PNG" + 100 * b"\0", b"<html>not found"])
def test_another_kind_of_file_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.avi"
    path.write_bytes(content)
    with pytest.raises(DamagedVideo, match=r"a\.avi is no AVI file: it begins with"):
        Avi(path)


def test_every_truncation_is_noticed_before_or_at_reading(video: Path) -> None:
    """But for a cut in the index behind the images, which is not needed, at its chunk's start."""
    content = video.read_bytes()
    last = content.index(b"idx1")
    for length in [*range(0, len(content), 97), last - 1]:
        video.write_bytes(content[:length])
        if last <= length < last + 8:
            continue
        with pytest.raises(DamagedVideo, match=r"a\.avi"):
            Avi(video).read(range(5))


def test_fewer_frames_than_the_header_says_are_refused(video: Path) -> None:
    content = bytearray(video.read_bytes())
    struct.pack_into("<I", content, content.index(b"avih") + 8 + 16, 6)
    video.write_bytes(content)
    with pytest.raises(DamagedVideo, match="holds 5 frames, its header says 6"):
        Avi(video)


def test_another_codec_is_refused(video: Path) -> None:
    video.write_bytes(video.read_bytes().replace(b"vidsMJPG", b"vidsXVID"))
    with pytest.raises(DamagedVideo, match=r"has codec b'XVID': only Motion-JPEG"):
        Avi(video)


def test_a_damaged_frame_is_named_and_the_others_read(video: Path) -> None:
    image = jpegs_of(video)[3]
    video.write_bytes(video.read_bytes().replace(image, bytes(len(image))))
    avi = Avi(video)
    assert len(avi.read([0, 1, 2, 4])) == 4
    with pytest.raises(DamagedVideo, match=r"a\.avi: frame 3 cannot be decoded"):
        avi.read([2, 3])
