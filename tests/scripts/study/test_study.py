"""The study of when mixing helps: its rules, its score, and a cell from trials to what is written."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import yaml

from cmixup.data import RegressionData
from cmixup.errors import InputError
from scripts.driver.compose import TUNE_SEED, compose_train
from scripts.driver.job import plan
from scripts.driver.predictions import Scored
from scripts.plan.schedule import stacks_of
from scripts.records.published import published_reports, write_reports
from scripts.records.scores import verify_scores
from scripts.study import cell as cells
from scripts.study import published, work
from scripts.study.cell import Load, train_cell
from scripts.study.protocols import COMMITS, FOLDER, PROTOCOL2, RULES, SMALL, Protocol1, load_protocol1, load_rules
from scripts.study.rules import Rules, StudyCell
from scripts.study.score import nrmse


@pytest.fixture(scope="module")
def rules() -> Protocol1:
    return load_protocol1()


def test_every_method_has_sixteen_trials_four_a_rate_and_none_twice(rules: Protocol1) -> None:
    assert rules.tune_seed == TUNE_SEED
    assert rules.tune_seed not in range(rules.seeds)
    for method in rules.methods:
        trials = rules.trials(method)
        assert len({tuple(words) for words in trials}) == len(trials) == 16
        assert set(Counter(words[0] for words in trials).values()) == {4}


def test_cells_are_all_methods_on_all_rows_and_four_on_fewer(rules: Protocol1) -> None:
    found = Counter(cell.condition.name for cell in rules.cells())
    assert found["all"] == 30 * 11
    for name, condition in {c.name: c for c in rules.conditions}.items():
        if name != "all":
            big = [t for t in rules.tables if 0.6 * min(t.rows, rules.max_rows) > condition.train_rows]
            assert found[name] == 4 * len(big)
    (one,) = rules.cells(["penguin_mass"], ["rows100"], ["cmixup"])
    assert one.key == ("penguin_mass", "rows100", "cmixup")
    assert not rules.cells(["penguin_mass"], ["rows300"])
    with pytest.raises(InputError, match=r"tables must be among .*, got 'penguins'"):
        rules.cells(["penguins"])


@pytest.mark.parametrize(
    ("path", "names"), [(RULES, ["rules"]), (SMALL, ["small_validation", "rules"]), (PROTOCOL2, ["protocol2"])]
)
def test_the_rules_are_those_of_the_commit_that_the_page_quotes(path: Path, names: list[str]) -> None:
    """They came before the first run and have stood since; a copy without history cannot tell."""
    files = [*(f"{name}.yaml" for name in names), "tables.csv"]
    shown = [
        subprocess.run(
            ["git", "show", f"{COMMITS[path.stem]}:configs/study/{name}"],
            cwd=path.parent,
            capture_output=True,
            check=False,
        )
        for name in files
    ]
    if any(each.returncode for each in shown):
        pytest.skip("no history here")
    assert " ".join(hashlib.sha256(each.stdout).hexdigest() for each in shown) == load_rules(path).checksum


@pytest.mark.parametrize("name", ["erm", "cmixup_hidden", "cmixup_batch", "local_mixup", "sk_mixup", "resample"])
def test_the_words_of_a_trial_plan_a_run(name: str, rules: Protocol1) -> None:
    (cell,) = rules.cells(["gilgai_soil"], ["all"], [name])
    job = plan(compose_train([*rules.words(cell), *rules.trials(name)[5]]))
    assert job.config["method"]["name"] == rules.methods[name]["method"]
    assert job.config["train"]["label_scaling"] == "standard"
    assert job.dataset.targets == ("pH80", "e80", "c80")
    assert job.dataset.max_rows == 5000
    assert job.config["method"].get("layer") == (
        "hidden" if name == "cmixup_hidden" else job.config["method"].get("layer")
    )


@pytest.mark.parametrize(("name", "stacks"), [("erm", 1), ("cmixup", 1), ("resample", 2)])
def test_trials_of_all_rates_and_bandwidths_train_as_one_stack(name: str, stacks: int, rules: Protocol1) -> None:
    (cell,) = rules.cells(["penguin_mass"], ["all"], [name])
    jobs = [plan(compose_train([*rules.words(cell), *words])) for words in rules.trials(name)]
    assert len(stacks_of([([], job) for job in jobs])) == stacks  # of resampling one for each way to take the rows


def test_groups_are_no_features_and_noise_and_rows_reach_the_dataset(rules: Protocol1) -> None:
    (cell,) = rules.cells(["dutch_school_tests"], ["rows100_noise"], ["erm"])
    job = plan(compose_train(rules.words(cell)))
    assert "schoolNR" in job.dataset.drop
    assert (job.dataset.train_rows, job.dataset.label_noise.ratio, job.dataset.group) == (100, 0.5, "")
    assert job.dataset.label_noise.per == "target"
    assert job.dataset.targets == ("langPOST", "aritPOST")


def test_other_rules_are_like_the_rules_but_for_what_they_say(rules: Protocol1) -> None:
    small = load_protocol1(SMALL)
    assert (small.name, small.tables, small.methods, small.seeds) == (
        "small_validation", rules.tables, rules.methods, rules.seeds
    )  # fmt: skip
    assert small.checksum.split()[1:] == rules.checksum.split()
    assert not {c.name for c in small.conditions} & {c.name for c in rules.conditions}  # they share an out folder
    with pytest.raises(InputError, match="must be one of protocol2, rules, sea_level, small_validation, got 'tables'"):
        load_rules(FOLDER / "tables.yaml")
    for name, noisy in (("rows100_val25", False), ("rows100_noise_val25", True)):
        (cell,) = small.cells(["dutch_school_tests"], [name], ["cmixup"])
        (base,) = rules.cells(["dutch_school_tests"], [name.removesuffix("_val25")], ["cmixup"])
        more = [word for word in small.words(cell) if word not in rules.words(base)]
        assert more == ["dataset.val_rows=25", *["dataset.label_noise_val=true"] * noisy]
        dataset = plan(compose_train(small.words(cell))).dataset
        assert (dataset.val_rows, dataset.label_noise_val, dataset.label_noise.ratio) == (25, noisy, 0.5 * noisy)


def made(store: Path, rules: Protocol1, cell: StudyCell, value: float, rows: float = 0.0, **about: Any) -> None:
    """Put a cell into a store whose predictions are one value for labels of another."""
    arrays = [[np.full((4, 1), v + k, dtype=np.float32) for k in range(2)] for v in (value, rows)]
    score = [nrmse(arrays[0][k], arrays[1][k], np.ones(1)) for k in range(2)]
    seeds = [
        {"seed": k, "split": k, "options": ["train.lr=1"], "val": score[k], "test": score[k], "best_epoch": 3}
        for k in range(2)
    ]
    key = dict(zip(published.OF_CELL, cell.key, strict=True))
    tried = [
        {"seed": TUNE_SEED, "options": ["train.lr=1"], "val": value},
        {"seed": TUNE_SEED, "options": ["train.lr=2"], "val": float("inf")},
    ]
    record = {
        **key, "trials": tried, "seeds": seeds, "std": [1.0], "rules": rules.checksum,
        "commit": "c0ffee", "dirty": False, **about,
    }  # fmt: skip
    kept = [{"test": Scored({"": f}, y, np.zeros(4, np.uint8))} for f, y in zip(*arrays, strict=True)]
    published.write(store, published.to_runs(record, kept, rules))


def files_of(store: Path) -> dict[str, bytes]:
    """The bytes of every file that a store holds."""
    return {path.name: path.read_bytes() for path in store.rglob("study/*") if path.is_file()}


def test_publishing_replaces_cells_by_key_and_keeps_the_others(rules: Protocol1, tmp_path: Path) -> None:
    first, second, third = (rules.cells([t], ["all"], [m])[0] for t, m in (
        ("penguin_mass", "mixup"), ("penguin_mass", "erm"), ("gilgai_soil", "erm")
    ))  # fmt: skip
    into, stores = tmp_path / "published", [tmp_path / name for name in "abcd"]
    for cell in (first, third):
        made(stores[0], rules, cell, 1.0)
    assert published.copy(stores[0], into, rules) == 2
    kept = files_of(into)
    assert published.copy(stores[0], into, rules) == 2
    assert files_of(into) == kept
    made(stores[1], rules, second, 2.0)
    assert published.copy(stores[1], into, rules) == 1
    made(stores[2], rules, first, 3.0)
    with pytest.raises(InputError, match=r"1 cells are published with other numbers \(penguin_mass/all/mixup\)"):
        published.copy(stores[2], into, rules)
    assert published.copy(stores[2], into, rules, why="a wrong rate") == 1
    found = [(published.key_of_record(record), record["seeds"][0]["test"]) for record in published.read(rules, into)]
    assert found == [(third.key, 1.0), (second.key, 2.0), (first.key, 3.0)]  # in the order of the rules
    was = {"why": "a wrong rate", "commit": "c0ffee", "test": 1.0}
    assert {**published.read(rules, stores[2])[0], "corrects": was} == published.read(rules, into)[2]
    part = [r for r in published_reports(stores[2], ["study"]) if r["seed"] == 0]
    with pytest.raises(InputError, match=r"penguin_mass/all/mixup is published with more runs, such as .*seed=1"):
        published.corrected(part, published_reports(into, ["study"]), "fewer")
    assert verify_scores(into)[:3] == (6, 6, [])
    assert files_of(into)["gilgai_soil.h5"] == kept["gilgai_soil.h5"]
    assert published.copy(stores[0], into, rules, replace=False) == 0
    made(stores[3], rules, first, 1.0, rows=5.0)
    with pytest.raises(InputError, match="other test rows of penguin_mass"):
        published.copy(stores[3], into, rules, why="other rows")
    with pytest.raises(InputError, match=r"published has 3 cells that were made by other rules"):
        published.copy(stores[1], into, replace(rules, checksum="another"))
    small = load_protocol1(SMALL)
    made(stores[1], small, small.cells(["penguin_mass"])[0], 4.0)
    assert published.copy(stores[1], into, small) == 1
    assert [len(published.read(each, into)) for each in (rules, small)] == [3, 1]
    assert verify_scores(into)[:3] == (8, 8, [])
    assert not published_reports(into)  # no table is about the study


def test_the_score_is_in_standard_deviations_and_weighs_targets_alike() -> None:
    target = np.array([[0.0, 0.0], [10.0, 1000.0]], dtype=np.float32)
    prediction = target + np.array([[5.0, 0.0], [5.0, 0.0]], dtype=np.float32)
    assert nrmse(prediction, target, np.array([5.0, 500.0])) == pytest.approx(np.sqrt(0.5))
    assert nrmse(prediction[:, ::-1], target[:, ::-1], np.array([500.0, 5.0])) == pytest.approx(np.sqrt(0.5))


@pytest.fixture
def short(tmp_path: Path) -> Protocol1:
    """Rules for the twin of an own table: two seeds, two rates with two points each, two epochs."""
    given = yaml.safe_load(RULES.read_text())
    given |= {"seeds": 2, "rates": [0.01, 1e9], "points": 2, "conditions": {"all": {"methods": "all"}}}
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(given))
    (tmp_path / "tables.csv").write_text((RULES.parent / "tables.csv").read_text())
    return load_protocol1(path)


def twin_words(self: Rules, cell: StudyCell) -> list[str]:
    return [
        "dataset=csv", "dataset.synthetic=true", "dataset.target=price", "logger=none",
        f"method={self.methods[cell.method]['method']}", "train.epochs=2", "train.batch_size=128",
    ]  # fmt: skip


def twin(rules: Protocol1) -> tuple[Load, np.ndarray]:
    """The rows of every seed, and the standard deviation of the label; the tuning seed's test rows none foretells."""
    dataset = plan(compose_train(twin_words(rules, rules.cells()[0]))).dataset

    def load(seed: int) -> RegressionData:
        data = dataset.load(seed)
        return replace(data, test=replace(data.test, y=data.test.y + 1e6)) if seed == TUNE_SEED else data

    return cache(load), dataset.table.y.std(axis=0)


