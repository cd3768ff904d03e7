import pytest
import torch

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from tests.helpers import Lazy, make_split


def parts(n: int = 4, d: int = 2, d_y: int = 1) -> dict[str, torch.Tensor]:
    return {"x": torch.zeros(n, d), "y": torch.zeros(n, d_y), "domain": torch.zeros(n, dtype=torch.int64)}


def test_lazy_inputs_are_not_read_when_the_split_is_made() -> None:
    x = Lazy(torch.zeros(4, 2))
    split = Split(**parts() | {"x": x})
    assert x.asked == []
    assert not split.stackable
    assert len(split) == 4
    assert make_split(4).stackable


def test_selection_by_the_worst_domain_needs_that_score() -> None:
    splits = (make_split(4), make_split(4), make_split(4))
    data = RegressionData("toy", *splits, unit="none", selection="worst_r", worst=("r",))
    assert data.selection == "worst_r"
    known = "mse, rmse, mae, mape, r, mse_ci95, nll, crps, coverage90, worst_rmse"
    with pytest.raises(InputError, match=f"metric must be one of {known}, got 'worst_r'"):
        RegressionData("toy", *splits, unit="none", selection="worst_r", worst=("rmse",))
    with pytest.raises(InputError, match="got 'worst_r'"):
        RegressionData("toy", *splits, unit="none", worst=("worst_r",))
