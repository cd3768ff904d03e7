"""The contract of every dataset, and the base of the tabular ones."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError, check_choice
from cmixup.files import PREPROCESSING
from datasets.common.fetch import Files, RawFile, RawFolder, data_root, fetch, mirror_folders, sha256_of
from datasets.common.label_noise import LabelNoise
from datasets.common.naive import simple_predictions
from datasets.common.scaling import Scaling

Indices = dict[str, np.ndarray]
SPLITS = ("train", "val", "test")


class Dataset(ABC):
    """Loads, checks and splits one dataset.

    A subclass needs `name`, `unit` and `load`, which ends in `assemble`. With `synthetic=True` it gives the same shapes
    and metadata from a formula, without any file. Its docstring has origin, y with its unit, shapes, counts per split,
    licence and citation. The attributes from `tasks` on are the same figures, for programs and tests.
    """

    name: ClassVar[str]  # in files, configs, keys and results
    files: ClassVar[Files] = ()  # of each file it needs the alternatives that will do, preferred first
    folders: ClassVar[tuple[RawFolder, ...]] = ()  # it needs that only a person can get
    place: ClassVar[str] = ""  # where its rows are if it has neither files nor folders
    unit: ClassVar[str]  # what y measures
    metrics: ClassVar[tuple[str, ...]] = ("rmse", "mape", "r")  # these three: see `cmixup.data.RegressionData`
    selection: ClassVar[str] = "rmse"
    worst: ClassVar[tuple[str, ...]] = ()
    tasks: ClassVar[bool] = False  # whether a row is a task, with a support and a query (`cmixup.data.Tasks`)
    domains: ClassVar[bool] = False  # whether training rows come from several, which methods for domains need
    x_shape: ClassVar[tuple[int, ...]] = ()  # of one input with the default options; for tasks, of one view
    y_width: ClassVar[int] = 1  # labels of a row
    rows: ClassVar[int] = 0  # of the files: examples, time steps of a series, pairs, videos; 0 if it depends
    split_sizes: ClassVar[tuple[int, ...]] = ()  # with the default options; empty if they depend on seed or preset
    user_files: ClassVar[tuple[str, ...]] = ()  # options that are files of the user's
    baselines: ClassVar[bool] = False  # whether scores of `simple_predictions` stand beside a run's
    label_noise: LabelNoise = LabelNoise()  # none, unless `with_options` says otherwise
    label_noise_val: bool = False

    def __init__(self, synthetic: bool = False):
        self.synthetic = synthetic

    @abstractmethod
    def load(self, seed: int) -> RegressionData:
        """Return the splits for run seed `seed`; fetches the files that are missing, or raises `FetchError`."""

    def fetch(self) -> list[tuple[RawFile, Path]]:
        """Return the verified files, one for each entry of `files`; without one, or a folder, it is a `FetchError`."""
        for folder in self.folders:
            folder.find()
        return [fetch(*alternatives) for alternatives in self.files]

    @classmethod
    def fetchable(cls) -> bool:
        """Return whether each file, or an alternative, has an address or lies in the data root or a mirror."""
        folders, has_mirror_url = [data_root(), *mirror_folders()], "://" in os.environ.get("CMIXUP_MIRROR", "")
        available = (any(f.urls or any((p / f.path).is_file() for p in folders) for f in files) for files in cls.files)
        return not cls.folders and (has_mirror_url or all(available))

    @cached_property
    def checksums(self) -> dict[str, str]:
        """SHA-256 of the user's files, by their names; nothing where one is not there."""
        paths = [Path(name) for name in (getattr(self, option, "") for option in self.user_files) if name]
        unique_names = len({path.name for path in paths}) == len(paths)
        digests = {path.name if unique_names else str(path): sha256_of(path) for path in paths if path.is_file()}
        return digests if len(digests) == len(paths) else {}

    def changed(self, checksums: Mapping[str, str]) -> bool:
        """Return whether the user's files are other ones than those that a run was trained on, by their SHA-256."""
        current = self.checksums if checksums and not self.synthetic else {}
        return bool(current) and set(current.values()) != set(checksums.values())

    def problems(self) -> tuple[str, ...]:
        """Return a line for each problem that the data seem to have; read before training."""
        return ()

    def notes(self) -> tuple[str, ...]:
        """Return the facts that a reader of the results must know."""
        return ("synthetic stand-in: not real data",) if self.synthetic else ()

    def with_options(
        self, label_noise: float = 0.0, label_noise_per: str = "output", label_noise_val: bool = False
    ) -> Self:
        """Set the options that every dataset takes beside the arguments of its constructor, and return the dataset.

        They are noise on the labels of the training split (`LabelNoise`), and as much on those of validation, too.
        """
        self.label_noise, self.label_noise_val = LabelNoise(label_noise, label_noise_per), label_noise_val
        return self

    def make_split(self, part: str, x: Any, y: np.ndarray, domain: np.ndarray | None = None) -> Split:
        """Return the split `part` with labels `(N,)` or `(N, d_y)` as float32; without domains `(N,)` all are 0."""
        labels = torch.from_numpy(y.astype(np.float32)).reshape(len(y), -1)
        domains = np.zeros(len(y)) if domain is None else domain
        return Split(x, labels, torch.from_numpy(domains.astype(np.int64)), f"{self.name}/{part}")

    def assemble(
        self, seed: int, splits: Iterable[Split], checksums: Mapping[str, str], notes: Sequence[str] = (), *,
        preprocessing: str = "", **more: Any,
    ) -> RegressionData:  # fmt: skip
        """Return train, val and test with what this dataset says of itself, `notes`, and noise on labels.

        A run keeps `preprocessing`, and `more` are other fields of `RegressionData`.
        """
        train, val, test = splits
        if self.label_noise.ratio:
            train, std = self.label_noise.add(train, seed)
            notes = (*notes, self.label_noise.note(std))
            if self.label_noise_val:
                val, _ = self.label_noise.add(val, seed, std)
                notes = (*notes, "the validation labels have as much")
        fields = {"unit": self.unit, "metrics": self.metrics, "selection": self.selection, "worst": self.worst} | more
        if self.baselines:
            fields["naive"] = simple_predictions(train, val, test)
        extras = {PREPROCESSING: preprocessing} if preprocessing else {}
        notes = (*self.notes(), *notes)
        return RegressionData(self.name, train, val, test, checksums=checksums, notes=notes, extras=extras, **fields)


