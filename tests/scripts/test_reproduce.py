"""The table command: what it plans, and a whole small run of it."""

import re
from dataclasses import replace

import pytest

from cmixup.errors import InputError
from datasets.common.fetch import FetchError
from scripts import reproduce
from scripts.config.compose import compose_train, option_names, override_words
from scripts.config.parts import dataset_class
from scripts.driver.job import plan_job
from scripts.plan import cells
from scripts.plan.selection import points_of
from scripts.records.experiment import load_experiment
from scripts.records.run_tables import frame_of
from tests.scripts.sweeps import report

EXPERIMENT = load_experiment("table1")


def choice(tmp_path, **changes) -> cells.Choice:
    given = {
        "datasets": ["airfoil"], "methods": ["erm", "mixrl"], "seeds": [0, 1], "preset": "paper",
        "out": str(tmp_path), "device": "cpu", "rerun": False,
    } | changes  # fmt: skip
    return cells.Choice(**given)


def fetching(monkeypatch, fetch) -> None:
    """Let every dataset of the table fetch its files with `fetch(dataset)`."""
    for dataset in set(EXPERIMENT.datasets) & set(option_names("dataset")):
        monkeypatch.setattr(dataset_class(dataset), "fetch", fetch)


def keys(planned) -> list[tuple[str, str, tuple[str, ...]]]:
    """Dataset, method and what is changed of the preset, of every planned cell."""
    return [(job.config["dataset"]["name"], job.config["method"]["name"], tuple(map(str, job.options.items())))
            for job in planned]  # fmt: skip


@pytest.fixture(autouse=True)
def here(monkeypatch):
    fetching(monkeypatch, lambda _: [])


def test_what_is_not_built_is_listed_not_run(tmp_path):
    planned, missing = cells.plan_cells(
        EXPERIMENT, choice(tmp_path, datasets=["airfoil", "unbuilt"], methods=["erm", "unheard"])
    )
    assert keys(planned) == [("airfoil", "erm", ())]
    assert planned[0].pending == [0, 1]
    assert missing == ["unheard: not in this version", "unbuilt: not in this version"]


def test_a_sweep_trains_its_values_and_takes_published_lines(tmp_path, monkeypatch):
    whole = load_experiment("figure_bandwidth")
    experiment = replace(whole, points=[{"methods": ["cmixup"], "grid": {"method.bandwidth": [0.1, 1.75, 1000.0]}}])
    published = [report(seed, 2.0, method=method, experiment="table1", **changes)
                 for seed in (0, 1) for method in ("erm", "manifold_mixup")
                 for changes in ({}, {"preset": "tuned"}, {"options": {"train.lr": 0.1}})]  # fmt: skip
    published += [report(2, 2.0, method="erm", experiment="table1", preset="tuned")]
    monkeypatch.setattr(cells, "_table_runs", lambda _: frame_of(published))
    monkeypatch.setattr(cells, "estimate_minutes", lambda *_: 1.0)
    given = choice(tmp_path, methods=list(experiment.methods), seeds=[0, 1, 2])
    planned, missing = cells.plan_cells(experiment, given)
    swept = {("cmixup", (f"('method.bandwidth', {b})",)): [0, 1, 2] for b in (0.1, 1000.0)}
    assert {key[1:]: job.seeds for key, job in zip(keys(planned), planned, strict=True)} == {
        **swept, ("cmixup", ()): [0, 1, 2], ("erm", ()): [2], ("manifold_mixup", ()): [2],
    }  # fmt: skip
    assert missing == []
    recorded = {(job.config["method"]["name"], job.config["experiment"]) for job in planned}
    assert recorded == {("erm", "table1"), ("manifold_mixup", "table1"), ("cmixup", "figure_bandwidth")}
    lines = cells.published_lines(experiment, given)
    assert lines[["method", "seed", "preset", "options"]].to_numpy().tolist() == [
        [method, seed, "paper", ""] for seed in (0, 1) for method in ("erm", "manifold_mixup")
    ]
    trained = []
    monkeypatch.setattr(cells, "train_items", lambda items, _: trained.extend(items) or [])
    cells.train_cells(experiment, planned)
    assert sorted([len(job.seeds) for job in item.jobs] for item in trained) == [[1], [1], [3, 3, 3]]
    again, _ = cells.plan_cells(experiment, replace(given, rerun=True))
    assert all(job.seeds == [0, 1, 2] for job in again)


