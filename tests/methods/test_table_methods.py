"""RegMixup, resampling, input noise, SK Mixup, ADA and FOMA: closed forms and limits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import beta

from cmixup.methods.ada import ADA, k_means, move_rows
from cmixup.methods.domains import Means
from cmixup.methods.erm import ERM
from cmixup.methods.foma import FOMA, shrink
from cmixup.methods.input_noise import InputNoise
from cmixup.methods.mix import Mix
from cmixup.methods.regmixup import RegMixup
from cmixup.methods.resample import Resample
from cmixup.methods.sk_mixup import SKMixup, warp
from cmixup.mixing.lam import Beta, Constant
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.representation import RepresentationDistance
from cmixup.pairing.uniform import Uniform
from cmixup.training.method import squared_error
from tests.helpers import (
    Lazy,
    assert_states_close,
    epoch_batches,
    make_data,
    make_run,
    refuses,
    states_differ,
    train_one,
)

# ---- RegMixup, similarity-kernel mixup and resampling alone: closed forms, limits, and stacks


SGD = {"optimizer": "sgd", "epochs": 2}


def first_batch(method: Any) -> tuple[Any, Any]:
    run = make_run(method)
    _, batches = epoch_batches(run)
    return run, batches[0]


def test_regmixup_adds_eta_times_the_mixed_loss() -> None:
    run, batch = first_batch(RegMixup(Uniform(), Beta(10.0), "hidden", eta=0.3))
    plain = Mix(Uniform(), Beta(10.0), "hidden")
    plain.fit(run.data, run.model, run.streams)
    expected = squared_error(run.model(batch.x), batch.y) + 0.3 * plain.loss(run.model, batch)
    torch.testing.assert_close(run.method.loss(run.model, batch), expected)


def test_resampling_fits_partners_with_their_own_labels() -> None:
    run, batch = first_batch(Resample(LabelDistance(0.2), Beta(2.0)))
    expected = squared_error(run.model(batch.partner.x), batch.partner.y)
    torch.testing.assert_close(run.method.loss(run.model, batch), expected)


@pytest.mark.parametrize("lam", [0.0, 0.25, 1.0])
def test_both_ends_count_by_lambda(lam: float) -> None:
    run, batch = first_batch(Resample(LabelDistance(0.2), Constant(lam), "both"))
    one, other = (squared_error(run.model(rows.x), rows.y) for rows in (batch, batch.partner))
    torch.testing.assert_close(run.method.loss(run.model, batch), lam * one + (1 - lam) * other)


def test_noise_of_a_width_moves_the_inputs_and_without_width_is_erm() -> None:
    run, batch = first_batch(InputNoise(0.5))
    seen: list[torch.Tensor] = []
    run.model.register_forward_pre_hook(lambda _, given: seen.append(given[0]))
    loss = run.method.loss(run.model, batch)
    (noisy,) = seen
    noise = (noisy - batch.x).flatten()
    assert abs(float(noise.mean())) < 4 * 0.5 / noise.numel() ** 0.5
    assert float(noise.std()) == pytest.approx(0.5, abs=4 * 0.5 / (2 * noise.numel()) ** 0.5)
    torch.testing.assert_close(loss, squared_error(run.model(noisy), batch.y))
    erm = train_one(ERM(), **SGD)
    assert_states_close(train_one(InputNoise(0.0), **SGD).state_dict, erm.state_dict, 1e-6)
    assert states_differ(train_one(InputNoise(0.5), **SGD).state_dict, erm.state_dict)


def test_lambda_is_warped_by_the_quantile_function_of_beta() -> None:
    lam, d = np.array([0.1, 0.5, 0.7, 0.9]), np.array([0.2, 3.0, 0.5, 1.1])
    actual = warp(lam, d, np.array([4]), 1.5, 0.8)
    for level, relative, ours in zip(lam, d / d.mean(), actual, strict=True):
        tau = 1.5 * np.exp(-(relative - 1) / (2 * 0.8**2))
        assert ours == pytest.approx(beta.ppf(level, tau, tau), rel=1e-5)


def test_distances_are_relative_to_those_of_the_batch() -> None:
    lam, d = np.full(6, 0.8), np.array([1.0, 2.0, 3.0, 10.0, 20.0, 30.0])
    actual = warp(lam, d, np.array([3, 3]), 2.0, 0.5)
    np.testing.assert_allclose(actual[:3], actual[3:])
    assert actual[0] < actual[1] < actual[2]  # near pairs come near 1/2, far ones stay at an end
    for std in (np.inf, 1e200):  # whose square is infinite
        np.testing.assert_array_equal(warp(lam, np.zeros(6), np.array([6]), 1.0, std), np.float32(0.8))


test_bad_values_are_refused = refuses(
    [
        (lambda: RegMixup(Uniform(), Beta(1.0), eta=-1.0), "eta must be a finite number, 0 or more, got -1.0"),
        (lambda: Resample(Uniform(), Beta(1.0), "none"), "ends must be one of partner, both, got 'none'"),
        (lambda: SKMixup(Uniform(), Beta(1.0), tau_max=0.0), "tau_max must be a finite number above 0, got 0"),
        (lambda: SKMixup(Uniform(), Beta(1.0), tau_std=-1.0), "tau_std must be a finite number above 0, got -1.0"),
        (lambda: train_one(SKMixup(RepresentationDistance(0.3), Beta(1.0))), "partners before the step for SK Mixup"),
    ]
)


# ---- ADA: hand-made clusters and moves, its limits, and what it draws


def test_it_is_the_papers_anchor_regression_with_one_hot_anchors() -> None:
    """Eq. 5: (X + (sqrt(gamma) - 1) P X) / (1 + (sqrt(gamma) - 1) P 1), P the projection on the anchors' columns."""
    x, cluster, gamma = torch.randn(7, 2, 3), torch.tensor([2, 0, 0, 1, 2, 2, 0]), 2.5
    anchors = torch.nn.functional.one_hot(cluster).float()
    p = anchors @ torch.linalg.pinv(anchors)
    change = gamma**0.5 - 1
    expected = (x.flatten(1) + change * p @ x.flatten(1)) / (1 + change * p.sum(dim=1, keepdim=True))
    torch.testing.assert_close(move_rows(x, Means(cluster), torch.full((7,), gamma)), expected.reshape(x.shape))


