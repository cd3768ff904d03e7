import pytest
import torch
from torch import Tensor, nn

from cmixup.errors import InputError
from models.sequences import CHUNK, StackConv1d, StackGRU

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}


def loss_of(states: Tensor, last: Tensor) -> Tensor:
    """Reads every state with a weight of its own, and the last by another function."""
    return (states * torch.arange(states.numel()).view(states.shape).sin()).sum() + last.square().sum()


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    ("steps", "batch", "width", "hidden"),
    [(1, 1, 1, 1), (2, 3, 5, 4), (CHUNK, 7, 3, 6), (CHUNK + 1, 2, 4, 9), (3 * CHUNK - 1, 16, 8, 5)],
)
def test_the_gru_is_pytorchs(steps: int, batch: int, width: int, hidden: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    expected = nn.GRU(width, hidden).to(dtype)
    torch.manual_seed(0)
    ours = StackGRU(width, hidden).to(dtype)
    assert list(ours.state_dict()) == list(expected.state_dict())
    assert all(torch.equal(a, b) for a, b in zip(ours.parameters(), expected.parameters(), strict=True))
    x = torch.randn(steps, batch, width, dtype=dtype, requires_grad=True)
    other = x.detach().clone().requires_grad_()
    states, last = ours(x)
    known, known_last = expected(other)
    same = {"atol": TOLERANCE[dtype], "rtol": TOLERANCE[dtype]}
    torch.testing.assert_close(states, known, **same)
    torch.testing.assert_close(last, known_last[0], **same)
    loss_of(states, last).backward()
    loss_of(known, known_last[0]).backward()
    torch.testing.assert_close(x.grad, other.grad, **same)
    for mine, theirs in zip(ours.parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, **same)


def test_second_derivatives_are_refused() -> None:
    """They would be wrong in silence where the gradient stands beside other terms."""
    x = torch.randn(4, 2, 2, requires_grad=True)
    for out in (StackGRU(2, 3)(x)[1], StackConv1d(2, 3, 1)(x.mT)):
        with pytest.raises(InputError, match="create_graph must be False"):
            torch.autograd.grad(out.sum(), x, create_graph=True)


def test_a_graph_can_be_walked_twice() -> None:
    """Methods that look at gradients first keep the graph."""
    gru = StackGRU(2, 3)
    x = torch.randn(CHUNK + 1, 2, 2, requires_grad=True)
    loss = gru(x)[0].square().sum()
    (first,) = torch.autograd.grad(loss, x, retain_graph=True)
    assert torch.equal(first, torch.autograd.grad(loss, x)[0])


def test_a_faded_gradient_has_no_subnormal_numbers() -> None:
    torch.manual_seed(0)
    x = torch.randn(400, 2, 2, requires_grad=True)
    StackGRU(2, 3)(x)[1].sum().backward()
    assert x.grad is not None
    size = x.grad.abs()
    assert (size[:20] == 0).all()
    assert not ((size > 0) & (size < torch.finfo(torch.float32).tiny)).any()


@pytest.mark.parametrize(("channels", "kernel", "steps"), [(3, 6, 9), (1, 1, 4), (5, 4, 4)])
def test_the_convolution_is_pytorchs(channels: int, kernel: int, steps: int) -> None:
    torch.manual_seed(0)
    conv, x = StackConv1d(channels, 7, kernel), torch.randn(2, channels, steps, requires_grad=True)
    other = x.detach().clone().requires_grad_()
    expected = nn.functional.conv1d(other, conv.weight, conv.bias)
    torch.testing.assert_close(conv(x), expected)
    known = torch.autograd.grad(expected.square().sum(), [other, *conv.parameters()])
    torch.testing.assert_close(torch.autograd.grad(conv(x).square().sum(), [x, *conv.parameters()]), known)


def test_gradients_of_weights_are_the_same_without_that_of_the_input_and_with_two_threads() -> None:
    torch.manual_seed(0)
    gru, x = StackGRU(5, 6), torch.randn(CHUNK + 3, 31, 5)
    threads, gradients = torch.get_num_threads(), []
    try:
        for count, wanted in ((1, False), (1, True), (2, True)):
            torch.set_num_threads(count)
            gru.zero_grad()
            loss_of(*gru(x.detach().requires_grad_(wanted))).backward()
            gradients.append([p.grad.clone() for p in gru.parameters()])
            assert torch.get_num_threads() == count
    finally:
        torch.set_num_threads(threads)
    for alone, beside, shared in zip(*gradients, strict=True):
        assert torch.equal(alone, beside)
        torch.testing.assert_close(alone, shared)
