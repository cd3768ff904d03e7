"""ADA: hand-made clusters and moves, its limits, and what it draws."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from cmixup.groups import Means, k_means
from cmixup.methods.ada import ADA, move_rows
from cmixup.methods.base import squared_error
from cmixup.methods.erm import ERM
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


@pytest.mark.parametrize("layer", ["input", "hidden"])
@pytest.mark.parametrize("limit", [{"a": 1.0}, {"clusters": 16}])
def test_gamma_1_and_a_cluster_a_row_are_erm(layer: str, limit: dict) -> None:
    changes = {"optimizer": "sgd", "epochs": 2}
    ours = train_one(ADA(**limit, layer=layer), **changes)
    assert_states_close(ours.state_dict, train_one(ERM(), **changes).state_dict, 1e-5)
    assert states_differ(ours.state_dict, train_one(ADA(2, 4.0, layer=layer), **changes).state_dict)


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


test_bad_values_are_refused = refuses(
    [
        ({"a": 0.5}, "a must be 1 or more, got 0.5"),
        ({"clusters": 0}, "clusters must be a whole number, 1 or more"),
        ({"by": "x"}, "by must be one of labels, both"),
        ({"clusters": 17}, "batch_size must be clusters = 17 or more"),
    ],
    lambda given: train_one(ADA(**given)),
)
