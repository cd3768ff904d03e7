import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cmixup.data import Split
from cmixup.training.losses import LabelScaling
from cmixup.training.model_stack import ModelStack
from cmixup.training.optim import descend
from models.lstnet import Attention, LSTNet, Skip
from tests.helpers import forward_mixed

WINDOW, M, N = 53, 3, 4  # 48 steps after the convolution: two whole jumps of 24


def model_and_inputs(variant: str = "skip", score: str = "dot") -> tuple[LSTNet, Tensor, Tensor]:
    torch.manual_seed(0)
    model = LSTNet((WINDOW, M), M, channels=6, hidden=7, variant=variant, score=score)
    return model, torch.rand(N, WINDOW, M), torch.rand(N, WINDOW, M)


def states_of(gru: nn.Module, x: Tensor) -> Tensor:
    """The states `(T, B, R)` that PyTorch's GRU with the same weights has over `(T, B, C)`."""
    theirs = nn.GRU(x.shape[2], gru.hidden_size)
    theirs.load_state_dict(gru.state_dict())
    return theirs(x)[0]


def conv_by_hand(model: LSTNet, x: Tensor) -> Tensor:
    """Conv2d with one input channel and a kernel over all series, as the original has it."""
    kernel = model.conv.weight.permute(0, 2, 1)[:, None]  # (C, 1, 6, m)
    return torch.relu(nn.functional.conv2d(x[:, None], kernel, model.conv.bias)).squeeze(-1)


def highway_by_hand(model: LSTNet, x: Tensor) -> Tensor:
    weight, bias = model.highway.weight[0], model.highway.bias
    return torch.stack([(x[:, -24:, k] * weight).sum(dim=1) + bias for k in range(M)], dim=1)


def test_several_steps_of_some_series_by_hand() -> None:
    """Labels of the first step come first; each step has a highway of its own, from its series' recent values."""
    model, x = LSTNet((WINDOW, M), 3 * (M - 1), channels=6, hidden=7, steps=3).eval(), torch.rand(N, WINDOW, M)
    highway = torch.einsum("bts,kt->bks", x[:, -24:, :-1], model.highway.weight) + model.highway.bias[:, None]
    torch.testing.assert_close(model(x), model.head(model.features(x)) + highway.flatten(1))


# ---- mix points


def test_mixing_after_the_convolution_by_hand() -> None:
    """Conv maps are mixed after ReLU, before both GRUs; the highway gets the mixed input.

    Features are [r, s]: s runs one GRU over steps k, k + 24, ... of the last 48 steps for each k, and joins their last
    states.
    """
    model, x, other = model_and_inputs()
    assert isinstance(model.eval().branch, Skip)
    lam = torch.tensor([0.3, 0.9, 0.5, 0.0])
    weight = lam[:, None, None]
    convolved = weight * conv_by_hand(model, x) + (1 - weight) * conv_by_hand(model, other)
    in_time = convolved.permute(2, 0, 1)
    days = [states_of(model.branch.gru, in_time[-48:][k::24])[-1] for k in range(24)]
    features = torch.cat([states_of(model.gru, in_time)[-1], *days], dim=1)
    expected = features @ model.out.weight.T + model.out.bias
    expected = expected + highway_by_hand(model, weight * x + (1 - weight) * other)
    torch.testing.assert_close(forward_mixed(model, x, other, lam, "conv"), expected)
    assert not torch.allclose(forward_mixed(model, x, other, lam, "input"), expected, atol=1e-4)


def test_the_two_conv_passes_have_separate_dropout_masks() -> None:
    model, x, _ = model_and_inputs()
    first, second = model.encode(x, "conv")[0], model.encode(x, "conv")[0]
    dropped = [(state == 0) & (conv_by_hand(model, x) > 0) for state in (first, second)]
    assert not torch.equal(*dropped)
    kept = ~dropped[0]
    torch.testing.assert_close(first[kept], conv_by_hand(model, x)[kept] / 0.8)


# ---- attention


def test_cosine_attention_by_hand() -> None:
    states = torch.tensor([[2.0, 0.0], [0.0, 3.0], [0.0, 5.0]])[:, None]
    powers = [1.0, math.e, math.e]
    expected = torch.tensor([p / sum(powers) for p in powers])
    torch.testing.assert_close(Attention(2, "cosine").weights(states)[:, 0], expected)


