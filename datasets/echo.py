"""Echo: EchoNet-Dynamic."""

from pathlib import Path

import numpy as np
import pandas as pd

from cmixup.data import RegressionData
from cmixup.errors import MAX_TEXT, InputError, format_value
from datasets.common.base import SPLITS, Dataset
from datasets.common.damaged import naming
from datasets.common.fetch import raw_folder, sha256_of
from datasets.common.video.clips import Clips, ClipSpec, EveryClip, Pulse, RandomClips, measure_channels, pulses

FOLDER = raw_folder("echo")
STATS_SAMPLE = 128  # training videos that mean and standard deviation are taken from; echonet/dynamic
SYNTHETIC_SIZES = {"train": 40, "val": 8, "test": 8}
Listing = dict[str, dict[Path | Pulse, float]]  # of each split the videos, and their ejection fractions in percent


class Echo(Dataset):
    """Ejection fraction from ultrasound videos of the heart (apical four-chamber view).

    Origin: EchoNet-Dynamic, Stanford University Hospital 2016-2018; 10,030 Motion-JPEG AVI files of 112 x 112 pixels,
    about 50 frames a second. Videos with fewer than two traced frames are left out.
    y: left ventricular ejection fraction in percent. x: a clip of 32 frames, every second one, each channel normalised
    by its mean and standard deviation over 128 random training videos; zeros after the end of a short video.
    Training sees a random clip and crop (12 pixels of zeros around, 112 x 112 cut out) every time, validation one
    random clip a video, fixed by the seed, and testing every clip, whose predictions are averaged.
    Shapes: x (N, 3, 32, 112, 112), y (N, 1); 10024 rows, split 7460 / 1288 / 1276 by its FileList.csv, the same for
    every run seed. No domains.
    Nobody has published checksums of it: a record carries that of FileList.csv only. A part of it, or other videos in
    its layout, are taken, and results say so.
    Licence: Stanford University School of Medicine EchoNet-Dynamic Dataset Research Use Agreement; every user has to
    accept it, and no part may be passed on. Citation: Ouyang et al., "Video-based AI for beat-to-beat assessment of
    cardiac function", Nature 580, 2020.

    Args:
        frames, period, size, pad: see `datasets.common.video.clips.ClipSpec`.
        synthetic: use synthetic data, generated videos in memory.
    """

    name = "echo"
    folders = (FOLDER,)
    unit = "ejection fraction, percent"
    x_shape = (3, 32, 112, 112)
    rows = 10_024
    split_sizes = (7460, 1288, 1276)

    def __init__(self, frames: int = 32, period: int = 2, size: int = 112, pad: int = 12, *, synthetic: bool = False):
        super().__init__(synthetic)
        self.spec = ClipSpec(frames, period, size, pad)

    def load(self, seed: int) -> RegressionData:
        if self.synthetic:
            length = self.spec.span + 1
            by_part = {part: pulses(k, SYNTHETIC_SIZES[part], length, self.spec.size) for k, part in enumerate(SPLITS)}
            listing: Listing = {part: {pulse: pulse.fraction for pulse in group} for part, group in by_part.items()}
            checksums, notes = dict[str, str](), list[str]()
        else:
            root = FOLDER.find()
            listing = read_listing(root)
            checksums = {f"{FOLDER.path}/FileList.csv": sha256_of(root / "FileList.csv")}
            notes = ["the checksum is of FileList.csv only: none is public of the videos"]
            if (counts := tuple(len(listing[part]) for part in SPLITS)) != self.split_sizes:
                listed, expected = (" / ".join(map(str, sizes)) for sizes in (counts, self.split_sizes))
                notes.append(f"not EchoNet-Dynamic as published: {listed} videos, expected {expected}")
        videos = {part: list(listing[part]) for part in SPLITS}
        labels = {part: np.array(list(listing[part].values())) for part in SPLITS}
        rng = np.random.default_rng([seed, 0])
        where = {part: rng.random(len(videos[part])) for part in SPLITS}
        sample = rng.permutation(len(videos["train"]))[:STATS_SAMPLE]
        stats = measure_channels(videos["train"], self.spec, where["train"], sample)
        kinds: dict[str, type[Clips]] = {"train": RandomClips, "val": Clips, "test": EveryClip}
        splits = (
            self.make_split(part, kinds[part](videos[part], self.spec, stats, where[part]), labels[part])
            for part in SPLITS
        )
        return self.assemble(seed, splits, checksums, notes)


def read_listing(root: Path) -> Listing:
    """Return the videos of every split that have two or more traced frames, in order of FileList.csv."""
    traced = _read(root / "VolumeTracings.csv", ["FileName", "Frame"])
    frames = traced["Frame"].groupby(traced["FileName"].str.removesuffix(".avi")).nunique()  # the list has no suffixes
    path, file_names = root / "FileList.csv", {entry.name for entry in (root / "Videos").iterdir()}
    listed = _read(path, ["FileName", "EF", "Split"])
    parts, fractions = listed["Split"].str.lower(), pd.to_numeric(listed["EF"], errors="coerce")
    for column, is_valid, expected in (("Split", parts.isin(SPLITS), "TRAIN, VAL or TEST"),
                                ("EF", fractions.between(0, 100), "a percentage from 0 to 100")):  # fmt: skip
        if not is_valid.all():
            line, value = is_valid.idxmin(), format_value(listed[column][is_valid.idxmin()])
            raise InputError(f"{path}, line {line}: {column} must be {expected}, got {value}")
    stems = listed["FileName"].str.removesuffix(".avi")
    if missing := [f"{stem}.avi" for stem in stems if f"{stem}.avi" not in file_names]:
        first = ", ".join(name[:MAX_TEXT] for name in missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise InputError(f"{len(missing)} videos that {path} lists are missing in {root / 'Videos'}: {first}")
    listing: Listing = {part: {} for part in SPLITS}
    for stem, part, fraction in zip(stems, parts, fractions.tolist(), strict=True):
        if frames.get(stem, 0) >= 2:
            listing[part][root / "Videos" / f"{stem}.avi"] = fraction
    return listing


def _read(path: Path, columns: list[str]) -> pd.DataFrame:
    """Return some columns of a table with a header as text, with the numbers of their lines as index."""
    with naming(path, "a table"):
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, index_col=False)
    for column in columns:
        if column not in frame:
            raise InputError(f"{path} has no column {column!r}; its columns are {', '.join(frame)[:200] or 'none'}")
    frame.index += 2
    if (short := (frame[columns] == "").any(axis=1)).any():
        raise InputError(f"{path}, line {short.idxmax()}: the row is cut short")
    return frame[columns]
