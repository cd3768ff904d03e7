import numpy as np
import pytest
import torch

from cmixup.batch import Batch
from cmixup.errors import InputError
from cmixup.methods.base import squared_error
from cmixup.mixing import Linear, mix
from models.fcn3 import FCN3
from tests.helpers import composed, make_data, make_split


@pytest.mark.parametrize("shape", [(), (3,), (3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("lead", [(6,), (2, 6)])
def test_lambda_broadcasts_over_features_of_any_rank(lead: tuple[int, ...], shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn(*lead, *shape, generator=generator), torch.randn(*lead, *shape, generator=generator)
    lam = torch.rand(lead, generator=generator)
    mixed = mix(first, second, lam)
    assert mixed.shape == first.shape
    for index in torch.cartesian_prod(*(torch.arange(n) for n in lead)).reshape(-1, len(lead)).tolist():
        at = tuple(index)
        torch.testing.assert_close(mixed[at], lam[at] * first[at] + (1 - lam[at]) * second[at])


def test_tuples_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match="as long on both sides"):
        mix((torch.zeros(2), torch.zeros(2)), (torch.zeros(2),), torch.ones(2))


def test_lists_and_dictionaries_mix_entry_by_entry() -> None:
    first, second = {"a": [torch.zeros(2)], "b": None}, {"a": [torch.full((2,), 4.0)], "b": None}
    mixed = mix(first, second, torch.tensor([0.75, 0.5]))
    assert mixed["a"][0].tolist() == [1.0, 2.0]
    assert mixed["b"] is None


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("kind", ["float64", "float32", "same", "numpy", "number", "numpy number"])
def test_any_dtype_of_states_and_lambda(dtype: torch.dtype, kind: str) -> None:
    """The result has the states' dtype, and is the closed form in float64 but for one rounding."""
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(6, 3, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2))
    weight = torch.rand(6, generator=generator, dtype=torch.float64)
    lam = {
        "float64": weight,
        "float32": weight.float(),
        "same": weight.to(dtype),
        "numpy": weight.numpy(),
        "number": 0.3,
        "numpy number": np.float64(0.3),
    }[kind]
    mixed = mix(first, second, lam)
    assert mixed.dtype == dtype
    exact = torch.as_tensor(lam, dtype=torch.float64).reshape(-1, 1)
    expected = exact * first.double() + (1 - exact) * second.double()
    eps = torch.finfo(dtype).eps
    rtol, atol = (0.51 * eps, 1e-6) if dtype.itemsize == 2 else (2 * eps, max(4 * eps, 1e-7 * (kind == "float32")))
    torch.testing.assert_close(mixed.double(), expected, rtol=rtol, atol=atol)


def test_one_weight_for_all_and_one_for_each_model_of_a_stack() -> None:
    first, second = torch.ones(2, 3, 4), torch.zeros(2, 3, 4)
    assert (mix(first, second, torch.tensor(0.25)) == 0.25).all()
    assert mix(first, second, torch.tensor([0.25, 0.5]))[:, 0, 0].tolist() == [0.25, 0.5]


def test_hidden_states_under_autocast() -> None:
    layer, x = torch.nn.Linear(3, 3), torch.randn(4, 3)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        state = layer(x)
        assert state.dtype == torch.bfloat16
        assert mix(state, state.flip(0), torch.rand(4)).dtype == torch.bfloat16


def test_it_can_be_vectorised() -> None:
    first, second, lam = torch.randn(5, 4, 3), torch.randn(5, 4, 3), torch.rand(5, 4)
    assert torch.equal(torch.func.vmap(mix)(first, second, lam), mix(first, second, lam))


@pytest.mark.parametrize("lam", [1.0, 0.0])
def test_lambda_one_and_zero_are_exact(lam: float) -> None:
    first, second = torch.randn(5, 3, generator=torch.Generator().manual_seed(0)), torch.full((5, 3), 1e3)
    assert torch.equal(mix(first, second, torch.full((5,), lam)), first if lam else second)


def test_nothing_is_changed_in_place() -> None:
    first, second, lam = torch.ones(2, 3), torch.zeros(2, 3), torch.tensor([0.5, 0.5])
    mix(first, second, lam)
    assert first.unique().tolist() == [1.0]
    assert second.unique().tolist() == [0.0]


def test_linear_returns_the_label_weight() -> None:
    lam = torch.tensor([0.25, 1.0])
    mixed, weight = Linear()(torch.zeros(2, 2), torch.ones(2, 2), {"lam": lam})
    assert torch.equal(weight, lam)
    assert mixed.tolist() == [[0.75, 0.75], [0.0, 0.0]]


def mixed_batch(d_y: int) -> tuple[FCN3, Batch]:
    torch.manual_seed(0)
    rows, partners = make_split(12, d_y=d_y), make_split(12, d_y=d_y, seed=1)
    theirs = Batch(partners.x.double(), partners.y.double(), partners.domain)
    lam = torch.rand(12, dtype=torch.float64)
    return FCN3((3,), d_y).double(), Batch(rows.x.double(), rows.y.double(), rows.domain, theirs, {"lam": lam})


@pytest.mark.parametrize("d_y", [1, 3])
def test_mixed_labels_against_mixed_losses(d_y: int) -> None:
    """The two losses differ by lam (1 - lam) |y_i - y_j|^2, which has no gradient."""
    model, batch = mixed_batch(d_y)
    assert batch.partner is not None
    method = composed("mixup")
    method.fit(make_data(d_y=d_y), model, None)
    loss = method.loss(model, batch)
    lam = batch.draws["lam"]
    prediction = model(mix(batch.x, batch.partner.x, lam))
    first, second = ((prediction - y).square().mean(dim=-1) for y in (batch.y, batch.partner.y))
    mixed_losses = (lam * first + (1 - lam) * second).mean()
    gap = (lam * (1 - lam) * (batch.y - batch.partner.y).square().mean(dim=-1)).mean()
    torch.testing.assert_close(loss, mixed_losses - gap, rtol=1e-12, atol=0)
    assert gap > 1e-3
    parameters = list(model.parameters())
    ours, theirs = (torch.autograd.grad(each, parameters, retain_graph=True) for each in (loss, mixed_losses))
    assert any(g.abs().max() > 1e-3 for g in ours)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-13)


def test_a_flat_target_does_not_broadcast() -> None:
    with pytest.raises(InputError, match=r"same shape, got \(4, 1\) and \(4,\)"):
        squared_error(torch.zeros(4, 1), torch.zeros(4))
