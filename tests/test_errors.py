import numpy as np
import pytest

from cmixup.errors import as_number, check_bandwidth, check_count, check_positive


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.array(3.0), 1e-150])
def test_numbers_pass_as_floats(value: float) -> None:
    for checked in (as_number("n", value), check_positive("n", value), check_bandwidth(value)):
        assert type(checked) is float
        assert checked == value
    assert (check_bandwidth(0), check_bandwidth(np.inf)) == (0, np.inf)
    assert check_count("steps", 0) == 0
