"""Runs of one command are spread over all GPUs, each worker on its own."""

import pytest
import torch

from scripts.plan.schedule import worker_device, workers_at_once


def test_workers_take_the_gpus_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    names = [f"SpawnProcess-{number}" for number in range(2, 8)]
    for word in ("device=auto", "device=cuda"):
        given = [worker_device(["seed=1", word], name) for name in names]
        assert sorted(words[-1] for words in given) == sorted(2 * [f"device=cuda:{k}" for k in range(3)])
        assert all(words[:-1] == ["seed=1"] for words in given)
    for word in ("device=cpu", "device=cuda:1"):
        assert worker_device(["seed=1", word], names[0]) == ["seed=1", word]
    assert worker_device(["seed=1"], "MainProcess") == ["seed=1"]
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    assert worker_device(["device=auto"], names[0]) == ["device=auto"]


def test_a_gpu_has_one_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    assert workers_at_once(cpu=False) == 3
