import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.methods.base import squared_error, squared_errors
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from cmixup.training.trainer import train
from models.tabm import TabM
from tests.helpers import make_run, settings
from tests.models.test_realmlp import check_bad_arguments, check_stack


def made(**changes: int | float) -> tuple[TabM, torch.Tensor]:
    torch.manual_seed(0)
    return TabM((5,), 2, **{"k": 4, "width": 16, "depth": 2, "dropout": 0.0, **changes}), torch.randn(7, 5)  # type: ignore[arg-type]


def randomised(model: nn.Module) -> None:
    """Give every parameter a value that the beginning does not have, so that none can be left out."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter))


def test_it_is_the_equation_of_the_paper() -> None:
    model, x = made()
    randomised(model)
    members = []
    for i in range(4):
        state = x
        for block in model.blocks:
            weight = torch.diag(block.s[i]) @ block.weight @ torch.diag(block.r[i])  # rank-one: W times s r^T
            state = torch.relu(state @ weight.T + block.bias[i])
        members.append(state @ model.weight[i] + model.bias[i])
    expected = torch.stack(members)
    torch.testing.assert_close(model.train()(x), expected)
    torch.testing.assert_close(model.eval()(x), expected.mean(dim=0))


def test_only_the_first_adapter_begins_at_random_signs() -> None:
    model, _ = made(k=8)
    first, second = model.blocks
    assert set(first.r.flatten().tolist()) == {-1.0, 1.0}
    assert all(bool((each == 1).all()) for each in (first.s, second.r, second.s))
    for block in model.blocks:
        assert bool((block.bias == block.bias[0]).all())
        assert block.weight.abs().max().item() <= block.weight.shape[1] ** -0.5


def test_every_member_is_fitted_by_its_own_error() -> None:
    model, x = made()
    y = torch.randn(7, 2)
    each = model.train()(x)
    expected = torch.stack([squared_error(member, y) for member in each]).mean()
    torch.testing.assert_close(squared_error(each, y), expected)
    weight = torch.rand(7)
    torch.testing.assert_close(squared_error(each, y, weight), (weight * squared_errors(each, y)).sum() / weight.sum())
    with pytest.raises(InputError, match="same shape"):
        squared_error(each[..., :1], y)


@pytest.mark.parametrize("layer", ["input", "block1", "block2"])
def test_training_mixes_at_a_mix_point_and_moves_every_parameter(layer: str) -> None:
    run = make_run(Mix(LabelDistance(0.5), Beta(2.0), layer), model=lambda d, d_y: TabM((d,), d_y, 4, 16, depth=2))
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    (result,) = train([run], settings())
    assert not result.failure
    assert result.predictions["test"][""].ndim == 2
    assert all(not torch.equal(value, before[name]) for name, value in result.state_dict.items())


def test_a_stack_gives_the_numbers_of_each_alone() -> None:
    check_stack(lambda d, d_y: TabM((d,), d_y, 4, 16, depth=2, dropout=0.0))


test_bad_arguments = check_bad_arguments(TabM, "k")
