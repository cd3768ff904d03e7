"""Runs whose methods draw with other options train in one stack as they do alone; what a stack shares must be alike."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest

from cmixup.errors import InputError
from cmixup.methods.base import Method, check_alike, per_run
from cmixup.methods.erm import ERM
from cmixup.methods.regmixup import RegMixup
from cmixup.methods.sk_mixup import SKMixup
from cmixup.mixing.cutmix import CutMix
from cmixup.mixing.lam import Beta
from cmixup.pairing.uniform import Uniform
from cmixup.training.trainer import train
from tests.helpers import (
    assert_diagnostics_close,
    assert_states_close,
    composed,
    make_data,
    make_run,
    settings,
    states_differ,
    train_one,
)

OPTIONS = [(0.0, 0.5), (0.1, 0.5), (0.1, 2.0), (float("inf"), 0.5)]  # bandwidth and alpha


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_a_stack_over_bandwidth_and_alpha_equals_separate_runs(layer: str) -> None:
    members = [(bandwidth, alpha, seed) for bandwidth, alpha in OPTIONS for seed in (0, 3)]
    made = [make_run(composed("cmixup", bandwidth=b, alpha=a, layer=layer), seed) for b, a, seed in members]
    together = train(made, settings(epochs=2))
    assert {result.stack for result in together} == {8}
    for (bandwidth, alpha, seed), ours in zip(members, together, strict=True):
        alone = train_one(composed("cmixup", bandwidth=bandwidth, alpha=alpha, layer=layer), seed, epochs=2)
        assert_states_close(ours.state_dict, alone.state_dict, 1e-5)
        assert ours.scores["test"] == pytest.approx(alone.scores["test"], rel=1e-4, abs=1e-5)
        assert_diagnostics_close(ours.diagnostics, alone.diagnostics, 1e-9)
    assert all(states_differ(together[0].state_dict, other.state_dict) for other in together[1:])


def regmixup(alpha: float, eta: float = 1.0) -> Method:
    return RegMixup(Uniform(), Beta(alpha), eta=eta)


def sk(tau_max: float = 1.0, tau_std: float = 1.0, distance: str = "labels") -> Method:
    return SKMixup(Uniform(), Beta(1.0), tau_max=tau_max, tau_std=tau_std, distance=distance)


@pytest.mark.parametrize(
    "make",
    [
        [lambda: sk(0.1, 0.3), lambda: sk(5.0, 0.3), lambda: sk(5.0, 1.0)],
        [lambda: composed("local_mixup", quantile=0.05), lambda: composed("local_mixup", alpha=2.0, quantile=0.5)],
    ],
    ids=["sk_mixup", "local_mixup"],
)
def test_a_stack_over_what_else_only_draws_equals_separate_runs(make: list[Callable[[], Method]]) -> None:
    together = train([make_run(each(), 3) for each in make], settings(epochs=2))
    assert {result.stack for result in together} == {len(make)}
    for each, ours in zip(make, together, strict=True):
        alone = train_one(each(), 3, epochs=2)
        assert_states_close(ours.state_dict, alone.state_dict, 1e-5)
        assert_diagnostics_close(ours.diagnostics, alone.diagnostics, 1e-9)
    assert all(states_differ(together[0].state_dict, other.state_dict) for other in together[1:])


def edited(method: Any, path: str, value: Any) -> Any:
    changed = copy.deepcopy(method)
    *parts, name = path.split(".")
    setattr(changed.get_submodule(".".join(parts)), name, value)
    return changed


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (
            composed("cmixup", bandwidth=0.1),
            composed("cmixup", bandwidth=0.1, layer="hidden"),
            "method.layer alike, got 'input' and 'hidden'",
        ),
        (ERM(), composed("mixup"), "method.class alike, got 'ERM' and 'Mix'"),
        (
            composed("cmixup", bandwidth=0.1),
            composed("mixup"),
            "method.pairing.class alike, got 'LabelDistance' and 'Uniform'",
        ),
        (
            edited(composed("mixup"), "mixing", CutMix(1.0)),
            edited(composed("mixup"), "mixing", CutMix(0.5)),
            "mixing.probability",
        ),
        (regmixup(0.5), regmixup(0.5, eta=0.3), "method.eta"),  # the loss reads it
        (sk(distance="labels"), sk(distance="inputs"), "method.distance"),
        (composed("local_mixup"), composed("local_mixup", form="exponential", a=1.0), "method.form.class"),
        (composed("mixrl", m=3), edited(composed("mixrl", m=3), "final", "argmax"), "method.final"),
    ],
)
def test_what_a_stack_takes_from_the_first_must_be_alike(one: Method, other: Method, named: str) -> None:
    with pytest.raises(InputError, match=f"all runs of a stack need .*{named}"):
        check_alike([one, one, other])
    with pytest.raises(InputError, match=named.partition(", got")[0]):
        check_alike([other, one])


def test_the_trainer_refuses_methods_that_are_not_alike() -> None:
    with pytest.raises(InputError, match="layer alike"):
        train(
            [
                make_run(composed("cmixup", bandwidth=0.1)),
                make_run(composed("cmixup", bandwidth=0.1, layer="hidden"), 1),
            ],
            settings(),
        )


def test_what_only_draws_may_differ() -> None:
    check_alike(
        [
            composed("cmixup", bandwidth=0.1),
            composed("cmixup", bandwidth="auto", alpha=2.0, lam_per="batch"),
            composed("cmixup", bandwidth=["std", 0.3], alpha=5.0),
        ]
    )
    check_alike([composed("k_mixup", k=2), composed("k_mixup", alpha=2.0, k=5)])
    nan = edited(composed("local_mixup"), "layer", float("nan"))
    check_alike([nan, copy.deepcopy(nan)])


def test_a_subclass_does_not_inherit_what_only_draws() -> None:
    class Reads(type(composed("cmixup", bandwidth=0.1))):  # type: ignore[misc]
        pass

    class Says(Reads):
        per_run: ClassVar[tuple[str, ...]] = ("lam",)

    base = composed("cmixup", bandwidth=0.1)
    assert per_run(base) == ("pairing", "lam")
    assert per_run(Reads(base.pairing, base.lam)) == ()
    assert per_run(Says(base.pairing, base.lam)) == ("lam",)


def test_a_stack_whose_methods_draw_different_things_is_refused() -> None:
    class More(ERM):
        def draw(self, order: Any, streams: Any) -> dict[str, np.ndarray]:
            return {"extra": np.zeros(len(order.index))} if streams.seed else {}

    with pytest.raises(InputError, match=r"same draws, got \[\[\], \['extra'\]\]"):
        train([make_run(More(), seed, make_data(seed)) for seed in (0, 1)], settings())
