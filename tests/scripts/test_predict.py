"""A finished run predicts new rows: `cmixup.load_run` and scripts.predict."""

from __future__ import annotations

import importlib
import io
import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import cmixup
from cmixup import InputError, load_run
from cmixup.saved_run import KNOWN, MOVED, READER
from datasets.no2 import NO2
from scripts import predict
from scripts.driver.execute import execute_job
from scripts.driver.job import Job
from scripts.driver.predictions import calibration_curve, read_predictions
from scripts.driver.runs import is_done, load_reports, read_report
from scripts.measure.load_run import model_of
from scripts.records.curves import read_curves
from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports
from tests.scripts.jobs import FILES, planned

pytestmark = pytest.mark.usefixtures("no_git_session")
CSV_ROWS = "id;price;size;age;state\n" + "".join(
    f"{k};{k % 7 + 1},5;{'' if k % 11 == 0 else k % 5},25;{k * k % 31};s{k % 9}\n" for k in range(100)
)


@pytest.fixture(scope="module")
def no_git_session() -> Any:
    """As `no_git`, for the runs that these tests share."""
    patch = pytest.MonkeyPatch()
    patch.setattr("scripts.driver.execute.run_environment", lambda device: {"device": str(device)})
    yield
    patch.undo()


@pytest.fixture(scope="module")
def no2(tmp_path_factory: pytest.TempPathFactory, no_git_session: None) -> tuple[Job, Path]:
    """Two seeds of NO2's twin, trained as one stack; the job and its folder."""
    job = planned(tmp_path_factory.mktemp("no2"), "method=cmixup", "seeds=[3,5]")
    execute_job(job)
    return job, job.folder


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory, no_git_session: None) -> tuple[Job, Path]:
    """A run on an own table with missing values, categories and a log target; its job and its file."""
    path = tmp_path_factory.mktemp("own") / "my.csv"
    path.write_text(CSV_ROWS)
    words = ["dataset=csv", f"dataset.path={path}", "dataset.target=price", "dataset.log_target=true"]
    job = planned(path.parent, *words, "dataset.synthetic=false", "train.batch_size=20", "dataset.missing=[unknown]")
    execute_job(job)
    return job, path


def test_predictions_are_those_of_the_run_on_the_same_rows(no2: tuple[Job, Path]) -> None:
    job, folder = no2
    dataset = job.dataset
    raw = dataset.synthetic_rows(np.random.default_rng(0))
    rows = dataset.split(raw, 3)
    for seed in job.seeds:
        run = load_run(folder / f"seed={seed}")
        (kept,) = read_predictions(folder / f"seed={seed}" / "predictions.h5").values()
        for part in ("val", "test"):
            frame = pd.DataFrame(raw.x[rows[part]], columns=list(NO2.columns), index=rows[part])
            found = run.predict(frame)
            np.testing.assert_allclose(found.to_numpy(), kept[part].prediction[""], rtol=1e-6, atol=1e-6)
            assert list(found) == ["log_no2"]
            assert found.index.tolist() == rows[part].tolist()
            # The inputs themselves are those of the dataset, bit for bit.
            x = getattr(dataset.load(seed), part).x
            assert np.array_equal(run.table.apply(frame), x.numpy())  # type: ignore[union-attr]
            assert torch.equal(run.predict(x), torch.tensor(found.to_numpy()))
    one, other = (load_run(folder / f"seed={seed}").predict(frame).to_numpy() for seed in job.seeds)
    assert not np.allclose(one, other)  # each seed has its own weights


def test_a_single_run_predicts_its_own_numbers_bit_for_bit(own: tuple[Job, Path]) -> None:
    """Of an own table, read as a user reads it: with a log target, holes and categories."""
    job, path = own
    run = load_run(job.run_folder(0))
    frame = predict.read_new(path, run)
    (kept,) = read_predictions(job.run_folder(0) / "predictions.h5").values()
    data, found = job.dataset.load(0), run.predict(frame)
    inputs = run.table.apply(frame)  # type: ignore[union-attr]
    for part in ("val", "test"):
        rows = [int(np.flatnonzero((inputs == x).all(axis=1))[0]) for x in getattr(data, part).x.numpy()]
        # Rows may repeat, but equal inputs are predicted alike.
        np.testing.assert_array_equal(np.exp(kept[part].prediction[""].astype(np.float64)), found.to_numpy()[rows])
    assert found.to_numpy().min() > 0


