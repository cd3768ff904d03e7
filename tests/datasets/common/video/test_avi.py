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


def test_a_round_trip_is_exact_but_for_the_compression(video: Path) -> None:
    error = np.abs(Avi(video).read(range(5)).astype(int) - frames().astype(int))
    assert error.mean() < 2
    assert error.max() < 20


def test_frames_are_read_in_any_order(video: Path) -> None:
    avi = Avi(video)
    whole = avi.read(range(5))
    assert np.array_equal(avi.read([3, 0, 3]), whole[[3, 0, 3]])


def test_grey_images_come_as_three_channels(video: Path) -> None:
    grey = io.BytesIO()
    Image.fromarray(frames(1)[0]).convert("L").save(grey, "JPEG")
    first = jpegs_of(video)[0]
    body = grey.getvalue().ljust(len(first), b"\0")
    assert len(body) == len(first)
    video.write_bytes(video.read_bytes().replace(first, body))
    (frame,) = Avi(video).read([0])
    assert frame.shape == (*SIZE, 3)
    assert np.array_equal(frame[..., 0], frame[..., 2])


def test_the_header_says_what_is_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.avi"
    write_avi(path, frames(7), fps=25)
    content = path.read_bytes()
    assert struct.unpack("<I", content[4:8])[0] == len(content) - 8
    main = content.index(b"avih") + 8
    micros, count, width, height = (struct.unpack_from("<I", content, main + k)[0] for k in (0, 16, 32, 36))
    assert (micros, count, width, height) == (40000, 7, SIZE[1], SIZE[0])
    stream = content.index(b"strh") + 8
    scale, rate, _, length = struct.unpack_from("<4I", content, stream + 20)
    assert (rate / scale, length) == (25, 7)


def test_the_index_points_at_the_images(video: Path) -> None:
    content = video.read_bytes()
    at, movie = content.index(b"idx1"), content.index(b"movi")
    assert struct.unpack_from("<I", content, at + 4)[0] == 5 * 16
    for k, image in enumerate(jpegs_of(video)):
        name, _, offset, size = struct.unpack_from("<4sIII", content, at + 8 + 16 * k)
        assert content[movie + offset : movie + offset + 4] == name
        assert content[movie + offset + 8 : movie + offset + 8 + size] == image


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


def test_a_file_cut_short_says_where(video: Path) -> None:
    content = video.read_bytes()
    cut = content.index(b"idx1") - 10
    video.write_bytes(content[:cut])
    with pytest.raises(DamagedVideo, match=rf"is cut short: its chunk b'00dc' at byte \d+ .* the file at {cut}"):
        Avi(video)


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


def test_frames_of_different_sizes_are_refused(tmp_path: Path, video: Path) -> None:
    other = io.BytesIO()
    Image.fromarray(frames(1)[0][:8, :8]).save(other, "JPEG", quality=30)
    image = max(jpegs_of(video), key=len)
    number = jpegs_of(video).index(image)
    assert len(other.getvalue()) <= len(image)
    video.write_bytes(video.read_bytes().replace(image, other.getvalue().ljust(len(image), b"\0")))
    with pytest.raises(DamagedVideo, match=f"frame {number} is 8 x 8 pixels, others 12 x 20"):
        Avi(video).read([(number + 1) % 5, number])


@pytest.mark.parametrize("shape", [(5, 4, 4), (5, 4, 4, 1), (0, 4, 4, 3)])
def test_frames_of_another_shape_are_not_written(shape: tuple[int, ...], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"frames must be \(T, height, width, 3\) uint8"):
        write_avi(tmp_path / "a.avi", np.zeros(shape, dtype=np.uint8))
    with pytest.raises(InputError, match="float64"):
        write_avi(tmp_path / "a.avi", np.zeros((2, 4, 4, 3)))
    assert list(tmp_path.iterdir()) == []
