"""The picture of RCF-MNIST: which images it shows, and where."""

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData
from datasets.rcf_mnist import RCFMNIST
from scripts.measure.rcf_mnist import (
    IMAGES_PER_ANGLE,
    N_ANGLES,
    colouring_rule,
    draw_splits,
    image_mosaic,
    nearest_rows,
)


@pytest.fixture(scope="module")
def data() -> RegressionData:
    return RCFMNIST(scaling="unit", synthetic=True).load(0)


def test_a_column_holds_the_images_nearest_to_its_angle(data: RegressionData) -> None:
    angles = np.array([0.1, 0.5, 0.9])
    rows = nearest_rows(data.train, angles, 4)
    y = data.train.y[:, 0].numpy()
    for angle, chosen in zip(angles, rows, strict=True):
        others = np.setdiff1d(np.arange(len(y)), chosen)
        assert len(set(chosen)) == 4
        assert np.abs(y[chosen] - angle).max() <= np.abs(y[others] - angle).min()


def test_every_image_is_at_its_row_and_column(data: RegressionData) -> None:
    rows = np.array([[3, 1], [0, 5], [2, 2]])
    picture = image_mosaic(data.test, rows)
    assert picture.shape == (56, 84, 3)
    for column, chosen in enumerate(rows):
        for row, k in enumerate(chosen):
            block = picture[28 * row : 28 * row + 28, 28 * column : 28 * column + 28]
            expected = data.test.x[torch.tensor([k])][0].permute(1, 2, 0)
            np.testing.assert_array_equal(block, expected)


def test_titles_say_how_colours_follow_the_angle(data: RegressionData) -> None:
    found = {name: colouring_rule(getattr(data, name)) for name in ("train", "val", "test")}
    assert found["train"].startswith("rho = g for 80 %, rho = 1 - g for 20 %; correlation of rho and g +0.")
    assert found["val"].startswith("rho at random; correlation of rho and g ")
    assert found["test"].startswith(
        "rho = 1 - g for 81 %, rho = g for 19 %; correlation of rho and g -0."
    )  # of 32 images


def test_the_picture_is_drawn(data: RegressionData) -> None:
    assert len(data.test) >= IMAGES_PER_ANGLE
    axes = draw_splits(data).axes
    assert [axis.get_title(loc="left").partition(":")[0] for axis in axes] == ["training", "validation", "test"]
    angles = (np.arange(N_ANGLES) + 0.5) / N_ANGLES
    for axis, split in zip(axes, (data.train, data.val, data.test), strict=True):
        np.testing.assert_array_equal(
            axis.images[0].get_array(), image_mosaic(split, nearest_rows(split, angles, IMAGES_PER_ANGLE))
        )
