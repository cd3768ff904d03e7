"""Predictions on disk come back as they were."""

from pathlib import Path

import numpy as np

from scripts.driver.predictions import read_predictions, write_predictions
from scripts.stats.scored import Scored


def test_predictions_read_back_as_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = {
        part: Scored(
            {name: rng.normal(size=(rows, 2)).astype(np.float32) for name in names},
            rng.normal(size=(rows, 2)).astype(np.float32),
            rng.integers(-3, 300, size=rows),
        )
        for part, rows, names in (("val", 3, [""]), ("test", 5, ["", "20_steps"]))
    }
    write_predictions(tmp_path / "run.h5", given)
    back = read_predictions(tmp_path / "run.h5")
    assert set(back) == {"val", "test"}
    for part, kept in given.items():
        assert back[part].prediction.keys() == kept.prediction.keys()
        for name, values in kept.prediction.items():
            np.testing.assert_array_equal(back[part].prediction[name], values)
            assert back[part].prediction[name].dtype == np.float32
        np.testing.assert_array_equal(back[part].target, kept.target)
        np.testing.assert_array_equal(back[part].domain, kept.domain)
