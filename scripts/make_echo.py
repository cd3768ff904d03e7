"""Write generated videos in the folder layout of EchoNet-Dynamic, to try the reader and the network of Echo.

`python -m scripts.make_echo /tmp/echo --train 40 --val 10 --test 10`, then
`CMIXUP_DATA=/tmp/echo python -m scripts.train dataset=echo dataset.original=false`.
What they show: `datasets.common.video.discs`.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from rich.progress import track

from cmixup.errors import InputError
from cmixup.files import write_atomically
from datasets.common.base import SPLITS
from datasets.common.video.avi import write_avi
from datasets.common.video.discs import FPS, Disc, SyntheticVideos
from datasets.echo import FOLDER
from scripts.driver.cli import user_errors

LIST = ("FileName", "EF", "ESV", "EDV", "FrameHeight", "FrameWidth", "FPS", "NumberOfFrames", "Split")
TRACINGS = ("FileName", "X1", "Y1", "X2", "Y2", "Frame")
CHORDS = 20  # short axes of a traced frame, after its long axis; as the original's


def make(out: Path, counts: dict[str, int], frames: int = 120, size: int = 112, seed: int = 0) -> Path:
    """Write the videos and, last, their tables.

    Args:
        out: a data root: the folder EchoNet-Dynamic is made in it.
        counts: videos of each split.
        frames: of the shortest video; the longest has half as many again.
        size: height and width in pixels.
        seed: of all videos.

    Returns:
        The folder EchoNet-Dynamic.

    Raises:
        InputError: a number below its least, or a folder that holds a FileList.csv already.
    """
    least = {**dict.fromkeys(SPLITS, 1), "frames": 2, "size": 8, "seed": 0}
    for name, value in {**counts, "frames": frames, "size": size, "seed": seed}.items():
        if value < least[name]:
            raise InputError(f"{name} must be {least[name]} or more, got {value!r}")
    root = out / FOLDER.path
    if (root / "FileList.csv").exists():
        raise InputError(f"out {out} holds {root / 'FileList.csv'} already; nothing is written over it")
    listed, traced = [], []
    made = [(part, k, disc) for s, part in enumerate(SPLITS) for k, disc in
            enumerate(SyntheticVideos((seed, s), counts[part], frames, size).discs)]  # fmt: skip
    for part, k, disc in track(made, "writing videos", transient=True):
        name = f"GENERATED_{part}_{k:05d}"
        write_avi(root / "Videos" / f"{name}.avi", disc.read(np.arange(len(disc))), FPS)
        smallest, largest = disc.volumes
        listed.append((name, disc.ejection_fraction, smallest, largest, size, size, FPS, len(disc), part.upper()))
        for frame in disc.extremes():
            traced += [(f"{name}.avi", *chord, frame) for chord in chords(disc, frame)]
    write_atomically(root / "VolumeTracings.csv", table(TRACINGS, traced))
    write_atomically(root / "FileList.csv", table(LIST, listed))
    return root


def chords(disc: Disc, frame: int) -> Iterator[tuple[float, float, float, float]]:
    """Yield (x1, y1, x2, y2) of the long axis of a frame's disc and of `CHORDS` lines across it."""
    (x, y), radius = disc.middle(frame), float(disc.radius(frame))
    yield x, y - radius, x, y + radius
    for height in np.linspace(-radius, radius, CHORDS + 2)[1:-1]:
        half = (radius**2 - height**2) ** 0.5
        yield x - half, y + height, x + half, y + height


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return rows as CSV text."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([columns, *rows])
    return stream.getvalue()


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.make_echo", description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="a data root, to be used as CMIXUP_DATA")
    for part, count in zip(SPLITS, (40, 10, 10), strict=True):
        parser.add_argument(f"--{part}", type=int, default=count, help=f"videos; default {count}")
    parser.add_argument("--frames", type=int, default=120, help="of the shortest video; default 120")
    parser.add_argument("--size", type=int, default=112, help="height and width in pixels; default 112")
    parser.add_argument("--seed", type=int, default=0, help="default 0")
    given = parser.parse_args(argv)
    with user_errors():
        counts = {part: getattr(given, part) for part in SPLITS}
        root = make(given.out, counts, given.frames, given.size, given.seed)
        print(f"{sum(counts.values())} generated videos written to {root}")


if __name__ == "__main__":
    main()
