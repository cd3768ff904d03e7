"""The rules of the study: what is drawn for whom, whose runs are shared, and that all of it plans runs."""

import pandas as pd
import pytest

from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.study.cells import read_store
from scripts.study.rules import Rules, load_rules


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


def rates(words: list[str]) -> list[str]:
    return [word for word in words if word.startswith("train.")]


def test_cells_are_by_name_where_the_table_has_rows_enough(rules: Rules) -> None:
    (one,) = rules.cells(["penguin_mass"], ["rows100"], ["cmixup"])
    assert one.key == ("penguin_mass", "rows100", "cmixup")
    assert not rules.cells(["penguin_mass"], ["grouped"])
    with pytest.raises(InputError, match=r"tables must be among .*, got 'penguins'"):
        rules.cells(["penguins"])
    with pytest.raises(InputError, match=r"rules must be one of likelihood, .*, protocol2, got 'tables'"):
        load_rules("tables")
    count = {c.name: len({cell.table.name for cell in rules.cells(conditions=[c.name])}) for c in rules.conditions}
    assert count == {"rows100": 30, "rows100_noise": 30, "grouped": 15, "random": 30}
    lite = rules.lite_tables()
    largest = max(table.rows for table in rules.tables if table.name in lite)
    assert len(lite) == 10
    assert largest <= min(table.rows for table in rules.tables if table.name not in lite)


@pytest.fixture(scope="module")
def store(rules: Rules) -> pd.DataFrame:
    return read_store(rules)


@pytest.mark.parametrize("table", ["penguin_mass", "us_wages_1988"])
def test_the_draws_are_those_of_the_published_trials(table: str, rules: Rules, store: pd.DataFrame) -> None:
    """On any table, so that a method which is tried tomorrow has the points of those that were tried before."""
    tried = store[(store["table"] == table) & store["trial"].notna()]
    assert set(tried["method"]) >= {"erm", "mixup", "cmixup", "regmixup", "resample"}
    for (_, method, seed), trials in tried.groupby(["condition", "method", "seed"]):
        expected = rules.trials(method, seed // 10, "a table that nobody has seen")
        assert trials["hyperparameters"].tolist() == [" ".join(words) for words in expected]


def test_later_splits_are_drawn_for_each_table(rules: Rules) -> None:
    more = load_rules("more_splits")
    (cell,) = more.cells(["penguin_mass"], [], ["erm"])
    tunings = more.tunings(cell)
    assert [tuning.seed for tuning in tunings] == [10 * s for s in range(5, 25)]
    assert [len(tuning.seeds) for tuning in tunings] == [5] * 20
    assert more.words(cell) == rules.words(cell)
    one, other = (more.trials("cmixup", 24, table) for table in ("penguin_mass", "us_wages_1988"))
    assert all(a != b for a, b in zip(one, other, strict=True))
    assert one[:2] == more.trials("erm", 24, "penguin_mass")[:2]
    points = [str(words[1:-2]) for t in rules.tables for words in more.trials("cmixup", 5, t.name)[2:]]
    assert len(set(points)) > 28  # of 32


@pytest.mark.parametrize("condition", ["rows100", "rows100_noise", "grouped", "random"])
def test_the_words_of_trials_plan_runs(condition: str, rules: Rules) -> None:
    for cell in rules.cells(["dutch_school_tests"], [condition]):
        job = plan_job(compose_train([*rules.words(cell), *rules.trials(cell.method, 3, "t")[5]]))
        assert (job.settings.epochs, job.settings.patience) == (400, 40)
        assert job.dataset.group == ("schoolNR" if condition == "grouped" else "")
        assert ("schoolNR" in job.dataset.drop) == (condition != "grouped")
        few = condition.startswith("rows100")
        assert (job.dataset.train_rows, job.dataset.val_rows) == ((100, 33) if few else (None, None))
        noisy, noise = condition == "rows100_noise", job.dataset.label_noise
        assert (job.dataset.label_noise_val, noise.ratio, noise.per == "target") == (noisy, 0.5 * noisy, noisy)
        assert job.dataset.targets == ("langPOST", "aritPOST")


def test_without_a_search_every_method_has_the_rates_that_erm_chose(store: pd.DataFrame) -> None:
    rules = load_rules("no_search")
    runs = store[(store["method"] == "erm") & store["trial"].isna() & (store["condition"] != "grouped")]
    published = {
        (run.table, run.condition, int(run.split)): rates(run.hyperparameters.split()) for run in runs.itertuples()
    }
    assert rules.chosen == published
    assert len(published) == 3 * 30 * 5
    for cell in rules.cells(["penguin_mass"]):
        for split, tuning in enumerate(rules.tunings(cell)):
            ((*_, rate, decay),) = tuning.trials
            assert [rate, decay] == rules.chosen["penguin_mass", cell.condition.name, split]
            assert tuning.seeds == [10 * split + weights for weights in range(1, 6)]
        plan_job(compose_train(rules.command(cell, tuning.trials[0])))


@pytest.mark.parametrize("name", ["wide", "realmlp", "tabm"])
def test_on_other_networks_erm_alone_is_tuned(name: str) -> None:
    rules = load_rules(f"network_{name}")
    (cell,) = rules.cells(["penguin_mass"], ["rows100"], ["cmixup_alpha2"])
    assert rules.trials("cmixup_alpha2", 1, "t") == rules.trials("erm", 1, "t")
    for split, tuning in enumerate(rules.tunings(cell)):
        drawn = [float(rates(words)[0].partition("=")[2]) for words in tuning.trials]
        assert rules.rates[0] <= min(drawn) <= max(drawn) <= rules.rates[1]
        assert tuning.seeds == [10 * split + 1, 10 * split + 2]
    words = rules.final_words("cmixup_alpha2", tuning.trials[0])
    assert rates(words) == rates(tuning.trials[0])
    job = plan_job(compose_train(rules.command(cell, words)))
    assert (job.config["model"]["name"], job.config["method"]["alpha"]) == (rules.backbone, 2.0)
    assert job.stackable
