"""The penalties of IRM, IB-IRM, V-REx and CORAL against loops over domains."""

import itertools
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from cmixup.methods.coral import coral_penalty
from cmixup.methods.domains import Means, Outputs, Penalised
from cmixup.methods.ib_irm import bottleneck_penalty, ib_irm
from cmixup.methods.irm import irm, irm_penalty
from cmixup.methods.vrex import vrex, vrex_penalty
from cmixup.training.batch import Batch
from cmixup.training.method import squared_errors
from tests.helpers import fitted, make_run, make_split

pytestmark = pytest.mark.usefixtures("float64")
FEW = torch.tensor([4, 2, 4, 2, 2, 4, 9, 9, 9, 4])  # 3, 3 and 4 rows
MANY = torch.arange(30) % 3  # 10 rows each
MIXED = torch.cat([MANY, torch.full((4,), 7)])
BORDER = torch.arange(24) // 8  # 8 rows each, as in a batch of SkillCraft
BELOW = torch.arange(21) // 7


def outputs(domain: Tensor, d_y: int = 1, width: int = 5, seed: int = 0) -> Outputs:
    generator = torch.Generator().manual_seed(seed)
    f, y, h = (torch.randn(len(domain), k, generator=generator, dtype=torch.float64) for k in (d_y, d_y, width))
    return Outputs(f, y, squared_errors(f, y), h, Means(domain, torch.float64))


def slope(f: Tensor, y: Tensor) -> Tensor:
    """d/ds mean((s f - y)^2) at s = 1, by autograd."""
    s = torch.ones((), requires_grad=True)
    (gradient,) = torch.autograd.grad((s * f - y).square().mean(), s)
    return gradient


# ---- IRM


@pytest.mark.parametrize("d_y", [1, 3])
@pytest.mark.parametrize("domain", [FEW, MANY, MIXED, BORDER, BELOW], ids=["few", "many", "mixed", "8 rows", "7 rows"])
def test_irm_equals_autograd(domain: Tensor, d_y: int) -> None:
    batch = outputs(domain, d_y)
    by_domain = []
    for d in domain.unique():
        f, y = batch.prediction[domain == d], batch.y[domain == d]
        by_domain.append(slope(f, y) ** 2 if len(f) < 8 else slope(f[::2], y[::2]) * slope(f[1::2], y[1::2]))
    torch.testing.assert_close(irm_penalty(batch), torch.stack(by_domain).mean())


def loss_of(method: Penalised) -> Tensor:
    """The method's loss on a batch of mixed domains."""
    torch.set_default_dtype(torch.float32)
    run, split = fitted(make_run(method)), make_split(len(MIXED), seed=9)
    return method.loss(run.model, Batch(split.x, split.y, MIXED))


# ---- IB-IRM


@pytest.mark.parametrize("domain", [FEW, MIXED], ids=["few rows", "mixed"])
def test_the_bottleneck_is_the_mean_unbiased_variance(domain: Tensor) -> None:
    batch = outputs(domain)
    assert batch.features is not None
    by_domain = [batch.features[domain == d].var(dim=0).mean() for d in domain.unique()]
    torch.testing.assert_close(bottleneck_penalty(batch), torch.stack(by_domain).mean())


def test_ib_irm_adds_the_bottleneck_to_irm() -> None:
    ours, irms = loss_of(ib_irm(2, 1.0, 0, ib_weight=0.0)), loss_of(irm(2, 1.0, 0))
    torch.testing.assert_close(ours, irms, rtol=0, atol=0)
    more = loss_of(ib_irm(2, 1.0, 0, ib_weight=3.0, ib_anneal=0))
    run, split = make_run(irm(2)), make_split(len(MIXED), seed=9)
    by_domain = [run.model.features(split.x[d == MIXED]).var(dim=0).mean() for d in MIXED.unique()]
    torch.testing.assert_close(more - ours, 3 * torch.stack(by_domain).mean(), rtol=1e-4, atol=1e-6)


# ---- V-REx


@pytest.mark.parametrize("domain", [FEW, MIXED], ids=["few rows", "mixed"])
def test_vrex_is_the_population_variance_of_the_risks(domain: Tensor) -> None:
    batch = outputs(domain, 2)
    risks = torch.stack([batch.errors[domain == d].mean() for d in domain.unique()])
    torch.testing.assert_close(vrex_penalty(batch), risks.var(correction=0))


@pytest.mark.parametrize("method", [irm(2, 1e6, 0), vrex(2, 1e6, 0)], ids=["irm", "vrex"])
def test_penalties_are_of_32_bits_beside_steps_in_bfloat16(method: Penalised) -> None:
    f, y = torch.randn(2, 1024, 1, dtype=torch.float32)  # 512 rows a domain, which bfloat16 cannot count
    batch = Batch(f.bfloat16(), y, torch.arange(1024) % 2)
    expected = method.loss(nn.Identity(), replace(batch, x=batch.x.float()))
    with torch.autocast("cpu", torch.bfloat16):
        torch.testing.assert_close(method.loss(nn.Identity(), batch), expected, rtol=1e-4, atol=1e-7)


# ---- CORAL


def coral_of(h: Tensor, domain: Tensor) -> Tensor:
    nothing = torch.zeros(len(domain), 1)
    return coral_penalty(Outputs(nothing, nothing, nothing[:, 0], h, Means(domain, torch.float64)))


@pytest.mark.parametrize("width", [2, 40])
@pytest.mark.parametrize("domain", [FEW, MANY, MIXED], ids=["few rows", "many rows", "mixed"])
def test_coral_equals_a_loop_over_pairs(domain: Tensor, width: int) -> None:
    h, pairs = torch.randn(len(domain), width), []
    for one, other in itertools.combinations(domain.unique(), 2):
        a, b = h[domain == one], h[domain == other]
        of_means = (a.mean(dim=0) - b.mean(dim=0)).square().mean()
        pairs.append(of_means + (torch.cov(a.T) - torch.cov(b.T)).square().mean())
    torch.testing.assert_close(coral_of(h, domain), torch.stack(pairs).mean())


def test_a_domain_of_one_row_drawn_several_times_has_no_covariance() -> None:
    h = torch.randn(1, 3).repeat(4, 1)
    other = torch.randn(4, 3)
    expected = (h[0] - other.mean(dim=0)).square().mean() + torch.cov(other.T).square().mean()
    torch.testing.assert_close(coral_of(torch.cat([h, other]), torch.arange(2).repeat_interleave(4)), expected)
