"""Clips of videos, decoded when a batch asks for them (echonet/dynamic, echonet/datasets/echo.py).

A clip is `frames` frames, every `period`-th from a start frame on, normalised by channel. A video of fewer than
frames * period frames is filled up with zeros after its end, once it is normalised: frames of the mean colour.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from cmixup.data import WORKERS, in_threads
from cmixup.errors import InputError, check_count
from datasets.common.video.avi import CHANNELS, Avi

BEAT = 25  # frames of a generated heart's


@dataclass(frozen=True)
class Pulse:
    """A generated video: grey noise whose brightness falls and rises by a share, in place of a heart's volume.

    Every frame is a function of these values and its number.
    """

    seed: tuple[int, ...]
    length: int  # frames
    size: int  # height and width in pixels
    fraction: float  # percent of the largest brightness that the smallest lacks

    def __len__(self) -> int:
        return self.length

    def read(self, numbers: np.ndarray) -> np.ndarray:
        """Return frames `(L, size, size, 3)` uint8; the three channels are equal."""
        noise = np.stack([np.random.default_rng((*self.seed, int(k))).integers(100, 256, (self.size,) * 2)
                          for k in numbers])  # fmt: skip
        level = 1 - self.fraction / 200 * (1 - np.cos(2 * np.pi * np.asarray(numbers) / BEAT))
        grey = (level[:, None, None] * noise).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=3)


def pulses(seed: int, count: int, length: int, size: int) -> list[Pulse]:
    """Return so many generated videos of `length` frames to half as many again, `size` pixels high and wide."""
    rng = np.random.default_rng(seed)
    lengths, fractions = rng.integers(length, length + length // 2 + 1, count), rng.uniform(10, 85, count)
    videos = enumerate(zip(lengths.tolist(), fractions.tolist(), strict=True))
    return [Pulse((seed, k), frames, size, fraction) for k, (frames, fraction) in videos]


#: One video; any of its frames can be read.
Video = Avi | Pulse


def open_video(source: Path | Video) -> Video:
    """Return the video in a Motion-JPEG AVI file, which is read anew every time, or the one that is given."""
    return Avi(source) if isinstance(source, Path) else source


@dataclass(frozen=True)
class ClipSpec:
    """What a clip looks like."""

    frames: int = 32
    period: int = 2  # distance between two of them in the video
    size: int = 112  # height and width in pixels
    pad: int = 12  # zeros on every side, before training crops to the old size at random; 0 for none

    def __post_init__(self) -> None:
        for name, minimum in (("frames", 1), ("period", 1), ("size", 1), ("pad", 0)):
            check_count(name, getattr(self, name), minimum)

    @property
    def span(self) -> int:
        """Frames from the first to the last of a clip, both counted."""
        return (self.frames - 1) * self.period + 1

    def padded(self, length: int) -> int:
        """Return how long a video of `length` frames is once it is filled up."""
        return max(length, self.frames * self.period)

    def starts(self, length: int) -> int:
        """Return how many clips, one at each start frame, a video of `length` frames has."""
        return self.padded(length) - self.span + 1


class Clips:
    """One clip a video, always the same: it starts at a share `where: (N,)` in [0, 1) of the start frames there are.

    `stats` are mean and standard deviation of the pixels of each channel, both `(3,)`, on the scale 0 to 255. Worker
    processes read files ahead, but not videos in memory, which are made faster than handed over.
    """

    def __init__(
        self, videos: Sequence[Path | Video], spec: ClipSpec, stats: tuple[np.ndarray, np.ndarray], where: np.ndarray
    ):
        self.videos, self.spec, self.where = videos, spec, where
        self.workers = WORKERS if any(isinstance(video, Path) for video in videos[:1]) else 0
        self._mean, self._std = (v.astype(np.float32).reshape(-1, 1, 1, 1) for v in stats)
        self.shape = torch.Size((len(videos), CHANNELS, spec.frames, spec.size, spec.size))

    def __len__(self) -> int:
        return len(self.videos)

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the clips `(B, 3, frames, size, size)` of the videos `index: (B,)` int64."""
        return torch.from_numpy(np.stack(in_threads(self._fixed_clip, index.tolist())))

    def _fixed_clip(self, row: int) -> np.ndarray:
        video = open_video(self.videos[row])
        return self.clip(video, int(self.where[row] * self.spec.starts(len(video))))

    def clip(self, video: Video, start: int) -> np.ndarray:
        """Return the clip `(3, frames, size, size)` float32 that starts at frame `start`."""
        spec = self.spec
        numbers = start + spec.period * np.arange(spec.frames)
        numbers = numbers[numbers < len(video)]
        clip = np.zeros((CHANNELS, spec.frames, spec.size, spec.size), dtype=np.float32)
        if len(numbers):
            clip[:, : len(numbers)] = self._normalised(video, numbers)
        return clip

    def _normalised(self, video: Video, numbers: np.ndarray) -> np.ndarray:
        """Return frames as `(3, L, size, size)` float32."""
        frames = read_frames(video, numbers, self.spec.size)
        return (frames.transpose(3, 0, 1, 2) - self._mean) / self._std


