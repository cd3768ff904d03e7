import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.data import Split
from datasets import rcf_mnist as module
from datasets.rcf_mnist import RCFMNIST, Coloured, read_idx, rotate
from tests.datasets.samples import parts

N = 2000


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in with enough rows to estimate correlations; its images are not turned, which would take a second."""
    monkeypatch.setattr(module, "SYNTHETIC_SIZES", (N, N, N))
    monkeypatch.setattr(module, "rotate", lambda images, _: images)


def correlation(split: Split) -> float:
    x = split.x
    assert isinstance(x, Coloured)
    return float(np.corrcoef(x.rho, split.y[:, 0])[0, 1])


# ---- colours


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("ratio", [0.5, 0.8, 1.0])
def test_colours_follow_the_angle_in_training_and_the_reverse_in_testing(ratio: float) -> None:
    """Corr(rho, g) is ratio - (1 - ratio): 0.6 for 80 %. Three standard errors of 2000 rows are 0.067."""
    data = RCFMNIST(ratio, synthetic=True).load(0)
    expected = 2 * ratio - 1
    for split, wanted in zip(parts(data), (expected, 0, -expected), strict=True):
        assert correlation(split) == pytest.approx(wanted, abs=0.067), split.name
    same = RCFMNIST(ratio, "same", synthetic=True).load(0)
    assert correlation(same.test) == pytest.approx(expected, abs=0.067)
    assert torch.equal(same.train.x.rho, data.train.x.rho)


def test_coloured_pixels_and_background() -> None:
    grey = torch.tensor([[[0, 5, 6, 255]]], dtype=torch.uint8)
    unit = Coloured(grey, torch.tensor([0.25]), centred=False)[torch.tensor([0])]
    expected = torch.tensor([[0, 5, 1.5, 63.75], [0, 5, 0, 0], [0, 5, 4.5, 191.25]]) / 255
    torch.testing.assert_close(unit[0, :, 0], expected)
    centred = Coloured(grey, torch.tensor([0.25]), centred=True)[torch.tensor([0])]
    torch.testing.assert_close(centred, (unit - 0.5) / 0.5)
    assert unit.dtype == torch.float32


# ---- rotation


def by_hand(image: np.ndarray, degrees: float) -> np.ndarray:
    """Every pixel takes the one that lies `degrees` clockwise of it about the middle."""
    height, width = image.shape
    cos, sin = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    turned = np.zeros_like(image)
    for row in range(height):
        for column in range(width):
            right, down = column + 0.5 - width / 2, row + 0.5 - height / 2
            x, y = np.floor(width / 2 + cos * right - sin * down), np.floor(height / 2 + sin * right + cos * down)
            if 0 <= x < width and 0 <= y < height:
                turned[row, column] = image[int(y), int(x)]
    return turned


@pytest.mark.parametrize("height", [28, 20])
def test_rotation_takes_the_nearest_pixel(height: int) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, height, 28)).astype(np.uint8)
    degrees = np.array([0.0, 33.3, 201.7, 340.1])
    np.testing.assert_array_equal(
        rotate(images, degrees), [by_hand(i, a) for i, a in zip(images, degrees, strict=True)]
    )


def test_the_stand_ins_pixels_are_those_of_the_published_runs() -> None:
    train, *others = parts(RCFMNIST(synthetic=True).load(0))
    made = torch.empty_like(train.x.grey)  # before the last step, which puts the rows in random order
    made[torch.from_numpy(np.random.default_rng([0, 29]).permutation(len(made)))] = train.x.grey
    pixels = b"".join(grey.numpy().tobytes() for grey in (made, *(s.x.grey for s in others)))
    assert hashlib.sha256(pixels).hexdigest() == "96d9f0bbcc9eabbc9770977f4c994bc2146f3f3a159228a7a3178c5dea0131a2"


# ---- splits


def test_training_rows_of_both_directions_are_mixed_and_keep_image_label_and_colour() -> None:
    """Where epochs are not shuffled, no batch may hold one direction alone (the minority came last once)."""
    train = RCFMNIST(synthetic=True).load(0).train
    reverse = train.domain == 1
    assert 0 < int(reverse[:32].sum()) < int(reverse.sum()) == 13
    torch.testing.assert_close(train.x.rho, torch.where(reverse, 1 - train.y[:, 0], train.y[:, 0]))


def test_every_run_seed_gets_the_same_images_and_another_split_seed_others() -> None:
    dataset = RCFMNIST(synthetic=True)
    first = dataset.load(0)
    assert dataset.load(7).train.x is first.train.x  # built once: 60,000 images take seconds
    assert torch.equal(RCFMNIST(synthetic=True).load(3).train.y, first.train.y)
    assert not torch.equal(RCFMNIST(split_seed=1, synthetic=True).load(0).train.y, first.train.y)
    assert [len(split) for split in parts(first)] == list(module.SYNTHETIC_SIZES)
    assert first.train.y.shape == (64, 1)
    assert "synthetic stand-in: not real data" in first.notes
    assert any("split_seed 0" in note for note in first.notes)


# ---- files


@pytest.mark.parametrize(("name", "pack"), [("a.gz", gzip.compress), ("a", bytes)])
def test_idx_files(name: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(pack(bytes(16) + bytes(range(24))))
    np.testing.assert_array_equal(read_idx(tmp_path / name, (2, 3, 4)), np.arange(24).reshape(2, 3, 4))
