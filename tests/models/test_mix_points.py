"""What every backbone keeps to at each of its mix points."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from cmixup.backbone import resolve_layer
from cmixup.errors import InputError
from cmixup.networks.fcn3 import FCN3
from cmixup.networks.resnet import ResNet
from models.conv_maml import ConvMAML
from models.deepdta import POINTS, DeepDTA
from models.lstnet import LSTNet
from models.r2plus1d_18 import R2Plus1D18
from models.realmlp import RealMLP
from models.tabm import TabM
from tests.helpers import forward_mixed

N = 3
VIDEO, IMAGE, PAIR = (3, 4, 16, 16), (3, 20, 24), (63 * 17 + 26 * 24,)
MAML, BLOCKS = ("input", "encoder", "block1", "block2", "block3"), ("input", "block1", "block2")
STAGES = ("input", "stem", "layer1", "layer2", "layer3", "layer4")
#: By name: how a backbone is made, the shape of an input, its mix points, and the one that "hidden" is, if it is one.
BACKBONES: dict[str, tuple[Callable[[], Any], tuple[int, ...], tuple[str, ...], str]] = {
    "conv_maml": (lambda: ConvMAML((1, 32, 32), 15, width=3), (1, 32, 32), MAML, ""),
    "deepdta": (lambda: DeepDTA(PAIR, 2, 17), PAIR, ("input", *POINTS), ""),
    "fcn3": (lambda: FCN3((5,), 2), (5,), BLOCKS, "block1"),
    "fcn3 of windows": (lambda: FCN3((4, 3), 2), (4, 3), BLOCKS, "block1"),
    "lstnet": (lambda: LSTNet((53, 3), 3, 6, 7), (53, 3), ("input", "conv"), "conv"),
    "lst_attn": (lambda: LSTNet((53, 3), 3, 6, 7, variant="attention"), (53, 3), ("input", "conv"), "conv"),
    "r2plus1d_18": (lambda: R2Plus1D18(VIDEO, 1, width=4), VIDEO, STAGES, "layer2"),
    "realmlp": (lambda: RealMLP((5,), 2, width=16, depth=2), (5,), BLOCKS, "block1"),
    "resnet18": (lambda: ResNet(IMAGE, 2, 18, width=2), IMAGE, STAGES, "layer4"),
    "resnet50": (lambda: ResNet(IMAGE, 2, 50, width=2), IMAGE, STAGES, "layer4"),
    "tabm": (lambda: TabM((5,), 2, k=4, width=16, depth=2), (5,), BLOCKS, "block1"),
}  # fmt: skip


#: Networks of the paper and of its release, and how many parameters each has; what WILDS calls ResNet50 has 42,517,889.
SIZES: list[tuple[Callable[[], Any], int]] = [
    (lambda: ConvMAML((1, 128, 128), 15), 844_916 + 111_489 + 256),  # encoder, decoder, and shifts of its normalisation
    (lambda: ConvMAML((1, 128, 128), 15, width=16), 844_916 + 160 + 3 * (16 * 16 * 9 + 16) + 17 + 4 * 16),
    (lambda: DeepDTA((63 * 100 + 26 * 1000,), 1), 94_528 + 118_464 + 180_736 + 129),
    *((lambda d=d: FCN3((d,), 1), n) for d, n in ((5, 17_409), (7, 17_665), (17, 18_945), (122, 32_385))),
    (lambda: LSTNet((168, 8), 8, 50, 50), 19_998),
    (lambda: LSTNet((168, 321), 321, 100, 100), 325_871),
    (lambda: LSTNet((168, 8), 8, variant="attention"), 19_998 - 855 - 8 * (120 - 50)),  # without the skip GRU (50 -> 5)
    (lambda: LSTNet((168, 8), 8, variant="attention", score="mlp"), 19_998 - 855 - 8 * (120 - 50) + 100 * 50 + 50 + 50),
    (lambda: R2Plus1D18((3, 32, 112, 112), 1), 31_300_638),
    (lambda: ResNet((3, 224, 224), 1), 11_177_025),
    (lambda: ResNet((8, 224, 224), 1), 11_192_705),
    (lambda: ResNet((8, 224, 224), 1, 50), 23_525_761),
]


@pytest.mark.parametrize(("make", "count"), SIZES)
def test_parameter_counts(make: Callable[[], Any], count: int) -> None:
    with torch.device("meta"):
        assert sum(p.numel() for p in make().parameters()) == count


def made(name: str) -> tuple[Any, Tensor, Tensor]:
    """A backbone in evaluation whose parameters and statistics are no longer those it begins with, and two inputs."""
    torch.manual_seed(0)
    make, shape, _, _ = BACKBONES[name]
    model = make()
    with torch.no_grad():
        for value in model.state_dict().values():
            if value.is_floating_point():
                value.add_(0.1 * torch.rand_like(value))
    return model.eval(), torch.rand(N, *shape), torch.rand(N, *shape)


def parts(state: Any) -> list[Tensor]:
    """The tensors of a state."""
    return [state] if isinstance(state, Tensor) else list(state)


@pytest.mark.parametrize(
    ("name", "layer"), [(n, layer) for n, (_, _, layers, _) in BACKBONES.items() for layer in layers]
)
def test_to_go_on_from_a_mix_point_is_the_whole_network(name: str, layer: str) -> None:
    """Also with both ends of lambda; and the state is left as it is, since it is used again."""
    model, x, other = made(name)
    whole, state = model(x), model.encode(x, layer)
    before = [part.clone() for part in parts(state)]
    torch.testing.assert_close(model.decode(state, layer), whole)
    assert all(torch.equal(one, two) for one, two in zip(parts(state), before, strict=True))
    torch.testing.assert_close(forward_mixed(model, x, other, torch.ones(N), layer), whole)
    torch.testing.assert_close(forward_mixed(model, x, other, torch.zeros(N), layer), model(other))


@pytest.mark.parametrize("name", BACKBONES)
def test_mix_points_are_named(name: str) -> None:
    (model, x, _), (_, _, layers, hidden) = made(name), BACKBONES[name]
    assert tuple(model.layers) == layers
    assert not hidden or resolve_layer(model, "hidden") == hidden
    for part in (model.encode, model.decode):
        with pytest.raises(InputError, match=f"layer must be one of {', '.join(layers)}, got 'nowhere'"):
            part(x, "nowhere")


@pytest.mark.parametrize("name", [name for name in BACKBONES if name not in ("lstnet", "lst_attn")])
def test_the_head_on_the_features_is_the_whole_network(name: str) -> None:
    """Of LSTNet all but its highway, as test_lstnet.py has it."""
    model, x, _ = made(name)
    torch.testing.assert_close(model.head(model.features(x)), model(x))


@pytest.mark.parametrize("name", BACKBONES)
def test_every_parameter_gets_a_gradient_where_hidden_states_are_mixed(name: str) -> None:
    model, x, other = made(name)
    forward_mixed(model, x, other, torch.rand(N), BACKBONES[name][2][1]).square().sum().backward()
    assert [key for key, parameter in model.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize("name", [name for name in BACKBONES if name != "conv_maml"])
def test_predictions_do_not_depend_on_the_batch(name: str) -> None:
    """But of the backbone whose statistics are the batch's own."""
    model, x, _ = made(name)
    torch.testing.assert_close(model(x), torch.cat([model(row[None]) for row in x]), atol=1e-5, rtol=1e-4)
