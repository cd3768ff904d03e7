"""A newcomer's method is tried from a folder outside, judged, checked and published; ERM is not trained again."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.training.trainer import train
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.protocol import cell as cells
from scripts.protocol import published, work
from scripts.protocol.cell import train_cell
from scripts.protocol.protocols import ErmTuned, Protocol2, load_protocol2
from scripts.protocol.rules import Rules, StudyCell
from scripts.records.published import published_reports, write_reports
from scripts.study import submission, try_method
from tests.helpers import make_data, make_run, settings, train_one

FLIP = """
import torch
space = {"share": [0.1, 0.5]}
def batch(x, y, rng, share=0.5):
    keep = torch.from_numpy(rng.uniform(size=len(x)) < share).to(x)[:, None]
    return x * keep, y
"""
TABLES = ["penguin_mass", "gilgai_soil"]
WHY = "it dropped the wrong share"


def twin_words(self: Rules, cell: StudyCell) -> list[str]:
    return ["dataset=csv", "dataset.synthetic=true", "dataset.target=price", "logger=none", "train.epochs=3",
            "train.batch_size=128"]  # fmt: skip


def in_this_process(items: Any, *_: object, **__: object) -> list[str]:
    for item in items:
        item.call(float("inf"), lambda _: None)
    return []


@pytest.fixture(scope="module")
def rules() -> Iterator[Protocol2]:
    every = load_protocol2()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Protocol2, "words", twin_words)
        patch.setattr(cells, "run_environment", lambda _: {"commit": "", "dirty": False, "device": "", "kernels": ""})
        patch.setattr(published, "check_committed", lambda _: None)
        patch.setattr(work, "train_items", in_this_process)
        patch.setattr(try_method, "PROBE_EPOCHS", 1)
        some = tuple(table for table in every.tables if table.name in [*TABLES, "meat_spectra"])
        yield replace(every, tables=some, splits=2, trials_each=3, lite=3, ensemble={**every.ensemble, "methods": []})


@pytest.fixture(scope="module")
def made(rules: Protocol2, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cells of ERM and, under its name, of mixup."""
    results = tmp_path_factory.mktemp("try_method") / "results"
    for erm in rules.cells(TABLES, ["random"], ["erm"]):
        dataset = plan_job(compose_train(rules.words(erm))).dataset
        record, parts = train_cell(erm, rules, dataset.load, dataset.table.y.std(axis=0))
        for each in (record, {**record, "method": "mixup"}):
            published.write_cells(results, published.to_runs(each, parts, rules))
    return results


@pytest.fixture
def stored(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "results"))


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere" / "flip.py"
    path.write_text(FLIP)
    return path


