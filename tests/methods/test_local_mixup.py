"""Local Mixup: pairs weighted by the distance of their inputs."""

from typing import Any

import numpy as np
import pytest
import torch

from cmixup.pairing.decay import Exponential, Knn, Threshold
from cmixup.pairing.flat import Standardised
from cmixup.training.batch import Batch, EpochBatches, shuffled
from cmixup.training.method import squared_error
from cmixup.training.model_stack import ModelStack
from cmixup.training.trainer import train
from tests.helpers import (
    CPU,
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

N = 200


def drawn(n: int = N, seed: int = 3, **options: Any) -> tuple[EpochBatches, dict[str, np.ndarray]]:
    run = fitted(make_run(composed("local_mixup", **options), seed, make_data(seed, (n, 20, 17))))
    order = shuffled(n, 16, run.streams.order)
    return order, run.method.draw(order, run.streams)


def test_the_three_forms_are_those_of_the_definition() -> None:
    x = make_split(N).x.double().numpy()
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    distance = np.linalg.norm(x[:, None] - x, axis=2)
    order, draws = drawn(seed=0)
    mine = distance[order.index, draws["partner"]]
    clear = np.abs(mine - np.quantile(distance, 0.25)) > 1e-4
    assert clear.sum() > N - 5
    assert draws["weight"][clear].tolist() == (mine <= np.quantile(distance, 0.25))[clear].tolist()
    order, draws = drawn(seed=0, form="exponential", a=2.0)
    expected = np.exp(-2 * distance[order.index, draws["partner"]] / np.median(distance))
    np.testing.assert_allclose(draws["weight"], expected, rtol=1e-4)
    order, draws = drawn(seed=0, form="knn")
    nearest = np.argsort(distance, axis=1)[:, :21]  # itself and 20 others
    expected = [j in nearest[i] for i, j in zip(order.index, draws["partner"], strict=True)]
    assert draws["weight"].tolist() == expected


def test_all_pairs_as_far_apart_as_the_quantile_count() -> None:
    """Of six grades over a quarter of the pairs are equal or one apart, which rounding makes several numbers."""
    grade = np.arange(300) % 6
    inputs, rows, form = Standardised(torch.from_numpy(grade)[:, None].float()), np.arange(300), Threshold(0.25)
    form.fit(inputs)
    for row in range(6):
        weight = form(rows, inputs.between(np.full(300, row), rows))
        assert weight.tolist() == (abs(grade - grade[row]) <= 1).tolist()


@pytest.mark.parametrize("shape", [(), (3,)])
def test_the_loss_is_the_weighted_mean(shape: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(0)
    prediction, target = torch.randn(2, *shape, 16, 2, generator=generator)
    weight = torch.rand(*shape, 16, generator=generator)
    actual = squared_error(prediction, target, weight)
    error = (prediction - target).square().mean(-1)
    expected = torch.as_tensor(np.average(error.double().numpy(), axis=-1, weights=weight.numpy())).float()
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=0)
    for scale in (1e-6, 0.1, 1e6):
        torch.testing.assert_close(squared_error(prediction, target, scale * weight), actual, rtol=1e-5, atol=0)
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


def test_in_a_stack_only_the_models_without_survivors_stand_still() -> None:
    """At this quantile about half of all steps are empty, at different times for every run."""
    seeds, data = range(4), {s: make_data(s, (203, 20, 17)) for s in range(4)}
    runs = [make_run(composed("local_mixup", quantile=0.04), s, data[s]) for s in seeds]
    together = train(runs, settings(epochs=3, weight_decay=0.01))
    weights = [drawn(203, s, quantile=0.04)[1]["weight"] for s in seeds]
    empty = [[part.sum() == 0 for part in np.split(weight, range(16, 203, 16))] for weight in weights]
    assert all(0.2 < np.mean(steps) < 0.8 for steps in empty)
    assert len(set(map(tuple, empty))) > 1
    for seed, result in zip(seeds, together, strict=True):
        alone = train_one(composed("local_mixup", quantile=0.04), seed, data[seed], epochs=3, weight_decay=0.01)
        assert_states_close(result.state_dict, alone.state_dict, 1e-5)
        assert all(np.isfinite(row["train_loss"]) for row in result.history)


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: Threshold(1.5), r"quantile must lie in \[0, 1\], got 1.5"),
        (lambda: Exponential(-1.0), "a must be a finite number, 0 or more, got -1.0"),
        (lambda: Knn(-1), "k must be a whole number, 0 or more, got -1"),
        (lambda: fitted(make_run(composed("local_mixup", form="knn", k=48))),
         "k must be less than the number of training rows, got k 48 for 48 rows"),
    ]
)  # fmt: skip
