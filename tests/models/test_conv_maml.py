import pytest
import torch
from torch import nn

from models.conv_maml import ConvMAML


def small(width: int = 3) -> ConvMAML:
    torch.manual_seed(0)
    return ConvMAML((1, 32, 32), 15, width=width)


def test_a_block_is_convolution_batch_normalisation_and_relu() -> None:
    block = small().decoder.block2
    nn.init.uniform_(block.shift)
    reference = nn.BatchNorm2d(3, eps=1e-3, track_running_stats=False)
    reference.weight.data.fill_(1.0)
    reference.bias.data.copy_(block.shift)
    x = torch.randn(6, 3, 14, 14)
    torch.testing.assert_close(block(x), reference(block.conv(x)).relu(), atol=1e-5, rtol=1e-4)


def test_statistics_are_the_batchs_own_in_evaluation_too() -> None:
    model, x = small(), torch.rand(6, 1, 32, 32)
    assert torch.equal(model.train()(x), model.eval()(x))
    assert not torch.allclose(model(x)[:3], model(x[:3]), atol=1e-4)
    assert not list(model.buffers())


def test_initialisation() -> None:
    torch.manual_seed(0)
    model = ConvMAML((1, 128, 128), 15)
    weight = model.decoder.block2.conv.weight
    assert weight.abs().max() <= (6 / (2 * 64 * 9)) ** 0.5
    assert weight.std().item() == pytest.approx((2 / (2 * 64 * 9)) ** 0.5, rel=0.02)
    assert model.decoder.out.weight.std().item() == pytest.approx(1 / 8, rel=0.3)
    assert all((p == 0).all() for name, p in model.named_parameters() if name.endswith(("bias", "shift")))


def test_the_encoders_blocks_change_nothing() -> None:
    encoder, x = small().encoder, torch.rand(37, 1, 32, 32)
    torch.testing.assert_close(encoder(x), encoder.out(encoder.maps(x)))
