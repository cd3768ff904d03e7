"""RC-Mixup: limits in which it is C-Mixup, the rows it keeps, its choice of bandwidth, and going on after a stop."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cmixup.methods.rc_mixup import RCMixup
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from cmixup.seeding import Streams
from cmixup.training.method import squared_errors
from cmixup.training.trainer import Run, train
from tests.helpers import (
    assert_same,
    assert_states_equal,
    checkpoints,
    composed,
    interrupted,
    make_data,
    make_run,
    make_stack,
    make_training,
    refuses,
    settings,
    states_differ,
    train_one,
)
from tests.mixing.images import ConvNet, picture_data


def rc_mixup(bandwidth: float = 0.3, layer: str = "input", **options: Any) -> RCMixup:
    return RCMixup(LabelDistance(bandwidth), Beta(0.5), layer, **options)


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_without_noise_and_warm_up_and_with_one_bandwidth_it_is_cmixup(layer: str) -> None:
    data = make_data(5)
    plain = train_one(composed("cmixup", layer=layer), 5, data, epochs=4)
    for options in ({"noise": 0.0, "warm_up": 0}, {"noise": 0.5, "warm_up": 4}):
        ours = train_one(rc_mixup(layer=layer, **options), 5, data, epochs=4)
        assert_states_equal(ours.state_dict, plain.state_dict)
        assert ours.history == plain.history
    one_listed = train_one(rc_mixup(9.0, layer, noise=0.0, warm_up=0, bandwidths=[0.3]), 5, data, epochs=4)
    assert_states_equal(one_listed.state_dict, plain.state_dict)
    assert states_differ(train_one(rc_mixup(layer=layer, noise=0.5, warm_up=0), 5, data).state_dict, plain.state_dict)


def test_an_epoch_has_the_rows_with_the_smallest_losses_and_partners_among_them() -> None:
    run = make_run(rc_mixup(noise=0.25, warm_up=1), 2)
    stack, method = make_stack([run])
    train_split = run.data.train
    first = method.order(train_split, 16, run.streams, drop_last=False)
    assert sorted(first.index) == list(range(48))
    for _ in range(3):
        order = method.order(train_split, 16, run.streams, drop_last=False)
        with torch.no_grad():
            errors = squared_errors(stack.model.eval()(train_split.x), train_split.y).numpy()
        expected = np.sort(np.argsort(errors, kind="stable")[:36])
        assert sorted(order.index) == expected.tolist() == method.kept.tolist()
        assert order.sizes.tolist() == [16, 16, 4]
        drawn = method.draw(order, run.streams)
        assert set(drawn["partner"]) <= set(expected.tolist())
        with torch.no_grad():  # other weights, so that other rows are kept next time
            for parameter in stack.model.parameters():
                parameter.mul_(-2.0)


def test_it_chooses_the_bandwidth_of_the_best_validation_score_of_any_trial_epoch() -> None:
    data = make_data(4)
    listed = [1e-3, 0.3, 1e3]
    run = make_run(rc_mixup(noise=0.25, warm_up=0, bandwidths=listed, every=2, trial_epochs=2), 4, data)
    _, method = make_stack([run], lr=0.01)
    method.order(data.train, 16, run.streams, drop_last=False)
    errors: dict[float, list[float]] = {}
    for bandwidth in listed:  # the trials again, one by one
        again = make_run(rc_mixup(bandwidth, noise=0.25, warm_up=0), 4, data)
        theirs = make_training([again], lr=0.01)
        errors[bandwidth] = []
        for _ in range(2):
            order = theirs.method.order(data.train, 16, again.streams, drop_last=False)
            theirs.run_epoch([order], [theirs.method.draw(order, again.streams)])
            residual = theirs.stack.model.eval()(data.val.x) - data.val.y
            errors[bandwidth].append(residual.double().square().mean().sqrt().item())
    assert method.pairing.bandwidth == min(listed, key=lambda bandwidth: min(errors[bandwidth]))


class WithDropout(nn.Sequential):
    """A small model whose steps draw from PyTorch's own generator."""

    def __init__(self, width: int, d_y: int):
        super().__init__(nn.Linear(width, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, d_y))


