from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from cmixup.networks.vision import import_torchvision
from models.r2plus1d_18 import R2Plus1D18, _trunk

SHAPE, N = (3, 4, 16, 16), 3


def model_and_inputs(**given: Any) -> tuple[R2Plus1D18, Tensor, Tensor]:
    torch.manual_seed(0)
    return R2Plus1D18(SHAPE, 1, **{"width": 4, **given}), torch.randn(N, *SHAPE), torch.randn(N, *SHAPE)


def test_parameters_are_torchvisions_but_for_the_last_layer() -> None:
    with torch.device("meta"):
        model = R2Plus1D18((3, 32, 112, 112), 1)
        theirs = import_torchvision("torchvision.models.video").r2plus1d_18(weights=None).state_dict()
    ours = model.state_dict()
    assert set(ours) == set(theirs)
    assert {name for name in ours if ours[name].shape != theirs[name].shape} == {"fc.weight", "fc.bias"}


def test_it_is_torchvisions_network() -> None:
    model, x, _ = model_and_inputs()
    trunk = _trunk(4)
    trunk.fc = torch.nn.Identity()
    trunk.load_state_dict({name: value for name, value in model.state_dict().items() if not name.startswith("fc.")})
    torch.testing.assert_close(model.eval().features(x), trunk.eval()(x))


def test_weights_are_read_but_for_the_last_layer(tmp_path: Path) -> None:
    other, _, _ = model_and_inputs()
    state = {name: value + 1 for name, value in other.state_dict().items()}
    state |= {"fc.weight": torch.zeros(400, 512), "fc.bias": torch.zeros(400)}  # as of Kinetics-400's classes
    torch.save(state, tmp_path / "w.pth")
    model = R2Plus1D18(SHAPE, 2, weights=str(tmp_path / "w.pth"), bias=55.6, width=4)
    assert all(torch.equal(v, state[n]) for n, v in model.state_dict().items() if not n.startswith("fc."))
    assert model.fc.bias.tolist() == pytest.approx([55.6, 55.6])
    assert model.notes == ()
    (note,) = other.notes
    assert "random weights instead of Kinetics-400" in note
