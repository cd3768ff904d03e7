"""Images of your own: a folder, and a table with their labels."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmixup.data import RegressionData, in_threads
from cmixup.errors import InputError, check_choice, check_count, check_positive, format_value, nearest
from cmixup.files import sha256_of
from cmixup.inputs.images import (
    CHANNELS,
    DEEP_MODES,
    IMAGENET,
    ImageFiles,
    ImagePreprocessing,
    ImageRows,
    list_images,
    read_image,
)
from cmixup.inputs.spread import VANISH
from cmixup.networks.vision import import_torchvision
from cmixup.tables.columns import level_codes
from cmixup.tables.written import unit_of
from datasets.common.base import SPLITS
from datasets.common.table.fitting import label_column
from datasets.common.table.image_table import ImageTable, read_image_table
from datasets.common.table.problems import label_notes
from datasets.common.table.reading import columns_named
from datasets.common.table.splits import split_user_rows
from datasets.common.table.text_file import TextFile
from datasets.common.table.user import as_names

AUGMENTS = ("none", "flip", "crop+flip")
MOST_PIXELS = 4096  # a side
LEAST_AREA = 0.5  # of an image that a random crop keeps
SYNTHETIC_ROWS, SYNTHETIC_SIZE = 120, 24
GB = 1e9


@dataclass(frozen=True)
class Labelled:
    """The images that can be used, and the entries of their table."""

    files: ImageFiles
    y: np.ndarray  # (N, d_y) float64 labels
    domain: np.ndarray  # (N,) int64, 0 without a group
    parts: dict[int, object]  # the word of each that names its part, by the table's row, if a column does
    moments: np.ndarray  # (3, N, 3) float64: mean, mean square and variance of each image's pixels, the largest 1
    units: tuple[str, ...]  # of the labels
    source: str  # how errors call the table
    checksums: Mapping[str, str]  # of the table, and of the list of images
    notes: tuple[str, ...]  # what was left out


class Images(TextFile):
    """Images in a folder with labels in a table: `images=photos labels=labels.csv target=age`.

    Origin: the user's. y: the columns named by `target`, in their own units. x: red, green and blue, for each channel
    minus the mean and over the standard deviation. Every image is decoded once before training, so that what is broken
    is known by then; all stay in memory where `memory` allows that, else worker processes read them.
    Shapes: x (N, 3, size, size), y (N, targets); split 60 / 20 / 20 anew for every run seed, by whole domains if
    `group` names a column, or as the column `split` says.
    Licence: the user's to know. Citation: the user's to give.

    Args:
        path: the folder.
        labels: the table, any file that `table=` reads.
        target: the label's column, or a list of several, which may have gaps: of a row what is there counts. Rows
            without any are left out and counted.
        image: the column that names images, by path or name with or without the ending; "" finds it.
        size: pixels a side: the shorter side of an image becomes that, and the centre is cut out.
        normalise: by mean and standard deviation of the training images ("train"), or of ImageNet ("weights"), as
            torchvision's weights were trained.
        augment: what training sees: "none", "flip" (half of the time mirrored, left for right) or "crop+flip" (also a
            random square of half the area or more). A flip changes a label that knows left from right, as a pose does,
            and a crop one that counts or measures.
        group: a column of domains; whole domains go to training, validation and test.
        split: a column that names each row's part; without validation a fifth of training validates.
        skip_broken: go on without rows whose image is missing, broken or another row's, too.
        memory: GB that decoded images may take.
        synthetic: use synthetic data, whose images are 24 x 24.
        file: how the table is written, see `TextFile`.
    """

    name = "images"
    unit = "the table's own"
    place = "a folder of your own: images="
    user_files = ("path", "labels")
    baselines = True

    def __init__(
        self, path: str = "", *, labels: str = "", target: str | int | list = "", image: str | int = "",
        size: int = 224, normalise: str = "train", augment: str = "none", group: str | int = "", split: str | int = "",
        skip_broken: bool = False, memory: float = 4.0, **file: Any,
    ):  # fmt: skip
        super().__init__(path, **file)
        self.folder, self.labels, self.targets, self.image = Path(path), Path(labels), as_names(target), str(image)
        self.size, self.memory = check_count("size", size, 1, most=MOST_PIXELS), check_positive("memory", memory)
        self.normalise = check_choice("normalise", normalise, ("train", "weights"))
        self.augment = check_choice("augment", augment, AUGMENTS)
        self.group, self.split, self.skip_broken = str(group), str(split), skip_broken
        if self.group and self.split:
            raise InputError(f"group and split both say what is split, got {self.group!r} and {self.split!r}")

    @cached_property
    def checksums(self) -> dict[str, str]:
        """SHA-256 of the table, and of names and sizes of the images."""
        if not (self.labels.is_file() and self.folder.is_dir()):
            return {}
        listed = [f"{p.relative_to(self.folder).as_posix()} {p.stat().st_size}" for p in list_images(self.folder)]
        digest = hashlib.sha256("\n".join(listed).encode()).hexdigest()
        return {self.labels.name: sha256_of(self.labels), f"{self.folder.name}/ (names and sizes)": digest}

    def problems(self) -> tuple[str, ...]:
        """Return where the pixels are."""
        files = self.labelled.files
        gb, budget = files.shape.numel() * (4 if files.deep else 1) / GB, f"{self.memory:g} GB (dataset.memory)"
        description = f"{len(files.files)} images of {files.size} x {files.size} pixels"
        if files.kept is None:
            return (f"{description} would take {gb:.3g} GB, more than {budget}: they are read again for every batch",)
        return (f"{description} are kept in memory: {gb:.3g} GB of {budget}",)

    @cached_property
    def labelled(self) -> Labelled:
        """The images that can be used, or synthetic ones, if these are asked for."""
        return self._synthetic() if self.synthetic else self._read()

    def load(self, seed: int) -> RegressionData:
        data, rng = self.labelled, np.random.default_rng(seed)
        part_words = (data.parts, f"{data.source}, column {self.split}") if self.split else None
        rows = split_user_rows(len(data.y), rng, data.source, data.domain if self.group else None, part_words)
        mean, std = IMAGENET if self.normalise == "weights" else _moments(data, rows["train"])
        targets = self.targets or ("y",)
        preprocessing = ImagePreprocessing(targets, data.units, data.files.size, data.files.deep, mean, std)
        inputs: dict[str, Any] = {p: ImageRows(data.files, torch.from_numpy(at), mean, std) for p, at in rows.items()}
        if self.augment != "none":
            inputs["train"] = AugmentedRows(inputs["train"], crops="crop" in self.augment)
        splits = (self.make_split(part, inputs[part], data.y[at], data.domain[at]) for part, at in rows.items())
        more = {"unit": preprocessing.labels, "worst": ("rmse",) if self.group else ()}
        return self.assemble(seed, splits, data.checksums, data.notes, preprocessing=preprocessing.to_json(), **more)

    def _read(self) -> Labelled:
        """Read the table, decode all images, and leave out rows without a label or, if asked, without an image."""
        for option, value in (("path", self.folder), ("labels", self.labels)):
            if value == Path():
                raise InputError(f"{option} must be given: images=photos labels=labels.csv target=age")
        table = read_image_table(self.labels, self.folder, self.image, form=self.format)
        columns, source = self._columns(table), str(self.labels)
        labels, readings = zip(*(label_column(table.frame[c], source) for c in columns["target"]), strict=True)
        y, wrong = np.column_stack(labels), dict(table.wrong)
        files = [Path() if file is None else file for file in table.files]
        deep = any(in_threads(is_deep, [file for file in table.files if file]))
        pixels, moments = self._decoded(files, deep, table, wrong)
        if wrong and not self.skip_broken:
            others = f"; and {len(wrong) - 1} more" if len(wrong) > 1 else ""
            raise InputError(f"{wrong[min(wrong)]}{others} (dataset.skip_broken=true goes on without)")
        unknown, has_image = np.isnan(y).all(axis=1), np.array([row not in wrong for row in range(len(y))])
        notes = (
            [f"{len(wrong)} rows have no image that can be used and are left out: {wrong[min(wrong)]}"] if wrong else []
        )
        notes += [f"{table.unlabelled} images below {self.folder.name} have no row"] * bool(table.unlabelled)
        domain = np.zeros(len(y), dtype=np.int64)
        for column in columns["group"]:
            domain = level_codes(table.frame[column])
            unknown |= domain < 0
        if (is_dropped := unknown & has_image).any():
            notes.append(f"{int(is_dropped.sum())} of {len(y)} rows lack a target or a group and are left out")
        rows = np.flatnonzero(has_image & ~unknown)
        parts = {int(row) + 1: table.frame[column].iloc[row] for column in columns["split"] for row in rows}
        label_notes(columns["target"], y[rows], source, log=True)
        usable = ImageFiles([files[row] for row in rows], self.size, deep=deep)
        if pixels is not None:
            usable.kept = pixels if len(rows) == len(y) else pixels[torch.from_numpy(rows)]
        units = tuple(unit_of(reading.form) for reading in readings)
        moments = moments[:, rows]
        return Labelled(usable, y[rows], domain[rows], parts, moments, units, source, self.checksums, tuple(notes))

    def _columns(self, table: ImageTable) -> dict[str, tuple[str, ...]]:
        """Return the columns that the options name, as the table spells them; they must be there."""
        known = [str(name) for name in table.frame]
        if not self.targets:
            raise InputError(f"target must name a column of {self.labels}{nearest('', known)}")
        options = {"target": self.targets, "group": as_names(self.group), "split": as_names(self.split)}
        columns = columns_named(options, known, self.labels)
        for option, names in columns.items():
            if table.column in names:
                raise InputError(f"{option} {format_value(table.column)} is the column of images{nearest('', known)}")
        self.targets = columns["target"]
        return columns

    def _decoded(
        self, paths: list[Path], deep: bool, table: ImageTable, wrong: dict[int, str]
    ) -> tuple[Tensor | None, np.ndarray]:
        """Decode every image: return all pixels if they may stay, and moments of each; note the broken."""
        n, shape = len(paths), (len(paths), CHANNELS, self.size, self.size)
        fits = math.prod(shape) * (4 if deep else 1) <= self.memory * GB
        images = torch.zeros(shape, dtype=torch.int32 if deep else torch.uint8) if fits else None
        moments, largest = np.zeros((3, n, CHANNELS)), 65535 if deep else 255

        def decode(row: int) -> None:
            try:
                pixels = read_image(paths[row], self.size, deep=deep)
            except InputError as error:
                wrong[row] = f"{self.labels}, row {row + 1}, column {table.column}: {error}"
                return
            if images is not None:
                images[row] = torch.from_numpy(pixels)
            values = pixels.reshape(CHANNELS, -1) / largest
            moments[:, row] = values.mean(axis=1), np.square(values).mean(axis=1), values.var(axis=1)

        in_threads(decode, [row for row in range(n) if row not in wrong])
        return images, moments

    def _synthetic(self) -> Labelled:
        """Return discs on noise, whose label is their radius; the other labels are the centre."""
        rng, n, size = np.random.default_rng(0), SYNTHETIC_ROWS, SYNTHETIC_SIZE
        truth = rng.uniform(4, 10, (n, max(len(self.targets), 1)))
        across = np.arange(size)
        distance = np.hypot(*np.meshgrid(across - size / 2, across - size / 2))
        pixels = rng.integers(0, 60, (n, CHANNELS, size, size)) + 150 * (distance < truth[:, :1, None])[:, None]
        files = ImageFiles([Path()] * n, size, deep=False)
        files.kept = torch.from_numpy(pixels.astype(np.uint8))
        values = pixels.reshape(n, CHANNELS, -1) / 255.0
        domain = rng.integers(0, 12 if self.group else 1, n)
        parts: dict[int, object] = {k + 1: SPLITS[k % 3] for k in range(n)}
        moments = np.stack([values.mean(axis=2), np.square(values).mean(axis=2), values.var(axis=2)])
        return Labelled(files, truth, domain, parts, moments, ("",) * truth.shape[1], "the stand-in", {}, ())


class AugmentedRows:
    """Training images; every epoch sees another view of each: see `Images.augment`."""

    def __init__(self, images: ImageRows, *, crops: bool):
        self.images, self.crops, self.shape, self.workers = images, crops, images.shape, images.workers
        self.pictures, self.device = images.pictures, images.device

    def __len__(self) -> int:
        return self.shape[0]

    def to(self, device: torch.device) -> "AugmentedRows":
        """Return these images where `ImageRows.to` brings them."""
        return AugmentedRows(self.images.to(device), crops=self.crops)

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the images `index: (B,)` int64 as they are, `(B, 3, size, size)` float32."""
        return self.images[index]

    def sample(self, index: Tensor, draw: Tensor) -> Tensor:
        """Return views `(B, 3, size, size)` of the images `index`, each a pure function of the image and its draw."""
        transforms, size = import_torchvision("torchvision.transforms.v2.functional"), self.shape[-1]
        views = []
        for image, seed in zip(self[index], draw.tolist(), strict=True):
            rng, view = np.random.default_rng(seed), image
            if self.crops:
                side = max(1, round(size * rng.uniform(LEAST_AREA, 1) ** 0.5))
                top, left = rng.integers(size - side + 1, size=2).tolist()
                view = transforms.resized_crop(view, top, left, side, side, [size, size], antialias=True)
            views.append(transforms.horizontal_flip(view) if rng.random() < 0.5 else view)
        return torch.stack(views)


def _moments(data: Labelled, rows: np.ndarray) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return mean and standard deviation of each channel over images; one that is constant is divided by `VANISH`."""
    means, squares, within = data.moments[:, rows]
    mean = means.mean(axis=0)
    variance = squares.mean(axis=0) - mean**2
    # Of few photons in 16 bits the squares lose it; from differences it is 0 only where all pixels are equal.
    exact = within.mean(axis=0) + (means - means[0]).var(axis=0)
    std = np.where(exact > 0, np.sqrt(np.where(variance > 1e-10, variance, exact)), VANISH)
    return tuple(mean.tolist()), tuple(std.tolist())


def is_deep(path: Path) -> bool:
    """Return whether an image has 16 bits a pixel, by its header; one that cannot be read has not."""
    from PIL import Image

    try:
        with Image.open(path) as image:
            return image.mode in DEEP_MODES
    except Exception:  # a damaged file can raise anything; `read_image` names it
        return False
