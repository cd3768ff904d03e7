"""The command scripts.train: its lines, errors and sweeps."""

import io
import math
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path
from types import CodeType, FrameType

import numpy as np
import pandas as pd
import pytest
from hydra.core.global_hydra import GlobalHydra

from cmixup.errors import InputError
from scripts import collect
from scripts import train as train_module
from scripts.config.compose import compose_train, normalize_arguments, override_words
from scripts.driver.cli import user_errors
from scripts.driver.execute import Diverged
from scripts.driver.job import plan_job
from scripts.driver.runs import RunFolder, load_reports

REPO = Path(__file__).resolve().parents[2]


def test_one_line_a_seed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["dataset=no2", "method=erm", "debug=tiny", "train.batch_size=100", f"out={tmp_path}", "seeds=0..1"]
    train_module.run_training(compose_train(given))
    *lines, mean, folder = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    scores = []
    for seed, line in enumerate(lines):
        (report,) = [r for r in load_reports(tmp_path) if r["seed"] == seed]
        assert line.startswith("no2 erm default dataset.synthetic=True")
        assert f"seed {seed}: test rmse {report['scores']['test']['rmse']:.4f}" in line
        assert f"mape {report['scores']['test']['mape']:.4f} %" in line
        assert str((tmp_path / "runs" / report["run"]).parent) in folder
        assert "already done" not in line
        scores.append(report["scores"]["test"]["rmse"])
    spread = statistics.stdev(scores)
    assert f"mean of 2 seeds: test rmse {statistics.fmean(scores):.4f} ± {spread:.4f}" in mean
    train_module.run_training(compose_train(given))
    assert all("already done; rerun=true" in line for line in capsys.readouterr().out.splitlines()[:2])


def test_what_a_table_hides_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    area = np.random.default_rng(0).uniform(30, 150, 120)
    price = 3000 * area + np.random.default_rng(1).normal(0, 4e4, 120)
    pd.DataFrame({"area": area, "tax": price / 20, "price": price}).to_csv(tmp_path / "t.csv", index=False)
    words = [f"table={tmp_path / 't.csv'}", "target=price", "train.epochs=2", "logger=none", f"out={tmp_path}"]
    train_module.run_training(compose_train(words))
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "tax alone predicts price nearly" in line]
    assert "dataset.drop=[tax]" in line


