"""Methods that must be the same, with the same seed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from cmixup.methods.erm import ERM
from cmixup.methods.local_mixup import LocalMixup
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta, Constant
from cmixup.pairing.decay import Exponential, Knn, Threshold
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.uniform import Uniform
from cmixup.seeding import Streams
from cmixup.training.method import Method
from tests.helpers import (
    DOMAIN_METHODS,
    METHODS,
    SelfPairs,
    assert_states_close,
    assert_states_equal,
    composed,
    epoch_batches,
    fitted,
    make_data,
    make_run,
    states_differ,
    train_one,
)

INF = float("inf")

EQUAL_TO_ERM: dict[str, Callable[[], Method]] = {
    "mixup, lam 1": lambda: Mix(Uniform(), Constant(1.0)),
    "manifold_mixup, lam 1": lambda: Mix(Uniform(), Constant(1.0), layer="hidden"),
    "cmixup, lam 1": lambda: Mix(LabelDistance(0.3), Constant(1.0)),
    "cmixup hidden, lam 1": lambda: Mix(LabelDistance(0.3), Constant(1.0), layer="block2"),
    "cmixup, bandwidth 0": lambda: composed("cmixup", bandwidth=0.0),
    "cmixup hidden, bandwidth 0": lambda: composed("cmixup", bandwidth=0.0, layer="hidden"),
    "cmixup a batch, bandwidth 0": lambda: composed("cmixup", bandwidth=0.0, alpha=2.0, lam_per="batch"),
    "cmixup_batch b1+b2, bandwidth 0": lambda: composed("cmixup_batch", bandwidth=0.0, candidates="b1+b2"),
    "cmixup_batch all data, bandwidth 0": lambda: composed("cmixup_batch", bandwidth=0.0, factor=INF),
    "k_mixup, k = batch size": lambda: composed("k_mixup", k=16),
    "local_mixup of self pairs, eps 0": lambda: LocalMixup(Threshold(0.0), SelfPairs(), Beta(0.5)),
    "local_mixup of self pairs, exponential": lambda: LocalMixup(Exponential(3.0), SelfPairs(), Beta(0.5)),
    "local_mixup of self pairs, knn": lambda: LocalMixup(Knn(0), SelfPairs(), Beta(0.5), "hidden"),
    "local_mixup, lam 1": lambda: LocalMixup(Threshold(1.0), Uniform(), Constant(1.0)),
}

EQUAL_TO_MIXUP: dict[str, dict[str, Any]] = {
    "eps = inf": {"quantile": 1.0}, "a = 0": {"form": "exponential", "a": 0.0}, "knn of all": {"form": "knn", "k": 47},
}  # fmt: skip


@pytest.mark.parametrize("layer", ["input", "hidden"])
@pytest.mark.parametrize("name", EQUAL_TO_MIXUP)
def test_local_mixup_that_keeps_every_pair_is_mixup(name: str, layer: str) -> None:
    data = make_data(5)
    right = composed("mixup", layer=layer)
    left = train_one(composed("local_mixup", layer=layer, **EQUAL_TO_MIXUP[name]), 5, data)
    assert_states_close(left.state_dict, train_one(right, 5, data).state_dict, 1e-6)


@pytest.mark.parametrize("layer", ["input", "hidden"])
@pytest.mark.parametrize("lam_per", ["batch", "example"])
def test_k_mixup_with_one_row_a_block_is_mixup_with_a_permutation(lam_per: str, layer: str) -> None:
    data = make_data(6)
    right = composed("mixup", lam_per=lam_per, pairing="permutation", layer=layer)
    left = train_one(composed("k_mixup", lam_per=lam_per, layer=layer, k=1), 6, data)
    assert_states_equal(left.state_dict, train_one(right, 6, data).state_dict)
    assert states_differ(
        train_one(composed("k_mixup", lam_per=lam_per, layer=layer, k=4), 6, data).state_dict, left.state_dict
    )


@pytest.mark.parametrize("name", EQUAL_TO_ERM)
def test_equals_erm(name: str) -> None:
    data = make_data(5)
    assert len(data.train.y.unique()) == len(data.train)  # bandwidth 0 is ERM for distinct labels only
    left = train_one(EQUAL_TO_ERM[name](), 5, data)
    right = train_one(ERM(), 5, data)
    assert_states_close(left.state_dict, right.state_dict, 1e-6)
    assert left.scores["test"]["rmse"] == pytest.approx(right.scores["test"]["rmse"], abs=1e-6)


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_infinite_bandwidth_is_mixup_with_the_same_sampler(layer: str) -> None:
    """X + C-Mixup with an infinite bandwidth is X: only the sampler may differ."""
    data = make_data(2)
    plain = composed("mixup") if layer == "input" else composed("manifold_mixup")
    plain.pairing = LabelDistance(INF)  # uniform partners, drawn by the same sampler
    assert_states_equal(
        train_one(composed("cmixup", bandwidth=INF, layer=layer), 2, data).state_dict,
        train_one(plain, 2, data).state_dict,
    )


@pytest.mark.parametrize("name", [name for name in METHODS if name not in DOMAIN_METHODS])
def test_every_method_sees_the_same_rows_in_the_same_batches(name: str) -> None:
    _, ours = epoch_batches(make_run(METHODS[name](), 3))
    _, erm = epoch_batches(make_run(ERM(), 3))
    assert len(ours) == len(erm) == 3
    for one, other in zip(ours, erm, strict=True):
        assert torch.equal(one.x, other.x)
        assert torch.equal(one.y, other.y)
        assert torch.equal(one.domain, other.domain)


def test_lambda_does_not_depend_on_the_pairing() -> None:
    streams = [Streams(3) for _ in range(3)]
    methods: list[Method] = [composed("mixup"), composed("mixup", pairing="permutation"), composed("cmixup")]
    drawn = []
    for method, stream in zip(methods, streams, strict=True):
        run = fitted(make_run(method, 3))
        order = method.order(run.data.train, 16, stream, drop_last=False)
        drawn.append(method.draw(order, stream))
    assert drawn[0]["lam"].tolist() == drawn[1]["lam"].tolist() == drawn[2]["lam"].tolist()
    assert drawn[0]["partner"].tolist() != drawn[1]["partner"].tolist() != drawn[2]["partner"].tolist()
