"""MixRL: how many neighbours, learned from the validation loss."""

from typing import Any

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.methods.mixrl import MixRL, policy_loss
from cmixup.pairing.neighbours import Neighbours
from cmixup.training.batch import EpochBatches
from cmixup.training.trainer import train
from tests.helpers import (
    assert_states_close,
    assert_states_equal,
    composed,
    make_data,
    make_run,
    make_split,
    make_stack,
    refuses,
    settings,
    states_differ,
    train_one,
)

FAST: dict[str, Any] = {"outer": 3, "n_in": 4}


def searched(data: RegressionData | None = None, seed: int = 0, **options: Any) -> MixRL:
    _, method = make_stack([make_run(composed("mixrl", **{**FAST, **options}), seed, data)])
    assert isinstance(method, MixRL)
    return method


def fitted(options: list, distance: str = "x", n: int = 40) -> Neighbours:
    pairing = Neighbours(options=options, distance=distance)
    pairing.fit(make_split(n))
    return pairing


@pytest.mark.parametrize("distance", ["x", "y", "both"])
def test_neighbours_are_those_of_the_definition(distance: str) -> None:
    split = make_split(40)
    x, y = split.x.double().numpy(), split.y.double().numpy()
    x, y = (x - x.mean(axis=0)) / x.std(axis=0), (y - y.mean(axis=0)) / y.std(axis=0)
    near = {"x": x, "y": y, "both": np.hstack([x, y])}[distance]
    gaps = np.linalg.norm(near[:, None] - near, axis=2)
    np.fill_diagonal(gaps, np.inf)
    assert fitted([0, 1, 8], distance).nearest.tolist() == np.argsort(gaps, axis=1)[:, :8].tolist()


def test_partners_are_uniform_among_the_neighbours_chosen() -> None:
    pairing = fitted([0, 1, 4])
    pairing.probabilities[:] = [0.25, 0.25, 0.5]
    order = EpochBatches(np.full(16000, 7), np.array([16000]))
    partner = pairing.draw(order, np.random.default_rng(0))
    counts = [float((partner == row).mean()) for row in (7, *pairing.nearest[7])]
    assert counts == pytest.approx([0.25, 0.375, 0.125, 0.125, 0.125], abs=0.015)


def test_no_neighbours_is_erm() -> None:
    data = make_data(5, (203, 20, 17))
    left = train_one(composed("mixrl", options=[0], **FAST), 5, data)
    assert_states_close(left.state_dict, train_one(ERM(), 5, data).state_dict, 1e-6)
    assert states_differ(left.state_dict, train_one(composed("mixrl", options=[4], **FAST), 5, data).state_dict)


def test_the_policy_is_a_distribution_that_differs_between_rows() -> None:
    method = searched(outer=8)
    pi = method.pairing.probabilities
    assert pi.shape == (48, 7)
    np.testing.assert_allclose(pi.sum(axis=1), 1, rtol=1e-12)
    assert (pi > 0).all()
    assert np.ptp(pi, axis=0).max() > 1e-3
    actual = method.diagnostics()
    assert actual["mean_k"] == pytest.approx((pi @ [0, 1, 2, 4, 8, 16, 32]).mean())
    assert sum(share for name, share in actual.items() if name.startswith("share")) == pytest.approx(1)


def test_the_search_leaves_model_and_other_streams_and_starts_anew_each_step() -> None:
    run, fresh = make_run(composed("mixrl", **FAST)), make_run(ERM())
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    make_stack([run])
    assert_states_equal(run.model.state_dict(), before)
    for name in ("order", "partners", "lam"):
        assert getattr(run.streams, name).random() == getattr(fresh.streams, name).random()


def test_the_search_looks_at_train_and_validation_only() -> None:
    data = make_data(4)
    method = searched(data, 4)
    other = RegressionData("data", data.train, data.val, make_split(17, seed=99), unit="none")
    learned = method.pairing.probabilities
    assert np.array_equal(searched(other, 4).pairing.probabilities, learned)
    shifted = Split(data.val.x, data.val.y + 1, data.val.domain)
    elsewhere = searched(RegressionData("data", data.train, shifted, data.test, unit="none"), 4)
    assert not np.array_equal(elsewhere.pairing.probabilities, learned)


def test_runs_of_other_searches_are_other_stacks() -> None:
    runs = [make_run(composed("mixrl", **{**FAST, "outer": outer})) for outer in (0, 3, 3)]
    assert [result.stack for result in train(runs, settings(epochs=1))] == [1, 2, 2]


def test_a_label_of_validation_that_is_missing_counts_for_nothing() -> None:
    data = make_data(4, d_y=2)
    data.val.y[3, 0] = torch.nan
    assert searched(data, 4).pairing.diagnostics()["mean_k"] > 0


def test_steps_of_the_search_are_told_as_epoch_0() -> None:
    heard = list[tuple[int, float | None]]()
    train([make_run(composed("mixrl", **FAST))], settings(epochs=1),
          on_epoch=lambda epoch, rows: heard.append((epoch, rows[0].get("search_percent"))))  # fmt: skip
    assert heard == [(0, 100 / 3), (0, 200 / 3), (0, 100.0), (1, None)]


def test_without_reward_the_gradient_is_that_of_the_entropy() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(12, 5, generator=generator, requires_grad=True)
    chosen = torch.randint(5, (12,), generator=generator)

    def gradient(loss: torch.Tensor) -> torch.Tensor:
        return torch.autograd.grad(loss, logits)[0]

    log_pi = logits.log_softmax(dim=1)
    assert not gradient(policy_loss(log_pi, chosen, torch.tensor(0.0), 0.0)).any()
    entropy = torch.distributions.Categorical(logits=logits).entropy().mean()
    log_pi = logits.log_softmax(dim=1)
    torch.testing.assert_close(gradient(policy_loss(log_pi, chosen, torch.tensor(0.0), 0.3)), gradient(-0.3 * entropy))
    # With a reward: descent raises the options chosen, (1[k chosen] - pi) R / B, no more and no less.
    log_pi = logits.log_softmax(dim=1)
    expected = -2.0 * (torch.eye(5)[chosen] - log_pi.exp()).detach() / 12
    torch.testing.assert_close(gradient(policy_loss(log_pi, chosen, torch.tensor(2.0), 0.0)), expected)


# ---- one search for all runs of a stack


def test_one_run_that_diverges_stops_the_stack() -> None:
    runs = [make_run(composed("mixrl", **FAST), seed) for seed in (0, 1)]
    runs[1].model.load_state_dict({name: value * 1e30 for name, value in runs[1].model.state_dict().items()})
    with pytest.raises(InputError, match=r"search of MixRL diverged, with inner_lr 0\.01"):
        make_stack(runs)


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: composed("mixrl", m=-1), "m must be a whole number, 0 or more, got -1"),
        (lambda: composed("mixrl", options=[1, 1]), r"options must be different .*got \[1, 1\]"),
        (lambda: composed("mixrl", distance="z"), "distance must be one of x, y, both, got 'z'"),
        (lambda: composed("mixrl", outer=-1), "outer must be a whole number, 0 or more, got -1"),
        (lambda: searched(m=6), "options must be at most the 47 other training rows, got 64"),
        (lambda: searched(inner_lr=1e30, n_in=20), "search of MixRL diverged, with inner_lr 1e.30"),
    ]
)
