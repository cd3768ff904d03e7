"""What is published: the committed tables, README and records are what the reports render to."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from cmixup.errors import InputError
from scripts import verify
from scripts.driver.runs import RunFolder
from scripts.plan.selection import selected_methods
from scripts.publish import publish_runs
from scripts.records.experiment import RESULTS, all_experiments, load_experiment, paper_rows
from scripts.records.prediction_store import read_cells
from scripts.records.rescored import table_runs
from scripts.records.run_tables import frame_of
from scripts.report.overfitting import published_curves
from scripts.report.rendering import stale_texts
from scripts.report.tables import make_table, missing_lines, standard_runs
from scripts.stats.scored import Scored


def report(seed: int = 0, **changes) -> dict:
    base = {
        "experiment": "table1", "dataset": "airfoil", "model": "fcn3", "method": "erm", "preset": "paper",
        "layer": "", "bandwidth": None, "alpha": None, "options": {}, "seed": seed, "facts": {}, "selection": "rmse",
        "run": f"table1/airfoil/fcn3/erm/paper/seed={seed}", "seconds": 1.0, "best_epoch": 3, "commit": "c0ffee",
        "dirty": False, "config": {"train": {"track": []}},
        "scores": {"val": {"rmse": 2.0}, "test": {"rmse": 2.5, "mape": 1.5}},
    }  # fmt: skip
    return base | changes


def leave_run(out: Path, content: dict, *, done: bool = True) -> None:
    folder, one = RunFolder(out / "runs" / content["run"]), np.full((2, 1), content["seed"], np.float32)
    folder.write({}, content, [{"epoch": 1}], predictions={"test": Scored({"": one}, one, np.zeros(2, int))})
    if done:
        folder.finish()


def change_report(path: Path, **changes) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    RunFolder(path.parent).finish()


def test_publish_copies_finished_runs_of_tables_only(tmp_path):
    leave_run(tmp_path / "out", report(0, scores={"val": {"rmse": 2.0}, "test": {"rmse": 2.5}}))
    leave_run(tmp_path / "out", report(1), done=False)
    leave_run(tmp_path / "out", report(2, experiment="adhoc", run="adhoc/x/seed=2"))
    (written,) = publish_runs(tmp_path / "out", tmp_path / "results")
    assert written == tmp_path / "results/runs/table1/airfoil.csv"
    (run,) = table_runs(tmp_path / "results").to_dict("records")
    # A metric that the run lacks is filled in; RMSE is that of the predictions that are kept.
    published = {"val_rmse": 2.0, "test_rmse": 0.0, "test_mae": 0.0, "seconds": 1.0, "best_epoch": 3}
    assert {key: run[key] for key in published} == published


def test_two_runs_of_a_cell_and_seed_are_refused(tmp_path):
    leave_run(tmp_path / "out", report(0))
    shutil.copytree(tmp_path / "out/runs", tmp_path / "out/runs/old", ignore=shutil.ignore_patterns("old"))
    with pytest.raises(InputError, match="two runs are of this cell and seed; move one out of"):
        publish_runs(tmp_path / "out", tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_of_later_seeds_scores_alone_are_published(tmp_path, capsys):
    for seed in (9, 10):
        leave_run(tmp_path / "out", report(seed, scores={"test": {"rmse": 0.0}}))
    publish_runs(tmp_path / "out", tmp_path / "results")
    table = pd.read_csv(tmp_path / "results/runs/table1/airfoil.csv").set_index("seed")
    assert table.loc[10, ["test_rmse", "test_mae"]].tolist() == [0, 0]  # MAE, which the run does not report
    (path,) = (tmp_path / "results/predictions/table1").iterdir()
    assert [list(seeds) for seeds in read_cells(path).values()] == [[9]]
    verify.main(["scores", f"results={tmp_path / 'results'}"])
    printed = capsys.readouterr()
    assert "1 of 1 scores of 1 runs are what their predictions give" in printed.out
    assert not printed.err


def test_curves_are_published_of_runs_that_tracked_them(tmp_path):
    tracked = {"experiment": "figure_overfitting", "config": {"train": {"track": ["train", "test"]}}}
    for seed in range(2):
        leave_run(tmp_path / "out", report(seed, run=f"f/seed={seed}", **tracked), done=False)
        folder = tmp_path / f"out/runs/f/seed={seed}"
        (folder / "history.csv").write_text(f"epoch,val_rmse,test_rmse\n1,8,{seed + 2}\n2,8,{seed + 1}\n")
        RunFolder(folder).finish()
    leave_run(tmp_path / "out", report(0))
    publish_runs(tmp_path / "out", tmp_path / "results")
    before = {path: path.read_text() for path in (tmp_path / "results/curves").rglob("*.csv")}
    assert [path.name for path in before] == ["erm.csv"]
    curves = published_curves(tmp_path / "results")
    assert curves.groupby("seed")["test_rmse"].apply(list).to_dict() == {0: [2.0, 1.0], 1: [3.0, 2.0]}
    shutil.rmtree(tmp_path / "out/runs/f/seed=0")  # what is published stays without it
    publish_runs(tmp_path / "out", tmp_path / "results")
    assert {path: path.read_text() for path in before} == before


def test_cells_without_runs_are_listed_with_the_reason():
    experiment = load_experiment("table_batch_id")
    there = [("airfoil", method) for method in experiment.methods] + [("no2", "cmixup")]
    absent = "our machines could not reach its host (electricity_fragment is a part of it, and no column of the paper)"
    assert missing_lines(experiment, pd.DataFrame(there, columns=["dataset", "method"])) == [
        "NO2, C-Mixup-batch: not run yet",
        "Exchange-Rate: not run yet; a run without mixing takes about 6 minutes on a CPU core",
        f"Electricity: {absent}; a run without mixing takes about 120 minutes on a CPU core",
    ]


def table_of(experiment: str, cells: list[tuple[str, str, str, float]]):
    """Return the first block of an experiment's table, of runs with experiment, dataset, method and value."""
    runs = frame_of(report(experiment=e, dataset=d, method=m, scores={"test": {"rmse": v}}) for e, d, m, v in cells)
    (block,) = make_table(load_experiment(experiment), runs, "paper").blocks
    return block


