"""Motion-JPEG files, and the clips that are made of them."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from cmixup.data import ManyViews, Sampled
from cmixup.errors import InputError
from datasets.common.video.avi import Avi, DamagedVideo
from datasets.common.video.clips import Clips, ClipSpec, EveryClip, RandomClips, measure_channels
from tests.datasets.samples import as_jpeg, write_avi

# ---- avi


SIZE = (12, 20)  # height, width


def frames(count: int = 5, seed: int = 0) -> np.ndarray:
    """Smooth colour gradients, which differ from frame to frame."""
    rng = np.random.default_rng(seed)
    y, x = np.linspace(0, 1, SIZE[0])[:, None, None], np.linspace(0, 1, SIZE[1])[None, :, None]
    slopes = rng.uniform(0, 127, (2, count, 1, 1, 3))
    return (slopes[0] * y + slopes[1] * x).astype(np.uint8)


@pytest.fixture
def video(tmp_path: Path) -> Path:
    path = tmp_path / "a.avi"
    write_avi(path, frames())
    return path


def test_frames_are_as_pillow_decodes_them(video: Path) -> None:
    read = Avi(video).read(range(5))
    assert (len(Avi(video)), read.shape, read.dtype) == (5, (5, *SIZE, 3), np.uint8)
    for frame, image in zip(read, frames(), strict=True):
        assert np.array_equal(frame, np.asarray(Image.open(io.BytesIO(as_jpeg(image))).convert("RGB")))


def test_an_empty_chunk_repeats_the_frame_before(video: Path) -> None:
    content = video.read_bytes()
    end = content.index(b"idx1")
    video.write_bytes(content[:end] + b"00dc" + struct.pack("<I", 0) + content[end:])
    assert len(Avi(video)) == 6
    one, other = Avi(video).read([4, 5])
    assert np.array_equal(one, other)


# ---- what is wrong with a file


def test_every_truncation_is_noticed_before_or_at_reading(video: Path) -> None:
    """But for a cut at the start of the index after the images, which nobody needs."""
    content = video.read_bytes()
    last = content.index(b"idx1")
    for length in [*range(0, len(content), 97), last - 1]:
        video.write_bytes(content[:length])
        if last <= length < last + 8:
            continue
        with pytest.raises(DamagedVideo, match=r"a\.avi"):
            Avi(video).read(range(5))


def test_another_codec_or_number_of_frames_than_the_header_says_is_refused(video: Path) -> None:
    with pytest.raises(InputError, match=r"video .*none\.avi is missing"):
        Avi(video.with_name("none.avi"))
    content = bytearray(video.read_bytes())
    video.write_bytes(content.replace(b"vidsMJPG", b"vidsXVID"))
    with pytest.raises(DamagedVideo, match=r"has codec b'XVID': only Motion-JPEG"):
        Avi(video)
    struct.pack_into("<I", content, content.index(b"avih") + 8 + 16, 6)
    video.write_bytes(content)
    with pytest.raises(DamagedVideo, match="holds 5 frames, its header says 6"):
        Avi(video)


def test_a_damaged_frame_is_named_and_the_others_read(video: Path) -> None:
    image = as_jpeg(frames()[3])
    video.write_bytes(video.read_bytes().replace(image, bytes(len(image))))
    avi = Avi(video)
    assert len(avi.read([0, 1, 2, 4])) == 4
    with pytest.raises(DamagedVideo, match=r"a\.avi: frame 3 cannot be decoded"):
        avi.read([2, 3])


# ---- clips


PLAIN = (np.zeros(3), np.ones(3))
STATS = (np.array([10.0, 20.0, 30.0]), np.array([2.0, 4.0, 8.0]))


class Numbered:
    """A video whose frame t holds 3 t, 3 t + 1 and 3 t + 2 in its channels, with the pixel's number added; 4 x 4."""

    def __init__(self, length: int):
        self.length = length

    def __len__(self) -> int:
        return self.length

    def read(self, numbers: np.ndarray) -> np.ndarray:
        assert all(0 <= n < self.length for n in numbers)
        values = 3 * np.asarray(numbers)[:, None, None, None] + np.arange(3)
        return (values + np.arange(16).reshape(4, 4, 1)).astype(np.uint8)


def spec(frames: int = 3, period: int = 2, pad: int = 0) -> ClipSpec:
    return ClipSpec(frames, period, 4, pad)


def clips_of(cls: type[Clips], lengths: tuple[int, ...], how: ClipSpec | None = None, **given: object) -> Clips:
    where = np.asarray(given.pop("where", np.zeros(len(lengths))))
    return cls([Numbered(n) for n in lengths], how or spec(), given.pop("stats", PLAIN), where)


