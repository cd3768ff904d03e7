import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.model_stack import stack_modules
from models.fcn3 import FCN3
from tests.helpers import forward_mixed

LAYERS = ("input", "block1", "block2")


@pytest.mark.parametrize(("d", "count"), [(5, 17_409), (7, 17_665), (17, 18_945), (122, 32_385)])
def test_parameter_counts(d: int, count: int) -> None:
    """Three linear layers: d x 128, 128 x 128 and 128 x d_y weights, and their biases."""
    assert sum(p.numel() for p in FCN3((d,), 1).parameters()) == count


@pytest.mark.parametrize(("width", "depth"), [(512, 2), (64, 1), (32, 4)])
def test_width_and_depth_are_options(width: int, depth: int) -> None:
    torch.manual_seed(0)
    model, x = FCN3((5,), 2, width=width, depth=depth), torch.randn(7, 5)
    blocks = [getattr(model, f"linear{k}") for k in range(1, depth + 1)]
    assert [tuple(each.weight.shape) for each in blocks] == [(width, 5), *[(width, width)] * (depth - 1)]
    expected = x
    for each in blocks:
        expected = nn.functional.leaky_relu(nn.functional.linear(expected, each.weight, each.bias), 0.1)
    torch.testing.assert_close(model(x), nn.functional.linear(expected, model.out.weight, model.out.bias))
    assert model.layers == ("input", *(f"block{k}" for k in range(1, depth + 1)))
    with pytest.raises(InputError, match=rf"layer must be one of input.*, got 'block{depth + 1}'"):
        model.encode(x, f"block{depth + 1}")
    for bad in ({"width": 0}, {"depth": 0}):
        with pytest.raises(InputError, match="must be"):
            FCN3((5,), 2, **bad)


def test_initialisation_is_pytorchs_default() -> None:
    torch.manual_seed(3)
    ours = FCN3((5,), 1)
    torch.manual_seed(3)
    theirs = [nn.Linear(5, 128), nn.Linear(128, 128), nn.Linear(128, 1)]
    for one, other in zip((ours.linear1, ours.linear2, ours.out), theirs, strict=True):
        assert torch.equal(one.weight, other.weight)
        assert torch.equal(one.bias, other.bias)


@pytest.mark.parametrize("layer", LAYERS)
def test_a_stack_predicts_as_its_models_do(layer: str) -> None:
    torch.manual_seed(0)
    models = [FCN3((5,), 2) for _ in range(3)]
    x, other, lam = torch.randn(3, 7, 5), torch.randn(3, 7, 5), torch.rand(3, 7)
    together = stack_modules(models)
    assert isinstance(together, FCN3)
    for e, model in enumerate(models):
        torch.testing.assert_close(together(x)[e], model(x[e]), atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(
            forward_mixed(together, x, other, lam, layer)[e],
            forward_mixed(model, x[e], other[e], lam[e], layer),
            atol=1e-6,
            rtol=1e-5,
        )
