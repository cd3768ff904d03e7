"""Protocol 2: every split is tuned by itself, ERM is a point of every method's space, and nothing is trained twice."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cmixup.data import RegressionData
from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.driver.predictions import Scored
from scripts.protocol import cell as cells
from scripts.protocol import published
from scripts.protocol.cell import train_cell
from scripts.protocol.protocols import FOLDER, ErmTuned, Protocol2, load_protocol2, load_rules
from scripts.protocol.rules import Run, StudyCell
from scripts.records.rescored import verify_scores
from scripts.records.study_errors import balanced_rmse, error_scores, rounded_predictions, row_key

METHODS = ["mixup", "cmixup", "regmixup", "resample", "vrex", "coral", "group_dro"]


@pytest.fixture(scope="module")
def rules() -> Protocol2:
    return load_protocol2()


def drawn(words: list[str]) -> list[str]:
    return [word for word in words if word.startswith("train.")]


@pytest.mark.parametrize("method", METHODS)
def test_rates_and_decays_are_those_of_erm_and_the_first_trials_are_erms(method: str, rules: Protocol2) -> None:
    for split in range(rules.splits):
        ours, erm = rules.trials(method, split, "t"), rules.trials("erm", split, "t")
        assert [drawn(words) for words in ours] == [drawn(words) for words in erm]
        assert ours[:2] == erm[:2]
        assert len(ours) == 8
        assert all(words[0] == f"method={method}" for words in ours[2:])
        rates = [float(drawn(words)[0].partition("=")[2]) for words in ours]
        assert min(rates) >= 0.0003
        assert max(rates) <= 0.01
    assert rules.trials("erm", 0, "t") != rules.trials("erm", 1, "t")
    assert rules.trials("cmixup", 0, "t") == rules.trials("cmixup", 0, "another table")


@pytest.mark.parametrize("table", ["penguin_mass", "us_wages_1988"])
def test_the_draws_are_those_of_the_published_trials(table: str, rules: Protocol2) -> None:
    """On any table, so that a method which is tried tomorrow has the points of those that were tried before."""
    published_cells = [r for r in published.read_store(rules) if r["table"] == table]
    assert {record["method"] for record in published_cells} >= {"erm", "mixup", "cmixup", "regmixup", "resample"}
    for record in published_cells:
        for split in range(rules.splits):
            words = [trial["options"] for trial in record["trials"] if trial["seed"] == 10 * split]
            assert words == rules.trials(record["method"], split, "a table that nobody has seen")


def test_new_rules_draw_for_each_table_and_go_on_with_the_splits(rules: Protocol2) -> None:
    more = load_rules(FOLDER / "more_splits.yaml")
    (cell,) = more.cells(["penguin_mass"], [], ["erm"])
    tunings = more.tunings(cell)
    assert [tuning.at for tuning in tunings] == [Run(s, 10 * s) for s in range(5, 25)]
    assert [len(tuning.finals) for tuning in tunings] == [5] * 20
    assert more.words(cell) == rules.words(cell)
    for split in (5, 24):
        one, other = (more.trials("cmixup", split, table) for table in ("penguin_mass", "us_wages_1988"))
        assert all(a != b for a, b in zip(one, other, strict=True))
        assert one == more.trials("cmixup", split, "penguin_mass")
        assert one[:2] == more.trials("erm", split, "penguin_mass")[:2]
        assert [drawn(words) for words in one] == [
            drawn(words) for words in more.trials("mixup", split, "penguin_mass")
        ]
    points = [str(words[1:-2]) for t in rules.tables for words in more.trials("cmixup", 5, t.name)[2:]]
    assert len(set(points)) > 28  # of 32: tables no longer share six


def test_every_split_is_tuned_by_itself_and_ensembles_have_more_weights(rules: Protocol2) -> None:
    for method, condition, weights in (("erm", "random", 5), ("erm", "rows100", 2), ("mixup", "random", 2)):
        (cell,) = rules.cells(["penguin_mass"], [condition], [method])
        tunings = rules.tunings(cell)
        assert [tuning.at for tuning in tunings] == [Run(s, 10 * s) for s in range(5)]
        assert [run for tuning in tunings for run in tuning.finals] == [
            Run(s, 10 * s + w) for s in range(5) for w in range(1, weights + 1)
        ]


def test_cells_are_all_tables_fifteen_with_groups_and_the_ten_smallest_are_lite(rules: Protocol2) -> None:
    count = {c.name: len({cell.table.name for cell in rules.cells(conditions=[c.name])}) for c in rules.conditions}
    assert count == {"rows100": 30, "rows100_noise": 30, "grouped": 15, "random": 30}
    assert len(rules.cells(conditions=["grouped"])) == 15 * 8
    lite = rules.lite_tables()
    assert len(lite) == 10
    largest = max(table.rows for table in rules.tables if table.name in lite)
    assert largest <= min(table.rows for table in rules.tables if table.name not in lite)


@pytest.mark.parametrize("condition", ["rows100", "rows100_noise", "grouped", "random"])
@pytest.mark.parametrize("method", ["erm", *METHODS])
def test_the_words_of_trials_plan_runs(method: str, condition: str, rules: Protocol2) -> None:
    if method not in next(c for c in rules.conditions if c.name == condition).methods:
        with pytest.raises(StopIteration):
            next(iter(rules.cells(["dutch_school_tests"], [condition], [method])))
        return
    (cell,) = rules.cells(["dutch_school_tests"], [condition], [method])
    job = plan_job(compose_train([*rules.words(cell), *rules.trials(method, 3, "t")[5]]))
    assert (job.settings.epochs, job.settings.patience) == (400, 40)
    assert job.dataset.group == ("schoolNR" if condition == "grouped" else "")
    assert ("schoolNR" in job.dataset.drop) == (condition != "grouped")
    few = condition.startswith("rows100")
    assert (job.dataset.train_rows, job.dataset.val_rows) == ((100, 33) if few else (None, None))
    noisy = condition == "rows100_noise"
    noise = job.dataset.label_noise
    assert (job.dataset.label_noise_val, noise.ratio, noise.per == "target") == (noisy, 0.5 * noisy, noisy)
    assert job.dataset.targets == ("langPOST", "aritPOST")


def test_a_rare_label_counts_as_much_as_frequent_ones_in_the_balanced_error() -> None:
    target = np.array([[0.0]] * 99 + [[10.0]], dtype=np.float32)
    prediction = target + np.array([[0.0]] * 99 + [[4.0]], dtype=np.float32)
    assert balanced_rmse(prediction, target, np.array([2.0])) == pytest.approx(np.sqrt((0 + 4.0) / 2))
    both = np.hstack([target, target]), np.hstack([prediction, target])
    assert balanced_rmse(both[1], both[0], np.array([2.0, 2.0])) == pytest.approx(np.sqrt((2.0 + 0) / 2))


def test_the_worst_group_has_thirty_rows_or_more() -> None:
    domain = np.array([0] * 29 + [1] * 30 + [2] * 40)
    error = np.where(domain == 0, 9.0, np.where(domain == 1, 2.0, 1.0))[:, None].astype(np.float32)
    one = Scored({"": error}, np.zeros_like(error), domain)
    assert error_scores(one, np.ones(1), grouped=True)["nrmse_worst"] == pytest.approx(2.0)
    assert "nrmse_worst" not in error_scores(one, np.ones(1))
    small = Scored({"": error[:29]}, np.zeros((29, 1), np.float32), domain[:29])
    assert "nrmse_worst" not in error_scores(small, np.ones(1), grouped=True)


def test_kept_predictions_are_near_and_need_fewer_bits() -> None:
    values = np.random.default_rng(0).normal(size=(1000, 2)).astype(np.float32) * 100
    (kept,) = rounded_predictions(Scored({"": values}, values, np.zeros(1000))).prediction.values()
    assert np.abs(kept / values - 1).max() <= 2**-12
    assert not (kept.view(np.int32) & 0xFFF).any()
    assert np.isnan(
        rounded_predictions(Scored({"": np.full((1, 1), np.nan, np.float32)}, values, values)).prediction[""]
    ).all()


def as_trained(record: dict[str, Any]) -> dict[str, Any]:
    """Return a cell's record with the scores that its runs had before their predictions were rounded to steps."""
    rows = []
    for row in record["seeds"]:
        own = {key: value for key, value in row.items() if key != "unrounded_scores"}
        scores = row.get("unrounded_scores", {})
        rows.append(own | {row_key(part, name): v for part, each in scores.items() for name, v in each.items()})
    return {**record, "seeds": rows}


