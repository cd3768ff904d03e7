"""FOMA: hand-made singular values, its limits, gradients, and its batches."""

import numpy as np
import pytest
import torch

from cmixup.methods.base import squared_error
from cmixup.methods.erm import ERM
from cmixup.methods.foma import FOMA, shrink
from tests.helpers import assert_states_close, epoch_batches, make_data, make_run, refuses, states_differ, train_one


def test_trailing_and_leading_singular_values_by_hand() -> None:
    """s = 6, 3, 1: cumulative shares .6, .9, 1. At rho .75 the last two are trailing and the first is leading."""
    u, v = (torch.linalg.qr(torch.randn(n, n)).Q for n in (3, 5))
    s = torch.tensor([6.0, 3.0, 1.0])
    z = u @ torch.diag(s) @ v[:3]
    lam = torch.tensor(0.5)
    for rho, leading, expected in (
        (0.75, False, [6.0, 1.5, 0.5]), (0.75, True, [3.0, 3.0, 1.0]), (0.95, False, [6.0, 3.0, 0.5]),
        (0.5, True, [6.0, 3.0, 1.0]), (0.0, False, [3.0, 1.5, 0.5]), (1.0, False, [6.0, 3.0, 1.0]),
    ):  # fmt: skip
        found = shrink(z, lam, rho, leading=leading)
        torch.testing.assert_close(found, u @ torch.diag(torch.tensor(expected)) @ v[:3], atol=1e-5, rtol=1e-5)


def test_rho_1_chooses_nothing_however_sums_round() -> None:
    """The cumulative share of the last value came out above 1 for a third of such rows."""
    for z in torch.randn(100, 16, 12):
        assert torch.equal(shrink(z, torch.tensor(0.0), 1.0, leading=False), z)


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_lam_1_and_nothing_chosen_are_erm(layer: str) -> None:
    changes = {"optimizer": "sgd", "epochs": 2}
    erm = train_one(ERM(), **changes).state_dict
    assert_states_close(train_one(FOMA(rho=1.0, layer=layer), **changes).state_dict, erm, 1e-6)
    assert states_differ(train_one(FOMA(rho=0.5, layer=layer), **changes).state_dict, erm)
    run = make_run(FOMA(rho=0.5, layer=layer))
    _, (batch, *_) = epoch_batches(run)
    batch.draws["lam"].fill_(1.0)
    torch.testing.assert_close(run.method.loss(run.model, batch), squared_error(run.model(batch.x), batch.y))


@pytest.mark.parametrize("scale_labels", [True, False])
@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_the_loss_is_that_of_the_svd(layer: str, scale_labels: bool) -> None:
    run = make_run(FOMA(0.5, 0.8, "trailing", layer, scale_labels=scale_labels), data=make_data(0, d_y=2))
    _, (batch, *_) = epoch_batches(run)
    model = run.model
    state = batch.x if layer == "input" else model.encode(batch.x, "block1")
    u, s, vh = torch.linalg.svd(torch.cat([state, batch.y], dim=1), full_matrices=False)
    small = s.cumsum(dim=0) / s.sum() > 0.8
    z = u @ torch.diag(torch.where(small, batch.draws["lam"][0], 1.0) * s) @ vh
    x, y = z[:, :-2], z[:, -2:] if scale_labels else batch.y
    expected = squared_error(model(x) if layer == "input" else model.decode(x, "block1"), y)
    torch.testing.assert_close(run.method.loss(model, batch), expected, rtol=1e-4, atol=1e-5)


def test_gradients_are_finite_where_singular_values_meet() -> None:
    z = torch.eye(4).requires_grad_()
    shrink(z, torch.tensor(0.5), 0.5, leading=False).square().sum().backward()
    assert torch.isfinite(z.grad).all()


def test_batches_of_neighbours_hold_the_nearest_labels() -> None:
    run = make_run(FOMA(batches="neighbours"), data=make_data(2, (60, 8, 8)))
    order, _ = epoch_batches(run)
    y = run.data.train.y.numpy()[:, 0]
    assert order.sizes.tolist() == [16, 16, 16, 12]
    for rows in order.batches():
        assert len(set(rows)) == len(rows)
        reach = [np.sort(np.abs(y - y[row]))[len(rows) - 1] for row in rows]
        assert any(np.abs(y[rows] - y[row]).max() <= far for row, far in zip(rows, reach, strict=True))


def test_batches_of_the_kernel_have_labels_near_each_other() -> None:
    spread = {}
    for batches, bandwidth in (("kernel", 0.05), ("shuffled", 0.05)):
        run = make_run(FOMA(batches=batches, bandwidth=bandwidth), data=make_data(2, (60, 8, 8)))
        order, _ = epoch_batches(run)
        spread[batches] = max(np.ptp(run.data.train.y.numpy()[rows]) for rows in order.batches())
    assert spread["kernel"] < 0.5 * spread["shuffled"]


test_bad_values_are_refused = refuses(
    [
        ({"rho": 1.5}, r"rho must lie in \[0, 1\], got 1.5"),
        ({"part": "both"}, "part must be one of trailing, leading"),
        ({"batches": "x"}, "batches must be one of shuffled, neighbours, kernel"),
        ({"a": 0.0}, "a must be a finite"),
    ],
    lambda given: train_one(FOMA(**given)),
)
