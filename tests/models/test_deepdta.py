from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cmixup.backbone import resolve_layer, resolve_layers
from cmixup.errors import InputError
from models.deepdta import POINTS, DeepDTA
from tests.helpers import composed, epoch_batches, make_data, make_run

DRUG, PROTEIN = 17, 24  # little more than the convolutions need
WIDTH = 63 * DRUG + 26 * PROTEIN


def model_and_inputs(n: int = 3) -> tuple[DeepDTA, Tensor, Tensor]:
    torch.manual_seed(0)
    return DeepDTA((WIDTH,), 2, DRUG), torch.rand(n, WIDTH), torch.rand(n, WIDTH)


def test_it_is_the_network_of_the_spec() -> None:
    model, x, _ = model_and_inputs()
    weights = model.state_dict()
    features = []
    for tower, part, symbols in (("drug", x[:, : 63 * DRUG], 63), ("protein", x[:, 63 * DRUG :], 26)):
        h = part.reshape(3, symbols, -1)
        for k in range(3):
            h = torch.relu(
                nn.functional.conv1d(h, weights[f"{tower}.convs.{k}.weight"], weights[f"{tower}.convs.{k}.bias"])
            )
        features.append(h.max(dim=2).values @ weights[f"{tower}.out.weight"].T + weights[f"{tower}.out.bias"])
    h = torch.cat(features, dim=1)
    for k in range(3):
        h = h @ weights[f"predictor.{k}.weight"].T + weights[f"predictor.{k}.bias"]
    torch.testing.assert_close(model.features(x), h)
    torch.testing.assert_close(model(x), h @ weights["out.weight"].T + weights["out.bias"])
    kernels = [[conv.kernel_size[0] for conv in tower.convs] for tower in (model.drug, model.protein)]
    assert kernels == [[4, 6, 8], [4, 8, 12]]


# ---- mix points


def test_mix_points_are_by_tower() -> None:
    model, x, _ = model_and_inputs()
    assert list(POINTS.values()) == [(d, p) for d in (1, 2, 3) for p in (1, 2, 3)]
    drug, protein = model.encode(x, "conv1-conv3")
    assert drug.shape == (3, 32, DRUG - 3)
    assert protein.shape == (3, 96, PROTEIN - 3 - 7 - 11)
    both = model.encode(x, "conv2")
    assert [m.shape[1] for m in both] == [64, 64]


def test_the_hidden_point_is_any_of_nine() -> None:
    model, _, _ = model_and_inputs()
    assert resolve_layers(model, "hidden") == resolve_layers(model, "conv") == tuple(POINTS)
    assert resolve_layers(model, "conv3-conv1") == ("conv3-conv1",)
    assert resolve_layers(model, "input") == ("input",)
    for layer in ("conv4", "conv1-conv4", "block1"):
        with pytest.raises(InputError, match="layer must be a mix point of DeepDTA"):
            resolve_layers(model, layer)
    with pytest.raises(InputError, match="layer must be"):
        resolve_layer(model, "hidden")
    for call in (model.encode, model.decode):
        with pytest.raises(InputError, match="layer must be one of input, conv1"):
            call(torch.rand(1, WIDTH), "conv")


class Chooser(DeepDTA):
    """DeepDTA over repeated short rows, so that the tests' own data fit."""

    def __init__(self, width: int, d_y: int):
        super().__init__((WIDTH,), d_y, DRUG)
        self.seen: list[str] = []

    def encode(self, x: Tensor, layer: str) -> Any:
        self.seen.append(layer)
        return super().encode(x.repeat(1, WIDTH // x.shape[1] + 1)[:, :WIDTH], layer)


def test_every_batch_draws_one_point_for_both_of_its_halves() -> None:
    run = make_run(composed("manifold_mixup"), data=make_data(sizes=(96, 20, 17)), model=Chooser)
    _, batches = epoch_batches(run, batch_size=2)
    drawn = [b.draws["layer"] for b in batches]
    assert all((point == point[0]).all() for point in drawn)
    model = run.model
    assert isinstance(model, Chooser)
    for batch in batches:
        assert torch.isfinite(run.method.loss(model, batch))
    names = list(POINTS)
    assert model.seen == [names[int(point[0])] for point in drawn for _ in range(2)]
    assert set(model.seen) == set(POINTS)  # 48 batches: a point is left out with probability 9 (8/9)^48 = 3 %