def twin_words(self: Protocol2, cell: StudyCell) -> list[str]:
    group = ["dataset.group=area"] if cell.condition.grouped else []
    return [
        "dataset=csv", "dataset.synthetic=true", "dataset.target=price", *group, "logger=none", "train.epochs=3",
        "train.patience=1", "train.batch_size=128",
    ]  # fmt: skip


@pytest.mark.parametrize("condition", ["random", "grouped"])
def test_a_cell_trains_nothing_that_erm_has_trained_and_its_scores_follow_from_what_is_kept(
    condition: str, rules: Protocol2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Protocol2, "words", twin_words)
    monkeypatch.setattr(cells, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False})
    short = replace(rules, splits=2, trials_each=3, ensemble={**rules.ensemble, "weights": 3})
    erm, ours = short.cells(["dutch_school_tests"], [condition], ["erm", "mixup"])
    dataset = plan_job(compose_train(short.words(erm))).dataset
    rows: dict[int, RegressionData] = {}
    trained: list[Run] = []

    def load(split: int) -> RegressionData:
        data = dataset.load(split)
        away = replace(data.test, y=data.test.y + 1e6)  # which nothing that is trained foretells
        return rows.setdefault(split, replace(data, test=away))

    make_run = cells.make_run
    monkeypatch.setattr(cells, "make_run", lambda job, seed, data: trained.append(seed) or make_run(job, seed, data))
    std = dataset.table.y.std(axis=0)
    signs: list[str] = []
    record, parts = train_cell(erm, short, load, std, sign=signs.append)
    assert signs[0].startswith("erm, 6 trials, 6 left, epoch 1 of ")
    assert any(sign.startswith(f"erm, {len(trained) - 6} runs with the best options, ") for sign in signs)
    weights = 3 if condition == "random" else 2
    assert max(trial["val"] for trial in record["trials"]) < 10
    assert min(row["test"] for row in record["seeds"]) > 1000
    for tuning in short.tunings(erm):
        own = [trial for trial in record["trials"] if trial["seed"] == tuning.at.seed]
        best = min(own, key=lambda trial: trial["val"])["options"]
        assert {tuple(r["options"]) for r in record["seeds"] if r["split"] == tuning.at.split} == {tuple(best)}
    assert sorted(trained) == sorted([0] * 3 + [10] * 3 + [s + w for s in (0, 10) for w in range(1, weights + 1)])
    published.write_cells(tmp_path, published.to_runs(record, parts, short))
    known = published.known_runs(tmp_path, short, "dutch_school_tests", condition)
    assert len(known) == 6 + 2 * weights
    trained.clear()
    second, more = train_cell(ours, short, load, std, known)
    own = [row for row in second["seeds"] if row["options"][0] == "method=mixup"]
    kept_erm = {(row["seed"], tuple(row["options"])): row for row in record["seeds"]}
    again = [row for row in second["seeds"] if (row["seed"], tuple(row["options"])) in kept_erm]
    assert trained.count(0) == trained.count(10) == 1  # the one own trial of a split; the two others are ERM's
    assert len(trained) == 2 + len(second["seeds"]) - len(again)
    same = [row for row in as_trained(second)["seeds"] if (row["seed"], tuple(row["options"])) in kept_erm]
    assert all(row == kept_erm[row["seed"], tuple(row["options"])] for row in same)
    assert len(second["seeds"]) == 4 >= len(own)
    published.write_cells(tmp_path, published.to_runs(second, more, short))
    assert [as_trained(one) for one in published.read_store(short, tmp_path)] == [record, as_trained(second)]
    runs = 2 * weights + 4
    assert verify_scores(tmp_path).runs == runs
    assert not verify_scores(tmp_path).wrong


