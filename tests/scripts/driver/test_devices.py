"""Runs of one command are spread over all GPUs, each worker on its own."""

import pytest
import torch

from scripts.plan.schedule import worker_device


def test_workers_take_the_gpus_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    names = [f"SpawnProcess-{number}" for number in range(2, 8)]
    given = [worker_device(torch.device("cuda"), name) for name in names]
    assert sorted(map(str, given)) == sorted(2 * [f"cuda:{k}" for k in range(3)])
    for fixed in (torch.device("cpu"), torch.device("cuda:1")):
        assert worker_device(fixed, names[0]) == fixed
    assert worker_device(torch.device("cuda"), "MainProcess") == torch.device("cuda")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert worker_device(torch.device("cuda"), names[0]) == torch.device("cuda")
