"""Folders of runs: whole or absent, and what they say of the code and the machine."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.files import write_atomically
from scripts.driver import runs
from scripts.driver.runs import RunFolder
from scripts.stats.scored import Scored
from tests.scripts.reports import report

PREDICTED = {"test": Scored({"": np.ones((3, 1), np.float32)}, np.zeros((3, 1), np.float32), np.arange(3))}


@pytest.mark.parametrize("fails", ["checkpoint.pt", "history.csv", "predictions.h5", "report.json"])
def test_a_run_whose_writing_fails_is_not_done(tmp_path: Path, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write = write_atomically

    def full(path: Path, content: str | bytes) -> None:
        if path.name == fails:
            raise OSError(28, "No space left on device")
        write(path, content)

    run, texts = RunFolder(tmp_path), {"model.json": "{}", "preprocessing.json": "{}"}
    run.begin({})
    monkeypatch.setattr(runs, "write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        run.write({}, report(), [{"epoch": 1}], state={"w": torch.ones(2)}, predictions=PREDICTED, texts=texts)
    assert not run.is_done()


def test_predictions_read_back_as_written(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    given = {
        part: Scored({name: rng.normal(size=(rows, 2)).astype(np.float32) for name in names},
        rng.normal(size=(rows, 2)).astype(np.float32), rng.integers(-3, 300, size=rows))
        for part, rows, names in (("val", 3, [""]), ("test", 5, ["", "20_steps"]))
    }  # fmt: skip
    RunFolder(tmp_path).write({}, report(), [{"epoch": 1}], predictions=given)
    back = RunFolder(tmp_path).predictions()
    assert set(back) == {"val", "test"}
    for part, kept in given.items():
        assert back[part].prediction.keys() == kept.prediction.keys()
        for name, values in kept.prediction.items():
            np.testing.assert_array_equal(back[part].prediction[name], values)
            assert back[part].prediction[name].dtype == np.float32
        np.testing.assert_array_equal(back[part].target, kept.target)
        np.testing.assert_array_equal(back[part].domain, kept.domain)
