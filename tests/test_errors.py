import numpy as np
import pytest

from cmixup.errors import InputError, as_number, check_bandwidth, check_count, check_positive


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.array(3.0), 1e-150])
def test_numbers_pass_as_floats(value: float) -> None:
    for checked in (as_number("n", value), check_positive("n", value), check_bandwidth(value)):
        assert type(checked) is float
        assert checked == value
    assert (check_bandwidth(0), check_bandwidth(np.inf)) == (0, np.inf)


@pytest.mark.parametrize("value", [0, -1, True, 2.0, np.float64(2), np.bool_(True), "2", None, float("nan"), [2]])
def test_counts_are_whole_and_not_below_the_minimum(value: object) -> None:
    with pytest.raises(InputError, match=r"^k must be a whole number, 1 or more, got ") as error:
        check_count("k", value, 1)  # type: ignore[arg-type]
    assert str(error.value).endswith(f"got {value!r}")


def test_counts_start_at_zero_and_may_name_their_unit() -> None:
    assert check_count("steps", 0) == 0
    with pytest.raises(InputError, match=r"^steps must be a whole number of optimiser steps, 0 or more, got -1$"):
        check_count("steps", -1, what="a whole number of optimiser steps")
