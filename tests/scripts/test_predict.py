"""A finished run predicts new rows: `cmixup.load_run` and scripts.predict."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import cmixup
from cmixup import InputError, load_run
from datasets.no2 import NO2
from scripts import predict
from scripts.driver.job import Job
from scripts.driver.runs import RunFolder
from tests.scripts.jobs import execute_job, planned

pytestmark = pytest.mark.usefixtures("no_git_session")


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
    frame = predict.read_new(path, run)
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


def test_the_command_writes_what_the_run_predicts(
    table_run: tuple[Job, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, path = table_run
    folder, out = job.run_folder(0), tmp_path / "predictions.csv"
    predict.main([f"run={folder}", f"table={path}", f"out={out}"])
    written = pd.read_csv(out)
    run = cmixup.load_run(folder)
    expected = run.predict(predict.read_new(path, run)).reset_index(drop=True)
    pd.testing.assert_frame_equal(written, expected, rtol=1e-12)
    truth = np.arange(100) % 7 + 1.5
    rmse = np.sqrt(np.mean((truth - written["price"]) ** 2))
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"100 rows: price -> {out}"
    assert second.startswith(f"price: rmse {rmse:.4f}, ")


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


def test_no_cell_of_the_predictions_is_computed_by_a_spreadsheet(table_run: tuple[Job, Path], tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("=1+1;size;age;state\n=cmd();1;25;s1\n-7;2;25;s1\n@x;3;25;s1\n")
    out = tmp_path / "out.csv"
    predict.main([f"run={table_run[0].run_folder(0)}", f"table={tmp_path / 'new.csv'}", "id==1+1", f"out={out}"])
    cells = [line.split(",")[0] for line in out.read_text().splitlines()]
    assert cells == ["'=1+1", "'=cmd()", "-7", "'@x"]