class RandomClips(Clips):
    """For training: `sample` gives a clip at a random start frame, cropped at random; `[]` gives the fixed one."""

    def sample(self, index: Tensor, draw: Tensor) -> Tensor:
        """Return clips of the videos `index: (B,)`; start and crop are a pure function of `draw: (B,)` int64."""
        pairs = zip(index.tolist(), draw.tolist(), strict=True)
        return torch.from_numpy(np.stack(in_threads(self._random_clip, pairs)))

    def _random_clip(self, pair: tuple[int, int]) -> np.ndarray:
        row, draw = pair
        rng, video = np.random.default_rng(draw), open_video(self.videos[row])
        clip = self.clip(video, int(rng.integers(self.spec.starts(len(video)))))
        pad, size = self.spec.pad, self.spec.size
        if pad == 0:
            return clip
        top, left = rng.integers(0, 2 * pad, 2).tolist()  # 2 pad itself is left out, as in the original
        wide = np.pad(clip, [(0, 0), (0, 0), (pad, pad), (pad, pad)])
        return wide[..., top : top + size, left : left + size]


class EveryClip(Clips):
    """For testing: `all_views` gives the clips at all start frames; `[]` gives the fixed one."""

    def all_views(self, row: int, size: int) -> Iterator[Tensor]:
        """Yield the clips of one video in order of their start frames, in blocks `(b, 3, frames, size, size)`."""
        spec, video = self.spec, open_video(self.videos[row])
        frames = np.zeros((CHANNELS, spec.padded(len(video)), spec.size, spec.size), dtype=np.float32)
        frames[:, : len(video)] = self._normalised(video, np.arange(len(video)))
        windows = torch.from_numpy(frames).unfold(1, spec.span, 1)[..., :: spec.period]  # a view: nothing is copied yet
        clips = windows.permute(1, 0, 4, 2, 3)
        for start in range(0, len(clips), size):
            yield clips[start : start + size].contiguous()


def read_frames(video: Video, numbers: np.ndarray, size: int) -> np.ndarray:
    """Return frames `(L, size, size, 3)` uint8, which must have that size."""
    frames = video.read(numbers)
    if frames.shape[1:] != (size, size, CHANNELS):
        name = getattr(video, "path", "a video")
        raise InputError(f"size is {size}, but the frames of {name} are {frames.shape[1]} x {frames.shape[2]} pixels")
    return frames


def measure_channels(
    videos: Sequence[Path | Video], spec: ClipSpec, where: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of each channel, `(3,)`, over the clips of some videos, zeros apart."""

    def sums(row: int) -> np.ndarray:
        video = open_video(videos[row])
        start = int(where[row] * spec.starts(len(video)))
        numbers = np.arange(start, min(start + spec.span, len(video)), spec.period)
        if not len(numbers):  # the clip begins after the end of a short video
            numbers = np.arange(len(video))
        pixels = read_frames(video, numbers, spec.size).reshape(-1, CHANNELS).astype(np.float64)
        return np.stack([pixels.sum(axis=0), np.square(pixels).sum(axis=0), np.full(CHANNELS, len(pixels))])

    total, squares, count = sum(in_threads(sums, rows.tolist()))
    mean = total / count
    std = np.sqrt(np.maximum(squares / count - mean**2, 0))
    return mean, np.where(std > 0, std, 1.0)