def test_columns_are_found_by_name(own: tuple[Job, Path]) -> None:
    job, path = own
    run = load_run(job.run_folder(0))
    frame = predict.read_new(path, run)
    mixed = frame.drop(columns=["id", "price"])[["state", "age", "size"]].assign(more="text")
    pd.testing.assert_frame_equal(run.predict(mixed), run.predict(frame))
    assert run.predict(frame.iloc[:0]).shape == (0, 1)
    assert run.predict(frame.iloc[[7]]).index.tolist() == [8]
    with pytest.raises(
        InputError, match=r"^table has no column 'size' and 1 more \(age\); the nearest name is 'sizes'$"
    ):
        run.predict(frame.rename(columns={"size": "sizes", "age": "years"}))


def test_the_batch_size_does_not_matter_and_nothing_global_changes(no2: tuple[Job, Path]) -> None:
    x = torch.rand(50, 7, generator=torch.Generator().manual_seed(0))
    state = torch.get_rng_state()
    run = load_run(no2[1] / "seed=3")
    assert torch.equal(state, torch.get_rng_state())
    torch.testing.assert_close(run.predict(x, batch_size=7), run.predict(x.numpy()), rtol=1e-6, atol=1e-6)
    assert not run.model.training


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


@pytest.mark.slow
def test_images_are_predicted_from_tensors(tmp_path: Path) -> None:
    job = planned(tmp_path, "dataset=rcf_mnist", "model.width=2", "train.batch_size=32")
    execute_job(job)
    run = load_run(job.run_folder(0))
    (kept,) = read_predictions(job.run_folder(0) / "predictions.h5").values()
    x = job.dataset.load(0).test.x
    np.testing.assert_allclose(run.predict(x[torch.arange(20)]), kept["test"].prediction[""][:20], rtol=1e-5, atol=1e-5)
    with pytest.raises(InputError, match=r"\(N, 3, \d+, \d+\): run .* not trained on a table, got a data frame"):
        run.predict(pd.DataFrame({"a": [1.0]}))


def damaged(folder: Path, tmp_path: Path, name: str, content: str | bytes | None) -> Path:
    """A copy of a run of an earlier version, whose `DONE` holds no checksums, with another file in the place of one."""
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    (copy / "DONE").write_text("{}")
    if content is None:
        (copy / name).unlink()
    else:
        (copy / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return copy


def other_weights() -> bytes:
    buffer = io.BytesIO()
    torch.save({"linear1.weight": torch.ones(2)}, buffer)
    return buffer.getvalue()


DEEP = "[" * 10**5 + "]" * 10**5


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("DONE", None, "it holds no DONE"),
        ("model.json", None, "an earlier version made it; train it again with rerun=true"),
        ("model.json", "{", "does not hold what a run keeps there"),
        ("model.json", "[]", "does not hold what a run keeps there"),
        ("model.json", DEEP, "does not hold what a run keeps there"),
        ("checkpoint.pt", None, "weights=false"),
        ("checkpoint.pt", b"no weights", "does not hold the weights"),
        ("checkpoint.pt", b"", "does not hold the weights"),
        ("checkpoint.pt", other_weights(), "does not hold the weights"),
        ("preprocessing.json", "{}", "does not hold what a run kept of its table"),
        ("preprocessing.json", '{"read_by": "datasets.nowhere.Reader"}', "cannot be imported here"),
        ("preprocessing.json", '{"read_by": "nowhere.Reader"}', r"no class of this project: trust=True imports it"),
        ("preprocessing.json", b"\xff", "does not hold what a run keeps there"),
        ("preprocessing.json", DEEP, "does not hold what a run keeps there"),
        ("preprocessing.json", '{"read_by": "cmixup.mix"}', "must name a class that reads it, got 'cmixup.mix'"),
    ],
)
def test_a_damaged_run_is_one_line(
    no2: tuple[Job, Path], tmp_path: Path, name: str, content: str | bytes | None, said: str
) -> None:
    with pytest.raises(InputError, match=said) as caught:
        load_run(damaged(no2[1] / "seed=3", tmp_path, name, content))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("preprocessing.json", {"targets": ["one", "two"]}, "is of another table than model.json"),
        ("preprocessing.json", {"targets": [[]]}, "does not hold what a run kept of its table"),
        ("preprocessing.json", {"log_target": "no"}, "does not hold what a run kept of its table"),
        ("preprocessing.json", {"columns": [{"shift": "a"}]}, "does not hold what a run kept of its table"),
        ("preprocessing.json", {"columns": [{"median": math.nan}]}, "does not hold what a run kept of its table"),
        ("preprocessing.json", {"columns": [{"scale": 0.0}]}, "does not hold what a run kept of its table"),
        ("model.json", {"label_scaling": {"mean": [0.0, 1.0], "std": [1.0]}}, "label_scaling must be numbers of every"),
        ("model.json", {"label_scaling": {"mean": [math.inf], "std": [1.0]}}, "holds numbers that are not finite"),
    ],
)
def test_a_run_with_values_that_no_run_has_is_one_line(
    no2: tuple[Job, Path], tmp_path: Path, name: str, changes: dict[str, Any], said: str
) -> None:
    folder = no2[1] / "seed=3"
    given = json.loads((folder / name).read_text())
    if columns := changes.get("columns"):
        changes = {"columns": [{**given["columns"][0], **columns[0]}, *given["columns"][1:]]}
    with pytest.raises(InputError, match=said):
        load_run(damaged(folder, tmp_path, name, json.dumps({**given, **changes})))


