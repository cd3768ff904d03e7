"""Options and shapes that the datasets refuse before anything is read, each with the words that say so."""

import math
from functools import partial

import numpy as np

from cmixup.tables.preprocessing import TablePreprocessing
from datasets.airfoil import Airfoil
from datasets.common.base import permuted
from datasets.common.domain_table import split_by_domain
from datasets.common.label_noise import LabelNoise
from datasets.common.pose.tasks import draw_tasks
from datasets.common.pose.views import Views
from datasets.common.scaling import Scaling
from datasets.common.table.reading import Format
from datasets.common.video.clips import ClipSpec
from datasets.csv import Csv
from datasets.dti import DTI
from datasets.dti_davis import DTIDavis
from datasets.exchange_rate import ExchangeRate
from datasets.no2 import NO2
from datasets.pascal1d import Pascal1D
from datasets.rcf_mnist import RCFMNIST
from tests.datasets.samples import views
from tests.refused import Bad, bad, refused

SEED = "split_seed must be a whole number, 0 to 4294967295, got -1"
HOLES = np.array([[1.0, np.nan], [2.0, np.nan]])
BAD: Bad = [
    (partial(NO2, split_seed=-1), SEED),
    (partial(Airfoil, scaling="none"), "scaling must be one of train, all, standard, got 'none'"),
    (partial(ExchangeRate, scaling="max"), "scaling must be one of all, train, got 'max'"),
    (partial(RCFMNIST, scaling="train"), "scaling must be one of centred, unit, got 'train'"),
    (partial(RCFMNIST, ratio=0.4), "ratio must be 0.5 to 1, got 0.4"),
    (partial(RCFMNIST, test_color="green"), "test_color must be one of reversed, same, got 'green'"),
    (partial(DTI, drug_length=0), "drug_length must be a whole number, 1 or more, got 0"),
    (partial(DTIDavis, protein_length=-1), "protein_length must be a whole number, 1 or more, got -1"),
    (partial(ExchangeRate, window=0), "window must be a whole number, 1 or more, got 0"),
    *bad(lambda horizon: ExchangeRate(horizon=horizon), (0, -3), "horizon must be a whole number, 1 or more, got {}"),
    (partial(ExchangeRate, window=5000), "window 5000 with horizon 12 is longer than the training part of"),
    (partial(Pascal1D, train_tasks=0), "train_tasks must be a whole number, 1 or more, got 0"),
    (partial(Pascal1D, side=100), "side must be one of 128, 64, 32, 16, got 100"),
    (partial(ClipSpec, frames=0), "frames must be a whole number, 1 or more, got 0"),
    (partial(ClipSpec, pad=-1), "pad must be a whole number, 0 or more, got -1"),
    *bad(LabelNoise, (-0.1, math.nan, math.inf), "label_noise must be a finite number, 0 or more, got"),
    # ---- tables of one's own
    (partial(Csv, "my.csv", target=["a", "a"]), "target 'a' is in target, too"),
    (partial(Csv, "my.csv", target="a", group="a"), "target 'a' is in group, too"),
    (partial(Csv, "my.csv", max_rows=2), "max_rows must be a whole number, 3 or more, got 2"),
    (partial(Csv, "my.csv", val_rows=0), "val_rows must be a whole number, 1 or more, got 0"),
    (partial(Csv, "my.csv", rare=1.0), "rare must be a share of rows, 0 or more and below 1, got 1.0"),
    (partial(Csv, "my.csv", scaling="train"), "scaling must be one of standard, minmax, none, got 'train'"),
    (partial(Csv, "my.csv", separator="x"), "separator must be one of auto, tab, semicolon, bar, comma, "),
    (lambda: Csv(target="price").load(0), "path must name the table's file: dataset=csv dataset.path=my.csv"),
    (partial(Format, decimal="x"), "decimal must be one of auto, point, comma, ., ,, got 'x'"),
    (partial(Format, encoding="utf-9"), "encoding must be one that Python knows, such as utf-8, got 'utf-9'"),
    *bad(lambda text: TablePreprocessing.from_json(text, "my.json"),
          ("", "[]", "{}", '{"format": "other"}', '{"format": "cmixup table preprocessing 1"}'),
          "my.json does not hold what a run keeps there"),
    # ---- rows, series and views
    (partial(permuted, np.arange(10), (6, 2, 1)), "split sizes (6, 2, 1) must sum to the 10 rows"),
    *bad(split_by_domain, (np.array([1, 1, 1]), np.array([1, 1, 2, 2]), np.array([1] * 99 + [2])), "domain has"),
    (partial(Scaling.fit, HOLES, "minmax"), "column 1 of x"),
    (partial(Views, np.zeros((2, 3, 4, 4)), np.array([[0.5, 1, 0], [0, 0, 1.5]]), ("a", "b"), {}),
     "y must lie in [0, 1], got 1.5 for view 2 of b"),
    (lambda: draw_tasks(views(n_views=29), 5, np.random.default_rng(0)), "object 0 has 29"),
]  # fmt: skip
test_bad_arguments_are_refused = refused(BAD)
