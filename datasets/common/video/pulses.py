"""Generated videos: grey noise whose brightness falls and rises by a share, in place of a heart's volume."""

from dataclasses import dataclass

import numpy as np

BEAT = 25  # frames


@dataclass(frozen=True)
class Pulse:
    """One video; every frame is a function of these values and its number.

    Attributes:
        seed: of the noise.
        length: frames.
        size: height and width in pixels.
        fraction: percent of the largest brightness that the smallest lacks.
    """

    seed: tuple[int, ...]
    length: int
    size: int
    fraction: float

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
    """Return generated videos in place of files.

    Args:
        seed: of all of them.
        count: how many.
        length: frames of each, drawn between this and half as many again.
        size: height and width in pixels.
    """
    rng = np.random.default_rng(seed)
    lengths, fractions = rng.integers(length, length + length // 2 + 1, count), rng.uniform(10, 85, count)
    videos = enumerate(zip(lengths.tolist(), fractions.tolist(), strict=True))
    return [Pulse((seed, k), frames, size, fraction) for k, (frames, fraction) in videos]
