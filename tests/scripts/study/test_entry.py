"""A newcomer's method is tried from a folder outside and judged; ERM is not trained again."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.training.trainer import train
from scripts import publish
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.records.published import published_runs
from scripts.records.rescored import verify_scores
from scripts.study import cells, entry, try_method
from scripts.study.cells import read_store, train_cell, write_cells
from scripts.study.rules import Rules, StudyCell, load_rules
from scripts.study.try_method import degenerate_splits, method_summary
from tests.helpers import make_data, make_run, settings, train_one

FLIP = """
import torch
space = {"share": [0.1, 0.5]}
def batch(x, y, rng, share=0.5):
    keep = torch.from_numpy(rng.uniform(size=len(x)) < share).to(x)[:, None]
    return x * keep, y
"""
TABLES = ["penguin_mass", "gilgai_soil"]


def synthetic_words(self: Rules, cell: StudyCell) -> list[str]:
    return ["dataset=csv", "dataset.synthetic=true", "dataset.target=price", "logger=none", "train.epochs=3",
            "train.batch_size=128"]  # fmt: skip


def in_this_process(items: Any, *_: object, **__: object) -> list[str]:
    for item in items:
        item.call(lambda _: None)
    return []


@pytest.fixture(scope="module")
def rules() -> Iterator[Rules]:
    every = load_rules()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rules, "words", synthetic_words)
        patch.setattr(cells, "run_environment", lambda _: {"commit": "", "dirty": False, "device": "", "kernels": ""})
        patch.setattr(cells, "train_items", in_this_process)
        patch.setattr(try_method, "PROBE_EPOCHS", 1)
        some = tuple(table for table in every.tables if table.name in [*TABLES, "meat_spectra"])
        yield replace(every, tables=some, splits=2, n_trials=3, lite=3, ensemble={**every.ensemble, "methods": []})


def put_erm(rules: Rules, store: Path) -> Path:
    """Store cells of ERM and, under its name, of mixup."""
    for erm in rules.cells(TABLES, ["random"], ["erm"]):
        dataset = plan_job(compose_train(rules.words(erm))).dataset
        runs = train_cell(erm, rules, dataset.load, dataset.table.y.std(axis=0))
        write_cells(store, runs)
        renamed = [({**r, "method": "mixup", "run": r["run"].replace("/erm/", "/mixup/")}, parts) for r, parts in runs]
        write_cells(store, renamed)
    return store


@pytest.fixture(scope="module")
def stored(rules: Rules, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return put_erm(rules, tmp_path_factory.mktemp("stored") / "results")


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "flip.py"
    path.write_text(FLIP)
    return path


def tried(mine: Path, rules: Rules, stored: Path, out: Path) -> Path:
    assert try_method.try_method(str(mine), ",".join(TABLES), ["random"], rules, out=out, results=stored) == []
    (folder,) = (out / "entries").iterdir()
    return folder


def test_a_method_of_a_folder_outside_is_compared_and_trains_nothing_of_erm(
    mine: Path, rules: Rules, stored: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path = mine.parent.parent
    monkeypatch.setattr(try_method, "check_repeats", lambda *_: None)
    trained, make = list[tuple[str, int]](), cells.make_run

    def watched(job: Any, seed: int, data: Any) -> Any:
        trained.append((job.config["method"]["_target_"].rpartition(".")[2], seed))
        return make(job, seed, data)

    before = {path: path.read_bytes() for path in stored.rglob("*") if path.is_file()}
    monkeypatch.setattr(cells, "make_run", watched)
    folder = tried(mine, rules, stored, tmp_path / "out")
    printed = capsys.readouterr().out
    assert printed.startswith(f"flip: 2 of 2 cells to train; all is written to {folder}\n")
    assert "flip, setting random, 2 datasets\nMean change: " in printed
    assert " of 3: " in printed.partition("\nRank by mean error ")[2]
    assert sorted(one for one in trained if one[1] % 10 == 0) == [("from_file", seed) for seed in (0, 0, 10, 10)]
    assert {path: path.read_bytes() for path in stored.rglob("*") if path.is_file()} == before
    runs = published_runs(folder, ["study_protocol2"])
    words = runs.loc[runs["trial"] == 2, "hyperparameters"]
    assert all('+method.path="flip.py"' in line.split() for line in words)  # and not where it lies on this machine
    trained.clear()
    tried(mine, rules, stored, tmp_path / "out")
    assert trained == []
    assert "0 of 2 cells to train" in capsys.readouterr().out


def test_on_another_network_a_method_takes_the_rates_of_erm(
    mine: Path, rules: Rules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(try_method, "check_repeats", lambda *_: None)
    network = {"model": "fcn3", "model.width": 8}
    other = replace(rules, search="erm", name="network_x", network=network)
    results = put_erm(other, tmp_path / "results")
    folder = tried(mine, other, results, tmp_path / "out")
    printed = " ".join(capsys.readouterr().out.split())
    assert "Learning rate and weight decay are ERM's; the method was not tuned." in printed
    finals = published_runs(folder, ["study_network_x"]).query("trial.isna()")["hyperparameters"]
    assert len(finals) == 2 * 2 * 2
    assert all("+method.options.share=0.1" in words.split() for words in finals)  # the first value of its space
    before = read_store(other, results)["test_nrmse"].tolist()
    with pytest.raises(InputError, match="cannot be published"):  # of unknown code
        publish.publish_store(folder, results)
    monkeypatch.setattr(publish, "check_committed", lambda _: None)
    publish.publish_store(folder, results)
    after = read_store(other, results, entries=True)
    assert after.loc[after["method"] != "flip", "test_nrmse"].equals(pd.Series(before))
    mine = after[(after["method"] == "flip") & after["trial"].isna()]
    assert {shared["entry"]["file"] for shared in mine["shared"]} == {"flip.py"}
    assert verify_scores(results).wrong == []


def test_without_a_search_a_method_takes_the_first_values_of_its_space(mine: Path) -> None:
    mine.write_text(FLIP.replace("[0.1, 0.5]", "[(0.1, 0.2), (0.5, 0.6)]").replace("share=0.5", "share=(0.5, 0.6)"))
    rules, name = entry.with_entry(load_rules("no_search"), str(mine))
    (cell,) = rules.cells(["penguin_mass"], ["rows100"], [name])
    for tuning in rules.tunings(cell):
        made = plan_job(compose_train(rules.command(cell, tuning.trials[0]))).make_method()
        assert made.options == {"share": [0.1, 0.2]}  # as a command line has it
        assert made.options in made.points  # which `draw` looks it up in


def test_a_function_gets_each_networks_rows_options_and_generator() -> None:
    def batch(x: torch.Tensor, y: torch.Tensor, rng: np.random.Generator, scale: float) -> Any:
        return torch.cat([x, scale * x]), torch.cat([y, y + torch.from_numpy(rng.normal(size=y.shape)).to(y)])

    points = [{"scale": 0.5}, {"scale": 2.0}]
    made = [entry.BatchMethod(batch, point, points) for point in (*points, points[0])]
    together = train([make_run(one, seed) for seed, one in enumerate(made)], settings(epochs=2, optimizer="sgd"))
    for seed, result in enumerate(together):
        assert result.stack == 3
        alone = train_one(entry.BatchMethod(batch, made[seed].options, points), seed, epochs=2, optimizer="sgd")
        assert all(torch.allclose(v, result.state_dict[name], atol=1e-5) for name, v in alone.state_dict.items())


@pytest.mark.parametrize(
    ("method", "tables", "message"),
    [("x = 1", "penguin_mass", "must have batch.* got neither"),
     ("def batch(x, y, rng):\n    return x", "penguin_mass", "batch must return two tensors, x and y, got 'Tensor'"),
     ("def batch(x, y, rng):\n    return x[:, :1], y", "penguin_mass", r"batch must return x as \("),
     ("space = {'a': 1}\ndef batch(x, y, rng, a):\n    return x, y", "lite", "space of .* must give a list of values"),
     ("space = {'b': [1]}\ndef batch(x, y, rng, a):\n    return x, y", "lite", "space of .* does not suit batch: "),
     ("import nothing_of_this_name", "lite", "cannot be imported: ModuleNotFoundError"),
     ("import numpy\ndef batch(x, y, rng):\n    return x + numpy.random.rand(), y", "penguin_mass",
      "gives other predictions"),
     ("mixupp", "lite", "method must be .* did you mean mixup?"), ("erm", "lite", "method must be "),
     ("no.py", "lite", "method must be a file that is there, got 'no.py'"),
     ("sk_mixup", "lit", "tables must be lite, all or .* got 'lit'; did you mean lite?"),
     ("sk_mixup", "meat_spectra", "tables must have published cells of ERM, .* none: meat_spectra/random")],
)  # fmt: skip
def test_what_cannot_be_tried_is_refused_before_anything_is_written(
    method: str, tables: str, message: str, *, rules: Rules, stored: Path, tmp_path: Path
) -> None:
    if " " in method:  # the code of a file
        (tmp_path / "mine.py").write_text(method)
        method = str(tmp_path / "mine.py")
    with pytest.raises(InputError, match=message):
        try_method.try_method(method, tables, ["random"], rules, out=tmp_path / "out", results=stored)
    assert not (tmp_path / "out").exists()


def test_a_method_of_the_configurations_has_the_space_of_the_rules_or_its_grid(rules: Rules) -> None:
    same, _ = entry.with_entry(rules, "cmixup")
    assert same.trials("cmixup", 0, "t") == rules.trials("cmixup", 0, "t")
    more, name = entry.with_entry(rules, "local_mixup")  # whose grid is a union
    assert more.trials(name, 0, "t")[:2] == rules.trials("erm", 0, "t")[:2]
    (cell,) = more.cells(["penguin_mass"], ["random"], [name])
    job = plan_job(compose_train(more.command(cell, more.trials(name, 1, "t")[2])))
    assert job.config["method"]["name"] == name


def test_variance_mixup_keeps_the_variance_and_mixing_stops() -> None:
    batch = entry.load_module(entry.ENTRIES / "variance_mixup.py").batch
    x = 3 + 2 * torch.randn(20_000, 1, generator=torch.Generator().manual_seed(0))
    mixed, label = batch(x, x, np.random.default_rng(0), alpha=2.0)
    assert mixed.std().item() == pytest.approx(2, rel=0.02)
    assert torch.equal(mixed, label)
    kind = entry.load_module(entry.ENTRIES / "mix_then_stop.py").MixThenStop
    data = make_data(0)
    never, plain, erm = (train_one(m, 0, data, epochs=3) for m in (kind(0), kind(9), ERM()))
    for name, value in never.state_dict.items():
        assert torch.allclose(value, erm.state_dict[name], atol=1e-6)
        assert not torch.equal(plain.state_dict[name], value)


def test_a_summary_names_tables_mean_signs_rank_and_degenerate_splits() -> None:
    shifts = {"erm": 0.0, "mixup": -0.05, "resample": 0.01}
    runs = pd.DataFrame([
        {"table": table, "condition": "random", "method": method, "seed": 10 * s + w, "split": s, "trial": None,
         "test_nrmse": 0.5 + shift + 0.01 * s + 0.001 * ((s * len(method + table)) % 3),
         "hyperparameters": "method=erm" + (" +method.path=x" if method == "mixup" and s else "")}
        for table in ("one", "three") for method, shift in shifts.items() if (table, method) != ("one", "resample")
        for s in range(5) for w in (1, 2)
    ])  # fmt: skip
    text = method_summary(runs, "random", "mixup", load_rules())
    assert max(map(len, text.splitlines())) <= 80
    row = next(line for line in text.splitlines() if line.startswith("  one "))
    assert re.fullmatch(r"  one    -9\.\d \[-\d+\.\d, -\d\.\d\]", row)
    words = " ".join(text.split())
    assert "%; the mean error is lower. Datasets with a lower error (p of the sign test): 2 of 2 (0.5)." in words
    assert "Rank by mean error 1 of 2: mixup " in words  # resampling lacks a table
    assert words.endswith("Degenerate (equals ERM) on 2 of 10 splits, where validation selected no mixing.")
    assert degenerate_splits(runs, "erm") == (10, 10)
    runs.loc[(runs["method"] == "mixup") & (runs["split"] > 2), "test_nrmse"] = np.inf
    words = " ".join(method_summary(runs, "random", "mixup", load_rules()).split())
    assert words.endswith("Diverged on 4 of 10 splits, which no number above counts.")
    erm = runs[(runs["method"] == "erm") & (runs["split"] <= 2)]["test_nrmse"].mean()
    assert f"erm {erm:.4f}" in words  # over the same splits
    words = method_summary(runs.assign(test_nll_rescaled=runs["split"]), "random", "mixup", load_rules("likelihood"))
    assert words.startswith("Test negative log likelihood minus ERM's, nats, mean over splits, 95 % intervals\n")
    assert "Mean change: 0.00 [0.00, 0.00] nats" in words
    once, chosen = runs[runs["seed"] % 10 == 1], replace(load_rules("no_search"), weights=1)
    words = method_summary(once, "random", "resample", load_rules("no_search"))
    assert words == method_summary(runs, "random", "resample", chosen)  # of the first weights alone
    assert words.endswith("Learning rate and weight decay are ERM's; the method was not tuned.")
    with pytest.raises(InputError, match="share no table of setting rows100"):
        method_summary(runs, "rows100", "mixup", load_rules())
