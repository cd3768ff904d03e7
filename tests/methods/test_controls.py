"""RegMixup, similarity-kernel mixup and resampling alone: closed forms, limits, and stacks."""

from typing import Any

import numpy as np
import pytest
import torch

from cmixup.methods.base import squared_error
from cmixup.methods.erm import ERM
from cmixup.methods.input_noise import InputNoise
from cmixup.methods.mix import Mix
from cmixup.methods.regmixup import RegMixup
from cmixup.methods.resample import Resample
from cmixup.methods.sk_mixup import SKMixup, warp
from cmixup.mixing.lam import Beta, Constant
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.representation import RepresentationDistance
from cmixup.pairing.uniform import Uniform
from tests.helpers import assert_states_close, epoch_batches, make_run, refuses, states_differ, train_one

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
    own, other = squared_error(run.model(batch.x), batch.y), squared_error(run.model(batch.partner.x), batch.partner.y)
    torch.testing.assert_close(run.method.loss(run.model, batch), lam * own + (1 - lam) * other)


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


def quantile(level: float, tau: float) -> float:
    """The quantile of Beta(tau, tau) by bisection of its distribution function, integrated by the midpoint rule."""
    t = (np.arange(400_000) + 0.5) / 400_000
    density = t ** (tau - 1) * (1 - t) ** (tau - 1)
    total = density.cumsum()
    return float(t[np.searchsorted(total, level * total[-1])])


def test_lambda_is_warped_by_the_quantile_function_of_beta() -> None:
    lam, d = np.array([0.1, 0.5, 0.7, 0.9]), np.array([0.2, 3.0, 0.5, 1.1])
    found = warp(lam, d, np.array([4]), 1.5, 0.8)
    for level, relative, ours in zip(lam, d / d.mean(), found, strict=True):
        tau = 1.5 * np.exp(-(relative - 1) / (2 * 0.8**2))
        assert ours == pytest.approx(quantile(level, tau), abs=2e-3)


def test_distances_are_relative_to_those_of_the_batch() -> None:
    lam, d = np.full(6, 0.8), np.array([1.0, 2.0, 3.0, 10.0, 20.0, 30.0])
    found = warp(lam, d, np.array([3, 3]), 2.0, 0.5)
    np.testing.assert_allclose(found[:3], found[3:])
    assert found[0] < found[1] < found[2]  # near pairs come near 1/2, far ones stay at an end
    np.testing.assert_array_equal(warp(lam, np.zeros(6), np.array([6]), 1.0, np.inf), np.float32(0.8))


def test_limits_of_the_similarity_kernel() -> None:
    """Tau 1 for all pairs is mixup; a very large tau mixes all at 1/2, and a very small one not at all."""
    plain = train_one(Mix(Uniform(), Beta(0.7)), epochs=2)
    same = train_one(SKMixup(Uniform(), Beta(0.7), tau_std=float("inf")), epochs=2)
    assert_states_close(same.state_dict, plain.state_dict, 1e-5)
    run = make_run(SKMixup(Uniform(), Beta(0.7), tau_max=1e4, tau_std=float("inf")))
    order, _ = epoch_batches(run)
    np.testing.assert_allclose(run.method.draw(order, run.streams)["lam"], 0.5, atol=0.03)
    run = make_run(SKMixup(Uniform(), Beta(0.7), tau_max=1e-3, tau_std=float("inf")))
    order, _ = epoch_batches(run)
    lam = run.method.draw(order, run.streams)["lam"]
    assert (np.minimum(lam, 1 - lam) < 1e-6).mean() > 0.95


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_labels_may_have_a_weight_of_their_own(layer: str) -> None:
    own = {"label_tau_max": 1.0, "label_tau_std": float("inf"), "tau_max": 1e4, "tau_std": float("inf")}
    run, batch = first_batch(SKMixup(Uniform(), Beta(0.7), layer, distance="inputs", **own))
    assert set(batch.draws) == {"lam", "label_lam"}
    lam, weight = batch.draws["lam"][:, None], batch.draws["label_lam"][:, None]
    target = weight * batch.y + (1 - weight) * batch.partner.y
    if layer == "input":
        prediction = run.model(lam * batch.x + (1 - lam) * batch.partner.x)
    else:
        states = [run.model.encode(each.x, "block1") for each in (batch, batch.partner)]
        prediction = run.model.decode(lam * states[0] + (1 - lam) * states[1], "block1")
    torch.testing.assert_close(run.method.loss(run.model, batch), squared_error(prediction, target))
    assert not torch.equal(lam, weight)


test_bad_values_are_refused = refuses(
    [
        (lambda: RegMixup(Uniform(), Beta(1.0), eta=-1.0), "eta must be a finite number, 0 or more, got -1.0"),
        (lambda: Resample(Uniform(), Beta(1.0), "none"), "ends must be one of partner, both, got 'none'"),
        (lambda: SKMixup(Uniform(), Beta(1.0), tau_max=0.0), "tau_max must be a finite number above 0, got 0"),
        (lambda: SKMixup(Uniform(), Beta(1.0), label_tau_max=1.0), "label_tau_max and label_tau_std go together"),
        (lambda: train_one(SKMixup(RepresentationDistance(0.3), Beta(1.0))), "partners before the step for SK Mixup"),
    ]
)
