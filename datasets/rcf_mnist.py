"""RCF-MNIST: rotated, coloured Fashion-MNIST."""

import gzip
from functools import cached_property
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError, check_choice, check_seed
from datasets.common.base import Dataset, permuted
from datasets.common.fetch import raw_files

SYNTHETIC_SIZES = (64, 32, 32)
BACKGROUND = 5  # grey values up to this one are not coloured


class RCFMNIST(Dataset):
    """Rotated Fashion-MNIST whose colour tells the angle in training and the reverse in testing.

    Origin: the 60,000 training images of Fashion-MNIST, rotated and coloured here as in the C-Mixup paper.
    y: g = rotation / 360 degrees, in [0, 1); linear, so 0 and 1 are far apart though they look alike. x: red, green and
    blue in [-1, 1]. Every pixel above 5 / 255 is multiplied by (rho, 0, 1 - rho). In training rho = g for 80 % of the
    images and 1 - g for the others; in testing the reverse; in validation rho is random, whatever the angle.
    Shapes: x (N, 3, 28, 28), y (N, 1); 60000 images, split 40000 / 10000 / 10000 by `split_seed`, the same for every
    run seed. Domains are colour directions: 0 for rho = g, 1 for rho = 1 - g, 2 for a random rho.
    Licence: MIT. Citation: Xiao, Rasul and Vollgraf, "Fashion-MNIST", arXiv 1708.07747, 2017; Yao et al., "C-Mixup",
    NeurIPS 2022.

    Args:
        ratio: share of the majority direction, 0.5 (colour says nothing) to 1.
        test_color: "reversed", or "same" as in training (the paper's results without shift).
        scaling: "centred" gives [-1, 1] (released code), "unit" [0, 1].
        split_seed: draws split, angles, directions and random colours.
        synthetic: use synthetic data.
    """

    name = "rcf_mnist"
    files = raw_files("rcf_mnist")
    unit = "turns (rotation / 360 degrees)"
    domains = True
    x_shape = (3, 28, 28)
    rows = 60_000
    split_sizes = (40_000, 10_000, 10_000)

    def __init__(
        self, ratio: float = 0.8, test_color: str = "reversed", scaling: str = "centred", split_seed: int = 0,
        synthetic: bool = False,
    ):  # fmt: skip
        super().__init__(synthetic)
        if not 0.5 <= ratio <= 1:
            raise InputError(f"ratio must be 0.5 to 1, got {ratio!r}")
        self.ratio, self.split_seed = ratio, check_seed("split_seed", split_seed)
        self.test_color = check_choice("test_color", test_color, ("reversed", "same"))
        self.scaling = check_choice("scaling", scaling, ("centred", "unit"))

    def notes(self) -> tuple[str, ...]:
        return (*super().notes(), f"images built here with split_seed {self.split_seed}: the paper's are not public")

    def load(self, seed: int) -> RegressionData:
        return self.assemble(seed, *self._splits)

    @cached_property
    def _splits(self) -> tuple[list[Split], dict[str, str]]:
        """The splits, which are the same for every run seed, and the checksums."""
        rng = np.random.default_rng([self.split_seed, 28])
        sizes, checksums = (SYNTHETIC_SIZES if self.synthetic else self.split_sizes), dict[str, str]()
        if self.synthetic:
            images = synthetic_images(np.random.default_rng(0), sum(SYNTHETIC_SIZES))
        else:
            ((file, path),) = self.fetch()
            images, checksums = read_idx(path, (self.rows, *self.x_shape[1:])), {file.path: file.sha256}
        images = images[rng.permutation(len(images))]
        turn = rng.random(len(images)).astype(np.float32)
        grey = torch.from_numpy(rotate(images, 360.0 * turn.astype(np.float64)))
        # A run that does not shuffle every epoch must not see one colour direction after the other.
        train_order = np.random.default_rng([self.split_seed, 29]).permutation(sizes[0])
        splits = []
        for part, rows in permuted(np.arange(len(images)), sizes).items():
            g, size = turn[rows], len(rows)
            majority = np.arange(size) < round(self.ratio * size)  # the rows are in random order already
            reverse = majority if part == "test" and self.test_color == "reversed" else ~majority
            random = rng.random(size).astype(np.float32)
            rho, domain = (random, np.full(size, 2)) if part == "val" else (np.where(reverse, 1 - g, g), reverse)
            order = train_order if part == "train" else np.arange(size)
            x = Coloured(grey[rows[order]], torch.from_numpy(rho[order]), centred=self.scaling == "centred")
            splits.append(self.make_split(part, x, g[order], domain[order]))
        return splits, checksums


class Coloured:
    """Grey images `(N, H, W)` uint8 that get their colours when they are asked for, so that 60,000 take 47 MB.

    Red is multiplied by `rho: (N,)` float32, blue by 1 - rho, green by 0; `centred` scales to [-1, 1], not [0, 1].
    """

    def __init__(self, grey: Tensor, rho: Tensor, *, centred: bool):
        self.grey, self.rho, self.centred = grey, rho, centred
        self.shape = torch.Size((len(grey), 3, *grey.shape[1:]))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the images `index: (B,)` int64 as `(B, 3, H, W)` float32."""
        grey, rho = self.grey[index][:, None], self.rho[index]
        factor = torch.stack([rho, torch.zeros_like(rho), 1 - rho], dim=1)[..., None, None]
        x = torch.where(grey > BACKGROUND, factor, 1.0) * (grey / 255)
        return x.mul_(2).sub_(1) if self.centred else x


def rotate(images: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """Rotate images (N, H, W) uint8 about their centre, counter-clockwise, nearest neighbour, on black."""
    turned = np.empty_like(images)
    for k, angle in enumerate(degrees.tolist()):
        turned[k] = Image.fromarray(images[k]).rotate(angle)
    return turned


def read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """Return the bytes of an idx file, gzipped or not, as an array of `shape`."""
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as stream:
        return np.frombuffer(stream.read(), np.uint8, offset=4 + 4 * len(shape)).reshape(shape)


def synthetic_images(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return `(n, 28, 28)` uint8: boots of random size and shade, on black."""
    images = np.zeros((n, 28, 28), dtype=np.uint8)
    for image in images:
        top, left, shade = rng.integers(4, 8), rng.integers(5, 9), rng.integers(120, 250)
        image[top:22, left : left + 6] = shade
        image[16:22, left : left + rng.integers(11, 15)] = shade // 2
    return images