def test_the_attention_variant_by_hand() -> None:
    model, x, _ = model_and_inputs("attention")
    model.eval()
    states = states_of(model.gru, conv_by_hand(model, x).permute(2, 0, 1))
    weights = torch.einsum("tbr,br->tb", states, states[-1]).softmax(dim=0)
    features = torch.cat([states[-1], torch.einsum("tb,tbr->br", weights, states)], dim=1)
    torch.testing.assert_close(model.features(x), features)
    expected = features @ model.out.weight.T + model.out.bias + highway_by_hand(model, x)
    torch.testing.assert_close(model(x), expected)


# ---- stacks


@pytest.mark.parametrize(
    ("variant", "score", "steps"), [("skip", "dot", 1), ("attention", "dot", 2), ("attention", "mlp", 1)]
)
def test_a_stack_trains_as_its_models_alone(variant: str, score: str, steps: int) -> None:
    """Three steps of Adam on mixed hidden states, without dropout; then predictions, features and mix points."""
    x, other, lam = torch.rand(3, N, WINDOW, M), torch.rand(3, N, WINDOW, M), torch.rand(3, N)
    models = []
    for e in range(3):
        torch.manual_seed(e)
        given: dict[str, Any] = {"variant": variant, "score": score, "steps": steps}
        models.append(LSTNet((WINDOW, M), steps * M, channels=6, hidden=7, **given).eval())
    together = ModelStack([copy.deepcopy(model) for model in models], torch.device("cpu"))
    singles = [ModelStack([model], torch.device("cpu")) for model in models]
    for _ in range(3):
        loss = forward_mixed(together.model, x, other, lam, "conv").square().mean(dim=(-2, -1))
        alone = [
            forward_mixed(single.model, x[e], other[e], lam[e], "conv").square().mean()
            for e, single in enumerate(singles)
        ]
        torch.testing.assert_close(loss, torch.stack(alone))
        descend(loss, together.optimizer)
        for part, single in zip(alone, singles, strict=True):
            descend(part, single.optimizer)
    stack = together.model
    assert isinstance(stack, LSTNet)
    for e, model in enumerate(models):
        torch.testing.assert_close(stack(x)[e], model(x[e]), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(stack.features(x)[e], model.features(x[e]), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(
            stack.head(stack.features(x))[e], model.head(model.features(x[e])), atol=1e-5, rtol=1e-4
        )
        for mine, theirs in zip(stack.encode(x, "conv"), model.encode(x[e], "conv"), strict=True):
            torch.testing.assert_close(mine[e], theirs, atol=1e-5, rtol=1e-4)


def test_its_highway_follows_labels_in_the_unit_of_its_input_but_not_each_in_a_unit_of_its_own() -> None:
    """Tomorrow is today: raw and centred labels have an exact answer, those divided by each series' std have none."""
    x = torch.randn(200, WINDOW, M, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x = x * torch.tensor([1.0, 2.0, 4.0]) + torch.tensor([3.0, 0.0, -5.0])
    y, model, error = x[:, -1], LSTNet((WINDOW, M), M, 2, 2).double().eval().requires_grad_(False), {}
    for parameter in model.parameters():
        parameter.zero_()
    recent = x[:, -24:].mT.flatten(0, 1)  # (N m, 24), a row a series of a window
    given = torch.cat([recent, torch.eye(M, dtype=x.dtype).repeat(len(x), 1)], dim=1)
    for form in ("none", "centre", "standard"):  # weights, and a bias for each series, with the least squared loss
        labels = LabelScaling.fit(form, [Split(x, y, torch.zeros(len(x), dtype=torch.int64))])
        best = torch.linalg.lstsq(given, labels.scale(y).reshape(-1, 1)).solution
        model.highway.weight[0] = best[:24, 0]
        model.out.bias.copy_(best[24:, 0])
        error[form] = float((labels.to_labels(model(x)) - y).abs().max())
    assert max(error["none"], error["centre"]) < 1e-9
    assert error["standard"] > 1