@dataclass(frozen=True)
class RawTable:
    """Rows as the files hold them, neither split nor scaled."""

    x: np.ndarray  # (N, d) features
    y: np.ndarray  # (N, d_y) labels
    domain: np.ndarray  # (N,)
    checksums: dict[str, str]  # SHA-256 of each file they were read from


class StoredDataset(Dataset):
    """A dataset whose files hold rows, as a `RawTable` or in a form of its own."""

    @abstractmethod
    def read(self) -> Any:
        """Return the rows of the real files."""

    @abstractmethod
    def synthetic_rows(self, rng: np.random.Generator) -> Any:
        """Return the stand-in's rows, which have the same shapes and similar ranges."""

    @abstractmethod
    def split(self, table: Any, seed: int) -> Indices:
        """Return the rows of "train", "val" and "test"."""

    def stored_rows(self) -> Any:
        """Return the rows of the files, or of the stand-in, if that is asked for."""
        return self.synthetic_rows(np.random.default_rng(0)) if self.synthetic else self.read()


class TabularDataset(StoredDataset):
    """Features scaled, labels raw.

    Both are float32 in a split, so pairings take labels that differ by less than about 1e-7 of their size as equal.

    Args:
        scaling: to [0, 1] by minimum and maximum: "train" fits them on the training rows and clips the others to
            [0, 1], "all" fits them on every row, test rows too (released code). "standard" gives the training rows mean
            0 and standard deviation 1 instead.
        synthetic: use synthetic data.
    """

    may_miss: ClassVar[bool] = False  # whether features may be NaN, which get their column's mean (`Scaling`)
    columns: ClassVar[tuple[str, ...]] = ()  # by which a run's predictor finds them in a new table; x1, ... if empty
    label: ClassVar[str] = "y"  # in a table of predictions

    def __init__(self, scaling: str = "train", synthetic: bool = False):
        super().__init__(synthetic)
        self.scaling = check_choice("scaling", scaling, ("train", "all", "standard"))

    def load(self, seed: int) -> RegressionData:
        table: RawTable = self.stored_rows()
        for label, values in (("x", table.x), ("y", table.y)):
            is_bad = np.isinf(values) if self.may_miss and label == "x" else ~np.isfinite(values)
            if is_bad.any():
                row = int(np.argwhere(is_bad)[0, 0])
                raise InputError(f"{label} of {self.name} has values that are not finite, first in row {row}")
        rows = self.split(table, seed)
        fitted = table.x if self.scaling == "all" else table.x[rows["train"]]
        scaling = Scaling.fit(fitted, "standard" if self.scaling == "standard" else "minmax")
        x = scaling.apply(table.x).astype(np.float32)
        splits = (
            self.make_split(part, torch.from_numpy(x[rows[part]]), table.y[rows[part]], table.domain[rows[part]])
            for part in SPLITS
        )
        names = self.columns or tuple(f"x{k + 1}" for k in range(x.shape[1]))
        labels = label_names(table.y, self.label)
        return self.assemble(seed, splits, table.checksums, preprocessing=scaling.to_json(names, labels))


def label_names(y: np.ndarray, name: str = "y") -> tuple[str, ...]:
    """Return the names of labels (N, d_y): y, or y1, y2 and so on."""
    return (name,) if y.shape[1] == 1 else tuple(f"{name}{k + 1}" for k in range(y.shape[1]))


def permuted(permutation: np.ndarray, sizes: tuple[int, ...]) -> Indices:
    """Cut a permutation of all rows into train, val and test of the given sizes."""
    if sum(sizes) != len(permutation):
        raise InputError(f"split sizes {sizes} must sum to the {len(permutation)} rows")
    cuts = np.split(permutation, np.cumsum(sizes)[:-1])
    return dict(zip(SPLITS, cuts, strict=True))


def smooth_labels(x: np.ndarray, rng: np.random.Generator, mean: float, std: float) -> np.ndarray:
    """Return `(N, 1)` labels that vary smoothly with `x`, plus a tenth of noise, with the given mean and std."""
    z = np.sin(3 * (x - x.mean(axis=0)) / x.std(axis=0) @ rng.normal(size=x.shape[1]) / x.shape[1] ** 0.5)
    z = z + 0.1 * rng.normal(size=len(x))
    return (mean + std * (z - z.mean()) / z.std())[:, None]
