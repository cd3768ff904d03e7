from __future__ import annotations

import numpy as np
import pytest

from cmixup.errors import InputError, as_number, check_bandwidth, check_choice, check_positive

INF, NAN = float("inf"), float("nan")


def test_input_errors_are_value_errors() -> None:
    assert issubclass(InputError, ValueError)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.array(3.0)])
def test_numbers_pass_as_floats(value: float) -> None:
    for checked in (as_number("n", value), check_positive("n", value), check_bandwidth(value)):
        assert type(checked) is float
        assert checked == value


@pytest.mark.parametrize("value", ["1", True, None, [1.0, 2.0], np.zeros(2)])
def test_what_is_no_number_is_refused_by_name(value: object) -> None:
    with pytest.raises(InputError, match="rate must be a number, got"):
        as_number("rate", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1, INF, -INF, NAN])
def test_positive_means_finite_and_above_zero(value: float) -> None:
    with pytest.raises(InputError, match=r"rate must be a finite number above 0, got"):
        check_positive("rate", value)


@pytest.mark.parametrize("value", [0, 1e-300, INF])
def test_bandwidths_may_be_zero_and_infinite(value: float) -> None:
    assert check_bandwidth(value) == value


@pytest.mark.parametrize("value", [-1e-9, -INF, NAN])
def test_bandwidths_below_zero_and_nan_are_refused(value: float) -> None:
    with pytest.raises(InputError, match=r"sigma must be 0 or more .*, got"):
        check_bandwidth(value, "sigma")


def test_choices() -> None:
    assert check_choice("colour", "red", ("red", "blue")) == "red"
    with pytest.raises(InputError, match="colour must be one of red, blue, got 'green'"):
        check_choice("colour", "green", ("red", "blue"))