@pytest.fixture(scope="module")
def once(rules: Protocol2, made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The entry of that file."""
    path = tmp_path_factory.mktemp("elsewhere") / "flip.py"
    path.write_text(FLIP)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(try_method, "probe_speed", lambda *_: 1.0)
        return tried(path, rules, made)


@pytest.fixture
def folder(once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(once, tmp_path / "entry"))


def tried(mine: Path, rules: Protocol2, stored: Path) -> Path:
    where = {"out": stored.parent / "out", "results": stored}
    assert try_method.try_method(str(mine), ",".join(TABLES), ["random"], rules, **where) == []  # type: ignore[arg-type]
    (folder,) = (stored.parent / "out" / "entries").iterdir()
    return folder


def test_within_the_minutes_that_are_given_it_says_what_is_left_and_no_verdict(
    mine: Path, rules: Protocol2, stored: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given: list[float] = []
    monkeypatch.setattr(try_method, "probe_speed", lambda *_: 1.0)
    monkeypatch.setattr(try_method, "train_missing", lambda *words, **_: given.append(words[4]) or [])
    where = {"out": stored.parent / "out", "results": stored, "within": 2.5}
    assert try_method.try_method(str(mine), ",".join(TABLES), ["random"], rules, **where) == []  # type: ignore[arg-type]
    assert given == [2.5]
    assert capsys.readouterr().out.endswith(
        "\n2 cells are left: the same command goes on with them, and says in the end what came of all\n"
    )


def test_minutes_are_those_of_a_machine_as_busy_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """A probe that has a third of one of two cores finds five busy processes there; two of ours have less of them."""
    walls, cpus = iter([0.0, 9.0, 9.0, 12.1, 0.0, 1e-4]), iter([0.0, 3.0, 3.0, 6.0, 0.0, 1e-5])
    clock = SimpleNamespace(perf_counter=lambda: next(walls), process_time=lambda: next(cpus))
    monkeypatch.setattr(try_method, "time", clock)
    monkeypatch.setattr(try_method, "core_count", lambda: 2)
    assert try_method.with_slowdown(lambda: 2.5, 2) == (2.5, 3.5)  # (5 + 1) / 2 alone, (5 + 2) / 2 of two
    assert try_method.with_slowdown(lambda: 2.5, 2) == (2.5, 1.0)  # free
    assert try_method.with_slowdown(lambda: 2.5, 2) == (2.5, 1.0)  # too short to tell


def test_a_method_of_a_folder_outside_has_its_verdict_and_trains_nothing_of_erm(
    mine: Path, rules: Protocol2, stored: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(try_method, "probe_speed", lambda *_: 2.0)
    trained: list[tuple[str, int]] = []
    make = cells.make_run

    def watched(job: Any, seed: int, data: Any) -> Any:
        trained.append((job.config["method"]["_target_"].rpartition(".")[2], seed))
        assert not data.test.y.any()  # nobody trains on the test labels
        return make(job, seed, data)

    def published_files() -> dict[Path, bytes]:
        return {path: path.read_bytes() for path in stored.rglob("*/study/*") if path.is_file()}

    before = published_files()
    monkeypatch.setattr(cells, "make_run", watched)
    folder = tried(mine, rules, stored)
    said = capsys.readouterr().out
    assert said.startswith(f"flip: 2 of 2 cells to train, about 1 min; all is written to {folder}\n")
    assert "Verdict on flip, setting random, 2 tables\nMean over tables: " in said
    assert " of 3: " in said.partition("\nBy mean error ")[2]
    assert "Cost: " in said
    trials = [one for one in trained if one[1] % 10 == 0]
    assert sorted(trials) == [("from_file", seed) for seed in (0, 0, 10, 10)]  # of three trials a split the own one
    assert published_files() == before
    words = [r["words"] for r in published_reports(folder, ["study_protocol2"]) if r["options"].get("trial") == 2]
    assert all('+method.path="flip.py"' in each for each in words)  # and not where it lies on this machine
    trained.clear()
    tried(mine, rules, stored)
    assert trained == []
    assert "0 of 2 cells to train" in capsys.readouterr().out


def test_an_entry_is_checked_and_one_that_was_changed_fails_with_a_line(
    folder: Path, rules: Protocol2, made: Path, tmp_path: Path
) -> None:
    def problems() -> list[str]:
        return try_method.check_submission(try_method.Submission(folder, "", rules), count=1, seed=0, results=made)

    assert problems() == []
    reports = published_reports(folder, ["study_protocol2"], ["penguin_mass"])  # which is drawn
    whole = json.dumps(reports)

    def changed(at: int, **about: Any) -> list[str]:
        write_reports(folder, [{**reports[at], **about}])
        found = problems()
        write_reports(folder, json.loads(whole))
        return found

    trial = next(k for k, r in enumerate(reports) if r["options"].get("trial") == 0)
    own = next(k for k, r in enumerate(reports) if r["options"].get("trial") == 2)
    final = next(k for k, r in enumerate(reports) if "trial" not in r["options"])
    better = {part: {name: v - 0.1 for name, v in each.items()} for part, each in reports[final]["scores"].items()}
    assert "its predictions give" in changed(final, scores=better)[0]
    assert "other scores than those published of ERM" in changed(trial, scores={"val": {"nrmse": 9.0}})[0]
    assert "of split 0 are not those that the rules draw" in changed(own, words=["method=erm"])[0]
    lower = changed(own, scores={"val": {"nrmse": 9.0}})
    assert "are not of its best trial" in lower[0] or "runs differ, first study_protocol2/" in lower[0]
    (folder / "flip.py").write_text(FLIP + "\n")
    with pytest.raises(InputError, match=r"was made with another flip\.py than "):
        problems()
    write_reports(folder, [{**r, "entry": {"file": "flip.py", "sha256": "0"}} for r in reports[final : final + 1]])
    with pytest.raises(InputError, match="has cells of no method"):
        try_method.Submission(tmp_path / "nothing", "", rules)


def test_an_entry_is_published_beside_others_and_a_correction_says_why(
    folder: Path, rules: Protocol2, stored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(try_method, "probe_speed", lambda *_: 1.0)
    entries, mine = tmp_path / "entries", tmp_path / "flip.py"
    before = published.read_store(rules, stored)
    assert try_method.publish_submission(try_method.Submission(folder, "", rules), results=stored, entries=entries) == 2
    after = published.read_store(rules, stored, entries=True)
    assert [r for r in after if r["method"] != "flip"] == before
    assert [r for r in after if r["method"] == "flip"] == published.read_store(
        try_method.Submission(folder, "", rules).rules, folder
    )
    assert (entries / "flip.py").read_text() == FLIP
    mine.write_text(FLIP.replace("< share", "> share"))
    where = {"out": tmp_path / "second", "results": stored}
    assert try_method.try_method(str(mine), "penguin_mass", ["random"], rules, **where) == []  # type: ignore[arg-type]
    (other,) = (tmp_path / "second" / "entries").iterdir()
    with pytest.raises(InputError, match=r"lacks 1 cells that another flip\.py has published"):
        try_method.publish_submission(try_method.Submission(other, "", rules), WHY, stored, entries)
    assert try_method.try_method(str(mine), ",".join(TABLES), ["random"], rules, **where) == []  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is another file: corrects="):
        try_method.publish_submission(try_method.Submission(other, "", rules), "", stored, entries)
    assert try_method.publish_submission(try_method.Submission(other, "", rules), WHY, stored, entries) == 2
    (record,) = (r for r in published.read_store(rules, stored, entries=True)
                 if (r["table"], r["method"]) == ("penguin_mass", "flip"))  # fmt: skip
    assert record["corrects"]["why"] == WHY
    assert record["entry"]["sha256"][:8] == other.name[-8:]


def test_a_function_gets_each_networks_rows_options_and_generator(tmp_path: Path) -> None:
    seen: list[tuple[tuple[int, ...], float]] = []

    def batch(x: torch.Tensor, y: torch.Tensor, rng: np.random.Generator, scale: float) -> Any:
        seen.append((tuple(x.shape), scale))
        return torch.cat([x, scale * x]), torch.cat([y, y + torch.from_numpy(rng.normal(size=y.shape)).to(y)])

    points = [{"scale": 0.5}, {"scale": 2.0}]
    made = [submission.BatchMethod(batch, point, points) for point in (*points, points[0])]

    together = train([make_run(one, seed) for seed, one in enumerate(made)], settings(epochs=2, optimizer="sgd"))
    assert {scale for _, scale in seen} == {0.5, 2.0}
    for seed, result in enumerate(together):
        assert result.stack == 3
        alone = train_one(submission.BatchMethod(batch, made[seed].options, points), seed, epochs=2, optimizer="sgd")
        assert all(torch.allclose(v, result.state_dict[name], atol=1e-5) for name, v in alone.state_dict.items())


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("x = 1", "must have batch.* got neither"),
        ("def batch(x, y, rng):\n    return x", "batch must return two tensors, x and y, got 'Tensor'"),
        ("def batch(x, y, rng):\n    return x[:, :1], y", r"batch must return x as \("),
        ("def batch(x, y, rng):\n    return x, y[1:]", r"batch must return y as \("),
        ("space = {'a': 1}\ndef batch(x, y, rng, a):\n    return x, y", "space of .* must give a list of values"),
        ("space = {'b': [1]}\ndef batch(x, y, rng, a):\n    return x, y", "space of .* does not suit batch: "),
        ("import nothing_of_this_name", "cannot be imported: ModuleNotFoundError"),
        ("import numpy\ndef batch(x, y, rng):\n    return x + numpy.random.rand(), y", "gives other predictions"),
    ],
)
def test_a_file_that_cannot_be_tried_is_refused_before_anything_is_written(
    code: str, message: str, rules: Protocol2, made: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mine.py"
    path.write_text(code)
    with pytest.raises(InputError, match=message):
        try_method.try_method(str(path), "penguin_mass", ["random"], rules, out=tmp_path / "out", results=made)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("method", "tables", "message"),
    [
        ("mixupp", "lite", "method must be .* did you mean mixup?"),
        ("erm", "lite", "method must be "),
        ("no.py", "lite", "method must be a file that is there, got 'no.py'"),
        ("sk_mixup", "lit", "tables must be lite, all or .* got 'lit'; did you mean lite?"),
        ("sk_mixup", "meat_spectra", "tables must have published cells of ERM, .* none: meat_spectra/random"),
    ],
)
def test_wrong_names_are_refused(method: str, tables: str, message: str, rules: Protocol2, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        try_method.try_method(method, tables, ["random"], rules, out=tmp_path, results=tmp_path)


def test_a_method_of_the_configurations_has_the_space_of_the_rules_or_its_own_grid(rules: Protocol2) -> None:
    own, _ = submission.with_submission(rules, "cmixup")
    assert own.trials("cmixup", 0, "t") == rules.trials("cmixup", 0, "t")
    more, name = submission.with_submission(rules, "local_mixup")  # whose grid is a union
    assert more.trials(name, 0, "t")[:2] == rules.trials("erm", 0, "t")[:2]
    (cell,) = more.cells(["penguin_mass"], ["random"], [name])
    for split in range(2):
        assert (
            plan_job(compose_train(more.command(cell, more.trials(name, split, "t")[2]))).config["method"]["name"]
            == name
        )
    assert more.checksum == rules.checksum


def test_the_five_entries_can_be_tried(rules: Protocol2) -> None:
    found = sorted(submission.SUBMISSIONS.glob("*.py"))
    assert {path.stem for path in found} >= {
        "mix_then_stop", "variance_mixup", "learned_bandwidth", "centres", "feature_noise"
    }  # fmt: skip
    for path in found:
        assert len(path.read_text().splitlines()) <= 100
        more, name = submission.with_submission(rules, str(path))
        (cell,) = more.cells(["penguin_mass"], ["random"], [name])
        method = plan_job(compose_train(more.command(cell, more.trials(name, 1, "t")[2]))).make_method()
        assert isinstance(method, submission.Method)


def test_variance_mixup_keeps_the_variance_and_mixing_stops() -> None:
    batch = submission.load_module(submission.SUBMISSIONS / "variance_mixup.py").batch
    x = 3 + 2 * torch.randn(20_000, 1, generator=torch.Generator().manual_seed(0))
    mixed, label = batch(x, x, np.random.default_rng(0), alpha=2.0)
    assert mixed.std().item() == pytest.approx(2, rel=0.02)
    assert torch.equal(mixed, label)
    kind = submission.load_module(submission.SUBMISSIONS / "mix_then_stop.py").MixThenStop
    data = make_data(0)
    never, plain, erm = (train_one(m, 0, data, epochs=3) for m in (kind(0), kind(9), ERM()))
    for name, value in never.state_dict.items():
        assert torch.allclose(value, erm.state_dict[name], atol=1e-6)
        assert not torch.equal(plain.state_dict[name], value)


def test_published_records_find_the_function_by_its_old_name() -> None:
    assert import_module(submission.FROM_FILE.rpartition(".")[0]).from_file is submission.from_file


def test_on_a_network_with_rules_of_its_own_a_method_takes_the_rates_of_erm_and_is_checked_and_published(
    mine: Path, rules: Protocol2, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = {field.name: getattr(rules, field.name) for field in fields(rules)}
    network = {"model": "fcn3", "model.width": 8}
    own, results = ErmTuned(**{**same, "name": "network_realmlp", "network": network}), tmp_path / "results"
    for erm in own.cells(TABLES, ["random"], ["erm"]):
        dataset = plan_job(compose_train(own.words(erm))).dataset
        record, parts = train_cell(erm, own, dataset.load, dataset.table.y.std(axis=0))
        published.write_cells(results, published.to_runs(record, parts, own))
    folder = tried(mine, own, results)
    said = capsys.readouterr().out
    assert "Verdict on flip, setting random, 2 tables" in said
    assert "Rate and decay are those that tuning chose for ERM; the method was not tuned." in said
    made = try_method.Submission(folder, "", own)
    for record in made.records:
        erm = next(r for r in published.read_store(own, results) if r["table"] == record["table"])
        assert record["trials"] == erm["trials"]  # read, not trained
        best = {t["seed"]: min((o for o in erm["trials"] if o["seed"] == t["seed"]), key=lambda o: o["val"])
                for t in erm["trials"]}  # fmt: skip
        for row in record["seeds"]:
            assert row["options"][-2:] == best[10 * row["split"]]["options"][-2:]
            assert "+method.options.share=0.1" in row["options"]  # the first value of its space
    assert try_method.check_submission(made, 1, 0, results=results) == []
    changed = json.loads(json.dumps(made.records[0]))
    changed["seeds"][0]["options"] = changed["seeds"][0]["options"][:-2]
    erm = next(r for r in published.read_store(own, results) if r["table"] == changed["table"])
    (cell,) = (c for c in made.rules.cells(methods=["flip"]) if c.key == published.key_of_record(changed))
    assert list(try_method.find_breaches(changed, cell, erm, made.rules)) == [
        "the runs of split 0 are not of its best trial"
    ]
    assert try_method.publish_submission(made, results=results, entries=tmp_path / "entries") == 2
    assert ("penguin_mass", "random", "flip") in published.cells_done(results, made.rules)
