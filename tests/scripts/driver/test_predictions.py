"""Predictions on disk come back as they were, for one seed and for a cell of seeds with splits of unequal size."""

from pathlib import Path

import numpy as np
import pytest

from scripts.driver.predictions import read_predictions, write_predictions
from scripts.stats.scored import Scored


def parts(seed: int, n: int) -> dict[str, Scored]:
    rng = np.random.default_rng(seed)
    return {
        part: Scored(
            {name: rng.normal(size=(rows, 2)).astype(np.float32) for name in names},
            rng.normal(size=(rows, 2)).astype(np.float32),
            rng.integers(-3, 300, size=rows),
        )
        for part, rows, names in (("val", n, [""]), ("test", n + 2, ["", "20_steps"]))
    }


@pytest.mark.parametrize("sizes", [{4: 5}, {0: 3, 10: 5, 2: 1}])
def test_predictions_read_back_as_written(sizes: dict[int, int], tmp_path: Path) -> None:
    given = {seed: parts(seed, n) for seed, n in sizes.items()}
    write_predictions(tmp_path / "cell.h5", given)
    back = read_predictions(tmp_path / "cell.h5")
    assert list(back) == sorted(sizes)
    for seed, splits in given.items():
        assert set(back[seed]) == {"val", "test"}
        for part, kept in splits.items():
            found = back[seed][part]
            assert found.prediction.keys() == kept.prediction.keys()
            for name, values in kept.prediction.items():
                np.testing.assert_array_equal(found.prediction[name], values)
                assert found.prediction[name].dtype == np.float32
            np.testing.assert_array_equal(found.target, kept.target)
            np.testing.assert_array_equal(found.domain, kept.domain)
