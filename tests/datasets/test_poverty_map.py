import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from datasets.poverty_map import FOLDER, Images, PovertyMap
from tests.datasets.samples import parts, put_needed

# ---- the synthetic stand-in


def test_the_stand_in() -> None:
    data = PovertyMap(synthetic=True).load(0)
    assert [split.x.shape for split in parts(data)] == [(n, 8, 24, 24) for n in (64, 32, 32)]
    assert data.val.domain.unique().tolist() == data.test.domain.unique().tolist() == [0, 1]
    assert len(data.train.domain.unique()) == 13
    brightness = data.test.x.mean(dim=(1, 2, 3))
    assert np.corrcoef(brightness, data.test.y[:, 0])[0, 1] > 0.9  # something to learn
    assert (data.selection, data.worst) == ("worst_r", ("r",))


def test_run_seeds_take_folds_in_turn() -> None:
    dataset = PovertyMap(synthetic=True)
    y = [dataset.load(seed).train.y for seed in range(6)]
    assert torch.equal(y[0], y[5])
    assert all(not torch.equal(y[0], other) for other in y[1:5])
    assert torch.equal(PovertyMap("C", synthetic=True).load(0).train.y, y[2])
    with pytest.raises(InputError, match="fold must be one of , A, B, C, D, E, got 'F'"):
        PovertyMap("F")


# ---- splits and images, from a stand-in for the class of wilds


class Source:
    """Images whose values are their row number."""

    metadata_fields = ["urban", "y", "country"]  # noqa: RUF012
    split_dict = {"train": 0, "id_val": 1, "id_test": 2, "val": 3, "test": 4}  # noqa: RUF012

    def __init__(self, root_dir: str = "", download: bool = True, fold: str = "A"):
        self.arguments = {"root_dir": root_dir, "download": download, "fold": fold}
        n = 30
        self.split_array = np.arange(n) % 5
        self.y_array = torch.arange(float(n))[:, None]
        self.metadata_array = torch.stack([torch.arange(n) // 5 % 2, self.y_array[:, 0], torch.arange(n) // 10], dim=1)

    def __len__(self) -> int:
        return len(self.y_array)

    def get_input(self, idx: int) -> torch.Tensor:
        return torch.full((8, 224, 224), float(idx))


class Wilds(types.ModuleType):
    """Stands in for the module of wilds; its import must not find the package that asks for the latest version."""

    def __getattr__(self, name: str) -> type[Source]:
        if name != "PovertyMapDataset":
            raise AttributeError(name)
        assert sys.modules["outdated"] is None
        return Source


@pytest.fixture
def fake_wilds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("wilds", "wilds.datasets", "wilds.datasets.poverty_dataset"):
        monkeypatch.setitem(sys.modules, name, Wilds(name))
    monkeypatch.setattr("datasets.poverty_map.import_torchvision", lambda: None)
    monkeypatch.setattr(PovertyMap, "rows", 30)
    put_needed(PovertyMap, tmp_path, monkeypatch)


@pytest.mark.usefixtures("fake_wilds")
def test_splits_labels_and_domains(tmp_path: Path) -> None:
    data = PovertyMap().load(7)
    assert data.train.x.source.arguments == {
        "root_dir": str((tmp_path / FOLDER.path).parent), "download": False, "fold": "C",
    }  # fmt: skip
    for split, first in zip(parts(data), (0, 3, 4), strict=True):
        rows = list(range(first, 30, 5))
        assert split.y[:, 0].tolist() == rows
        assert split.x[torch.tensor([4, 1])][:, 0, 0, 0].tolist() == [rows[4], rows[1]]
    assert data.train.domain.tolist() == [0, 0, 1, 1, 2, 2]  # countries
    assert data.val.domain.tolist() == data.test.domain.tolist() == [0, 1, 0, 1, 0, 1]  # urban
    assert list(data.checksums) == [f"{FOLDER.path}/dhs_metadata.csv"]
    assert data.notes == ()


@pytest.mark.usefixtures("fake_wilds")
def test_a_folder_of_another_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PovertyMap, "rows", 19_669)
    with pytest.raises(InputError, match=r"dhs_metadata.csv lists 30 images, expected 19669"):
        PovertyMap().load(0)


def test_images_are_read_on_demand_and_in_order() -> None:
    read: list[int] = []

    class Reader(Source):
        def get_input(self, idx: int) -> torch.Tensor:
            read.append(idx)
            return super().get_input(idx)

    images = Images(Reader(), torch.arange(0, 30, 2))
    assert (len(images), images.shape) == (15, (15, 8, 224, 224))
    assert read == []
    index = torch.tensor([9, 0, 9, 3, 14])
    assert images[index][:, 0, 0, 0].tolist() == [18, 0, 18, 6, 28]
    assert sorted(read) == [0, 6, 18, 18, 28]


def test_images_that_cannot_be_read_are_named() -> None:
    class Broken(Source):
        def get_input(self, idx: int) -> torch.Tensor:
            if idx == 3:
                raise FileNotFoundError("no such file: landsat_poverty_img_3.npz")
            return torch.zeros(8, 10, 10)

    with pytest.raises(InputError, match=r"image 3 of PovertyMap cannot be read: no such file"):
        Images(Broken(), torch.tensor([3]))[torch.tensor([0])]
    with pytest.raises(InputError, match=r"image 4 of PovertyMap has shape \(8, 10, 10\), expected \(8, 224, 224\)"):
        Images(Broken(), torch.tensor([4]))[torch.tensor([0])]