def test_a_dataset_may_have_fewer_seeds_than_the_others(tmp_path, monkeypatch):
    experiment = replace(load_experiment("ladder"), datasets=["no2", "exchange_rate"], seeds_of={"exchange_rate": 2})
    monkeypatch.setattr(cells, "estimate_minutes", lambda *_: 1.0)
    given = choice(tmp_path, datasets=["no2", "exchange_rate"], methods=["erm"], seeds=[4, 5, 6])
    planned, _ = cells.plan_cells(experiment, given)
    seeds = {job.config["dataset"]["name"]: job.seeds for job in planned}
    assert seeds == {"no2": [4, 5, 6], "exchange_rate": [4, 5]}


def test_a_sweep_is_printed_and_written_with_its_lines(tmp_path, monkeypatch, capsys):
    experiment = load_experiment("figure_bandwidth")
    monkeypatch.setattr(cells, "_table_runs", lambda _: frame_of([report(0, 2.0, method="erm", experiment="table1")]))
    monkeypatch.setattr(reproduce, "collect_runs", frame_of)
    given = choice(tmp_path, methods=list(experiment.methods))
    reproduce.show_experiment(experiment, given, [report(0, 1.0, 0.1), report(0, 3.0, 1000.0)], ["NO2: not here"])
    text = (tmp_path / "tables" / "figure_bandwidth_paper.md").read_text()
    assert "| airfoil | cmixup | bandwidth 1000 | 1 | 3 |" in text
    assert text in capsys.readouterr().out
    assert (tmp_path / "figures" / "figure_bandwidth_paper.png").is_file()
    assert "- NO2: not here" in text


def test_a_cell_over_the_budget_is_listed_once_with_one_command_for_all(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cells, "estimate_minutes", lambda *_: 90.0)
    planned, missing = cells.plan_cells(EXPERIMENT, choice(tmp_path, methods=["erm"]))
    assert not planned
    assert missing == ["airfoil erm paper: about 90 min here"]
    given = ["table1", "seeds=1", "methods=erm", "datasets=airfoil", "preset=", f"out={tmp_path}"]
    reproduce.main(given)
    printed = capsys.readouterr()
    assert printed.out.count("about 90 min here") == 1
    command = f"table1 seeds=1 methods=erm datasets=airfoil out={tmp_path} budget=0"
    assert f"python -m scripts.reproduce {command}    trains all of these" in printed.out.splitlines()


def test_without_any_data_the_stand_in_is_planned(tmp_path, monkeypatch):
    def fail(self):
        raise FetchError(f"could not get {self.name}")

    fetching(monkeypatch, fail)
    planned, missing = cells.plan_cells(EXPERIMENT, choice(tmp_path, datasets=EXPERIMENT.datasets, methods=["erm"]))
    assert keys(planned) == [("diabetes", "erm", ())]
    assert missing[0] == "Airfoil: could not get airfoil"
    assert missing[-1] == "no dataset of this table could be had; Diabetes stands in"


def test_what_could_not_be_trained_is_printed_and_the_command_exits_with_2(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cells, "estimate_minutes", lambda *_: 1.0)
    monkeypatch.setattr(cells, "train_items", lambda *_: ["NO2 ERM: File too large: 'x.pt'", "NO2 mixup: the same"])
    with pytest.raises(SystemExit) as stop:
        reproduce.main(["table1", "seeds=1", "datasets=no2", "methods=erm,mixup", f"out={tmp_path}", "device=cpu"])
    assert stop.value.code == 2
    printed = capsys.readouterr()
    plan, error = printed.err.splitlines()
    assert re.fullmatch(r"table1: 2 runs are missing, about \d+ minutes on one core", plan)
    assert error == "error: not trained: NO2 ERM: File too large: 'x.pt'; and 1 more"
    assert "- NO2 ERM: File too large: 'x.pt'" in printed.out
    assert not list(tmp_path.rglob("DONE"))


