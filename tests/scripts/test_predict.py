"""A finished run predicts new rows: `cmixup.load_run` and scripts.predict."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup import InputError, load_run
from datasets.no2 import NO2
from scripts import predict
from scripts.driver.job import Job
from scripts.driver.runs import RunFolder
from tests.scripts.jobs import execute_job, job_of, planned


def test_predictions_are_those_of_the_run_on_the_same_rows(no2: tuple[Job, Path]) -> None:
    job, folder = no2
    dataset = job.dataset
    raw = dataset.synthetic_rows(np.random.default_rng(0))
    rows = dataset.split(raw, 3)
    for seed in job.seeds:
        run = load_run(folder / f"seed={seed}")
        kept = RunFolder(folder / f"seed={seed}").predictions()
        for part in ("val", "test"):
            frame = pd.DataFrame(raw.x[rows[part]], columns=list(NO2.columns), index=rows[part])
            predicted = run.predict(frame)
            np.testing.assert_allclose(predicted.to_numpy(), kept[part].prediction[""], rtol=1e-6, atol=1e-6)
            assert list(predicted) == ["log_no2"]
            assert predicted.index.tolist() == rows[part].tolist()
            # The inputs themselves are those of the dataset, bit for bit.
            x = getattr(dataset.load(seed), part).x
            assert np.array_equal(run.preprocessing.apply(frame), x.numpy())
            assert torch.equal(run.predict(x, scaled=True), torch.tensor(predicted.to_numpy()))
    one, other = (load_run(folder / f"seed={seed}").predict(frame).to_numpy() for seed in job.seeds)
    assert not np.allclose(one, other)  # each seed has its own weights


def test_a_single_run_predicts_its_own_numbers_bit_for_bit(table_run: tuple[Job, Path]) -> None:
    """Of an own table, read as a user reads it: with a log target, holes and categories."""
    job, path = table_run
    run = load_run(job.run_folder(0))
    frame = predict.read_new_table(path, run)
    kept = RunFolder(job.run_folder(0)).predictions()
    data, predicted = job.dataset.load(0), run.predict(frame)
    inputs = run.preprocessing.apply(frame)
    for part in ("val", "test"):
        rows = [int(np.flatnonzero((inputs == x).all(axis=1))[0]) for x in getattr(data, part).x.numpy()]
        # Rows may repeat, but equal inputs are predicted alike.
        np.testing.assert_array_equal(np.exp(kept[part].prediction[""].astype(np.float64)), predicted.to_numpy()[rows])
    assert predicted.to_numpy().min() > 0


def test_weights_can_be_left_out_and_no_record_says_so(tmp_path: Path, no2: tuple[Job, Path]) -> None:
    job = planned(tmp_path, "method=cmixup", "seeds=[3,5]", "weights=false")
    execute_job(job)
    folder = job.run_folder(3)
    assert not (folder / "checkpoint.pt").exists()
    with pytest.raises(InputError, match="weights=false"):
        load_run(folder)
    mine, theirs = (json.loads((f / "report.json").read_text()) for f in (folder, no2[1] / "seed=3"))
    assert [mine[key] for key in ("config", "scores", "options")] == [
        theirs[key] for key in ("config", "scores", "options")
    ]
    assert job.folder.relative_to(tmp_path) == no2[1].relative_to(no2[1].parents[5])


def test_ids_go_into_the_predictions_as_they_are(table_run: tuple[Job, Path], tmp_path: Path) -> None:
    job, path = table_run
    new = tmp_path / "new.csv"
    new.write_text(path.read_text().replace("id;price", "house;price").replace("\n7;", "\n007;"))
    predict.main([f"run={job.folder / 'seed=0'}", f"table={new}", "id=house,state", f"out={tmp_path / 'p.csv'}"])
    written = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert list(written) == ["house", "state", "price"]
    assert written["house"][7] == "007"
    with pytest.raises(SystemExit):
        predict.main([f"run={job.folder / 'seed=0'}", f"table={new}", "id=hose"])


def test_an_error_is_of_labels_in_the_unit_of_the_run() -> None:
    predicted = pd.DataFrame({"w": [2.0, 3.0]})
    for words, line in ((["2000 g", "3000 g"], "w: no error, since it is in g here and in kg in the run"),
                        (["3 kg", "4 kg"], "w: rmse 1.0000, mean absolute error 1.0000, over 2 rows with a value"),
                        ([3, 4], "w: rmse 1.0000, mean absolute error 1.0000, over 2 rows with a value")):  # fmt: skip
        assert predict.error_lines(pd.DataFrame({"w": words}), predicted, ("kg",)) == [line]


def test_several_series_are_named_in_the_forecast(tmp_path: Path) -> None:
    one = pd.DataFrame({"day": pd.date_range("1990-01-01", periods=160), "rate": np.sin(np.arange(160))})
    pd.concat([one.assign(land="007"), one.assign(land="8")]).to_csv(tmp_path / "long.csv", index=False)
    words = [f"series={tmp_path / 'long.csv'}", "window=24", "horizon=3", "model=fcn3", "dataset.id=land", "time=day"]
    job = job_of(*words, "train.epochs=2", "logger=none", f"out={tmp_path}")
    execute_job(job)
    predict.main([f"run={job.run_folder(0)}", f"series={tmp_path / 'long.csv'}", f"out={tmp_path / 'p.csv'}"])
    written = pd.read_csv(tmp_path / "p.csv", dtype={"land": str})
    assert list(written) == ["land", "day", "rate"]
    assert written["land"].tolist() == ["007"] * 3 + ["8"] * 3


def test_a_straight_line_goes_on(tmp_path: Path) -> None:
    """LSTNet's highway in the units of labels and inputs; the last value alone is 6.5 wrong."""
    rows = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=200), "value": 3.0 * np.arange(200) + 7})
    rows.to_csv(tmp_path / "line.csv", index=False)
    words = ["window=24", "horizon=3", "dataset.steps=all", "method=erm", "model=lst_attn", "model.channels=4"]
    more = ["model.hidden=4", "train.batch_size=32", "train.lr=0.01", "train.epochs=60", "logger=none"]
    job = job_of(f"series={tmp_path / 'line.csv'}", *words, *more, f"out={tmp_path}")
    execute_job(job)
    assert RunFolder(job.run_folder(0)).report()["scores"]["test"]["rmse"] < 1
    np.testing.assert_allclose(load_run(job.run_folder(0)).predict(rows)["value"], [607, 610, 613], atol=1)


ROOT = Path(predict.__file__).parents[1]
SECTIONS = re.split(r"^## ", (ROOT / "docs/own_data.md").read_text(), flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("title", ["A table", "A folder of images", "Arrays",
                                   pytest.param("A series", marks=pytest.mark.data)])  # fmt: skip
def test_the_commands_of_the_page_end_in_the_predictions_that_it_shows(title: str, tmp_path: Path) -> None:
    """Errors are those of the page within a tenth: training differs between processors."""
    (section,) = [text for text in SECTIONS if text.startswith(f"{title}\n")]
    write, commands, output = (
        re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL)[0]
        for kind, text in (("bash", SECTIONS[0]), ("bash", section), ("text", section))
    )
    script = "\n".join([write, commands]).replace("python -m", f"{sys.executable} -m")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-ec", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.splitlines()[-len(output.splitlines()) :]
    number = r"\d+\.\d+"
    assert [re.sub(number, "", line) for line in printed] == [re.sub(number, "", line) for line in output.splitlines()]
    mine, theirs = (np.array(re.findall(number, text), float) for text in ("\n".join(printed), output))
    np.testing.assert_allclose(mine, theirs, rtol=0.1)