@pytest.mark.parametrize("model", [None, WithDropout])
@pytest.mark.parametrize("trial_epochs", [1, 3])
def test_trials_leave_their_choice_and_nothing_else(trial_epochs: int, model: Any) -> None:
    """So their epochs count: the run is the one that had the chosen bandwidth from the first, and is as long."""
    data, common = make_data(4), {"noise": 0.25, "warm_up": 2, "every": 8, "trial_epochs": trial_epochs}
    ours, theirs = (
        train([make_run(rc_mixup(0.1, bandwidths=listed, **common), 4, data, model)], settings(epochs=8))[0]
        for listed in ([0.3, 1e-3, 1e3], [1e-3])
    )
    assert_states_equal(ours.state_dict, theirs.state_dict)
    assert ours.history == theirs.history


def test_trials_leave_the_network_of_a_mixing_as_it_was() -> None:
    of_trials, histories = {"warm_up": 1, "every": 8, "trial_epochs": 2, "bandwidth": 0.1}, []
    for listed in ([1e-3, 1e-3], [1e-3]):
        method = composed("rc_mixup", mixing="automix", bandwidths=listed, **of_trials)
        torch.manual_seed(0)
        (result,) = train([Run(picture_data(size=(16, 16)), method, ConvNet(), Streams(0))], settings(epochs=3))
        histories.append(result.history)
    assert histories[0] == histories[1]


def test_the_checkpoint_is_chosen_after_the_warm_up() -> None:
    data = make_data(4)
    result = train_one(rc_mixup(noise=0.9, warm_up=6), 4, data, epochs=10)
    errors = [row["val_rmse"] for row in result.history]
    assert int(np.argmin(errors)) < 6  # the case in question: dropping nine rows of ten harms
    assert result.best_epoch == 7 + int(np.argmin(errors[6:]))
    assert result.scores["val"]["rmse"] == pytest.approx(min(errors[6:]), rel=1e-6)
    within = train_one(rc_mixup(noise=0.9, warm_up=6), 4, data, epochs=6)
    assert within.best_epoch == 1 + int(np.argmin(errors[:6]))


def test_the_weights_that_count_at_the_end_do_not_change_the_training() -> None:
    how = {"epochs": 6, "lr": 0.3, "optimizer": "sgd"}
    best, last = (train_one(rc_mixup(warm_up=4), 4, make_data(4), select=which, **how) for which in ("best", "last"))
    assert int(np.argmin([row["val_rmse"] for row in best.history[:4]])) < 3  # the warm-up's best epoch is not its last
    assert last.history == best.history
    assert last.best_epoch == 6


def test_the_warm_up_ends_at_its_best_weights_with_a_fresh_optimiser() -> None:
    data = make_data(3)
    run = make_run(rc_mixup(noise=0.0, warm_up=1), 3, data)
    training = make_training([run], lr=0.01)
    stack, method = training.stack, training.method
    best = {name: value.clone() for name, value in stack.model.state_dict().items()}
    order = method.order(data.train, 16, run.streams, drop_last=False)
    training.run_epoch([order], [method.draw(order, run.streams)])  # the weights move, and nothing better is kept
    assert any(tensor.any() for tensor in stack.optimizer.state_dict()["state"])
    method.order(data.train, 16, run.streams, drop_last=False)
    assert_states_equal(stack.model.state_dict(), best)
    assert not any(tensor.any() for tensor in stack.optimizer.state_dict()["state"])


@pytest.mark.parametrize("epoch", [1, 2, 5])  # the last one, too: facts are of the rows kept
def test_a_run_goes_on_with_the_same_rows_bandwidth_and_numbers(epoch: int, tmp_path: Path) -> None:
    def make() -> list[Run]:
        method = rc_mixup(noise=0.25, warm_up=1, bandwidths=[0.1, ["std", 1.0]], every=2, trial_epochs=2)
        return [make_run(method, seed) for seed in (0,)]

    straight = train(make(), settings(epochs=5))
    assert_same(interrupted(make, checkpoints(tmp_path), epoch), straight)


test_bad_arguments_are_refused = refuses(
    [
        ({"noise": 1.0}, "noise must be a number, at least 0 and below 1, got 1.0"),
        ({"every": 2, "trial_epochs": 3}, "trial_epochs must be a whole number, 1 to 2, got 3"),
        ({"bandwidths": [-1.0]}, "bandwidth must be 0 or more"),
    ],
    lambda options: rc_mixup(**options),
)
