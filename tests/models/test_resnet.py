import re
from pathlib import Path

import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.networks.resnet import ResNet
from cmixup.networks.vision import Torchvision, import_torchvision, load_weights

SHAPE = (3, 20, 24)


@pytest.mark.parametrize("depth", [18, 50])
def test_it_is_torchvisions_network(depth: int) -> None:
    theirs = getattr(import_torchvision("torchvision.models"), f"resnet{depth}")(num_classes=2).eval()
    ours, x = ResNet(SHAPE, 2, depth).eval(), torch.rand(2, *SHAPE)
    ours.load_state_dict(theirs.state_dict())
    results = [(y := model(x), *torch.autograd.grad(y.sum(), list(model.parameters()))) for model in (ours, theirs)]
    torch.testing.assert_close(*results)  # layer 4 ends at one pixel, where ours reads fewer taps


def test_channels_last_is_the_same_network_in_another_layout() -> None:
    """It starts from the same weights; states, and gradients of convolutions, lie in memory as asked for."""
    x, actual = torch.rand(4, *SHAPE), []
    for last in (False, True):
        torch.manual_seed(0)
        model = ResNet(SHAPE, 2, width=8, channels_last=last).double()
        state = model.encode(x.double(), "layer2")
        assert state.is_contiguous(memory_format=torch.channels_last) == last
        loss = model.decode(state, "layer2").square().sum()
        actual.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    for first, second in zip(*actual, strict=True):
        torch.testing.assert_close(first, second)


@pytest.mark.parametrize(("depth", "convs"), [(18, 2), (50, 3)])
def test_parameters_are_drawn_in_the_order_of_the_published_runs(depth: int, convs: int) -> None:
    """Twice over all layers, in a block first the shortcut: PyTorch's own start, then Kaiming's for convolutions."""
    torch.manual_seed(5)
    model = ResNet((8, 20, 20), 2, depth, width=2)
    after = torch.rand(1)
    shapes = {name: value.shape for name, value in model.state_dict().items() if value.ndim == 4}
    order = ["conv1.weight"]
    for stage in (1, 2, 3, 4):
        for k in range(sum(f"layer{stage}.{i}.conv1.weight" in shapes for i in range(10))):
            names = ["downsample.0", *(f"conv{j + 1}" for j in range(convs))]
            order += [f for n in names if (f := f"layer{stage}.{k}.{n}.weight") in shapes]
    assert set(order) == set(shapes)

    torch.manual_seed(5)
    for name in order:
        nn.init.kaiming_uniform_(torch.empty(shapes[name]), a=5**0.5)
    linear = nn.Linear(model.fc.in_features, 2)
    drawn = {n: nn.init.kaiming_normal_(torch.empty(shapes[n]), mode="fan_out", nonlinearity="relu") for n in order}
    for name, value in drawn.items():
        assert torch.equal(model.state_dict()[name], value), name
    assert torch.equal(model.fc.weight, linear.weight)
    assert torch.equal(model.fc.bias, linear.bias)
    assert torch.equal(torch.rand(1), after)


# ---- weights


def test_weights_are_taken_but_for_the_linear_layer(tmp_path: Path) -> None:
    source = ResNet((3, 9, 9), 1000, width=2)
    state = {k: v for k, v in source.state_dict().items() if not k.endswith("num_batches_tracked")}  # as old files
    torch.save(state, tmp_path / "w.pth")
    model = ResNet((3, 20, 20), 1, weights=str(tmp_path / "w.pth"), width=2)
    for name, value in model.state_dict().items():
        if name in state and not name.startswith("fc."):
            assert torch.equal(value, state[name]), name
    assert model.fc.weight.shape == (1, 16)
    (note,) = model.notes
    assert note.startswith("ResNet initialised from w.pth (SHA-256 ")


def test_a_random_start_is_noted_where_the_paper_has_weights() -> None:
    assert "at random: the paper starts from ImageNet weights" in ResNet((3, 9, 9), 1, width=1).notes[0]
    assert ResNet((8, 9, 9), 1, width=1).notes == ()


def test_weights_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "w.pth"
    torch.save(ResNet((3, 9, 9), 1, width=2).state_dict(), path)
    with pytest.raises(InputError, match=r"do not fit ResNet: .* size mismatch for conv1.weight"):
        ResNet((8, 9, 9), 1, weights=str(path), width=2)
    path.write_bytes(b"no tensors")
    with pytest.raises(InputError, match=r"w.pth cannot be read: it holds no state dict of tensors"):
        ResNet(SHAPE, 1, weights=str(path), width=2)


def test_files_are_read_as_torchvision_reads_them(tmp_path: Path) -> None:
    """A DenseNet's call its layers `norm.1`, and MNASNet's must say of which version they are."""
    models = import_torchvision("torchvision.models")
    for kind, sizes in ((models.DenseNet, (4, (1,), 4)), (models.MNASNet, (0.1,))):
        source, network = kind(*sizes), kind(*sizes)
        state = source.state_dict()
        for name in [name for name in state if ".denselayer" in name]:
            state[re.sub(r"(norm|conv)([12])\.", r"\1.\2.", name)] = state.pop(name)
        torch.save(state, tmp_path / "w.pth")
        load_weights(network, tmp_path / "w.pth", "classifier")
        theirs = source.state_dict()
        taken = {name: value for name, value in network.state_dict().items() if not name.startswith("classifier.")}
        assert all(torch.equal(value, theirs[name]) for name, value in taken.items())


def test_any_classifier_of_torchvisions_is_a_regressor(tmp_path: Path) -> None:
    """Its weights load but for the last layer, whatever its size; an error names weights that do not fit."""
    models = import_torchvision("torchvision.models")
    theirs = models.get_model("shufflenet_v2_x0_5", num_classes=7).eval()
    torch.save(theirs.state_dict(), tmp_path / "theirs.pth")
    model = Torchvision((3, 40, 40), 2, "shufflenet_v2_x0_5", str(tmp_path / "theirs.pth")).eval()
    x = torch.rand(2, 3, 40, 40)
    assert model(x).shape == (2, 2)
    torch.testing.assert_close(theirs.fc(model.encode(x, "features")), theirs(x))
    torch.testing.assert_close(model.decode(model.encode(x, "features"), "features"), model(x))
    assert "theirs.pth (SHA-256" in model.notes[0]
    with pytest.raises(InputError, match=r"in_shape must be \(3, height, width\) for torchvision, got \(8, 40, 40\)"):
        Torchvision((8, 40, 40), 2, "shufflenet_v2_x0_5")
    with pytest.raises(InputError, match=r"network vit_b_16 cannot take inputs \(3, 40, 40\): Wrong image height"):
        Torchvision((3, 40, 40), 2, "vit_b_16")
    for network, weights, message in (
        ("shufflenet", None, "'shufflenet' is none of torchvision's; the nearest name is 'shufflenet"),
        ("squeezenet1_0", None, "must end in one linear layer, which squeezenet1_0 does not"),
        ("mobilenet_v3_small", str(tmp_path / "theirs.pth"), "theirs.pth do not fit MobileNetV3: .*Missing key"),
    ):
        with pytest.raises(InputError, match=message):
            Torchvision((3, 40, 40), 2, network, weights)
