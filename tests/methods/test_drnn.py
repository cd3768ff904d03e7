"""DRNN."""

import pytest
import torch

from cmixup.backbone import mlp
from cmixup.methods.drnn import DRNN, cross_entropy, reverse
from cmixup.seeding import torch_seed
from models.fcn3 import FCN3
from tests.helpers import epoch_batches, fitted, make_run, make_stack


@pytest.mark.parametrize("c", [1.0, 0.25, 0.0])
def test_the_gradient_is_reversed_for_the_features_only(c: float) -> None:
    with torch_seed(0):
        classifier, features = mlp(6, 8, 8, 3), torch.randn(12, 6, requires_grad=True)
    place = torch.arange(12) % 3
    wanted = [features, *classifier.parameters()]
    plain = torch.autograd.grad(cross_entropy(classifier(features), place), wanted)
    ours = torch.autograd.grad(cross_entropy(classifier(reverse(features, c)), place), wanted)
    assert plain[0].abs().sum() > 0
    assert torch.equal(ours[0], -c * plain[0])
    assert all(torch.equal(a, b) for a, b in zip(ours[1:], plain[1:], strict=True))
    assert torch.equal(reverse(features, c), features)


def test_the_loss_is_the_risk_plus_the_weighted_cross_entropy() -> None:
    method = DRNN(2, 0.3, reversal=0.5)
    run = make_run(method)
    _, batches = epoch_batches(run)
    stack, _ = make_stack([run])
    model, batch = run.model, batches[0]
    assert isinstance(model, FCN3)
    logits = method.classifier(model.features(batch.x))
    entropy = torch.nn.functional.cross_entropy(logits, batch.domain)
    risk = torch.nn.functional.mse_loss(model(batch.x), batch.y)
    loss = method.loss(stack.model, batch)
    torch.testing.assert_close(loss, risk + 0.3 * entropy)

    encoder = list(model.linear1.parameters())
    towards, away = torch.autograd.grad(risk, encoder), torch.autograd.grad(entropy, encoder, retain_graph=True)
    for ours, a, b in zip(torch.autograd.grad(loss, encoder, retain_graph=True), towards, away, strict=True):
        torch.testing.assert_close(ours, a - 0.5 * 0.3 * b)
    theirs = list(method.classifier.parameters())
    plain = torch.autograd.grad(entropy, theirs)
    for ours, b in zip(torch.autograd.grad(loss, theirs), plain, strict=True):
        torch.testing.assert_close(ours, 0.3 * b)


def test_the_factor_of_the_reversed_gradient_grows_over_the_ramp() -> None:
    method = fitted(make_run(DRNN(2, reversal=2.0, ramp=10))).method
    factors = []
    for method.steps in (0, 5, 9, 10, 11):
        factors.append(method.factor)
    p = torch.tensor([0, 0.5, 0.9], dtype=torch.float64)
    assert factors[:3] == pytest.approx((2 * (2 / (1 + torch.exp(-10 * p)) - 1)).tolist())
    assert factors[3:] == [2.0, 2.0]
    assert fitted(make_run(DRNN(2))).method.factor == 1.0
