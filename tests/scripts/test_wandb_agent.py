"""A sweep of wandb, by its own agent and a pretended server that hands out the runs, read back from their files."""

import itertools
import os
import queue
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.driver.runs import load_reports
from tests.scripts.wandb_file import read_offline

REPO = Path(__file__).resolve().parents[2]
SWEEP = yaml.safe_load((REPO / "configs" / "wandb" / "bandwidth.yaml").read_text())
#: What the agent and what it starts leave in the environment.
LEFT = ("WANDB_RUN_ID", "WANDB_SWEEP_ID", "WANDB_SWEEP_PARAM_PATH", "WANDB_SERVICE", "WANDB_DIR", "WANDB_PROJECT")


class PretendedServer:
    """Hands out the runs of a grid, one after another, and nothing in between."""

    def __init__(self, runs: list[dict[str, Any]]):
        self.left = list(enumerate(runs))

    def heartbeat(self, api: Any, agent_id: str, metrics: Any, running: dict[str, bool]) -> list[dict[str, Any]]:
        if running or not self.left:
            return []
        number, values = self.left.pop(0)
        args = {name: {"value": value} for name, value in values.items()}
        return [{"type": "run", "run_id": f"given{number}", "program": SWEEP["program"], "args": args}]


@pytest.mark.slow
def test_an_agent_trains_a_grid_and_its_runs_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb
    from wandb import wandb_agent
    from wandb.apis.public import sweeps

    for name in [*LEFT, *(key for key in os.environ if key.startswith("WANDB_"))]:
        monkeypatch.setenv(name, "")  # set first, so that what the agent sets is undone
        monkeypatch.delenv(name)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep1")
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.chdir(REPO)
    asked = {name: SWEEP["parameters"][name]["values"][:2] for name in SWEEP["parameters"]}
    grid = [dict(zip(asked, values, strict=True)) for values in itertools.product(*asked.values())][::2]
    tiny = {"dataset.synthetic": True, "debug": "tiny", "out": str(tmp_path / "out")}
    server = PretendedServer([{**values, **tiny} for values in [*grid, grid[0]]])  # the first one is asked for again
    monkeypatch.setattr(sweeps, "_sweep_with_runs", lambda *_: {"config": yaml.safe_dump(SWEEP)})
    monkeypatch.setattr(sweeps, "_register_agent", lambda *_, **__: {"id": "agent1"})
    monkeypatch.setattr(sweeps, "_agent_heartbeat", server.heartbeat)
    monkeypatch.setattr(wandb, "Api", lambda: None)
    agent = wandb_agent.Agent(None, queue.Queue(), sweep_id="sweep1", count=3)
    monkeypatch.setattr(agent, "POLL_INTERVAL", 0.1)
    agent.run()

    found = {run.settings["run_id"]: run for run in map(read_offline, sorted(tmp_path.rglob("*.wandb")))}
    reports = {report["bandwidth"]: report for report in load_reports(tmp_path / "out" / "runs")}
    assert (agent._finished, agent._failed, sorted(found)) == (3, 0, ["given0", "given1", "given2"])
    assert sorted(reports) == sorted(values["method.bandwidth"] for values in grid)
    metric = SWEEP["metric"]["name"]
    for number, values in enumerate([*grid, grid[0]]):
        run, report = found[f"given{number}"], reports[values["method.bandwidth"]]
        assert run.settings["sweep_id"] == "sweep1"
        assert run.config["options"]["method.bandwidth"] == values["method.bandwidth"]
        assert run.summary[metric] == report["scores"]["val"]["rmse"]
        assert metric in run.history[0]
