"""The study of when mixing helps: its rules, its score, what is published, and what is trained next."""

import hashlib
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.driver.predictions import Scored
from scripts.protocol import published, work
from scripts.protocol.cell import PARTS
from scripts.protocol.protocols import COMMITS, FOLDER, PROTOCOL2, SEA_LEVEL, Protocol2, load_protocol2, load_rules
from scripts.protocol.rules import StudyCell
from scripts.records.published import published_reports
from scripts.records.rescored import verify_scores
from scripts.records.seal import SEAL, broken_files, read_seal, seal_files
from scripts.records.study_errors import normalised_rmse
from tests.scripts.study.test_protocol2 import twin_words


@pytest.fixture(scope="module")
def rules() -> Protocol2:
    return load_protocol2()


def test_cells_are_found_by_name_where_the_table_has_rows_enough(rules: Protocol2) -> None:
    (one,) = rules.cells(["penguin_mass"], ["rows100"], ["cmixup"])
    assert one.key == ("penguin_mass", "rows100", "cmixup")
    assert not rules.cells(["penguin_mass"], ["grouped"])
    with pytest.raises(InputError, match=r"tables must be among .*, got 'penguins'"):
        rules.cells(["penguins"])


@pytest.mark.parametrize(("path", "names"), [(PROTOCOL2, ["protocol2"]), (SEA_LEVEL, ["baselines", "protocol2"])])
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


def test_other_rules_are_like_the_rules_but_for_what_they_say(rules: Protocol2) -> None:
    more = load_rules(FOLDER / "more_splits.yaml")
    assert (more.name, more.tables, more.methods, more.first_split) == ("more_splits", rules.tables, rules.methods, 5)
    assert more.checksum.split()[1:] == rules.checksum.split()
    with pytest.raises(InputError, match=r"one of baselines, .*, protocol2, got 'tables'"):
        load_rules(FOLDER / "tables.yaml")


def made(store: Path, rules: Protocol2, cell: StudyCell, value: float, rows: float = 0.0, **about: Any) -> None:
    """Put a cell into a store whose predictions are one value for labels of another."""
    arrays = [[np.full((4, 1), v + k, dtype=np.float32) for k in range(2)] for v in (value, rows)]
    score = [normalised_rmse(arrays[0][k], arrays[1][k], np.ones(1)) for k in range(2)]
    seeds = [
        {"seed": 10 * k + 1, "split": k, "options": ["train.lr=1"], "best_epoch": 3, "val": score[k], "test": score[k]}
        for k in range(2)
    ]
    key = dict(zip(published.OF_CELL, cell.key, strict=True))
    tried = [{"seed": 0, "options": [f"train.lr={k}"], "val": (value, float("inf"))[k]} for k in range(2)]
    record = {
        **key, "trials": tried, "seeds": seeds, "std": [1.0], "rules": rules.checksum,
        "commit": "c0ffee", "dirty": False, **about,
    }  # fmt: skip
    kept = [dict.fromkeys(PARTS, Scored({"": f}, y, np.zeros(4, np.uint8))) for f, y in zip(*arrays, strict=True)]
    published.write_cells(store, published.to_runs(record, kept, rules))


def files_of(store: Path) -> dict[str, bytes]:
    """The bytes of every file that a store holds."""
    return {path.name: path.read_bytes() for path in store.rglob("study/*") if path.is_file()}


def test_publishing_replaces_cells_by_key_and_keeps_the_others(rules: Protocol2, tmp_path: Path) -> None:
    first, second, third = (rules.cells([t], ["random"], [m])[0] for t, m in (
        ("penguin_mass", "mixup"), ("penguin_mass", "erm"), ("gilgai_soil", "erm")
    ))  # fmt: skip
    into, stores = tmp_path / "published", [tmp_path / name for name in "abcd"]
    for cell in (first, third):
        made(stores[0], rules, cell, 1.0)
    assert published.copy_cells(stores[0], into, rules) == 2
    kept = files_of(into)
    assert published.copy_cells(stores[0], into, rules) == 2
    assert files_of(into) == kept
    made(stores[1], rules, second, 2.0)
    assert published.copy_cells(stores[1], into, rules) == 1
    made(stores[2], rules, first, 3.0)
    with pytest.raises(InputError, match=r"1 cells are published with other numbers \(penguin_mass/random/mixup\)"):
        published.copy_cells(stores[2], into, rules)
    assert published.copy_cells(stores[2], into, rules, why="a wrong rate") == 1
    found = [
        (published.key_of_record(record), record["seeds"][0]["test"]) for record in published.read_store(rules, into)
    ]
    assert found == [(third.key, 1.0), (second.key, 2.0), (first.key, 3.0)]  # in the order of the rules
    was = {"why": "a wrong rate", "commit": "c0ffee", "test": 1.0}
    assert {**published.read_store(rules, stores[2])[0], "corrects": was} == published.read_store(rules, into)[2]
    part = [r for r in published_reports(stores[2], ["study_protocol2"]) if r["seed"] <= 1]
    with pytest.raises(InputError, match=r"penguin_mass/random/mixup is published with more runs, such as .*seed=11"):
        published.corrected_reports(part, published_reports(into, ["study_protocol2"]), "fewer")
    assert verify_scores(into)[:4] == (6, 12, 12, [])
    assert files_of(into)["gilgai_soil.xz"] == kept["gilgai_soil.xz"]
    assert published.copy_cells(stores[0], into, rules, replace=False) == 0
    made(stores[3], rules, first, 1.0, rows=5.0)
    with pytest.raises(InputError, match="other test rows of penguin_mass"):
        published.copy_cells(stores[3], into, rules, why="other rows")
    with pytest.raises(InputError, match=r"published has 3 cells that were made by other rules"):
        published.copy_cells(stores[1], into, replace(rules, checksum="another"))
    sea = load_rules(SEA_LEVEL)
    made(stores[1], sea, sea.cells(["penguin_mass"])[0], 4.0)
    assert published.copy_cells(stores[1], into, sea) == 1
    assert [len(published.read_store(each, into)) for each in (rules, sea)] == [3, 1]
    assert verify_scores(into)[:4] == (8, 16, 16, [])
    assert not published_reports(into)  # no table is about the study


