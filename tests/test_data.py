from __future__ import annotations

import pytest
import torch

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from tests.helpers import Lazy, make_split


def parts(n: int = 4, d: int = 2, d_y: int = 1) -> dict[str, torch.Tensor]:
    return {"x": torch.zeros(n, d), "y": torch.zeros(n, d_y), "domain": torch.zeros(n, dtype=torch.int64)}


@pytest.mark.parametrize("shape", [(4,), (4, 1, 1), ()])
def test_labels_of_the_wrong_rank_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"y of toy/val must be two-dimensional \(N, d_y\), got shape"):
        Split(**parts() | {"y": torch.zeros(shape)}, name="toy/val")


def test_an_empty_split_is_refused() -> None:
    with pytest.raises(InputError, match="toy/test is empty"):
        Split(**parts(0), name="toy/test")


@pytest.mark.parametrize("which", ["x", "domain"])
def test_lengths_that_differ_are_refused(which: str) -> None:
    with pytest.raises(InputError, match=f"{which} of split has 3 rows, but y has 4"):
        Split(**parts() | {which: parts(3)[which]})


def test_a_domain_of_the_wrong_rank_is_refused() -> None:
    with pytest.raises(InputError, match=r"domain of split must be \(N,\), got shape \(4, 1\)"):
        Split(**parts() | {"domain": torch.zeros(4, 1, dtype=torch.int64)})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("which", ["x", "y"])
def test_values_that_are_not_finite_are_refused_with_their_row(which: str, value: float) -> None:
    given = parts()
    given[which][2, 0] = value
    with pytest.raises(InputError, match=f"{which} of split has values that are not finite, first in row 2"):
        Split(**given)


def test_the_row_is_found_in_inputs_of_any_rank() -> None:
    given = parts() | {"x": torch.zeros(4, 3, 5, 2)}
    given["x"][3, 1, 4, 0] = float("nan")
    with pytest.raises(InputError, match="x of split has values that are not finite, first in row 3"):
        Split(**given)


def test_lazy_inputs_are_not_read_when_the_split_is_made() -> None:
    x = Lazy(torch.zeros(4, 2))
    split = Split(**parts() | {"x": x})
    assert x.asked == []
    assert not split.stackable
    assert len(split) == 4
    assert make_split(4).stackable


def test_lazy_inputs_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match="x of split has 5 rows, but y has 4"):
        Split(**parts() | {"x": Lazy(torch.zeros(5, 2))})


@pytest.mark.parametrize("field", ["metrics", "selection", "worst"])
def test_unknown_metrics_are_refused(field: str) -> None:
    value = "rsme" if field == "selection" else ("rsme",)
    with pytest.raises(InputError, match=r"metric must be one of .*rmse.*, got 'rsme'"):
        RegressionData("toy", make_split(4), make_split(4), make_split(4), unit="none", **{field: value})


def test_selection_by_the_worst_domain_needs_that_score() -> None:
    splits = (make_split(4), make_split(4), make_split(4))
    data = RegressionData("toy", *splits, unit="none", selection="worst_r", worst=("r",))
    assert data.selection == "worst_r"
    with pytest.raises(InputError, match=r"metric must be one of rmse, .*, r, worst_rmse, got 'worst_r'"):
        RegressionData("toy", *splits, unit="none", selection="worst_r", worst=("rmse",))
    with pytest.raises(InputError, match="got 'worst_r'"):
        RegressionData("toy", *splits, unit="none", worst=("worst_r",))


@pytest.mark.parametrize("odd", [0, 1, 2])
@pytest.mark.parametrize("names", [("train", "val", "test"), ("split", "split", "split")])
def test_label_widths_that_differ_are_refused(odd: int, names: tuple[str, str, str]) -> None:
    splits = [make_split(4, d_y=2 if k == odd else 1, name=name) for k, name in enumerate(names)]
    with pytest.raises(InputError, match="y must have the same width in every split of toy"):
        RegressionData("toy", *splits, unit="none")
