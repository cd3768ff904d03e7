"""The workspace that is sent to wandb, and what is said where it cannot be sent; nothing here connects."""

from typing import Any

import pytest

from scripts.config.arguments import Args
from scripts.dashboard import main, make_workspace


@pytest.fixture(autouse=True, scope="module")
def _workspaces() -> None:
    pytest.importorskip("wandb_workspaces")  # which takes long: not while tests are collected


def test_the_workspace_shows_what_runs_log() -> None:
    spec = make_workspace(Args(entity="team", over="method.bandwidth,method, train.lr", dataset="no2"))._spec
    assert (spec["entity"], spec["project"]) == ("team", "cmixup")
    section: dict[str, Any] = spec["spec"]["section"]
    assert not section["settings"]["shouldAutoGeneratePanels"]
    curves, sweep, predictions = (one["panels"] for one in section["panelBankConfig"]["sections"])
    lines = [panel["config"] for panel in curves]
    assert [(line["xAxis"], line["metrics"]) for line in lines] == [("epoch", ["val/rmse"]), ("epoch", ["train/loss"])]
    swept = [f"config:{key}" for key in ("method.value.bandwidth", "method.value.name", "train.value.lr")]
    *points, parallel = (panel["config"] for panel in sweep)
    assert [(one["xAxis"], one["yAxis"]) for one in points] == [(axis, "summary:test/rmse") for axis in swept]
    assert [one["accessor"] for one in parallel["columns"]] == [*swept, "summary:val/rmse", "summary:test/rmse"]
    assert predictions[0]["config"]["panel2Config"]["exp"]["fromOp"]["inputs"]["key"]["val"] == "test/predictions"
    (runs,) = section["runSets"]
    assert [key["name"] for key in runs["grouping"]] == ["method.value.name", "method.value.bandwidth"]
    assert [(one["key"]["name"], one["value"]) for one in runs["filters"]["filters"]] == [("tags", ["no2"])]


@pytest.mark.parametrize(
    ("words", "denied", "message"),
    [
        (["entity=nobody"], "entity nobody\nnot found", "wandb: entity nobody not found"),
        ([], None, "entity must be given"),
        (["entity=me", "metric=rsme"], None, "metric must be one of"),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_one_line(
    words: list[str], denied: str | None, message: str, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    from wandb import errors

    def save(_: Any) -> None:
        raise errors.CommError(denied) if denied else AssertionError

    monkeypatch.setattr("wandb_workspaces.workspaces.Workspace.save", save)
    with pytest.raises(SystemExit) as stop:
        main(words)
    (line,) = capsys.readouterr().err.splitlines()
    assert (stop.value.code, line.startswith(f"error: {message}")) == (2, True), line