def test_k_means_goes_on_until_every_row_is_nearest_to_the_mean_of_its_cluster() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(30, 24, 2))
    for rows, cluster in zip(points, k_means(points, 3, rng), strict=True):
        means = np.stack([rows[cluster == k].mean(axis=0) for k in range(3)])
        assert np.square(rows[:, None] - means).sum(axis=2).argmin(axis=1).tolist() == cluster.tolist()


def test_gammas_are_those_of_the_grid_and_their_reciprocals_one_a_batch() -> None:
    run = make_run(ADA(4, 3.0, 4), data=make_data(0, (16 * 400 + 5, 8, 8)))
    order, _ = epoch_batches(run)
    assert order.sizes.tolist() == [16] * 400  # the last 5 rows are left out
    drawn = run.method.draw(order, run.streams)
    gamma = drawn["gamma"].reshape(400, 16)
    assert (gamma == gamma[:, :1]).all()
    values, counts = np.unique(gamma[:, 0], return_counts=True)
    assert values == pytest.approx([1 / 3, 1 / 2.5, 1 / 2, 1 / 1.5, 1.5, 2.0, 2.5, 3.0])
    assert counts.min() > 25
    assert set(drawn["cluster"]) == {0, 1, 2, 3}


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_the_loss_moves_states_and_labels(layer: str) -> None:
    run = make_run(ADA(3, 2.0, layer=layer))
    _, (batch, *_) = epoch_batches(run)
    means, gamma = Means(batch.draws["cluster"]), batch.draws["gamma"]
    y, model = move_rows(batch.y, means, gamma), run.model
    if layer == "input":
        expected = squared_error(model(move_rows(batch.x, means, gamma)), y)
    else:
        expected = squared_error(model.decode(move_rows(model.encode(batch.x, "block1"), means, gamma), "block1"), y)
    torch.testing.assert_close(run.method.loss(model, batch), expected)


