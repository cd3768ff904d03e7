"""Local Mixup: pairs weighted by the distance of their inputs."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.batch import Batch
from cmixup.data import Split
from cmixup.methods.base import squared_error
from cmixup.methods.local_mixup import LocalMixup
from cmixup.mixing.lam import Constant
from cmixup.model_stack import ModelStack
from cmixup.order import EpochBatches, shuffled
from cmixup.pairing.decay import Decay, Exponential, Knn, Threshold
from cmixup.pairing.flat import Standardised
from cmixup.seeding import Streams
from cmixup.training.trainer import train
from tests.helpers import (
    CPU,
    Own,
    assert_states_close,
    assert_states_equal,
    composed,
    epoch_batches,
    fitted,
    make_data,
    make_run,
    make_split,
    refuses,
    settings,
    states_differ,
    train_one,
)

DECAYS: dict[str, Callable[[], Decay]] = {
    "threshold": lambda: Threshold(0.25),
    "exponential": lambda: Exponential(1.0),
    "knn": lambda: Knn(20),
}
N = 200


def drawn(n: int = N, seed: int = 3, **options: Any) -> tuple[LocalMixup, EpochBatches, dict[str, np.ndarray]]:
    run = fitted(make_run(composed("local_mixup", **options), seed, make_data(seed, (n, 20, 17))))
    method = run.method
    assert isinstance(method, LocalMixup)
    order = shuffled(n, 16, run.streams.order)
    return method, order, method.draw(order, run.streams)


@pytest.mark.parametrize("name", DECAYS)
def test_weights_lie_in_0_to_1_and_do_not_grow_with_distance(name: str) -> None:
    decay = DECAYS[name]()
    inputs = Standardised(make_split(N).x)
    decay.fit(inputs)
    for row in range(0, N, 23):
        rows = np.full(N, row)
        distance = inputs.between(rows, np.arange(N))
        weight = np.asarray(decay(rows, distance), dtype=np.float32)[np.argsort(distance)]
        assert weight.min() >= 0
        assert weight[0] == weight.max() == 1  # the row itself
        assert (np.diff(weight) <= 0).all()
        assert weight[-1] < 0.5


def test_the_three_forms_are_those_of_the_definition() -> None:
    x = make_split(N).x.double().numpy()
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    distance = np.linalg.norm(x[:, None] - x, axis=2)
    _, order, draws = drawn(seed=0)
    mine = distance[order.index, draws["partner"]]
    clear = np.abs(mine - np.quantile(distance, 0.25)) > 1e-4
    assert clear.sum() > N - 5
    assert draws["weight"][clear].tolist() == (mine <= np.quantile(distance, 0.25))[clear].tolist()
    _, order, draws = drawn(seed=0, form="exponential", a=2.0)
    expected = np.exp(-2 * distance[order.index, draws["partner"]] / np.median(distance))
    np.testing.assert_allclose(draws["weight"], expected, rtol=1e-4)
    _, order, draws = drawn(seed=0, form="knn")
    nearest = np.argsort(distance, axis=1)[:, :21]  # itself and 20 others
    expected = [j in nearest[i] for i, j in zip(order.index, draws["partner"], strict=True)]
    assert draws["weight"].tolist() == expected


def test_the_kept_fraction_is_the_quantile() -> None:
    for quantile in (0.1, 0.5):
        run = fitted(make_run(composed("local_mixup", quantile=quantile), 0, make_data(0, (N, 20, 17))))
        for _ in range(50):
            run.method.draw(shuffled(N, 16, run.streams.order), run.streams)
        assert run.method.diagnostics()["kept_fraction"] == pytest.approx(quantile, abs=0.02)


def test_diagnostics_count_pairs_and_empty_steps() -> None:
    method, order, draws = drawn(quantile=0.02)
    pieces = np.split(draws["weight"], np.cumsum(order.sizes)[:-1])
    empty = [piece.sum() == 0 for piece in pieces]
    assert 0 < sum(empty) < len(empty)
    assert method.diagnostics() == {"kept_fraction": draws["weight"].mean(), "empty_steps": np.mean(empty)}
    assert composed("local_mixup").diagnostics() == {}


def test_the_unit_of_a_feature_does_not_matter() -> None:
    data = make_data(3, (N, 20, 17))
    train_split = data.train
    scaled = Split(train_split.x * torch.tensor([1.0, 1000.0, 0.01]), train_split.y, train_split.domain)
    weights = []
    for split in (train_split, scaled):
        method = composed("local_mixup", form="exponential")
        method.fit(replace(data, train=split), make_run(composed("local_mixup"), 3, data).model, None)
        streams = Streams(3)
        weights.append(method.draw(shuffled(N, 16, streams.order), streams)["weight"])
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-3)


@pytest.mark.parametrize("shape", [(), (3,)])
def test_the_loss_is_the_weighted_mean(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    prediction, target = torch.randn(2, *shape, 16, 2, generator=generator)
    weight = torch.rand(*shape, 16, generator=generator)
    found = squared_error(prediction, target, weight)
    error = (prediction - target).square().mean(-1)
    expected = torch.as_tensor(np.average(error.double().numpy(), axis=-1, weights=weight.numpy())).float()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=0)
    for scale in (1e-6, 0.1, 1e6):
        torch.testing.assert_close(squared_error(prediction, target, scale * weight), found, rtol=1e-5, atol=0)
    torch.testing.assert_close(
        squared_error(prediction, target, torch.ones_like(weight)), squared_error(prediction, target)
    )


def batch_of(run: Any, weight: torch.Tensor) -> Batch:
    _, batches = epoch_batches(run)
    batch = batches[0]
    return Batch(batch.x, batch.y, batch.domain, batch.partner, {**batch.draws, "weight": weight})


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_step_without_survivors_leaves_the_weights(optimizer: str) -> None:
    run = make_run(composed("local_mixup"))
    stack = ModelStack([run.model], CPU, optimizer, 0.01, weight_decay=0.1)
    run.method.step(stack, batch_of(run, torch.ones(16)))  # moments are no longer 0
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    loss = run.method.step(stack, batch_of(run, torch.zeros(16)))
    assert loss.item() == 0
    assert_states_equal(run.model.state_dict(), before)
    assert run.method.step(stack, batch_of(run, torch.eye(16)[2])).item() > 0
    assert states_differ(run.model.state_dict(), before)


def test_rows_without_weight_do_not_count() -> None:
    run = make_run(composed("local_mixup"))
    weight = (torch.arange(16) < 5).float()
    batch = batch_of(run, weight)
    assert batch.partner is not None
    few = Batch(
        batch.x[:5], batch.y[:5], batch.domain[:5],
        Batch(batch.partner.x[:5], batch.partner.y[:5], batch.partner.domain[:5]),
        {name: value[:5] for name, value in batch.draws.items()},
    )  # fmt: skip
    torch.testing.assert_close(run.method.loss(run.model, batch), run.method.loss(run.model, few))


def test_in_a_stack_only_the_models_without_survivors_stand_still() -> None:
    """At this quantile about half of all steps are empty, at different times for every run."""
    seeds, data = range(4), {s: make_data(s, (203, 20, 17)) for s in range(4)}
    runs = [make_run(composed("local_mixup", quantile=0.04), s, data[s]) for s in seeds]
    together = train(runs, settings(epochs=3, weight_decay=0.01))
    empty = [result.diagnostics["empty_steps"] for result in together]
    assert all(0.2 < share < 0.8 for share in empty)
    assert len(set(empty)) > 1
    for seed, result in zip(seeds, together, strict=True):
        alone = train_one(composed("local_mixup", quantile=0.04), seed, data[seed], epochs=3, weight_decay=0.01)
        assert_states_close(result.state_dict, alone.state_dict, 1e-5)
        assert all(np.isfinite(row["train_loss"]) for row in result.history)


def test_no_survivors_at_all_leaves_the_model_as_it_was_made() -> None:
    class Never(Decay):
        def fit(self, inputs: Standardised) -> None:
            pass

        def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
            return np.zeros(len(rows))

    run = make_run(LocalMixup(Never(), Own(), Constant(0.5)))
    before = {name: value.clone() for name, value in run.model.state_dict().items()}
    (result,) = train([run], settings(epochs=2))
    assert_states_equal(result.state_dict, before)
    assert result.diagnostics == {"kept_fraction": 0.0, "empty_steps": 1.0}


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: Threshold(1.5), r"quantile must lie in \[0, 1\], got 1.5"),
        (lambda: Threshold(float("nan")), r"quantile must lie in \[0, 1\], got nan"),
        (lambda: Exponential(-1.0), "a must be a finite number, 0 or more, got -1.0"),
        (lambda: Exponential(float("inf")), "a must be a finite number, 0 or more, got inf"),
        (lambda: Knn(-1), "k must be a whole number, 0 or more, got -1"),
        (lambda: Knn(2.0), "k must be a whole number, 0 or more, got 2.0"),  # type: ignore[arg-type]
        (lambda: composed("local_mixup", alpha=0.0), "alpha must be a finite number above 0, got 0.0"),
        (
            lambda: fitted(make_run(composed("local_mixup", form="knn", k=48))),
            "k must be less than the number of training rows, got k 48 for 48 rows",
        ),
    ]
)