def test_a_score_that_only_some_seeds_have_is_left_out_of_the_mean(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pd.DataFrame({"a": np.arange(60.0) % 7, "y": np.arange(60.0)}).to_csv(tmp_path / "t.csv", index=False)
    words = [
        f"table={tmp_path / 't.csv'}",
        "target=y",
        "train.epochs=1",
        "logger=none",
        f"out={tmp_path}",
        "seeds=0..9",
    ]
    train_module.run_training(compose_train(words))
    lines = capsys.readouterr().out.splitlines()
    assert any("mape_skipped" in line for line in lines)
    (mean,) = [line for line in lines if "mean of 10 seeds" in line]
    assert "mape_skipped" not in mean


@pytest.mark.parametrize("error", [InputError("alpha must be"), OSError(28, "No space left"), Diverged("no finite")])
def test_errors_of_the_user_are_one_line(
    error: Exception, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit) as caught, train_module.user_errors():
        raise error
    assert caught.value.code == 2
    assert capsys.readouterr().err == f"error: {error}\n"
    monkeypatch.setenv("CMIXUP_TRACEBACK", "1")
    with pytest.raises(type(error)), train_module.user_errors():
        raise error


def test_a_command_whose_output_nobody_reads_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in `| head -1`: no error, also where Python itself prints what is left at its end."""
    kept, (reading, writing) = os.dup(1), os.pipe()
    os.close(reading)
    os.dup2(writing, 1)
    os.close(writing)
    try:
        with open(1, "w", closefd=False) as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            with pytest.raises(SystemExit) as ending, user_errors():
                stream.write("line")
    finally:  # where the stream is closed, it has printed what is left
        os.dup2(kept, 1)
        os.close(kept)
    assert ending.value.code == 0
    assert capfd.readouterr().err == ""


@pytest.mark.slow
def test_a_run_is_short_and_stops_at_every_breakpoint_of_the_design(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From words to report a run goes through 48 functions of scripts/ at most, and docs/design.md names real ones."""
    called: dict[CodeType, str] = {}

    def count(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(f"{REPO}{os.sep}") and code.co_name[0] != "<":
            called[code] = f"`{code.co_qualname}` ({Path(code.co_filename).relative_to(REPO).as_posix()})"

    monkeypatch.setattr("hydra._internal.logging_config.configure_logging", lambda _: None)  # this process goes on
    monkeypatch.chdir(tmp_path)
    GlobalHydra.instance().clear()
    sys.setprofile(count)
    try:
        words = normalize_arguments(["dataset=airfoil", "debug=tiny", "logger=none", "out=there"])
        monkeypatch.setattr("sys.argv", ["scripts.train", *words])
        train_module.main()
    finally:
        sys.setprofile(None)
    assert 40 < sum(" (scripts/" in name for name in called.values()) <= 48
    section = (REPO / "docs" / "design.md").read_text().partition("## Parts")[0]
    places = re.findall(r"^- (`[\w.]+` \([\w./]+\))", section, re.MULTILINE)
    assert len(places) == 5
    assert set(places) <= set(called.values())


@pytest.mark.slow
def test_nothing_waits_for_reporting() -> None:
    """Starting a run must not wait for pandas or matplotlib, so none of scripts.report is imported."""
    code = "import sys, scripts.train; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPO, capture_output=True, text=True, check=True)
    loaded = done.stdout.split()
    assert "scripts.driver.execute" in loaded
    assert not {name for name in loaded if name.partition(".")[0] in ("pandas", "matplotlib")}
    assert not {name for name in loaded if name.startswith("scripts.report")}


def test_scores_of_any_unit_are_printed_with_digits() -> None:
    scores = (0.0, 2.71828, 66781.08262, 1.5e-30, 8.853e29, -0.5, 0.001234567)
    printed = [train_module.format_score("rmse", value).split()[1] for value in scores]
    assert printed == ["0.0000", "2.7183", "66781.0826", "1.5e-30", "8.853e+29", "-0.5000", "0.0012346"]


def test_every_sign_is_printed_in_any_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr(sys, "stdout", stream)
    with user_errors():
        stream.write("0.5 ± 0.1 λ\n")
    stream.flush()
    assert stream.buffer.getvalue() == b"0.5 ? 0.1 ?\n"


def test_an_infinite_bandwidth_is_mixup_in_run_report_and_sweep(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["dataset=diabetes", "dataset.synthetic=true", "train.epochs=2", "logger=none", f"out={tmp_path}"]
    for bandwidth in ("5", "inf"):
        train_module.run_training(compose_train([*words, f"method.bandwidth={bandwidth}"]))
    assert "bandwidth inf: indistinguishable from mixup" in capsys.readouterr().err
    reports = {report["options"]["method.bandwidth"]: report for report in load_reports(tmp_path)}
    assert sorted(reports) == [5.0, math.inf]
    assert reports[math.inf]["bandwidth"] == reports[math.inf]["config"]["method"]["bandwidth"] == math.inf
    again = plan_job(compose_train([*words, *override_words(reports[math.inf]["options"])]))
    assert RunFolder(again.run_folder(0)).is_done(again.dataset)
    monkeypatch.setattr(collect, "to_png", lambda _: b"")
    collect.main([f"out={tmp_path}", "over=method.bandwidth"])
    assert re.findall(r"^\| \**(5|inf)\** \| 1 \|", capsys.readouterr().out, re.MULTILINE) == ["5", "inf"]
