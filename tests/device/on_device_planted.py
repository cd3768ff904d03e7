"""A tensor that stays on the CPU is refused, wherever it stays: a test of the other tests on the pretended device."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cmixup import mix
from cmixup.methods.mix import Mix
from cmixup.model_stack import ModelStack
from cmixup.optim import Adam
from cmixup.training import stack_training
from cmixup.training.loader import BatchLoader
from models.fcn3 import FCN3
from tests.device.on_device_training import assert_trains
from tests.device.pretended import MixedDevices

Plant = Callable[[pytest.MonkeyPatch], None]
CPU = torch.device("cpu")


def after(owner: Any, name: str, change: Callable[..., Any]) -> Plant:
    """Plant a mistake: what `owner.name` returns is changed, given its first argument, too."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(owner, name)
        patch.setattr(owner, name, lambda *given, **more: change(right(*given, **more), given[0]))

    return plant


def fields(**changes: str) -> Callable[..., None]:
    """Return a change that moves attributes of an object, or the entries of a list, to the CPU."""

    def change(_: None, made: Any) -> None:
        for name in changes:
            value = getattr(made, name)
            setattr(made, name, [v.cpu() for v in value] if isinstance(value, list) else value.cpu())

    return change


def in_batch(name: str) -> Callable[..., Any]:
    def change(batches: Any, _: Any) -> Any:
        for batch in batches:
            if name in batch.draws:
                yield replace(batch, draws={**batch.draws, name: batch.draws[name].cpu()})
            else:
                yield replace(batch, **{name: getattr(batch, name).cpu()})

    return change


def restored(_: None, stack: ModelStack) -> None:
    stack._best = {name: value.cpu() for name, value in stack._best.items()}


PLANTS: dict[str, Plant] = {
    "the index of a gathering": after(BatchLoader, "__init__", fields(_start="")),
    "inputs": after(BatchLoader, "batches", in_batch("x")),
    "a constant of the model": after(FCN3, "_run", lambda state, _: state * torch.ones(state.shape[-1])),
    "the optimiser's moments": after(Adam, "__init__", fields(_mean="")),
    "the loss": after(Mix, "loss", lambda loss, _: loss + torch.zeros(2)),
    "the weights that are kept": after(ModelStack, "__init__", restored),
    "predictions": after(stack_training, "predict", lambda found, _: found.cpu()),
    "labels to score with": after(BatchLoader, "_shaped", lambda rows, _: rows.cpu()),
}


@pytest.mark.parametrize("name", PLANTS)
def test_a_tensor_left_behind_is_refused(
    name: str, device: torch.device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PLANTS[name](monkeypatch)
    with pytest.raises(MixedDevices):
        assert_trains("fcn3", ("cmixup", "method.layer=hidden"), 2, device, tmp_path)


def test_values_do_not_leave_the_device_by_themselves(device: torch.device) -> None:
    x = torch.ones(3, device=device)
    with pytest.raises(TypeError, match=r"Use Tensor\.cpu"):
        x.numpy()
    with pytest.raises(MixedDevices):
        x[torch.tensor([0, 1])]
    with pytest.raises(MixedDevices):
        torch.cat([x, torch.ones(3)])
    y: Tensor = mix(x, x, torch.tensor(0.5))
    assert y.device == device
    assert x.cpu().device == CPU
