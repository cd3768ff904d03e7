"""Tasks of the pose datasets: drawn from views of objects, test objects apart from training objects."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from cmixup.data import RegressionData, Tasks
from cmixup.errors import InputError, check_count, check_seed
from datasets.common.base import SPLITS, Dataset
from datasets.common.pose.views import Views

SHOTS = 15  # support and query views of a task; paper tab:hyperpara_meta
SIDE = 128  # pixels of a view
SIDES = (SIDE, 64, 32, 16)
SCALE = 10.0  # labels are 10 x azimuth; paper
SYNTHETIC_OBJECTS, SYNTHETIC_VIEWS, SYNTHETIC_TASKS = (4, 3), 2 * SHOTS + 2, (2, 2, 2)


class TaskDataset(Dataset):
    """Tasks of 15 support and 15 query views of one object.

    A split's row is a task: its x is a `cmixup.data.Episode` of grey images in [0, 1], its y the labels of the 15
    query views, 10 x azimuth. Tasks are drawn once, an object uniformly with replacement and 30 different views of it:
    those of test by `task_seed`, the same for every run seed, those of train and val by the run seed. Test objects are
    in no other split. Validation tasks are on training objects, since neither the paper nor the original codes set
    objects apart; `val_objects` takes some from training for it.

    Args:
        train_tasks: tasks in a pass over the training split; a pass is `train_tasks / batch_size` iterations.
        val_tasks: tasks that choose the checkpoint.
        test_tasks: tasks that are reported.
        val_objects: training objects kept for validation; 0 validates on the training objects.
        side: pixels of a view, 128 or a half, a quarter or an eighth: means over squares, rounded.
        split_seed: of the objects' split, where it is ours to draw.
        task_seed: of the test tasks.
        synthetic: use synthetic data: small images of few objects, few tasks.
    """

    unit: ClassVar[str] = "10 x azimuth as a fraction of a full turn"
    metrics: ClassVar[tuple[str, ...]] = ("mse", "mse_ci95")
    selection: ClassVar[str] = "mse"
    tasks: ClassVar[bool] = True
    x_shape: ClassVar[tuple[int, ...]] = (1, SIDE, SIDE)
    y_width: ClassVar[int] = SHOTS

    def __init__(
        self, train_tasks: int = 10000, val_tasks: int = 200, test_tasks: int = 6000, *, val_objects: int = 0,
        side: int = SIDE, split_seed: int = 1, task_seed: int = 0, synthetic: bool = False,
    ):  # fmt: skip
        super().__init__(synthetic)
        for name, value in (("train_tasks", train_tasks), ("val_tasks", val_tasks), ("test_tasks", test_tasks)):
            check_count(name, value, 1)
        self.val_objects = check_count("val_objects", val_objects)
        self.split_seed, self.task_seed = check_seed("split_seed", split_seed), check_seed("task_seed", task_seed)
        if side not in SIDES:
            raise InputError(f"side must be one of {', '.join(map(str, SIDES))}, got {side!r}")
        self.side = side
        self.n_tasks = SYNTHETIC_TASKS if synthetic else (train_tasks, val_tasks, test_tasks)

    @abstractmethod
    def views(self) -> tuple[Views, Views]:
        """Return the views of the training objects and of the test objects."""

    def objects(self) -> tuple[Views, Views]:
        """Return the views that tasks are drawn from, for training and test; those of the stand-in if `synthetic`."""
        return synthetic_objects() if self.synthetic else self.views()

    def load(self, seed: int) -> RegressionData:
        train, test = (views.shrunk(self.side) for views in self.objects())
        checksums = {**train.about["sources"], **test.about["sources"]}
        if self.val_objects >= len(train.names):
            raise InputError(
                f"val_objects must leave training objects among {len(train.names)}, got {self.val_objects}"
            )
        order = np.random.default_rng([seed, 2]).permutation(len(train.names))
        val_rows, train_rows = np.sort(order[: self.val_objects]), np.sort(order[self.val_objects :])
        train, val = (train.select(train_rows), train.select(val_rows)) if self.val_objects else (train, train)
        pools, streams = (train, val, test), ([seed, 0], [seed, 1], [self.task_seed, 3])
        tasks = map(draw_tasks, pools, self.n_tasks, map(np.random.default_rng, streams))
        splits = (self.make_split(part, t, t.y.numpy(), t.objects) for part, t in zip(SPLITS, tasks, strict=True))
        return self.assemble(seed, splits, checksums)


def draw_tasks(views: Views, n: int, rng: np.random.Generator, shots: int = SHOTS) -> Tasks:
    """Draw `n` tasks of `shots` support and `shots` query views: an object with replacement, its views without."""
    n_objects, n_views = views.y.shape
    if n_views < 2 * shots:
        raise InputError(
            f"views must be {2 * shots} or more for each object, to draw {shots} for support and {shots} for query; "
            f"{views.names[0]} has {n_views}"
        )
    objects = rng.integers(n_objects, size=n)
    chosen = rng.permuted(np.tile(np.arange(n_views), (n, 1)), axis=1)[:, : 2 * shots]
    return Tasks(views.x, np.float32(SCALE) * views.y, objects, chosen, shots)


def synthetic_objects(size: int = 32) -> tuple[Views, Views]:
    """Return views of a bright spot that goes round the image's middle with the azimuth, wider for later objects."""
    n_train, n_test = SYNTHETIC_OBJECTS
    y = np.random.default_rng(0).random((n_train + n_test, SYNTHETIC_VIEWS), dtype=np.float32)
    grid = np.linspace(-1, 1, size, dtype=np.float32)
    angle = 2 * np.pi * y[..., None, None]
    width = np.linspace(0.15, 0.4, len(y), dtype=np.float32)[:, None, None, None]
    distance = (grid - 0.6 * np.cos(angle)) ** 2 + (grid[:, None] - 0.6 * np.sin(angle)) ** 2
    x = np.rint(255 * np.exp(-distance / width**2)).astype(np.uint8)
    views = Views(x, y, tuple(f"spot {k}" for k in range(len(y))), {"sources": {}})
    return views.select(np.arange(n_train)), views.select(np.arange(n_train, len(y)))