def test_borrowed_rows_come_from_the_other_experiment():
    block = table_of("table_batch_id", [
        ("table1", "airfoil", "cmixup", 1.0), ("table_batch_id", "airfoil", "cmixup_batch", 2.0),
        ("table1", "airfoil", "erm", 3.0), ("table1", "airfoil", "cmixup_batch", 4.0),
    ])  # fmt: skip
    assert {m: cells["rmse"].ours.mean for m, cells in block.cells.items()} == {"cmixup_batch": 2.0, "cmixup": 1.0}
    assert block.cells["cmixup_batch"]["rmse"].paper.mean == 2.792


def test_a_stand_in_never_meets_the_papers_numbers():
    block = table_of("table1", [("table1", "diabetes", "erm", 1.0)])
    assert block.cells["erm"]["rmse"].paper is None
    assert "Not in the paper" in block.notes[0]


@pytest.mark.parametrize(
    ("spoil", "message"),
    [(lambda path: change_report(path.with_name("report.json"), dirty=True),
      r"^1 runs cannot be published \(table1/airfoil/.*seed=1\): .*uncommitted"),
     (Path.unlink, r"1 runs have no predictions.h5, such as .*seed=1; train them again"),
     (lambda path: path.write_bytes(path.read_bytes()[::-1]), r"predictions.h5 is damaged: "),
     (lambda path: shutil.rmtree(path.parents[5]), "no finished run")],
)  # fmt: skip
def test_publish_refuses_damaged_runs_before_it_writes_anything(tmp_path, spoil, message):
    leave_run(tmp_path / "out", report(0))
    leave_run(tmp_path / "out", report(1))
    spoil(tmp_path / "out/runs" / report(1)["run"] / "predictions.h5")
    with pytest.raises(InputError, match=message):
        publish_runs(tmp_path / "out", tmp_path / "results")
    assert not (tmp_path / "results").exists()


