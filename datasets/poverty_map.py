"""PovertyMap: wealth of African villages from satellite images."""

import sys
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor

from cmixup.data import WORKERS, RegressionData, Split, in_threads
from cmixup.errors import InputError, check_choice
from cmixup.networks.vision import import_torchvision
from datasets.common.base import SPLITS, Dataset
from datasets.common.damaged import naming
from datasets.common.fetch import raw_folder, sha256_of

METADATA = "dhs_metadata.csv"
FOLDER = raw_folder("poverty_map")
SHAPE = (8, 224, 224)
FOLDS = "ABCDE"
SYNTHETIC_SIZES, SYNTHETIC_SHAPE = (64, 32, 32), (8, 24, 24)


class PovertyMap(Dataset):
    """Wealth of villages from 8-band satellite images; domains are countries in training, urban or rural in testing.

    Origin: WILDS PovertyMap v1.1 (23 African countries, 2009 to 2016), read with the wilds package.
    y: asset wealth index of the DHS surveys, about -1.5 to 2.5. x: seven LandSat bands and night lights, each with its
    mean subtracted and divided by its standard deviation, over all images (as WILDS ships them).
    Shapes: x (N, 8, 224, 224), y (N, 1); 19669 images, split by countries in five folds A to E: about 10000 images
    of 13 or 14 countries train, 4 or 5 other countries each are validation and testing. Run seed s takes fold s mod 5.
    Validation and testing are scored by the lower R of urban and rural images, which also picks the checkpoint.
    Licence: public domain (LandSat, DMSP, VIIRS). Citation: Yeh et al., "Using publicly available satellite imagery and
    deep learning to understand economic well-being in Africa", Nature Communications 11, 2020; Koh et al., "WILDS",
    ICML 2021.

    Args:
        fold: A to E, whatever the run seed; empty takes seed mod 5.
        synthetic: use synthetic data, whose images are 24 x 24.
    """

    name = "poverty_map"
    folders = (FOLDER,)
    unit = "asset wealth index"
    domains = True
    x_shape = SHAPE
    rows = 19_669
    selection = "worst_r"
    worst = ("r",)

    def __init__(self, fold: str = "", synthetic: bool = False):
        super().__init__(synthetic)
        self.fold = check_choice("fold", fold, ("", *FOLDS))

    def load(self, seed: int) -> RegressionData:
        fold = self.fold or FOLDS[seed % len(FOLDS)]
        splits = self._synthetic(FOLDS.index(fold)) if self.synthetic else self._read(fold)
        checksums = {} if self.synthetic else {f"{FOLDER.path}/{METADATA}": sha256_of(FOLDER.find() / METADATA)}
        return self.assemble(seed, splits, checksums)

    def _read(self, fold: str) -> list[Split]:
        path = FOLDER.find()
        try:
            import_torchvision()  # wilds imports it, too, and stops where its operators cannot be loaded
            # By the package `outdated`, if it is there, wilds and ogb ask PyPI for their latest versions.
            with mock.patch.dict(sys.modules, {"outdated": None}):
                from wilds.datasets.poverty_dataset import PovertyMapDataset
        except ImportError as error:
            raise InputError(f"poverty_map needs the package wilds (pip install '.[splits]'): {error}") from None
        with naming(path, "PovertyMap"):
            images = PovertyMapDataset(root_dir=str(path.parent), download=False, fold=fold)
        if len(images) != self.rows:
            raise InputError(f"{path / METADATA} lists {len(images)} images, expected {self.rows}")
        fields = list(images.metadata_fields)
        splits = []
        for part in SPLITS:
            rows = torch.from_numpy(np.flatnonzero(np.asarray(images.split_array) == images.split_dict[part]))
            domain = images.metadata_array[rows, fields.index("country" if part == "train" else "urban")]
            splits.append(self.make_split(part, Images(images, rows), images.y_array[rows].numpy(), domain.numpy()))
        return splits

    def _synthetic(self, fold: int) -> list[Split]:
        """Return images of noise around a brightness that is the label; urban images have brighter lights."""
        rng = np.random.default_rng(fold)
        splits = []
        for part, size in zip(SPLITS, SYNTHETIC_SIZES, strict=True):
            urban = np.arange(size) % 2
            y = rng.normal(0.5 * urban, 0.7)
            x = rng.normal(0.5 * y[:, None, None, None], 1.0, (size, *SYNTHETIC_SHAPE))
            x[:, -1] += urban[:, None, None]
            domain = np.arange(size) % 13 if part == "train" else urban
            splits.append(self.make_split(part, torch.from_numpy(x.astype(np.float32)), y, domain))
        return splits


class Images:
    """The images `rows: (N,)` of a dataset of the wilds package, read when they are asked for."""

    workers = WORKERS  # processes that read batches ahead: unpacking an image takes longer than training on it

    def __init__(self, source: Any, rows: Tensor):
        self.source, self.rows = source, rows
        self.shape = torch.Size((len(rows), *SHAPE))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the images `index: (B,)` int64 as `(B, 8, 224, 224)` float32."""
        return torch.stack(in_threads(self._image, self.rows[index].tolist()))

    def _image(self, row: int) -> Tensor:
        try:
            image = self.source.get_input(row)
        except Exception as error:  # a damaged file can raise anything
            raise InputError(f"image {row} of PovertyMap cannot be read: {error}") from None
        if tuple(image.shape) != SHAPE:
            raise InputError(f"image {row} of PovertyMap has shape {tuple(image.shape)}, expected {SHAPE}")
        return image