def test_other_test_rows_are_refused_where_groups_are_held_out_as_well(rules: Protocol2, tmp_path: Path) -> None:
    def made(condition: str, method: str, value: float) -> None:
        (cell,) = rules.cells(["dutch_school_tests"], [condition], [method])
        one = Scored({"": np.zeros((4, 1), np.float32)}, np.full((4, 1), value, np.float32), np.zeros(4, np.uint8))
        row = {"seed": 1, "split": 0, "options": ["method=erm"], "val": 1.0, "test": 1.0, "best_epoch": 1}
        key = dict(zip(published.OF_CELL, cell.key, strict=True))
        record = {**key, "seeds": [row], "trials": [], "std": [1.0], "rules": rules.checksum}
        published.write_cells(tmp_path, published.to_runs(record, [{"val": one, "test": one}], rules))

    made("random", "erm", 1.0)
    made("grouped", "erm", 2.0)  # other rows than at random
    made("rows100", "erm", 1.0)
    for condition, value in (("random", 2.0), ("grouped", 1.0)):
        with pytest.raises(InputError, match="other test rows of dutch_school_tests"):
            made(condition, "mixup", value)


def test_rules_of_likelihood_choose_by_it_and_their_scores_follow_from_what_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = load_rules(FOLDER / "likelihood.yaml")
    (cell,) = rules.cells(["penguin_mass"], ["rows100"], ["cmixup"])
    assert "train.loss=gaussian" in rules.words(cell)
    monkeypatch.setattr(Protocol2, "words", lambda self, cell: [*twin_words(self, cell), "train.loss=gaussian"])
    monkeypatch.setattr(cells, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False})
    short = replace(rules, splits=2, trials_each=3)
    erm, ours = short.cells(["penguin_mass"], ["rows100"], ["erm", "cmixup"])
    dataset = plan_job(compose_train(short.words(erm))).dataset
    std = dataset.table.y.std(axis=0)
    record, parts = train_cell(erm, short, dataset.load, std)
    assert all(set(one) == {"val", "test"} and set(one["val"].prediction) == {"", "std"} for one in parts)
    published.write_cells(tmp_path, published.to_runs(record, parts, short))
    known = published.known_runs(tmp_path, short, "penguin_mass", "rows100")
    second, more = train_cell(ours, short, dataset.load, std, known)
    published.write_cells(tmp_path, published.to_runs(second, more, short))
    assert [as_trained(one) for one in published.read_store(short, tmp_path)] == [record, as_trained(second)]
    for tuning in short.tunings(ours):
        own = [trial for trial in second["trials"] if trial["seed"] == tuning.at.seed]
        assert (
            [trial["val"] for trial in own[:2]]
            == [  # ERM's, by likelihood
                trial["val"] for trial in record["trials"] if trial["seed"] == tuning.at.seed
            ][:2]
        )
        best = min(own, key=lambda trial: trial["val"])["options"]
        assert {tuple(r["options"]) for r in second["seeds"] if r["split"] == tuning.at.split} == {tuple(best)}
    assert {"test", "test_nll", "test_nll_rescaled", "test_crps", "test_coverage90"} <= second["seeds"][0].keys()
    runs, scores_checked, _, wrong, _ = verify_scores(tmp_path)
    assert (runs, wrong) == (len(record["seeds"]) + len(second["seeds"]), [])
    assert scores_checked == runs * 2 * 8  # nrmse, balanced, and three of likelihood as they are and rescaled