def test_clusters_by_inputs_and_labels_read_both() -> None:
    data = make_data(3)
    other = replace(data, train=replace(data.train, x=Lazy(data.train.x.flip(0))))
    drawn = []
    for some, by in ((data, "both"), (other, "both"), (data, "labels"), (other, "labels")):
        run = make_run(ADA(3, by=by), 3, some)
        order, _ = epoch_batches(run)
        drawn.append(run.method.draw(order, run.streams)["cluster"].tolist())
    assert drawn[0] != drawn[1]
    assert drawn[2] == drawn[3]


test_bad_values_are_refused_of_ada = refuses(
    [
        ({"a": 0.5}, "a must be 1 or more, got 0.5"), ({"clusters": 0}, "clusters must be a whole number, 1 or more"),
        ({"by": "x"}, "by must be one of labels, both"), ({"clusters": 17}, "batch_size must be clusters = 17 or more"),
    ],
    lambda given: train_one(ADA(**given)),
)  # fmt: skip


# ---- FOMA: hand-made singular values, its limits, gradients, and its batches


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
        actual = shrink(z, lam, rho, leading=leading)
        torch.testing.assert_close(actual, u @ torch.diag(torch.tensor(expected)) @ v[:3], atol=1e-5, rtol=1e-5)


def test_rho_1_chooses_nothing_however_sums_round() -> None:
    """The cumulative share of the last value came out above 1 for a third of such rows."""
    for z in torch.randn(100, 16, 12):
        assert torch.equal(shrink(z, torch.tensor(0.0), 1.0, leading=False), z)


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_the_loss_is_that_of_the_svd(layer: str) -> None:
    run = make_run(FOMA(0.5, 0.8, "trailing", layer), data=make_data(0, d_y=2))
    _, (batch, *_) = epoch_batches(run)
    model = run.model
    state = batch.x if layer == "input" else model.encode(batch.x, "block1")
    u, s, vh = torch.linalg.svd(torch.cat([state, batch.y], dim=1), full_matrices=False)
    small = s.cumsum(dim=0) / s.sum() > 0.8
    z = u @ torch.diag(torch.where(small, batch.draws["lam"][0], 1.0) * s) @ vh
    x, y = z[:, :-2], z[:, -2:]
    expected = squared_error(model(x) if layer == "input" else model.decode(x, "block1"), y)
    torch.testing.assert_close(run.method.loss(model, batch), expected, rtol=1e-4, atol=1e-5)


def test_rows_and_labels_are_moved_in_32_bits_beside_steps_in_bfloat16() -> None:
    y, gamma, means = 100 + torch.randn(16, 1), torch.full((16,), 2.0), Means(torch.arange(16) % 4)
    z = torch.cat([torch.randn(16, 5), y], dim=1)
    expected = move_rows(y, means, gamma), shrink(z, torch.tensor(0.3), 0.9, leading=False)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(move_rows(y, means, gamma), expected[0])
        assert torch.equal(shrink(z, torch.tensor(0.3), 0.9, leading=False), expected[1])
        assert move_rows(y.bfloat16(), means, gamma).dtype == torch.bfloat16


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


test_bad_values_are_refused_of_foma = refuses(
    [
        ({"rho": 1.5}, r"rho must lie in \[0, 1\], got 1.5"),
        ({"part": "both"}, "part must be one of trailing, leading"),
        ({"batches": "x"}, "batches must be one of shuffled, neighbours, kernel"),
        ({"a": 0.0}, "a must be a finite"),
    ],
    lambda given: train_one(FOMA(**given)),
)
