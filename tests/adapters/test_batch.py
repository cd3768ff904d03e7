"""`CMixup`: its bandwidth, its streams, its forms of a batch."""

import copy
import pickle
import warnings
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
import torch

from cmixup import CMixup, bandwidth_for_fraction


def rows(n: int = 64, d: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.eye(n), torch.randn(n, d, generator=generator)


def test_return_mix_tells_the_closed_form() -> None:
    x, y = rows()
    mixed_x, mixed_y, (partner, lam) = CMixup(0.5, seed=0, return_mix=True)(x, y)
    torch.testing.assert_close(mixed_x, lam[:, None] * x + (1 - lam[:, None]) * x[partner])
    torch.testing.assert_close(mixed_y, lam[:, None] * y + (1 - lam[:, None]) * y[partner])
    assert partner.dtype == torch.int64
    assert lam.dtype == torch.float32
    batch, mixed = CMixup(0.5, seed=0, return_mix=True)({"x": x, "y": y})
    assert torch.equal(batch["x"], mixed_x)
    assert torch.equal(mixed.partner, partner)


def test_return_mix_in_evaluation_is_each_row_itself() -> None:
    x, y = rows(5)
    same_x, same_y, mixed = CMixup(0.5, return_mix=True).eval()(x, y)
    assert same_x is x
    assert same_y is y
    assert mixed.partner.tolist() == [0, 1, 2, 3, 4]
    assert mixed.lam.tolist() == [1.0] * 5


@pytest.mark.parametrize("size", [40, 600])
def test_a_bandwidth_that_leaves_every_row_its_own_partner_warns(size: int) -> None:
    y = 1000 * torch.arange(float(size))
    mixing = CMixup(1e-6, seed=0)
    with pytest.warns(UserWarning, match="bandwidth 1e-06 leaves every row its own partner"):
        [mixing(y[:, None], y) for _ in range(2)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        wide, one = CMixup(1e5, seed=0), CMixup(0.5, seed=0)
        for _ in range(100):
            wide.draw(y)
            one.draw(y[:1])  # a batch of one row has no other partner


def test_auto_is_the_fraction_of_the_labels_given() -> None:
    _, y = rows(300)
    assert CMixup("auto", labels=y).bandwidth == bandwidth_for_fraction(y, 0.2)
    assert CMixup(("std", 0.3), labels=y).bandwidth == pytest.approx(0.3 * float(y.std(correction=0)), rel=1e-6)
    assert CMixup(0.7).bandwidth == 0.7


def test_auto_comes_from_the_first_512_labels_that_pass_by() -> None:
    _, y = rows(600)
    mixing, bandwidths = CMixup("auto", seed=0), []
    assert mixing.bandwidth is None
    for part in y.split(50):
        mixing.draw(part)
        bandwidths.append(mixing.bandwidth)
    assert bandwidths[-1] == bandwidth_for_fraction(y[:512], 0.2)
    assert len(set(bandwidths)) == 5  # at 50, 100, 200, 400 and 512 labels


@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_few_labels_still_have_partners(n: int) -> None:
    """Of two labels "a fifth" would be each label itself: ERM, silently."""
    y = torch.arange(float(n))
    partners = torch.stack([CMixup("auto", seed=seed).draw(y).partner for seed in range(20)])
    assert (partners != torch.arange(n)).any() == (n > 1)


def test_a_dictionary_of_labels_is_one_vector() -> None:
    """Partners agree in both outputs, not in either."""
    a, b = torch.tensor([0.0, 0, 9, 9]).repeat(8), torch.tensor([0.0, 9, 0, 9]).repeat(8)
    x = torch.eye(32)
    mixed_x, mixed_y = CMixup(0.01, seed=0)(x, {"a": a, "b": b})
    assert torch.equal(mixed_y["a"], a)
    assert torch.equal(mixed_y["b"], b)
    assert not torch.equal(mixed_x, x)


def test_space_scales_outputs() -> None:
    """In units of the scale the first output says nothing, so partners follow the second; "auto" looks at it alone."""
    y = torch.stack([torch.arange(64.0) * 1000, torch.arange(64) % 2.0], dim=1)
    partner = CMixup(0.1, seed=0, space=lambda y: y / [1e9, 1.0]).draw(y).partner
    assert torch.equal(y[partner, 1], y[:, 1])
    assert (partner != torch.arange(64)).sum() > 32
    by_first = CMixup("auto", labels=y, space=lambda y: y[:, 0])
    assert by_first.bandwidth == bandwidth_for_fraction(y[:, 0], 0.2)
    assert by_first.draw(y).partner.shape == (64,)


def test_space_goes_round_a_circle() -> None:
    y, radius = torch.tensor([1.0, 359.0, 180.0]).repeat(20), 180 / np.pi

    def on_a_circle(angle: np.ndarray) -> np.ndarray:
        return radius * np.hstack([np.cos(angle / radius), np.sin(angle / radius)])

    partner = CMixup(2.0, seed=0, space=on_a_circle).draw(y).partner
    met = {(float(a), float(b)) for a, b in zip(y, y[partner], strict=True)}
    assert (1.0, 359.0) in met
    assert not any((180.0 in pair) and pair != (180.0, 180.0) for pair in met)


@pytest.mark.parametrize("form", ["tuple", "list", "named", "ordered", "samples", "samples of dictionaries"])
def test_a_batch_comes_back_in_its_form(form: str) -> None:
    x, y = rows(4)
    named = namedtuple("named", "x y")
    batch = {
        "tuple": (x, y), "list": [x, y], "named": named(x, y), "ordered": OrderedDict(image=x, label=y),
        "samples": list(zip(x, y, strict=True)),
        "samples of dictionaries": [{"image": a, "label": b} for a, b in zip(x, y, strict=True)],
    }[form]  # fmt: skip
    mixed = CMixup(10.0, seed=0)(batch)
    kinds = {"tuple": tuple, "list": list, "named": named, "ordered": OrderedDict, "samples": list}
    assert type(mixed) is kinds.get(form, dict)
    mixed_x, mixed_y = mixed.values() if isinstance(mixed, dict) else mixed
    torch.testing.assert_close(mixed_x @ y, mixed_y)
    assert not torch.equal(mixed_x, x)


def test_a_key_says_where_the_labels_are() -> None:
    x, y = rows(8)
    batch = {"x": x, "price": y, "label": torch.arange(8)}
    mixed = CMixup(10.0, seed=0, labels_getter="price", keep=("label",))(batch)
    torch.testing.assert_close(mixed["x"] @ y, mixed["price"])
    assert mixed["label"] is batch["label"]


def test_seed_none_follows_torch() -> None:
    _, y = rows()

    def draw(seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return CMixup(0.5).draw(y).lam

    assert torch.equal(draw(3), draw(3))
    assert not torch.equal(draw(3), draw(4))


def test_a_copy_goes_on_where_it_was() -> None:
    _, y = rows()
    mixing = CMixup("auto", seed=0)
    mixing.draw(y)
    one, two = copy.deepcopy(mixing), pickle.loads(pickle.dumps(mixing))  # noqa: S301 - our own
    lams = [one_of_three.draw(y).lam for one_of_three in (mixing, one, two)]
    assert torch.equal(lams[0], lams[1])
    assert torch.equal(lams[0], lams[2])


def test_gradients_pass() -> None:
    x, y = rows(8)
    x.requires_grad_()
    mixed_x, _, (partner, lam) = CMixup(10.0, seed=0, return_mix=True)(x, y)
    mixed_x.sum().backward()
    expected = lam.clone()
    expected.index_add_(0, partner, 1 - lam)
    assert x.grad is not None
    torch.testing.assert_close(x.grad[:, 0], expected)
