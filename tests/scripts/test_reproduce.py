"""The table command: what it plans, and a whole small run of it."""

import pytest

from cmixup.errors import InputError
from datasets.fetch import FetchError
from scripts import reproduce
from scripts.config import compose_train, names, target
from scripts.experiment import load_experiment

EXPERIMENT = load_experiment("table1")


def choice(tmp_path, **changes) -> reproduce.Choice:
    given = {
        "datasets": ["airfoil"], "methods": ["erm", "mixrl"], "seeds": [0, 1], "preset": "paper",
        "out": str(tmp_path), "device": "cpu", "rerun": False,
    } | changes  # fmt: skip
    return reproduce.Choice(**given)


def fetching(monkeypatch, fetch) -> None:
    """Let every dataset of the table fetch its files with `fetch(dataset)`."""
    for dataset in set(EXPERIMENT.datasets) & set(names("dataset")):
        monkeypatch.setattr(target(compose_train([f"dataset={dataset}"]).dataset), "fetch", fetch)


@pytest.fixture
def offline(monkeypatch):
    def fail(self):
        raise FetchError(f"could not get {self.name}")

    fetching(monkeypatch, fail)


@pytest.fixture
def here(monkeypatch):
    fetching(monkeypatch, lambda _: [])


@pytest.mark.usefixtures("here")
def test_what_is_not_built_is_listed_not_run(tmp_path):
    jobs, missing = reproduce.plan_cells(
        EXPERIMENT, choice(tmp_path, datasets=["airfoil", "pascal1d"], methods=["erm", "cutmix"])
    )
    assert set(jobs) == {("airfoil", "erm", "")}
    assert jobs["airfoil", "erm", ""].pending == [0, 1]
    assert missing == ["CutMix: not in this version", "PASCAL3D: not in this version"]


@pytest.mark.usefixtures("here")
def test_a_cell_over_the_budget_is_listed_with_its_command(tmp_path, monkeypatch):
    monkeypatch.setattr(reproduce, "estimate_minutes", lambda *_: 90.0)
    jobs, missing = reproduce.plan_cells(EXPERIMENT, choice(tmp_path, methods=["erm"]))
    assert not jobs
    assert "about 90 min here; python -m scripts.train dataset=airfoil method=erm" in missing[0]


@pytest.mark.usefixtures("offline")
def test_without_any_data_the_stand_in_is_trained_and_it_says_so(tmp_path, capsys):
    """The whole command, on the data that ships with scikit-learn."""
    reproduce.main(["table1", "--seeds", "0,1", "--methods", "erm", "--out", str(tmp_path), "--device", "cpu"])
    printed = capsys.readouterr()
    assert "Diabetes" in printed.out
    assert "could not get airfoil" in printed.out
    assert "not trained: Airfoil: could not get airfoil" in printed.err
    text = (tmp_path / "tables/table1_paper.md").read_text()
    assert "| ERM | 2 |" in text
    assert "Not in the paper" in text
    done = sorted(p.parent.name for p in tmp_path.rglob("DONE"))
    assert done == ["seed=0", "seed=1"]


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [("--methods", "erm,foo", "'foo'"), ("--datasets", "foo", "'foo'"), ("--seeds", "x", "'x'"),
     ("--preset", "foo", "'foo'")],
)  # fmt: skip
@pytest.mark.usefixtures("here")
def test_bad_options_are_one_line_and_exit_code_2(option, value, named, tmp_path, capsys):
    with pytest.raises(SystemExit) as stop:
        reproduce.main(["table1", "--out", str(tmp_path), option, value])
    assert stop.value.code == 2
    assert named in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_unknown_experiment_is_refused():
    with pytest.raises(InputError, match="table9"):
        load_experiment("table9")