def test_a_figure_without_runs_is_a_page_of_what_is_not_in_it(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cells, "_missing_files", lambda *_, **__: "not at hand")
    reproduce.main(["figure_overfitting", "preset=paper", "device=cpu", f"out={tmp_path}"])
    assert "- Exchange-Rate: not at hand" in capsys.readouterr().out
    assert [path.name for path in tmp_path.rglob("*.*")] == ["figure_overfitting_paper.md"]


def test_without_a_gpu_table_2_takes_its_small_preset(tmp_path, monkeypatch):
    presets = []
    monkeypatch.setattr(reproduce, "plan_cells", lambda _, choice, **__: (presets.append(choice), ([], []))[1])
    for words in ("table2", "table2 preset=paper", "table1"):
        reproduce.main([*words.split(), f"out={tmp_path}", "device=cpu"])
    assert [choice.preset for choice in presets] == ["cpu", "paper", "paper"]
    assert [choice.seeds for choice in presets] == [[0, 1], [0, 1], list(range(10))]


def test_all_goes_through_the_experiments_and_names_those_that_are_not_whole(monkeypatch, capsys):
    every = [replace(load_experiment("table1"), name=name) for name in ("a", "b", "c")]
    monkeypatch.setattr(reproduce, "all_experiments", lambda: every)
    made = []

    def reproduce_experiment(experiment, given):
        made.append(experiment.name)
        if experiment.name == "b":
            raise InputError("not trained: NO2")

    monkeypatch.setattr(reproduce, "reproduce_experiment", reproduce_experiment)
    with pytest.raises(SystemExit):
        reproduce.main(["all", "seeds=2"])
    assert made == ["a", "b", "c"]
    assert "1 of 3 experiments are not whole: b: not trained: NO2" in capsys.readouterr().err


def test_a_dry_run_prints_what_is_missing_and_trains_and_fetches_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(cells, "train_items", lambda *_: pytest.fail("trained"))
    monkeypatch.setattr(dataset_class("no2"), "fetch", lambda _: pytest.fail("fetched"))
    words = ["table1", "seeds=2", "datasets=no2", "methods=erm,mixup", "preset=paper", "device=cpu", f"out={tmp_path}"]
    reproduce.main([*words, "dry_run=1"])
    *lines, total = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["table1", "table1"]
    assert re.fullmatch(r"table1: 4 runs are missing, about \d+ minutes on one core", total)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "dataset", "small"),
    [("table1", "no2", []), ("figure_bandwidth", "no2", []),
     ("figure_overfitting", "exchange_rate", ["dataset.window=53", "model.channels=2", "model.hidden=2"])],
)  # fmt: skip
def test_a_command_of_each_kind_runs_whole(name, dataset, small, tmp_path, monkeypatch):
    whole = load_experiment(name)
    points = [{"methods": ["cmixup"], "grid": {"method.bandwidth": [0.1, 1.0]}}] if whole.points else []
    overrides = [*whole.overrides, "dataset.synthetic=true", "train.epochs=2", *small]
    monkeypatch.setattr(reproduce, "load_experiment", lambda _: replace(whole, overrides=overrides, points=points))
    monkeypatch.setattr(cells, "_table_runs", lambda _: frame_of(()))
    words = ["seeds=1", f"datasets={dataset}", "methods=erm,cmixup", "preset=paper", "device=cpu", "budget=0"]
    reproduce.main([name, *words, f"out={tmp_path}"])
    assert len(list(tmp_path.rglob("DONE"))) == (3 if points else 2)
    written = [*tmp_path.glob("tables/*.md"), *tmp_path.glob("figures/*.png")]
    assert [path.stat().st_size > 100 for path in written] == [True] * (1 if name == "table1" else 2)


# ---- an ablation


def test_an_ablation_plans_every_point_on_top_of_its_preset(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset_class("crime"), "fetch", lambda _: [])
    experiment = load_experiment("ablation_ood")
    planned, missing = cells.plan_cells(experiment, choice(tmp_path, datasets=["crime"], methods=["erm"]))
    mine = points_of(experiment, "crime", "erm")
    cell = ["dataset=crime", "method=erm", "preset=paper", f"experiment={experiment.name}", f"out={tmp_path}"]
    want = {plan_job(compose_train([*cell, *override_words(v.options), "device=cpu"])).folder for v in mine}
    assert {job.folder for job in planned} == want
    assert len(planned) == len(mine) > 3
    assert not missing