@pytest.mark.parametrize("method", ["erm", "resample"])
def test_a_cell_is_tuned_on_its_own_seed_and_trains_the_winner(
    method: str, short: Protocol1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Protocol1, "words", twin_words)
    (cell,) = short.cells(["penguin_mass"], ["all"], [method])
    trained = train_cell(cell, short, *twin(short))
    record, predictions = trained
    scores = [trial["val"] for trial in record["trials"]]
    assert len(scores) == 4
    assert np.argmin(scores) < 2  # a rate of 1e9 wins nothing
    assert min(scores) < 10  # on validation rows
    for row, parts in zip(record["seeds"], predictions, strict=True):
        assert row["options"] == record["trials"][int(np.argmin(scores))]["options"]
        assert row["test"] == nrmse(parts["test"].prediction[""], parts["test"].target, np.array(record["std"]))
        assert row["test"] != row["val"]
    published.write(tmp_path, published.to_runs(*trained, short))
    assert work.done(tmp_path, short) == {cell.key}
    assert published.read(short, tmp_path) == [json.loads(json.dumps(record))]
    assert verify_scores(tmp_path)[:3] == (2, 2, [])


@pytest.fixture
def trained(short: Protocol1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the cells of ERM, C-Mixup and resampling on three tables, which are the twin in truth."""
    monkeypatch.setattr(Protocol1, "words", twin_words)
    monkeypatch.setattr(cells, "environment", lambda _: {"commit": "c0ffee", "dirty": False})
    rows = twin(short)
    chosen = short.cells(["penguin_mass", "gilgai_soil", "us_wages_1988"], ["all"], ["erm", "cmixup", "resample"])
    for cell in chosen:
        published.write(tmp_path / "study", published.to_runs(*train_cell(cell, short, *rows), short))
    return tmp_path / "study"


@pytest.mark.slow
def test_what_is_published_is_verified_and_rendered(trained: Path, short: Protocol1, tmp_path: Path) -> None:
    into, elsewhere = tmp_path / "published", tmp_path / "elsewhere"
    assert published.copy(trained, into, short) == 9
    assert verify_scores(into)[:3] == (18, 18, [])
    assert published.copy(into, elsewhere, short, replace=False) == 9
    assert files_of(elsewhere) == files_of(into)
    assert not work.missing(elsewhere, short.cells(["gilgai_soil"], ["all"], ["erm", "cmixup"]), short)
    with pytest.raises(InputError, match="other rules"):
        published.copy(into, tmp_path / "third", replace(short, checksum="another"))
    (report,) = [r for r in published_reports(into, ["study"]) if r["run"] == "study/gilgai_soil/all/erm/seed=1"]
    report["scores"]["test"]["nrmse"] = float(np.nextafter(report["scores"]["test"]["nrmse"], 9))
    write_reports(into, [report])
    (problem,) = verify_scores(into)[2]
    assert problem.startswith("study/gilgai_soil/all/erm/seed=1: test nrmse ")


@pytest.mark.parametrize("changes", [{"dirty": True}, {"commit": ""}, {"commit": "0" * 40}])
def test_cells_of_edited_or_unknown_code_are_not_published(
    changes: dict[str, object], short: Protocol1, tmp_path: Path
) -> None:
    (cell,) = short.cells(["penguin_mass"], ["all"], ["erm"])
    made(tmp_path, short, cell, 1.0, **changes)
    with pytest.raises(InputError, match=r"^1 runs cannot be published \(penguin_mass/all/erm\): "):
        published.copy(tmp_path, tmp_path / "into", short)
    assert not (tmp_path / "into").exists()


def test_what_is_done_is_not_trained_again_and_the_most_costly_comes_first(
    rules: Protocol1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = rules.cells(["penguin_mass", "diamond_prices"], ["all"], ["erm", "mixup"])
    found = work.missing(tmp_path, chosen, rules)
    assert [group[0].table.name for group in found] == ["diamond_prices", "penguin_mass"]
    for cell in chosen:
        made(tmp_path, rules, cell, 1.0)
    assert work.train_missing(tmp_path, chosen, rules) == []
    assert "4 of 4 cells are done; training 0" in capsys.readouterr().out


def test_a_worker_stops_before_a_cell_that_would_begin_too_late(
    rules: Protocol1, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    told: list[tuple[object, ...]] = []
    now = iter([10.0, 20.0, 31.0])
    monkeypatch.setattr(Protocol1, "words", twin_words)
    monkeypatch.setattr(work, "time", SimpleNamespace(time=lambda: next(now)))
    monkeypatch.setattr(work, "train_cell", lambda cell, *_: [begun.append(cell.method)])
    monkeypatch.setattr(work, "to_runs", lambda *_: [])
    monkeypatch.setattr(work, "write", lambda *_: None)
    group = rules.cells(["penguin_mass"], ["all"], ["erm", "mixup", "cmixup"])
    work.train_group(tmp_path, group, rules, 30.0, told.append, stored=tmp_path)
    assert begun == ["erm", "mixup"]
    assert told == [("epoch", 1, 3, {}), ("epoch", 2, 3, {})]
