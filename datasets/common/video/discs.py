"""Generated heart beats: a bright disc in speckle noise whose area shrinks and grows, for tests of the video machine.

The ejection fraction is that of the disc's area, 100 (1 - (r_systole / r_diastole)^2). Nothing else of an
echocardiogram is imitated, so a score on these videos says nothing about hearts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

FPS = 50.0  # of most videos of EchoNet-Dynamic
DISC, GROUND = 170.0, 40.0  # mean brightness inside and outside
SPECKLE = 0.15  # standard deviation of the multiplicative noise


@dataclass(frozen=True)
class Disc:
    """One generated video; every frame is a pure function of these values and its number.

    Attributes:
        length: frames.
        size: height and width in pixels.
        diastole, systole: largest and smallest radius in pixels.
        beat: frames from one largest radius to the next.
        phase: frame at which the radius is largest; below `beat`.
        centre: (x, y) in pixels.
        drift: (x, y) pixels that the centre moves from the first to the last frame.
        seed: of the speckle.
    """

    length: int
    size: int
    diastole: float
    systole: float
    beat: float
    phase: float
    centre: tuple[float, float]
    drift: tuple[float, float]
    seed: tuple[int, ...]

    def __len__(self) -> int:
        return self.length

    @property
    def ejection_fraction(self) -> float:
        """Percent of the largest area that the smallest lacks."""
        return 100 * (1 - (self.systole / self.diastole) ** 2)

    @property
    def volumes(self) -> tuple[float, float]:
        """Smallest and largest area in square pixels, in place of end-systolic and end-diastolic volume."""
        return np.pi * self.systole**2, np.pi * self.diastole**2

    def radius(self, number: float | np.ndarray) -> np.ndarray:
        """Return the radius in pixels at frames `number`."""
        share = (1 + np.cos(2 * np.pi * (np.asarray(number) - self.phase) / self.beat)) / 2
        return self.systole + (self.diastole - self.systole) * share

    def middle(self, number: int) -> tuple[float, float]:
        """Return the centre (x, y) at frame `number`."""
        moved = number / max(self.length - 1, 1)
        return self.centre[0] + self.drift[0] * moved, self.centre[1] + self.drift[1] * moved

    def extremes(self) -> tuple[int, int]:
        """Return the frames with the smallest and the largest radius."""
        radii = self.radius(np.arange(self.length))
        return int(radii.argmin()), int(radii.argmax())

    def read(self, numbers: np.ndarray) -> np.ndarray:
        """Return frames `(L, size, size, 3)` uint8; the three channels are equal."""
        return np.stack([self._frame(int(number)) for number in numbers])

    def _frame(self, number: int) -> np.ndarray:
        x, y = self.middle(number)
        pixel = np.arange(self.size)
        distance = np.hypot(pixel[None, :] - x, pixel[:, None] - y)
        inside = np.clip(float(self.radius(number)) - distance + 0.5, 0, 1)  # the rim is one pixel wide
        noise = np.random.default_rng((*self.seed, number)).normal(1, SPECKLE, inside.shape)
        grey = np.clip((GROUND + (DISC - GROUND) * inside) * noise, 0, 255).astype(np.uint8)
        return np.repeat(grey[..., None], 3, axis=2)


def draw_disc(seed: tuple[int, ...], length: int, size: int) -> Disc:
    """Return a video with random ejection fraction, heart rate, phase, place and size, all from `seed`.

    Ejection fractions have mean 55.8 and standard deviation 12.4 before they are cut to 10..85: about those of
    EchoNet-Dynamic. A beat takes 20 to 50 frames (150 to 60 beats a minute), less where the video is shorter.
    """
    rng = np.random.default_rng(seed)
    fraction = float(np.clip(rng.normal(55.8, 12.4), 10, 85))
    diastole = size * rng.uniform(0.22, 0.32)
    beat = rng.uniform(min(20, length / 2), min(50, length))
    drift = rng.uniform(-0.03, 0.03, 2) * size
    place = size * rng.uniform(0.42, 0.58, 2)
    return Disc(
        length, size, diastole, diastole * (1 - fraction / 100) ** 0.5, beat, rng.uniform(0, beat),
        (float(place[0]), float(place[1])), (float(drift[0]), float(drift[1])), seed,
    )  # fmt: skip


class SyntheticVideos:
    """Generated videos in place of files.

    Args:
        seed: of all of them.
        count: how many.
        length: frames of each, drawn between this and half as many again.
        size: height and width in pixels.
    """

    workers: ClassVar[int] = 0  # a frame is made faster than it is handed from one process to another

    def __init__(self, seed: tuple[int, ...], count: int, length: int, size: int):
        lengths = np.random.default_rng(seed).integers(length, length + length // 2 + 1, count)
        self.discs = [draw_disc((*seed, k), int(frames), size) for k, frames in enumerate(lengths)]

    def __len__(self) -> int:
        return len(self.discs)

    def open(self, row: int) -> Disc:
        """Return one video."""
        return self.discs[row]