def test_the_original_clip_spans_63_frames() -> None:
    """Every second of 63 frames gives the 32 of echonet/dynamic."""
    original = ClipSpec()
    assert (original.frames, original.period, original.size, original.pad) == (32, 2, 112, 12)
    assert original.span == 63
    assert original.starts(64) == 2
    assert original.starts(176) == 176 - 62
    assert [original.padded(n) for n in (28, 63, 64, 65)] == [64, 64, 64, 65]
    assert [original.starts(n) for n in (28, 63, 65)] == [2, 2, 3]


def test_fixed_clips_hold_every_second_frame_from_their_start_and_a_batch_its_rows() -> None:
    clips, starts = clips_of(Clips, (10, 10, 10, 10), where=[0.0, 0.3, 0.5, 0.999]), [0, 1, 3, 5]  # of 10 - 4 = 6
    assert (len(clips), clips.shape) == (4, (4, 3, 3, 4, 4))
    index = torch.tensor([2, 0, 3, 1, 2])
    batch = clips[index]
    assert (batch.dtype, batch.shape) == (torch.float32, (5, 3, 3, 4, 4))
    frames = (batch[:, 0, :, 0, 0] / 3).int()  # that its images show, by the first pixel
    assert frames.tolist() == [[starts[row], starts[row] + 2, starts[row] + 4] for row in index]


@pytest.mark.parametrize(
    ("length", "start", "held"), [(4, 0, 2), (4, 1, 2), (5, 0, 3), (5, 1, 2), (1, 0, 1), (1, 1, 0)]
)
def test_a_short_video_ends_in_zeros_after_normalisation(length: int, start: int, held: int) -> None:
    clips = clips_of(Clips, (length,), stats=STATS)
    clip = torch.from_numpy(clips.clip(clips.videos[0], start))
    long = clips_of(Clips, (20,), stats=STATS)
    whole = torch.from_numpy(long.clip(long.videos[0], start))
    assert torch.equal(clip[:, :held], whole[:, :held])
    assert (clip[:, held:] == 0).all()
    assert held == 3 or not torch.equal(whole[:, held:], clip[:, held:])


# ---- training


def test_random_clips_are_a_function_of_row_and_draw() -> None:
    clips = clips_of(RandomClips, (30, 30), spec(pad=2))
    assert isinstance(clips, Sampled)
    index, draw = torch.tensor([0, 1, 0]), torch.tensor([5, 5, 7])
    batch = clips.sample(index, draw)
    assert torch.equal(batch, clips.sample(index, draw))
    assert torch.equal(batch[0], batch[1])  # two videos alike
    assert not torch.equal(batch[0], batch[2])


def test_the_offsets_are_those_of_the_original() -> None:
    """0 to 2 pad - 1 in both directions, independently, the same for all frames of a clip."""
    clips = clips_of(RandomClips, (5,), spec(pad=2), stats=(np.full(3, -1.0), np.ones(3)))
    draws = torch.arange(400)
    seen = set()
    for clip in clips.sample(torch.zeros_like(draws), draws):
        there = clip[0, 0] != 0
        assert torch.equal(there, clip[2, 1] != 0)
        rows, columns = there.any(dim=1).nonzero()[:, 0].tolist(), there.any(dim=0).nonzero()[:, 0].tolist()
        # An offset below the padding leaves zeros before the picture, one above it after the picture.
        top, left = (2 - r[0] if r[0] else 2 + 3 - r[-1] for r in (rows, columns))
        seen.add((top, left))
    assert seen == {(i, j) for i in range(4) for j in range(4)}


# ---- testing


@pytest.mark.parametrize("size", [1, 4, 100])
def test_all_clips_of_a_video_in_order(size: int) -> None:
    clips = clips_of(EveryClip, (10, 3), stats=STATS)
    assert isinstance(clips, ManyViews)
    for row, count in ((0, 6), (1, 2)):
        blocks = list(clips.all_views(row, size))
        assert all(len(block) == size for block in blocks[:-1])
        assert len(blocks[-1]) <= size
        naive = np.stack([clips.clip(clips.videos[row], start) for start in range(count)])
        assert torch.equal(torch.cat(blocks), torch.from_numpy(naive))


# ---- statistics of the channels


def test_channel_statistics_are_those_of_the_pixels_of_the_fixed_clips() -> None:
    videos, where = [Numbered(n) for n in (10, 4, 30)], np.array([0.9, 0.0, 0.4])
    rows = np.array([0, 1])
    mean, std = measure_channels(videos, spec(), where, rows)
    frames = [videos[0].read([5, 7, 9]), videos[1].read([0, 2])]  # zeros of the short video do not count
    pixels = np.concatenate(frames).reshape(-1, 3).astype(float)
    np.testing.assert_allclose(mean, pixels.mean(axis=0))
    np.testing.assert_allclose(std, pixels.std(axis=0))


def test_frames_of_another_size_are_refused(video: Path) -> None:
    with pytest.raises(InputError, match=r"size is 5, but the frames of .*a\.avi are 12 x 20 pixels"):
        Clips([video], ClipSpec(3, 2, 5, 0), PLAIN, np.zeros(1))[torch.tensor([0])]
