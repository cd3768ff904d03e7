"""One model, the same test images and angles, two colourings."""

import json
from pathlib import Path

import pytest

from cmixup.errors import InputError
from scripts.analysis.spurious import SPURIOUS_COLUMNS, render_tables, score_runs
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.records.csv_rows import to_csv
from scripts.records.run_tables import frame_of
from tests.helpers import CPU
from tests.scripts.jobs import execute_job


def test_a_finished_run_is_scored_in_both_colourings(tmp_path: Path) -> None:
    """A narrow network on the synthetic stand-in."""
    words = ["dataset=rcf_mnist", "method=erm", "debug=tiny", "experiment.name=table3", "model.width=2"]
    (folder,) = execute_job(plan_job(compose_train([*words, "train.batch_size=32", f"out={tmp_path}"])))
    trained = json.loads((folder / "report.json").read_text())
    (run,) = frame_of([trained]).to_dict("records")
    run |= run["shared"] | {"run": trained["run"]}
    (row,) = score_runs([run], tmp_path, CPU)
    assert float(row["reversed"]) == pytest.approx(trained["scores"]["test"]["rmse"], rel=1e-4)
    assert row["same"] != row["reversed"]
    assert (row["ratio"], row["epochs"], row["seed"]) == (0.8, 2, 0)
    assert "synthetic stand-in: not real data" in row["notes"]
    run["test_rmse"] *= 1.05
    with pytest.raises(InputError, match=r"table3/rcf_mnist\S+ was recorded with rmse"):
        score_runs([run], tmp_path, CPU)


def test_the_table_says_epochs_and_meets_the_paper_at_its_ratio_alone(tmp_path: Path) -> None:
    def row(ratio: float, epochs: int, seed: int, same: float, reversed_: float) -> dict:
        return {"preset": "paper", "ratio": ratio, "epochs": epochs, "seed": seed, "same": same, "reversed": reversed_,
                "notes": "a; b", "run": "r"}  # fmt: skip

    rows = [
        row(0.8, 10, 0, 0.11, 0.17), row(0.8, 10, 1, 0.13, 0.19), row(0.8, 30, 0, 0.1, 0.2),
        row(0.5, 30, 0, 0.3, 0.31),
    ]  # fmt: skip
    (tmp_path / "spurious.csv").write_text(to_csv(rows, SPURIOUS_COLUMNS))
    texts = render_tables(tmp_path)
    assert list(texts) == ["tables/table_spurious_paper.md"]
    text = texts["tables/table_spurious_paper.md"]
    assert "| 0.8 | 10 | 2 | 0.120 ± 0.014 | 0.111 | +0.009 | 0.180 ± 0.014 | 0.162 | +0.018 |" in text
    assert "| 0.8 | 30 | 1 | 0.100 | 0.111 | -0.011 | 0.200 | 0.162 | +0.038 |" in text
    assert "| 0.5 | 30 | 1 | 0.300 | — | — | 0.310 | — | — |" in text
    assert "the paper trained for 30 epochs" in text
    assert "\n- a\n- b\n\n" in text
    assert text.endswith("`make reproduce-table-spurious PRESET=paper` makes this page.\n")
