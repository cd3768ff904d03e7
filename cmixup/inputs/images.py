"""Images in files: how they become inputs of a network, for training and for `load_run(folder).predict(paths)`.

A file is PNG, JPEG, TIFF, WebP, BMP or GIF (its first picture), of 8 or 16 bits, grey or coloured, with a palette,
transparency, CMYK or a rotation in its EXIF. Grey has three equal channels, and transparent pixels are white.
"""

import copy
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cmixup.data import WORKERS, in_threads
from cmixup.errors import InputError, shortened
from cmixup.files import IMAGES_FORMAT
from cmixup.inputs.preprocessing import Preprocessing
from cmixup.inputs.spread import VANISH, is_new, warn_of_new

SUFFIXES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp", ".gif")
CHANNELS, COLOURS = 3, ("red", "green", "blue")
#: Mean and standard deviation of red, green and blue, 0 to 1, with which torchvision's weights were trained.
IMAGENET = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
DEEP_MODES = ("I;16", "I;16B", "I;16L", "I")  # of Pillow: grey of 16 bits


def list_images(folder: Path) -> list[Path]:
    """Return the images below a folder, one at least, sorted; hidden files are none."""
    if not folder.is_dir():
        raise InputError(f"images must be a folder, got {folder}{'' if folder.exists() else ': no such folder'}")
    paths = [file for file in _walk_files(folder) if file.suffix.lower() in SUFFIXES and file.name[0] != "."]
    if not paths:
        raise InputError(f"images {folder} holds none ({', '.join(SUFFIXES)})")
    return sorted(paths)


def _walk_files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, and below links to others, but for those that lead back."""
    for parent, folders, names in os.walk(folder, followlinks=True):
        resolved = Path(parent).resolve()
        folders[:] = [name for name in folders if not resolved.is_relative_to((Path(parent) / name).resolve())]
        yield from (Path(parent) / name for name in names)


def read_image(path: Path, size: int, *, deep: bool = False) -> np.ndarray:
    """Return an image as `(3, size, size)`: its shorter side becomes `size`, and the centre is cut out.

    It is int32 from 0 to 65535 if `deep`, else uint8. A file that is missing, no image, or of floating-point numbers is
    an `InputError`.
    """
    from PIL import Image, ImageOps

    fit_options: dict[str, Any] = {"size": (size, size), "method": Image.Resampling.BILINEAR}
    try:
        with Image.open(io.BytesIO(path.read_bytes())) as image:
            image.draft(None, (2 * size, 2 * size))  # JPEG is decoded at half the size or less where that is enough
            upright = ImageOps.exif_transpose(image)
            if upright.mode in DEEP_MODES:
                grey = np.asarray(upright)
                if grey.min() < 0 or grey.max() > 65535:
                    raise ValueError("pixels beyond 16 bits; arrays= takes such numbers")
                resized = np.asarray(ImageOps.fit(Image.fromarray(grey.astype(np.float32)), **fit_options))
                pixels = np.repeat(np.rint(resized)[None], CHANNELS, axis=0)
                return pixels.astype(np.int32) if deep else np.rint(pixels / 257).astype(np.uint8)
            if upright.mode == "F":
                raise ValueError("pixels are floating-point numbers; arrays= takes such")
            if upright.has_transparency_data:
                rgba = upright.convert("RGBA")
                upright = Image.alpha_composite(Image.new("RGBA", rgba.size, "white"), rgba)
            pixels = np.asarray(ImageOps.fit(upright.convert("RGB"), **fit_options)).transpose(2, 0, 1)
            return pixels.astype(np.int32) * 257 if deep else np.ascontiguousarray(pixels)
    except Exception as error:  # a damaged file can raise anything
        words = re.sub(r" <_io.BytesIO[^>]*>", "", str(error).replace(str(path), "it"))
        reason = " ".join(words.split())[:200] or type(error).__name__
        if isinstance(error, Image.DecompressionBombError):
            reason = f"it has more pixels than Pillow takes, {2 * (Image.MAX_IMAGE_PIXELS or 0)}: save it smaller"
        raise InputError(f"{path} cannot be read as an image: {reason}") from None


class ImageFiles:
    """The pixels of N images, `size` a side and `deep` if of 16 bits, read whenever they are asked for, or kept."""

    def __init__(self, files: Sequence[Path], size: int, *, deep: bool):
        self.files, self.size, self.deep = list(files), size, deep
        self.kept: Tensor | None = None  # all pixels, (N, 3, size, size) uint8 or int32, once they are in memory
        self.shape = torch.Size((len(files), CHANNELS, size, size))

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the pixels of the images `index: (B,)`, `(B, 3, size, size)` uint8 or int32."""
        if self.kept is not None:
            return self.kept[index]
        images = in_threads(lambda row: read_image(self.files[row], self.size, deep=self.deep), index.tolist())
        return torch.from_numpy(np.stack(images))


