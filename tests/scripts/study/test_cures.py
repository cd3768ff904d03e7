"""The cures of C-Mixup's bias: what they do where the answer is known, and their page."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData, Split
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from scripts.study import __main__ as command
from scripts.study import cell, cures, cures_page
from scripts.study.cures import STRENGTHS, CurvedBeta, arms, bias_to_noise, pull_of
from scripts.study.rules import load_rules
from tests.helpers import CPU


def data_of(f: Any, n: int = 300) -> RegressionData:
    """Rows of a function of two features without noise."""
    x = np.random.default_rng(0).normal(size=(n, 2))
    y = np.asarray(f(x), dtype=np.float32)[:, None]
    split = Split(torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y), torch.zeros(n, dtype=torch.int64))
    return SimpleNamespace(train=split, val=split, test=split)  # type: ignore[return-value]


def test_a_pull_is_undone_exactly_for_a_line() -> None:
    data = data_of(lambda x: 3 + x @ [2.0, -1.0])
    x, y = data.train.x.numpy().astype(float), data.train.y.numpy().astype(float)
    for bandwidth in (None, ["std", 0.3]):
        pull = pull_of(data, 1.0, bandwidth)
        pulled_x = pull.x_mean + pull.x_factor * (x - pull.x_mean)
        pulled_y = pull.y_mean + pull.y_factor * (y - pull.y_mean)
        coefficients, *_ = np.linalg.lstsq(np.column_stack([pulled_x, np.ones(len(x))]), pulled_y, rcond=None)
        found = pull.undo(lambda rows, c=coefficients: rows @ c[:2] + c[2], x)
        np.testing.assert_allclose(found, y, atol=1e-5)


def test_mixup_pulls_by_the_mean_weight_and_near_partners_pull_less() -> None:
    data = data_of(lambda x: x @ [2.0, -1.0])
    mixup, wide, near, equal = (pull_of(data, 1.0, b) for b in (None, 1e9, ["std", 0.1], 1e-9))
    assert mixup.y_factor[0] == pytest.approx(0.75, abs=0.002)  # the mean of max(u, 1 - u)
    np.testing.assert_allclose(wide.x_factor, mixup.x_factor, atol=1e-6)
    np.testing.assert_allclose(equal.x_factor, 1.0)
    assert 0.99 < near.y_factor[0] < 1.0
    assert near.x_factor[1] < near.x_factor[0] < near.y_factor[0]  # the second feature says less of the label


def test_rows_are_mixed_less_where_the_function_is_curved_alone() -> None:
    def ratio(f: Any) -> np.ndarray:
        data = data_of(f)
        pairing = LabelDistance(["std", 0.3])
        pairing.fit(data.train)
        return bias_to_noise(data, pairing)

    rng = np.random.default_rng(0)
    noise = rng.normal(0, 0.5, 300)
    straight, curved = (ratio(lambda x, f=f: f(x) + noise) for f in (lambda x: x @ [2.0, -1.0], lambda x: x[:, 0] ** 2))
    assert np.median(straight) < 0.2
    assert np.median(curved) > 2 * np.median(straight)
    lam = CurvedBeta(2.0, 1.0)
    one, other = (lam.draw_rows(np.full(20_000, r), np.random.default_rng(0)) for r in (0.0, 9.0))
    np.testing.assert_array_equal(one, Beta(2.0).draw(np.array([20_000]), np.random.default_rng(0)))
    assert other.var() == pytest.approx(1 / (4 * (2 * 0.2 + 1)), rel=0.02)  # of Beta(a, a) with a = 2 / 10


@pytest.mark.parametrize("undo", [False, True])
def test_options_are_chosen_on_validation_by_the_predictions_that_are_scored(
    undo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first trial is the better one on validation with the arm's own predictions, and the worse one elsewhere."""

    def plan(words: list[str]) -> Any:
        return SimpleNamespace(first="first" in words, stackable=False, device=CPU, dataset=SimpleNamespace(unit=""))

    def error(job: Any, _: Any, __: Any, part: str, **given: bool) -> float:
        right = (part, given["undo"]) == ("val", undo)
        return 1.0 if job.first == right else 2.0

    monkeypatch.setattr(cures, "arms", lambda _: {"mixup": cures.Arm([["second"], ["first"]], undo=undo)})
    for name, stand_in in (
        ("compose_train", list), ("plan", plan), ("error", error),
    ):  # fmt: skip
        monkeypatch.setattr(cures, name, stand_in)
    monkeypatch.setattr(cell, "train_runs", lambda jobs, seeds, _: [None] * len(seeds) * len(jobs))
    monkeypatch.setattr(cell, "stacks_of", lambda cells: [cells])
    record = cures.train_arm("airfoil", "mixup", load_rules(), lambda *_: data_of(lambda x: x[:, 0]), print)
    assert record["options"] == ["first"]
    assert {row["test"] for row in record["seeds"]} == {2.0}


def test_every_arm_has_sixteen_trials() -> None:
    found = arms(load_rules())
    assert {name: len(arm.words) for name, arm in found.items()} == dict.fromkeys(found, 16)
    assert set(found["cmixup_curved"].strengths or []) == set(STRENGTHS)
    assert not any("strength" in word for words in found["cmixup_curved"].words for word in words)
    assert found["cmixup_unshrunk"].words == found["cmixup"].words


def test_the_page_says_what_is_kept() -> None:
    def record(arm: str, shift: float) -> dict[str, Any]:
        seeds = [{"seed": s, "test": 0.4 + shift + 0.001 * (s % 3)} for s in range(10)]
        if arm == "erm":
            seeds = [{**row, "bias 0.1": 0.05, "bias any": 0.2} for row in seeds]
        return {"table": "airfoil", "arm": arm, "seeds": seeds, "train_rows": 902, "options": [], "unit": "dB"}

    given = [record("erm", 0.0), record("mixup", 0.1), record("cmixup", 0.05), record("mixup_unshrunk", 0.02)]
    parts = cures_page.parts([*given, record("cmixup_curved", -0.05)])
    row = "| Airfoil | mixup, predictions un-shrunk | 902 | 10 | 0.4209 ± 0.0009 | +0.0200 [+0.0200, +0.0200] | -0.0800"
    assert row in parts["errors"]
    assert parts["bias"].splitlines()[::2] == [
        "|  | 0.1 std | any partner | ERM's test error | nearest of any |",
        "| Airfoil | 0.050 | 0.200 | 0.401 | 25 % |",
    ]
    lines = parts["kept"].splitlines()
    assert any("un-shrunk: better than without it on Airfoil" in line and "Not kept" in line for line in lines)
    assert any(
        "alpha shrunk where curved: better than without it on Airfoil" in line and "Worth" in line for line in lines
    )


@pytest.mark.parametrize(("changes", "code"), [({}, 0), ({"dirty": True}, 2), ({"commit": ""}, 2)])
def test_arms_of_edited_or_unknown_code_are_not_published(
    changes: dict[str, Any], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.setattr(command, "RECORDS", tmp_path / "cures.jsonl")
    kept = tmp_path / "study/cures/airfoil/erm.json"
    kept.parent.mkdir(parents=True)
    record = {"table": "airfoil", "arm": "erm", "commit": "c0ffee", "dirty": False, **changes}
    kept.write_text(json.dumps(record))
    with pytest.raises(SystemExit) if code else contextlib.nullcontext():
        command.main(["cures", "publish=1", f"out={tmp_path}"])
    assert (tmp_path / "cures.jsonl").is_file() == (not code)
    assert ("1 runs cannot be published (airfoil/erm): " in capsys.readouterr().err) == bool(code)
