"""Tasks: what a row is, who is drawn, and that test objects stay apart."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.tasks import Tasks
from datasets.common.pose.tasks import SHOTS, draw_tasks
from datasets.common.pose.views import Views
from datasets.pascal1d import Pascal1D
from tests.datasets.common.pose.made import views


def test_a_task_is_views_of_one_object_with_their_labels() -> None:
    pool = views()
    tasks = draw_tasks(pool, 40, np.random.default_rng(0))
    x = tasks[torch.arange(40)]
    assert x.support.shape == x.query.shape == (40, SHOTS, 1, 4, 4)
    assert x.labels.shape == tasks.y.shape == (40, SHOTS)
    assert tasks.shape == (40, 1, 4, 4)
    for k in (0, 7, 39):
        images = torch.cat([x.support[k], x.query[k]])[:, 0]
        labels = torch.cat([x.labels[k], tasks.y[k]])
        theirs = torch.from_numpy(pool.x[tasks.objects[k]][tasks.views[k]]).float() / 255
        torch.testing.assert_close(images, theirs)
        torch.testing.assert_close(labels, torch.from_numpy(10 * pool.y[tasks.objects[k]][tasks.views[k]]))


def test_support_and_query_share_no_view() -> None:
    tasks = draw_tasks(views(n_views=30), 200, np.random.default_rng(0))
    assert (np.sort(tasks.views, axis=1) == np.arange(30)).all()
    with pytest.raises(InputError, match="views must not name a view of a task twice"):
        Tasks(tasks.images, tasks.labels, tasks.objects[:1], np.zeros((1, 4), np.int64), 2)


def test_distances_are_between_images() -> None:
    tasks = draw_tasks(views(), 3, np.random.default_rng(0))
    x = tasks[torch.arange(3)]
    expected = torch.cdist(x.query.flatten(2).double(), x.support.flatten(2).double())
    np.testing.assert_allclose(tasks.distances(np.arange(3)), expected, rtol=1e-6)
    assert tasks.pair_distances().shape == (3 * 31 * 30 // 2,)


def labels(data: Any) -> list[torch.Tensor]:
    return [data.train.y, data.val.y, data.test.y]


class Small(Pascal1D):
    """The same classes over views made here."""

    def views(self) -> tuple[Views, Views]:
        return views(4, seed=1), views(2, seed=2)


def test_the_test_tasks_are_the_same_for_every_run_seed() -> None:
    one, same, other = (Small(20, 5, 6000).load(seed) for seed in (0, 0, 1))
    for a, b in zip(labels(one), labels(same), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(one.test.y, other.test.y)
    assert not torch.equal(one.train.y, other.train.y)
    assert len(one.test) == 6000
    assert not torch.equal(Small(20, 5, 6000, task_seed=1).load(0).test.y, one.test.y)


def test_no_two_splits_draw_from_one_stream() -> None:
    """NumPy pads seeds with zeros: `[0, 0]` and `[0]` are one stream, so run seed 0 once had the test tasks' views."""
    for seed in (0, 5):
        data = Small(30, 30, 30, task_seed=seed).load(seed)
        views = [split.x.views for split in (data.train, data.val, data.test)]
        assert not any(np.array_equal(a, b) for a, b in itertools.combinations(views, 2))


def test_labels_are_ten_times_the_azimuth_and_test_objects_are_apart() -> None:
    data = Small(50, 5, 50).load(0)
    pools = [set(data.train.x.labels.ravel().tolist()), set(data.test.x.labels.ravel().tolist())]
    assert not pools[0] & pools[1]
    for y in labels(data):
        assert y.min() >= 0
        assert y.max() < 10
    assert (data.selection, data.metrics) == ("mse", ("mse", "mse_ci95"))
    assert data.train.domain.tolist() == data.train.x.objects.tolist()


def test_validation_objects_can_be_kept_from_training() -> None:
    shared, apart = Small(50, 20, 5).load(0), Small(50, 20, 5, val_objects=1).load(0)
    pools = [set(s.x.labels[np.unique(s.x.objects)].ravel().tolist()) for s in (shared.train, shared.val)]
    assert pools[0] & pools[1]
    pools = [set(s.x.labels.ravel().tolist()) for s in (apart.train, apart.val)]
    assert not pools[0] & pools[1]
    with pytest.raises(InputError, match="val_objects must leave training objects among 4, got 4"):
        Small(val_objects=4).load(0)


def test_views_shrink_to_means_over_squares() -> None:
    pool = views(2, seed=1)
    side = pool.x.shape[2] // 2
    found = pool.shrunk(side)
    assert (found.x.dtype, found.x.shape) == (np.uint8, (*pool.x.shape[:2], side, side))
    corners = [pool.x[..., a::2, b::2].astype(int) for a in (0, 1) for b in (0, 1)]
    assert (np.abs(found.x - sum(corners) / 4) <= 0.5).all()
    assert (found.y is pool.y, found.names) == (True, pool.names)
    assert pool.shrunk(side * 2) is pool.shrunk(side * 4) is pool