def test_a_network_of_its_own_is_tuned_for_erm_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = replace(load_protocol2(), network={"model": "fcn3", "model.width": 16}, name="more_splits")
    own = ErmTuned(**{field.name: getattr(rules, field.name) for field in fields(rules)})
    erm, mixup = own.cells(["penguin_mass"], ["random"], ["erm", "mixup"])
    assert own.words(mixup)[-2:] == ["model=fcn3", "model.width=16"]
    assert own.trials("mixup", 1, "t") == own.trials("erm", 1, "t")
    monkeypatch.setattr(ErmTuned, "words", lambda self, cell: [*twin_words(self, cell), "model.width=16"])
    monkeypatch.setattr(cells, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False})
    short = replace(own, splits=1, trials_each=3)
    dataset = plan_job(compose_train(short.words(erm))).dataset
    std = dataset.table.y.std(axis=0)
    record, parts = train_cell(erm, short, dataset.load, std)
    published.write_cells(tmp_path, published.to_runs(record, parts, short))
    known = published.known_runs(tmp_path, short, "penguin_mass", "random")
    second, _ = train_cell(mixup, short, dataset.load, std, known)
    assert second["trials"] == record["trials"]
    chosen = min(record["trials"], key=lambda trial: trial["val"])["options"]
    assert {tuple(row["options"]) for row in second["seeds"]} == {
        ("method=mixup", "method.alpha=0.1", 'method.layer="input"', *drawn(chosen))  # the first values of its space
    }


@pytest.mark.parametrize("name", ["wide", "realmlp", "tabm"])
def test_rules_of_networks_tune_erm_within_their_rates_and_plan_runs(name: str) -> None:
    rules = load_rules(FOLDER / f"network_{name}.yaml")
    assert isinstance(rules, ErmTuned)
    (cell,) = rules.cells(["penguin_mass"], ["rows100"], ["cmixup_alpha2"])
    for split, tuning in enumerate(rules.tunings(cell)):
        for words in tuning.trials:
            assert rules.rates[0] <= float(drawn(words)[0].partition("=")[2]) <= rules.rates[1]
        assert tuning.finals == [Run(split, 10 * split + 1), Run(split, 10 * split + 2)]
    words = rules.final_words("cmixup_alpha2", tuning.trials[0])
    job = plan_job(compose_train(rules.command(cell, words)))
    assert (job.config["model"]["name"], job.config["method"]["alpha"]) == (rules.backbone, 2.0)
    assert job.stackable
