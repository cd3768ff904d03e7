"""Arguments that the ground files and the training loop refuse, each with the words that say so."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from cmixup.data import RegressionData, Split
from cmixup.errors import as_number, check_bandwidth, check_between, check_count, check_nonnegative, check_positive
from cmixup.methods.erm import ERM
from cmixup.metrics import METRICS
from cmixup.seeding import Streams
from cmixup.training.batch import domain_batches, shuffled
from cmixup.training.optim import make_optimizer
from cmixup.tree import map_leaves
from tests.helpers import Lazy, composed, fitted, make_run, make_split, settings, train_one
from tests.refused import Bad, bad, refused

INF, NAN = float("inf"), float("nan")
RNG: Any = None  # all is refused before it is drawn from
DOMAIN = np.repeat(np.arange(40), np.arange(1, 41))  # 820 rows
PARTS = {"x": torch.zeros(4, 2), "y": torch.zeros(4, 1), "domain": torch.zeros(4, dtype=torch.int64)}
UNREAL = "split has values that are not finite, first in row"
WEIGHT = [nn.Parameter(torch.zeros(1))]


def split(**changes: torch.Tensor) -> Split:
    return Split(**PARTS | changes)


def data(splits: list[Split] | None = None, **changes: object) -> RegressionData:
    return RegressionData("toy", *(splits or [make_split(4)] * 3), unit="none", **changes)


def with_value(shape: tuple[int, ...], place: tuple[int, ...], value: float) -> torch.Tensor:
    """Zeros, but for one value."""
    made = torch.zeros(shape)
    made[place] = value
    return made


ODD = [[make_split(4, d_y=2 if k == odd else 1) for k in range(3)] for odd in range(3)]
BAD: Bad = [
    *bad(partial(as_number, "n"), ("1", True, None, [1.0], np.zeros(2)), "n must be a number, got"),
    *bad(partial(check_positive, "n"), (True, "0.1", None), "n must be a number, got"),
    *bad(partial(check_nonnegative, "n"), (True, "0.1", None), "n must be a number, got"),
    *bad(partial(check_between, "n", low=0, high=1), (True, "0.1", None), "n must be a number, got"),
    *bad(partial(check_positive, "n"), (0, -1, INF, -INF, NAN), "n must be a finite number above 0, got"),
    *bad(partial(check_nonnegative, "n"), (-1e-300, -1, INF, -INF, NAN), "n must be a finite number, 0 or more, got"),
    (partial(check_nonnegative, "n", -1, "a finite number of bytes"), "n must be a finite number of bytes, 0 or more"),
    *bad(partial(check_between, "n", low=0, high=0.5), (-1e-9, 0.51, INF, NAN), "n must lie in [0, 0.5], got {!r}"),
    *bad(partial(check_count, "k", minimum=1), (0, -1, True, 2.0, np.float64(2), np.bool_(True), "2", None, NAN, [2]),
         "k must be a whole number, 1 or more, got {!r}"),
    (partial(check_count, "steps", -1, what="a whole number of steps"), "steps must be a whole number of steps, 0 or"),
    *bad(partial(check_bandwidth, name="sigma"), (-1e-9, -INF, NAN), "sigma must be 0 or more"),
    *bad(partial(check_bandwidth, name="sigma"), (1e-300, 0.9e-150), "sigma must be 0 or at least 1e-150"),
    # ---- splits and data
    *bad(lambda shape: split(y=torch.zeros(shape)), ((4,), (4, 1, 1), ()), "y of split must be two-dimensional"),
    (partial(split, **{name: rows[:0] for name, rows in PARTS.items()}), "split is empty"),
    (partial(split, x=PARTS["x"][:3]), "x of split has 3 rows, but y has 4"),
    (partial(split, x=Lazy(torch.zeros(5, 2))), "x of split has 5 rows, but y has 4"),
    (partial(split, domain=PARTS["domain"][:3]), "domain of split has 3 rows, but y has 4"),
    (partial(split, domain=torch.zeros(4, 1, dtype=torch.int64)), "domain of split must be (N,), got shape (4, 1)"),
    *bad(lambda value: split(x=with_value((4, 2), (2, 0), value)), (NAN, INF, -INF), f"x of {UNREAL} 2"),
    *bad(lambda value: split(y=with_value((4, 1), (2, 0), value)), (NAN, INF, -INF), f"y of {UNREAL} 2"),
    (partial(split, x=with_value((4, 3, 5, 2), (3, 1, 4, 0), NAN)), f"x of {UNREAL} 3"),
    (partial(data, selection="rsme"), "got 'rsme'"),
    (partial(data, metrics=("rsme",)), "got 'rsme'"),
    (partial(data, worst=("rsme",)), "got 'rsme'"),
    (partial(data, selection="worst_r", worst=("rmse",)), "coverage90, worst_rmse, got 'worst_r'"),
    (partial(data, worst=("worst_r",)), "got 'worst_r'"),
    *bad(data, ODD, "y must have the same width in every split of toy"),
    *bad(lambda name: METRICS[name].score(torch.zeros(4, 1), torch.zeros(4)), METRICS, "(4, 1) and (4,)"),
    *bad(partial(map_leaves, max, "batch", {"a": 1}), ({"b": 1}, [1]), "batch must"),
    *bad(partial(map_leaves, max, "batch", [1]), ([1, 2], 1), "batch must"),
    # ---- seeds, order and optimisers
    *bad(Streams, (-1, 1.0, True, "0", None), "seed must be a whole number"),
    *bad(lambda size: shuffled(10, size, RNG), (0, -4), "batch_size must be a whole number, 1 or more, got {}"),
    (partial(shuffled, 10, 16, RNG, drop_last=True), "batch_size 16 is larger than the 10 training rows"),
    (partial(domain_batches, DOMAIN, 41, 1, RNG), "at most the number of training domains, got 41 for 40"),
    (partial(domain_batches, DOMAIN, 40, 21, RNG), "40 domains x 21 rows is larger than the 820 training rows"),
    *bad(partial(make_optimizer, "adam", WEIGHT), (0, -0.1, NAN, INF, "fast"), "lr must be"),
    *bad(partial(make_optimizer, "sgd", WEIGHT, 0.1), (-0.1, NAN, "x"), "weight_decay must be"),
    (partial(make_optimizer, "adamw", WEIGHT, 0.1), "optimizer must be one of adam, sgd, got 'adamw'"),
    # ---- training
    *((partial(settings, **{name: 0}), f"{name} must be a whole number, 1 to 2147483647, got 0")
      for name in ("epochs", "batch_size", "eval_batch_size", "lr_decay_every")),
    *bad(lambda value: settings(lr_decay=value), (0.0, -0.5, NAN), "lr_decay must be a finite number above 0"),
    *bad(lambda value: settings(patience=value), (0, -1, 1.5), "patience must be"),
    (partial(settings, select="last", patience=3), "patience must be null where select is 'last', got 3"),
    (partial(settings, select="first"), "select must be one of best, last, got 'first'"),
    (partial(settings, label_scaling="minmax"), "one of none, centre, standard, loss, got 'minmax'"),
    (lambda: train_one(composed("cmixup"), label_scaling="loss"),
     "label_scaling loss is for methods over domains, not Mix; use standard"),
    (lambda: train_one(ERM(), batch_size=64, drop_last=True), "batch_size 64 is larger than the 48 training rows"),
    *bad(lambda layer: fitted(make_run(composed("manifold_mixup", layer=layer), model=nn.Linear)),
          ("hidden", "block1"), "layer must be a mix point of Linear (input), got {!r}"),
]  # fmt: skip


test_bad_arguments_are_refused = refused(BAD)


@pytest.mark.parametrize("value", [1, 0.5, np.float32(2), np.array(3.0), 1e-150])
def test_numbers_pass_as_floats(value: float) -> None:
    for checked in (as_number("n", value), check_positive("n", value), check_bandwidth(value)):
        assert type(checked) is float
        assert checked == value
    assert (check_bandwidth(0), check_bandwidth(INF), check_count("steps", 0)) == (0, INF, 0)