def test_a_run_that_names_what_ends_python_is_one_line(
    no2: tuple[Job, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(3)")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match=r"names ends\.Reader, which cannot be imported here"):
        load_run(damaged(no2[1] / "seed=3", tmp_path, "preprocessing.json", '{"read_by": "ends.Reader"}'), trust=True)


def test_weights_that_are_not_finite_are_one_line(no2: tuple[Job, Path], tmp_path: Path) -> None:
    weights = torch.load(no2[1] / "seed=3" / "checkpoint.pt", weights_only=True)
    next(iter(weights.values())).view(-1)[0] = math.nan
    buffer = io.BytesIO()
    torch.save(weights, buffer)
    with pytest.raises(InputError, match="holds numbers that are not finite"):
        load_run(damaged(no2[1] / "seed=3", tmp_path, "checkpoint.pt", buffer.getvalue()))


def flip(path: Path, place: float = 0.5) -> None:
    """Flip a bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", [name for name in FILES if name != "DONE"])
def test_a_flipped_bit_is_refused_by_whoever_reads_the_file(
    name: str, own: tuple[Job, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its size is right, so the run counts as done; every reader of the file names it and predicts nothing."""
    job, path = own
    folder = Path(shutil.copytree(job.run_folder(0), tmp_path / "runs/adhoc/copy"))
    flip(folder / name)
    assert is_done(folder)
    table = [f"run={folder}", f"table={path}", f"out={tmp_path / 'new.csv'}"]
    report = {**read_report(job.run_folder(0)), "run": "adhoc/copy"}
    refused = {
        "checkpoint.pt": [lambda: load_run(folder), lambda: model_of(report, job.dataset.load(0), tmp_path), table],
        "model.json": [lambda: load_run(folder), table],
        "preprocessing.json": [lambda: load_run(folder), table],
        "config.yaml": [table],
        "predictions.h5": [lambda: read_predictions(folder / name)],
        "report.json": [lambda: read_report(folder)],
        "history.csv": [lambda: read_curves([report], tmp_path / "runs")],
    }
    for read in refused[name]:
        if callable(read):
            with pytest.raises(InputError, match=f"{folder / name} is damaged: "):
                read()
        else:
            with pytest.raises(SystemExit):
                predict.main(read)
            (line,) = capsys.readouterr().err.splitlines()
            assert line.startswith(f"error: {folder / name} is damaged: ")
    assert not (tmp_path / "new.csv").exists()


def test_a_run_whose_report_has_a_flipped_bit_does_not_count(
    no2: tuple[Job, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = Path(shutil.copytree(no2[1], tmp_path / "runs"))
    flip(folder / "seed=5/report.json")
    assert [report["seed"] for report in load_reports(tmp_path)] == [3]
    assert capsys.readouterr().err.startswith(f"{folder / 'seed=5/report.json'} is damaged: ")


def test_weights_without_their_checksum_are_checked_by_their_own(no2: tuple[Job, Path], tmp_path: Path) -> None:
    """As of a run of an earlier version, or a checkpoint that was copied alone."""
    folder = damaged(no2[1] / "seed=3", tmp_path, "checkpoint.pt", (no2[1] / "seed=3/checkpoint.pt").read_bytes())
    load_run(folder)
    content = bytearray((folder / "checkpoint.pt").read_bytes())
    weights = torch.load(folder / "checkpoint.pt", weights_only=True)
    content[content.index(next(iter(weights.values())).numpy().tobytes()) + 5] ^= 1
    (folder / "checkpoint.pt").write_bytes(content)
    with pytest.raises(InputError, match=r"checkpoint.pt does not hold the weights of model.json: .* another checksum"):
        load_run(folder)
    report = {**read_report(no2[1] / "seed=3"), "run": "copy"}
    (tmp_path / "runs").mkdir()
    folder.rename(tmp_path / "runs/copy")
    with pytest.raises(InputError, match=r"checkpoint.pt is not a file of this model's weights: .* another checksum"):
        model_of(report, no2[0].dataset.load(3), tmp_path)


def test_the_library_alone_predicts_with_runs_on_tables_and_names_another_datasets_in_the_way(
    no2: tuple[Job, Path], own: tuple[Job, Path], tmp_path: Path
) -> None:
    """Python is as `pip install cmixup datasets` leaves it: `datasets` is another one, and there is no `models`."""
    root = str(Path(cmixup.__file__).parents[1])
    rows = pd.DataFrame({"size": [1.25, 4.25], "age": [3, 30], "state": ["s1", "s8"]})
    expected = load_run(own[0].run_folder(0)).predict(rows).to_numpy().tobytes()
    given = json.loads((no2[1] / "seed=3" / "model.json").read_text())
    given["model"]["_target_"] = "models.lstnet.LSTNet"
    needs_checkout = damaged(no2[1] / "seed=3", tmp_path / "run", "model.json", json.dumps(given))
    given["model"]["_target_"] = "datasets.nowhere.Net"
    collides = damaged(no2[1] / "seed=3", tmp_path / "other", "model.json", json.dumps(given))
    (tmp_path / "datasets").mkdir()
    (tmp_path / "datasets" / "__init__.py").write_text("")
    code = f"""
import sys
sys.path.append({root!r}); import cmixup; sys.path.remove({root!r})
import datasets, pandas
rows = pandas.DataFrame({rows.to_dict("list")!r})
print(cmixup.load_run({str(own[0].run_folder(0))!r}).predict(rows).to_numpy().tobytes() == {expected!r})
for folder in ({str(needs_checkout)!r}, {str(collides)!r}):
    try: cmixup.load_run(folder)
    except cmixup.errors.InputError as error: print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": f"{root}/tests/guard"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    same, alone, beside = done.stdout.splitlines() or [done.stderr, "", ""]
    assert same == "True"
    assert "models.lstnet.LSTNet, which cannot be imported here (No module named 'models'): load the run" in alone
    assert f"; here datasets is {tmp_path / 'datasets' / '__init__.py'}, which must be that of the checkout" in beside


def test_what_is_no_model_is_never_called(no2: tuple[Job, Path], tmp_path: Path) -> None:
    given = json.loads((no2[1] / "seed=3" / "model.json").read_text())
    for target in ("os.mkdir", "subprocess.Popen", "pathlib.Path"):
        given["model"]["_target_"] = target
        copy = damaged(no2[1] / "seed=3", tmp_path / target, "model.json", json.dumps(given))
        with pytest.raises(InputError, match=f"names {target}, which is no class of this project: trust=True"):
            load_run(copy)
        with pytest.raises(InputError, match=f"must name a model, got '{target}'"):
            load_run(copy, trust=True)


def test_no_module_outside_this_project_is_imported_but_by_one_who_trusts_it(
    no2: tuple[Job, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine.py").write_text(
        f"open({str(tmp_path / 'ran')!r}, 'a').write('.')\nfrom cmixup.fcn3 import FCN3 as Net\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    given = json.loads((no2[1] / "seed=3" / "model.json").read_text())
    given["model"]["_target_"] = "mine.Net"
    copy = damaged(no2[1] / "seed=3", tmp_path / "copy", "model.json", json.dumps(given))
    with pytest.raises(InputError, match=r"names mine\.Net, which is no class of this project: trust=True imports it"):
        load_run(copy)
    assert not (tmp_path / "ran").exists()
    rows = [[0.5] * 7]
    assert torch.equal(load_run(copy, trust=True).predict(rows), load_run(no2[1] / "seed=3").predict(rows))
    with pytest.raises(InputError, match="trust must be True or False"):
        load_run(copy, trust=1)  # type: ignore[arg-type]


def test_published_runs_name_what_loads_without_trust() -> None:
    named = {(report["model"], report["config"]["model"]["_target_"]) for report in published_reports(RESULTS)}
    assert len(named) >= 4
    for _, target in named:
        assert target.partition(".")[0] in KNOWN
        module, _, name = MOVED.get(target, target).rpartition(".")
        assert hasattr(importlib.import_module(module), name)


def test_runs_of_earlier_versions_name_places_that_have_moved(no2: tuple[Job, Path], tmp_path: Path) -> None:
    folder = no2[1] / "seed=3"
    given = json.loads((folder / "preprocessing.json").read_text())
    assert given["read_by"] == READER
    given["read_by"] = "datasets.common.table.preprocessing.Preprocessing"
    old = load_run(damaged(folder, tmp_path, "preprocessing.json", json.dumps(given)))
    assert old.table == load_run(folder).table


def test_a_folder_of_several_runs_names_them(no2: tuple[Job, Path]) -> None:
    with pytest.raises(InputError, match="below it are seed=3, seed=5"):
        load_run(no2[1])


def test_the_command_writes_what_the_run_predicts(
    own: tuple[Job, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job, path = own
    folder, out = job.run_folder(0), tmp_path / "predictions.csv"
    predict.main([f"run={folder}", f"table={path}", f"out={out}"])
    found = pd.read_csv(out)
    run = cmixup.load_run(folder)
    expected = run.predict(predict.read_new(path, run)).reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected, rtol=1e-12)
    truth = np.arange(100) % 7 + 1.5
    rmse = np.sqrt(np.mean((truth - found["price"]) ** 2))
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"100 rows: price -> {out}"
    assert second.startswith(f"price: rmse {rmse:.4f}, ")


def test_ids_go_into_the_predictions_as_they_are(own: tuple[Job, Path], tmp_path: Path) -> None:
    job, path = own
    new = tmp_path / "new.csv"
    new.write_text(path.read_text().replace("id;price", "house;price").replace("\n7;", "\n007;"))
    predict.main([f"run={job.folder / 'seed=0'}", f"table={new}", "id=house,state", f"out={tmp_path / 'p.csv'}"])
    found = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert list(found) == ["house", "state", "price"]
    assert found["house"][7] == "007"
    with pytest.raises(SystemExit):
        predict.main([f"run={job.folder / 'seed=0'}", f"table={new}", "id=hose"])


def test_no_cell_of_the_predictions_is_computed_by_a_spreadsheet(own: tuple[Job, Path], tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("=1+1;size;age;state\n=cmd();1;25;s1\n-7;2;25;s1\n@x;3;25;s1\n")
    out = tmp_path / "out.csv"
    predict.predict_table(load_run(own[0].run_folder(0)), tmp_path / "new.csv", out, ["=1+1"])
    cells = [line.split(",")[0] for line in out.read_text().splitlines()]
    assert cells == ["'=1+1", "'=cmd()", "-7", "'@x"]


def test_calibration_is_the_mean_of_bins_of_equal_size() -> None:
    prediction = np.array([3.0, 1.0, 2.0, 4.0])
    means, truths = calibration_curve(10 * prediction, prediction, bins=2)
    assert (means.tolist(), truths.tolist()) == ([1.5, 3.5], [15.0, 35.0])
    assert len(calibration_curve(prediction, prediction)[0]) == 4


BAD = {
    "nothing": ([], "run must name"),
    "no table": (["run={run}"], "table must name"),
    "no folder": (["run=/nowhere", "table={table}"], "no such folder"),
    "no file": (["run={run}", "table=/nowhere.csv"], "no such file"),
    "a folder": (["run={run}", "table={run}"], "no such file"),
    "misspelt": (["runn={run}"], "option must be one of"),
    "no word": (["run={run}", "new.csv"], "run must be given once"),
    "itself": (["run={run}", "table={table}", "out={table}"], "out must be another file"),
    "empty": (["run={run}", "table={empty}"], "empty.csv"),
    "words": (["run={run}", "table={words}"], "words.csv, row 1, column 'age': 'old' is not a number"),
    "out": (["run={run}", "table={table}", "out=/proc/no/file.csv"], "/proc/no"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_of_the_command_is_one_line(
    case: str, own: tuple[Job, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "words.csv").write_text("size;age;state\n1;old;s1\n")
    places = {"run": own[0].run_folder(0), "table": own[1]} | {n: tmp_path / f"{n}.csv" for n in ("empty", "words")}
    words, said = BAD[case]
    with pytest.raises(SystemExit) as stop:
        predict.main([word.format(**places) for word in words])
    (line,) = capsys.readouterr().err.splitlines()
    assert (stop.value.code, line.startswith("error: ")) == (2, True)
    assert said in line
