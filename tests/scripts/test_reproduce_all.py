"""The walk through all artefacts: what it costs is said first, what is done is skipped, one failure stops nothing."""

from types import SimpleNamespace

import pytest

from scripts import reproduce_all
from scripts.records.artefacts import Artefact


def artefact(name: str, **changes) -> Artefact:
    return Artefact(name, name, name, f"reproduce-{name}", **changes)


@pytest.fixture
def walked(monkeypatch):
    """Three artefacts; returns the commands that were run. The second has nothing left to train, the third fails."""
    found = [
        reproduce_all.Step(artefact("a", arguments="PRESET=cpu"), 1.0, 0, 0),
        reproduce_all.Step(artefact("b", experiment="table1"), 0.0, 0, 2),
        reproduce_all.Step(artefact("c", experiment="table3"), 5.0, 4, 0),
        reproduce_all.Step(artefact("d", experiment="table2"), 50.0, 1, 0),
    ]
    commands: list[list[str]] = []

    def run(command, **_):
        commands.append(command)
        return SimpleNamespace(returncode=int(command[1] == "reproduce-c"))

    monkeypatch.setattr(reproduce_all, "steps", lambda *_: found)
    monkeypatch.setattr(reproduce_all.subprocess, "run", run)
    return commands


def test_what_is_done_is_skipped_and_a_failure_stops_nothing(walked, capsys):
    with pytest.raises(SystemExit) as stop:
        reproduce_all.main(["--seeds", "2", "--out", "/o"])
    assert stop.value.code == 1
    assert walked == [
        ["make", "reproduce-a", "PRESET=cpu", "SEEDS=2", "OUT=/o"],
        ["make", "reproduce-c", "SEEDS=2", "OUT=/o"],
        ["make", "reproduce-d", "SEEDS=2", "OUT=/o"],
    ]
    printed = capsys.readouterr()
    assert "error: 1 commands failed: reproduce-c" in printed.err
    assert printed.out.index("in all about 56 minutes on one core") < printed.out.index("make reproduce-a PRESET")


def test_a_limit_leaves_the_dear_out_and_a_dry_run_does_nothing(walked, capsys):
    reproduce_all.main(["--dry-run", "1", "--minutes", "10"])
    assert not walked
    printed = capsys.readouterr().out
    assert "in all about 6 minutes on one core" in printed
    assert "50.0 (not now)" in printed
    assert printed.count("done") == 1


def test_the_cheapest_comes_first_and_costs_are_those_of_the_cells(monkeypatch, tmp_path):
    cheap, dear = artefact("cheap", minutes=0.5), artefact("dear", experiment="table1")
    monkeypatch.setattr(reproduce_all, "load", lambda: [dear, cheap])
    job = SimpleNamespace(pending=[0, 1])
    monkeypatch.setattr(reproduce_all, "plan_cells", lambda *_: ({("airfoil", "erm", ""): job}, ["x: why"]))
    monkeypatch.setattr(reproduce_all, "minutes", lambda jobs: 3.0 * len(jobs))
    first, second = reproduce_all.steps(out=str(tmp_path))
    assert (first.artefact.name, first.done) == ("cheap", False)
    assert (second.minutes, second.pending, second.left_out, second.done) == (3.0, 2, 1, False)