def test_runs_with_changed_options_do_not_enter_a_table():
    runs = frame_of([report(), report(1, options={"method.bandwidth": 3.0})])
    assert standard_runs(runs, load_experiment("table1"))["seed"].tolist() == [0]


@pytest.mark.parametrize("experiment", [e for e in all_experiments() if e.paper_table], ids=lambda e: e.name)
def test_every_row_of_the_paper_meets_a_cell_of_its_table(experiment):
    """A changed title or a typing error in the paper's file must not make its column vanish."""
    rows = paper_rows(experiment)
    metrics = {*experiment.metrics, *(m for of_one in experiment.metrics_of.values() for m in of_one)}
    assert rows
    for r in rows:
        if r["dataset"] not in experiment.datasets:  # what is trained once more, changed, need not be the whole table
            assert experiment.points or experiment.overrides
        elif (experiment.name, r["dataset"]) == ("table5", "shapenet1d") and r["method"].startswith("cmixup_"):
            assert any("On tasks (ShapeNet1D) only C-Mixup's distance is there" in note for note in experiment.notes)
        else:
            assert r["method"] in selected_methods(experiment, r["dataset"], experiment.methods) or experiment.points
            assert r["metric"] in metrics or experiment.points
    assert len({(r["dataset"], r["method"], r["metric"]) for r in rows}) == len(rows)
    if experiment.name == "table3":
        assert len(rows) == 9 * 5 + 9 * 4  # RCF-MNIST has no worst domain


def test_the_papers_cmixup_stands_beside_the_batch_form_where_that_is_what_it_trains():
    experiment = load_experiment("table3")
    assert selected_methods(experiment, "crime", ["erm", "cmixup"]) == ["erm", "cmixup"]
    assert selected_methods(experiment, "rcf_mnist", ["erm", "cmixup"]) == ["erm", "cmixup_batch", "cmixup"]
    values = {"erm": 0.2, "cmixup_batch": 0.1, "cmixup": 0.3}
    block = table_of("table3", [("table3", "rcf_mnist", method, value) for method, value in values.items()])
    paper = {m: c["rmse"].paper and c["rmse"].paper.mean for m, c in block.cells.items()}
    assert (paper["cmixup_batch"], paper["cmixup"], paper["erm"]) == (0.146, None, 0.162)
    assert block.compare == "cmixup_batch"
    assert "The paper's C-Mixup is C-Mixup-batch on this dataset." in block.notes


def test_a_row_of_the_paper_that_is_none_of_ours_is_an_error(tmp_path):
    text = (RESULTS / "paper/results.csv").read_text()
    (tmp_path / "paper").mkdir()
    for before, after, message in (
        ("Airfoil,in", "Airfoyl,in", "'Airfoyl' of the paper must be the title of one dataset"),
        (",k-Mixup,", ",K Mixup,", "'K Mixup' of the paper must be the title of one method"),
        (",MAPE(%),", ",MAPE,", "'MAPE' of the paper must be the title of one metric"),
    ):
        (tmp_path / "paper/results.csv").write_text(text.replace(before, after))
        with pytest.raises(InputError, match=message):
            paper_rows(load_experiment("table1"), tmp_path)


@pytest.mark.slow  # .ci/run runs the command
def test_committed_texts_are_what_the_records_render_to():
    assert len(table_runs()), "no published runs"
    assert stale_texts() == []


def test_a_tables_numbers_are_means_of_the_runs():
    runs = pd.read_csv(RESULTS / "runs/table1/airfoil.csv").query("method == 'cmixup' and preset == 'released'")
    section = (RESULTS / "tables/table1.md").read_text().partition("## Preset released")[2]
    (line,) = re.findall(r"^\| \[C-Mixup\].* 2\.717 .*$", section, re.MULTILINE)
    assert runs["options"].isna().all()
    assert f"| {len(runs)} | {runs['test_rmse'].mean():.3f} ±" in line.replace("**", "")