def test_publishing_seals_what_it_writes_and_nothing_that_changed_otherwise(rules: Protocol2, tmp_path: Path) -> None:
    cells = [rules.cells([t], ["random"], ["erm"])[0] for t in ("penguin_mass", "gilgai_soil", "csf_tau")]
    into, source = tmp_path / "published", tmp_path / "a"
    made(into, rules, cells[0], 1.0)
    (into / "results.csv").write_text("1\n")
    first = seal_files(into, first=True)
    for cell in cells[:2]:
        made(source, rules, cell, 1.0)
    assert published.copy_cells(source, into, rules) == 2
    assert broken_files(into) == []
    assert sum("gilgai_soil" in name for name in read_seal(into)) == 3  # records, predictions, targets
    assert (into / SEAL).read_text().splitlines()[0] != f"root {first}"
    before = (into / SEAL).read_bytes()
    (into / "results.csv").write_text("2\n")
    made(source, rules, cells[2], 1.0)
    with pytest.raises(InputError, match=r"results\.csv has other bytes than its seal"):
        published.copy_cells(source, into, rules)
    assert (into / SEAL).read_bytes() == before
    assert not (into / "runs" / "study" / "csf_tau.jsonl").exists()


def test_the_score_is_in_standard_deviations_and_weighs_targets_alike() -> None:
    target = np.array([[0.0, 0.0], [10.0, 1000.0]], dtype=np.float32)
    prediction = target + np.array([[5.0, 0.0], [5.0, 0.0]], dtype=np.float32)
    assert normalised_rmse(prediction, target, np.array([5.0, 500.0])) == pytest.approx(np.sqrt(0.5))
    assert normalised_rmse(prediction[:, ::-1], target[:, ::-1], np.array([500.0, 5.0])) == pytest.approx(np.sqrt(0.5))


@pytest.mark.parametrize("changes", [{"dirty": True}, {"commit": ""}, {"commit": "0" * 40}])
def test_cells_of_edited_or_unknown_code_are_not_published(
    changes: dict[str, object], rules: Protocol2, tmp_path: Path
) -> None:
    (cell,) = rules.cells(["penguin_mass"], ["random"], ["erm"])
    made(tmp_path, rules, cell, 1.0, **changes)
    with pytest.raises(InputError, match=r"^1 runs cannot be published \(penguin_mass/random/erm\): "):
        published.copy_cells(tmp_path, tmp_path / "into", rules)
    assert not (tmp_path / "into").exists()


def test_what_is_done_is_not_trained_again_and_the_most_costly_comes_first(
    rules: Protocol2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = rules.cells(["penguin_mass", "diamond_prices"], ["random"], ["erm", "mixup"])
    found = work.missing_cells(tmp_path, chosen, rules)
    assert [group[0].table.name for group in found] == ["diamond_prices", "penguin_mass"]
    for cell in chosen:
        made(tmp_path, rules, cell, 1.0)
    assert work.train_missing(tmp_path, chosen, rules) == []
    assert "4 of 4 cells are done; training 0" in capsys.readouterr().out


def test_a_worker_stops_before_a_cell_that_would_begin_too_late(
    rules: Protocol2, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    told: list[tuple[object, ...]] = []
    now = iter([10.0, 20.0, 31.0])
    monkeypatch.setattr(Protocol2, "words", twin_words)
    monkeypatch.setattr(work, "time", SimpleNamespace(time=lambda: next(now)))
    monkeypatch.setattr(work, "train_cell", lambda cell, *_, **__: [begun.append(cell.method)])
    monkeypatch.setattr(work, "to_runs", lambda *_: [])
    monkeypatch.setattr(work, "write_cells", lambda *_: None)
    group = rules.cells(["penguin_mass"], ["random"], ["erm", "mixup", "cmixup"])
    work.train_group(tmp_path, group, rules, 30.0, told.append, stored=tmp_path)
    assert begun == ["erm", "mixup"]
    assert told == [("epoch", 1, 3, {}), ("epoch", 2, 3, {})]
