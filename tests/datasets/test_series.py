import numpy as np
import pytest
import torch

from datasets.common.windows import SeriesDataset, Windows, target_rows
from datasets.electricity import Electricity
from datasets.electricity_fragment import ElectricityFragment
from datasets.exchange_rate import ExchangeRate
from tests.datasets.samples import parts

SERIES = (ExchangeRate, Electricity, ElectricityFragment)


class Toy(SeriesDataset):
    """Twenty rows of two series: row number, and 100 minus it."""

    name = "toy"
    unit = "none"
    rows = 20
    series = 2

    def __init__(self, window: int = 3, horizon: int = 2, scaling: str = "all", values: np.ndarray | None = None):
        super().__init__(window, horizon, scaling)
        self.values = toy_values() if values is None else values

    def read(self) -> tuple[np.ndarray, dict[str, str]]:
        return self.values, {"toy.txt": "0" * 64}


def toy_values() -> np.ndarray:
    return np.stack([np.arange(20.0), 100 - np.arange(20.0)], axis=1)


# ---- which rows predict which


def test_targets_are_those_of_the_original_code() -> None:
    """laiguokun/LSTNet utils.py: train [P+h-1, 0.6n), val [0.6n, 0.8n), test [0.8n, n)."""
    rows = target_rows(7588, 168, 12)
    assert rows == {"train": range(179, 4552), "val": range(4552, 6070), "test": range(6070, 7588)}


@pytest.mark.parametrize(("window", "horizon"), [(3, 2), (1, 1), (5, 4), (7, 5)])
def test_row_t_is_predicted_from_the_rows_of_the_spec(window: int, horizon: int) -> None:
    """Series 0 holds its row number: the window of target t is t-h-P+1 .. t-h."""
    data = Toy(window, horizon).load(0)
    seen = []
    for split in parts(data):
        x, y = split.x[torch.arange(len(split))], split.y
        assert torch.equal(split.x[torch.tensor([-1, 0]) % len(x)], x[[-1, 0]])
        rows, targets = ((of[..., 0] * 19).round().int().tolist() for of in (x, y))
        for inputs, target in zip(rows, targets, strict=True):
            assert inputs == list(range(target - horizon - window + 1, target - horizon + 1))
            seen.append(target)
    assert seen == list(range(window + horizon - 1, 20))
    series, first = data.train.x.series, torch.tensor([0])
    assert torch.equal(Windows(series, first + 20 - window, window)[first][0], series[-window:])  # the last there is


# ---- scaling


def test_each_series_is_divided_by_its_largest_value_anywhere() -> None:
    values = toy_values() * [1, -1]
    data = Toy(values=values).load(0)
    expected = torch.from_numpy(values / [19.0, 100.0]).float()
    assert torch.equal(data.train.x.series, expected)
    assert torch.equal(data.test.y, expected[16:])
    assert data.checksums == {"toy.txt": "0" * 64}
    assert data.notes == ()
    of_train = Toy(scaling="train").load(0)  # looks at the first rows only
    torch.testing.assert_close(of_train.test.y[-1], torch.tensor([19 / 11, 81 / 100]))


# ---- cards and stand-ins


@pytest.mark.parametrize("cls", SERIES)
def test_the_card_is_what_the_class_does_and_the_stand_in_has_its_shapes(cls: type[SeriesDataset]) -> None:
    dataset = cls()
    targets = target_rows(cls.rows, dataset.window, dataset.horizon)
    assert cls.split_sizes == tuple(map(len, targets.values()))
    assert (cls.x_shape, cls.y_width) == ((dataset.window, cls.series), cls.series)
    first, last = dataset.window + dataset.horizon - 1, dataset.horizon
    assert f"rows t - {first} to t - {last} predict row t" in " ".join((cls.__doc__ or "").split())
    data = cls(synthetic=True).load(0)
    assert all(torch.equal(a.y, b.y) for a, b in zip(parts(data), parts(cls(synthetic=True).load(5)), strict=True))
    assert len(data.train) >= 128  # a batch: presets that drop a smaller one still train
    series = data.train.x.series
    assert series.isfinite().all()
    torch.testing.assert_close(series.abs().amax(dim=0), torch.ones(cls.series))
    assert (series.std(dim=0) > 0.01).all()