class ImageRows:
    """The images `rows: (N,)` as a network reads them, `(value - mean) / std` for each channel, where 1 is white."""

    batch_size: ClassVar[int] = 64  # images that `SavedRun.predict` reads at a time

    def __init__(self, files: ImageFiles, rows: Tensor, mean: Sequence[float], std: Sequence[float]):
        self.files, self.rows, self.mean, self.std = files, rows, mean, std
        self.workers = 0 if files.kept is not None else WORKERS  # processes that read batches ahead
        self.shape = torch.Size((len(rows), *files.shape[1:]))
        largest = 65535 if files.deep else 255
        self._scale = (1 / (largest * torch.tensor(std)))[:, None, None].to(rows.device)
        self._shift = (torch.tensor(mean) / torch.tensor(std))[:, None, None].to(rows.device)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the images `index: (B,)` int64 as `(B, 3, size, size)` float32."""
        return self.files[self.rows[index]].to(torch.float32).mul_(self._scale).sub_(self._shift)

    @property
    def device(self) -> torch.device:
        """Where `index` is, and what is read."""
        return self.rows.device

    def to(self, device: torch.device) -> "ImageRows":
        """Return the images with pixels on `device`, 1 or 4 bytes each, if pixels are in memory; else these."""
        if self.files.kept is None or device == self.device:
            return self
        files = copy.copy(self.files)
        files.kept = self.files.kept[self.rows].to(device)
        return ImageRows(files, torch.arange(len(self), device=device), self.mean, self.std)

    def pictures(self, rows: Tensor) -> np.ndarray:
        """Return images as people look at them, `(n, size, size, 3)` uint8."""
        pixels = self.files[self.rows[rows]].permute(0, 2, 3, 1).numpy()
        return ((pixels + 128) // 257 if self.files.deep else pixels).astype(np.uint8)


@dataclass(frozen=True)
class ImagePreprocessing(Preprocessing):
    """How a run makes inputs of image files."""

    format: ClassVar[str] = IMAGES_FORMAT
    size: int  # pixels a side
    deep: bool  # whether pixels have 16 bits
    mean: tuple[float, ...]  # as std of red, green and blue, where 1 is white
    std: tuple[float, ...]

    @property
    def in_shape(self) -> tuple[int, ...]:
        return (CHANNELS, self.size, self.size)

    def as_given(self, new: Any) -> Any:
        """Return a path, a folder's among them, or a list of paths."""
        if isinstance(new, (str, Path)):
            return new
        paths = list(new) if hasattr(new, "__len__") and not isinstance(new, Mapping) else []
        if not paths or not all(isinstance(path, (str, Path)) for path in paths):
            expected = "a folder, or paths of images; scaled=True takes pixels as the model reads them"
            raise InputError(f"rows must be {expected}; got {type(new).__name__}")
        return paths

    def apply(self, new: Any, source: str = "images") -> ImageRows:
        """Return the images of a folder, in order of their names, or of files, which must all be there."""
        files = self.files(new)
        if missing := [str(path) for path in files if not path.is_file()]:
            raise InputError(f"{source}: {len(missing)} of {len(files)} files are not there: {shortened(missing, 3)}")
        rows = ImageRows(ImageFiles(files, self.size, deep=self.deep), torch.arange(len(files)), self.mean, self.std)
        constant, new = [k for k, std in enumerate(self.std) if std >= VANISH], set[str]()
        for index in torch.split(rows.rows, rows.batch_size) if constant else ():
            pixels = rows.files[index].numpy() / (65535 if self.deep else 255)
            new |= {COLOURS[k] for k in constant if is_new(pixels[:, k].ravel(), self.mean[k])}
        warn_of_new(sorted(new), source)
        return rows

    def files(self, new: Any) -> list[Path]:
        """Return the files that `new` names."""
        if isinstance(new, (str, Path)):
            return list_images(Path(new)) if Path(new).suffix.lower() not in SUFFIXES else [Path(new)]
        return [Path(path) for path in new]

    def predictions(self, new: Any, values: np.ndarray) -> Any:
        """Return outputs `(N, d_y)` as a data frame with a column for every target; its index is the files."""
        files = [str(path) for path in self.files(new)]
        return super().predictions(new, values).set_axis(files).rename_axis("file")
