"""RC-Mixup: limits in which it is C-Mixup, the rows it keeps, its choice of bandwidth, and going on after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.methods.base import squared_errors
from cmixup.methods.cmixup import cmixup
from cmixup.methods.rc_mixup import RCMixup
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from cmixup.training.trainer import Run, train
from tests.helpers import CPU, assert_states_equal, make_data, make_run, make_stack, settings, states_differ, train_one
from tests.training.test_checkpoint import assert_same, checkpoints, interrupted


def rc_mixup(bandwidth: float = 0.3, layer: str = "input", **options: Any) -> RCMixup:
    return RCMixup(LabelDistance(bandwidth), Beta(0.5), layer, **options)


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_without_noise_and_warm_up_and_with_one_bandwidth_it_is_cmixup(layer: str) -> None:
    data = make_data(5)
    plain = train_one(cmixup(0.3, 0.5, layer=layer), 5, data, epochs=4)
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


def test_partners_follow_the_kernel_of_the_kept_rows() -> None:
    """With a tiny bandwidth a row's partner is itself: rows and partners are numbered alike on a subset, too."""
    run = make_run(rc_mixup(1e-6, noise=0.4, warm_up=0), 2)
    _, method = make_stack([run])
    order = method.order(run.data.train, 16, run.streams, drop_last=False)
    assert method.draw(order, run.streams)["partner"].tolist() == order.index.tolist()


def test_it_goes_on_with_the_bandwidth_weights_and_optimiser_of_the_best_validation_score() -> None:
    data = make_data(4)
    listed = [1e-3, 0.3, 1e3]
    run = make_run(rc_mixup(noise=0.25, warm_up=0, bandwidths=listed, every=2, trial_epochs=2), 4, data)
    stack, method = make_stack([run], lr=0.01)
    method.order(data.train, 16, run.streams, drop_last=False)
    chosen, reached = method.pairing.bandwidth, val_error(stack, data)
    errors: dict[float, float] = {}
    streams: dict[str, str] = {}
    for bandwidth in listed:  # the trials again, one by one
        again = make_run(rc_mixup(bandwidth, noise=0.25, warm_up=0), 4, data)
        again.streams.load_state_dict(streams)
        its_stack, its = make_stack([again], lr=0.01)
        scores = []
        for _ in range(2):
            order = its.order(data.train, 16, again.streams, drop_last=False)
            its._train_epoch(order, its.draw(order, again.streams))
            scores.append(val_error(its_stack, data))
        errors[bandwidth] = min(scores)
        streams = again.streams.state_dict()
    assert chosen == min(errors, key=errors.__getitem__)
    assert reached == errors[chosen]


def val_error(stack: Any, data: Any) -> float:
    with torch.no_grad():
        return float((stack.model.eval()(data.val.x) - data.val.y).double().square().mean().sqrt())


def test_the_warm_up_ends_at_its_best_weights_with_a_fresh_optimiser() -> None:
    data = make_data(3)
    run = make_run(rc_mixup(noise=0.0, warm_up=1), 3, data)
    stack, method = make_stack([run], lr=0.01)
    best = {name: value.clone() for name, value in stack.model.state_dict().items()}
    order = method.order(data.train, 16, run.streams, drop_last=False)
    method._train_epoch(order, method.draw(order, run.streams))  # the weights move, and nothing better is kept
    assert any(tensor.any() for tensor in stack.optimizer.state_dict()["state"])
    method.order(data.train, 16, run.streams, drop_last=False)
    assert_states_equal(stack.model.state_dict(), best)
    assert not any(tensor.any() for tensor in stack.optimizer.state_dict()["state"])


@pytest.mark.parametrize("epoch", [1, 2, 3, 4])
def test_a_run_goes_on_with_the_same_rows_bandwidth_and_numbers(epoch: int, tmp_path: Path) -> None:
    def make() -> list[Run]:
        method = rc_mixup(noise=0.25, warm_up=1, bandwidths=[0.1, ["std", 1.0]], every=2)
        return [make_run(method, seed) for seed in (0,)]

    straight = train(make(), settings(epochs=5))
    assert_same(interrupted(make, checkpoints(tmp_path), epoch), straight)
    assert straight[0].diagnostics["kept_rows"] == 36


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise": 1.0}, "noise must be a number, at least 0 and below 1, got 1.0"),
        ({"warm_up": -1}, "warm_up must be a whole number, 0 or more, got -1"),
        ({"every": 0}, "every must be a whole number, 1 or more, got 0"),
        ({"bandwidths": [-1.0]}, "bandwidth must be 0 or more"),
    ],
)
def test_bad_arguments_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rc_mixup(**options)


def test_runs_train_one_by_one() -> None:
    results = train([make_run(rc_mixup(noise=0.25, warm_up=0), seed) for seed in (0, 1)], settings(), CPU)
    assert [result.stack for result in results] == [1, 1]
