"""The dashboard of one's own runs."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import yaml

from cmixup.errors import InputError
from scripts import wandb_report
from scripts.driver.compose import CONFIG_DIR, compose_train
from scripts.driver.job import execute
from scripts.driver.runs import load_reports
from tests.scripts.jobs import planned


@pytest.mark.usefixtures("no_git")
def test_the_page_has_every_cell_its_scores_and_pictures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for bandwidth in (0.5, 4):
        execute(planned(tmp_path, "method=cmixup", f"method.bandwidth={bandwidth}", "seeds=2"))
    path = tmp_path / "page.html"
    wandb_report.main([str(tmp_path / "runs"), "--out", str(path)])
    text = path.read_text()
    assert f"Written: {path}" in capsys.readouterr().out
    assert "<h1>4 runs of 2 cells</h1>" in text
    rows = re.findall(r"<tr>(<td>.*?)</tr>", text)
    for row, bandwidth in zip(rows, (0.5, 4), strict=True):
        mine = [r for r in load_reports(tmp_path / "runs") if r["bandwidth"] == bandwidth]
        mean = sum(r["scores"]["test"]["rmse"] for r in mine) / 2
        assert f"method.bandwidth={float(bandwidth)}" in row
        assert f"<td>{mean:.4g} ± " in row
    assert text.count("data:image/png;base64,") == 3
    assert "http" not in text.replace("data:image", "")[:2000]
    # The wandb report's panels ask for what runs log.
    made: list[Any] = []
    fake = types.SimpleNamespace(LinePlot=lambda **g: made.append(g), ScatterPlot=lambda **g: made.append(g))
    wandb_report.panels(fake, "rmse", "method.bandwidth")
    assert made[0]["y"] == ["val_rmse"]
    assert (made[-1]["x"], made[-1]["y"]) == ("c::method.bandwidth", "s::test/rmse")
    monkeypatch.setitem(sys.modules, "wandb_workspaces.reports.v2", None)
    with pytest.raises(InputError, match="pip install wandb-workspaces"):
        wandb_report.upload("me/cmixup", "rmse", "method.bandwidth")


def test_the_sweep_of_wandb_names_options_that_there_are() -> None:
    sweep = yaml.safe_load((CONFIG_DIR / "wandb" / "bandwidth.yaml").read_text())
    words = [word for word in sweep["command"] if "=" in word]
    words += [f"{key}={each['values'][0]}" for key, each in sweep["parameters"].items()]
    cfg = compose_train(words)
    assert (cfg.method.bandwidth, cfg.seed, cfg.logger) == (0.1, 0, "wandb")
    assert sweep["metric"]["name"] == "val/rmse"
