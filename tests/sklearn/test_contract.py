"""`TabularRegressor` keeps to scikit-learn's own checks, and refuses bad arguments and data."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.utils.estimator_checks import estimator_checks_generator

from cmixup import InputError
from cmixup.sklearn import CMixupRegressor, TabularRegressor
from cmixup.sklearn.losses import LOSSES
from tests.sklearn.test_regressor import X, Y, quick

#: What is most easily broken; the slow test runs all of scikit-learn's checks, on the defaults.
CHECKS = (
    "check_dont_overwrite_parameters", "check_estimator_sparse_array", "check_estimators_pickle", "check_fit2d_1sample",
    "check_methods_subset_invariance", "check_n_features_in_after_fitting", "check_no_attributes_set_in_init",
    "check_parameters_default_constructible", "check_readonly_memmap_input", "check_regressor_data_not_an_array",
    "check_requires_y_none", "check_sample_weight_equivalence_on_dense_data",
)  # fmt: skip


@pytest.mark.parametrize("blend", [None, Ridge()])
@pytest.mark.parametrize("check", [c for _, c in estimator_checks_generator(quick()) if c.func.__name__ in CHECKS])
def test_checks_of_scikit_learn(check: Any, blend: Any) -> None:
    check(quick(blend=blend))


def test_the_class_of_the_paper_has_its_defaults_and_is_the_same_otherwise(tmp_path: Path) -> None:
    """It always mixes, without trees; clone, files and scikit-learn's checks know its defaults."""
    changed = {"bandwidth": "auto", "blend": None}
    assert CMixupRegressor().get_params() == TabularRegressor().get_params() | changed
    assert TabularRegressor().blend == "trees"
    small: Any = {"members": 2, "epochs": 2, "hidden_layer_sizes": (8,), "random_state": 0}
    model = CMixupRegressor(**small).fit(X, Y)
    assert model.bandwidth_ > 0
    expected = TabularRegressor(**small, **changed).fit(X, Y).predict(X)
    np.testing.assert_array_equal(clone(model).fit(X, Y).predict(X), expected)
    model.save(tmp_path / "model.npz")
    again = CMixupRegressor.load(tmp_path / "model.npz")
    assert type(again) is CMixupRegressor
    np.testing.assert_array_equal(again.predict(X), expected)
    for estimator, check in estimator_checks_generator(CMixupRegressor(**small)):
        if getattr(check, "func", check).__name__ in CHECKS[-3:]:
            check(estimator)


@pytest.mark.slow
@pytest.mark.timeout(900)  # a minute and a half of one idle core, three for quantiles
@pytest.mark.parametrize("kind", ["CMixupRegressor", "TabularRegressor"])
@pytest.mark.parametrize("loss", LOSSES)
def test_all_checks_of_scikit_learn(loss: str, kind: str) -> None:
    """None is skipped or expected to fail; one of them needs SCIPY_ARRAY_API before scipy is imported."""
    code = (
        "import collections; from sklearn.utils.estimator_checks import check_estimator as check\n"
        f"from cmixup.sklearn import {kind}\n"
        f"model = {kind}(loss={loss!r})\n"
        "print(dict(collections.Counter(result['status'] for result in check(model, on_skip=None))))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, check=True, env={**os.environ, "SCIPY_ARRAY_API": "1"},
    )  # fmt: skip
    passed = eval(done.stdout)  # noqa: S307 - printed two lines above
    assert passed.keys() == {"passed"}
    assert passed["passed"] >= 50


BAD = [
    ({"hidden_layer_sizes": (8, 0)}, "hidden_layer_sizes must be whole numbers, 1 or more, got 0"),
    ({"hidden_layer_sizes": "8"}, "hidden_layer_sizes must be whole numbers, 1 or more, got '8'"),
    ({"blend": "tree"}, 'blend must be "trees", None or a regressor of scikit-learn'),
    ({"device": "cuda:99"}, "device must be one that this machine has, such as cpu or cuda:0, got 'cuda:99'"),
    ({"bandwidth": -1.0}, "bandwidth must be 0 or more"),
    ({"alpha": 0}, "alpha must be a finite number above 0, got 0"),
    ({"lr": "0.1"}, "lr must be a number, got '0.1'"),
    ({"early_stopping": "yes"}, "early_stopping must be True or False, got 'yes'"),
    ({"validation_fraction": 1.0}, "validation_fraction must lie between 0 and 1, got 1.0"),
    ({"random_state": "zero"}, "random_state must be None, a NumPy generator or a whole number, 0 or more, got 'zero'"),
    ({"device": "tpu"}, "device must be one that this machine has, such as cpu or cuda:0, got 'tpu'"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[str(options) for options, _ in BAD])
def test_bad_arguments_are_refused_before_the_data_are_read(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quick(**options).fit(None, None)


@pytest.mark.parametrize(
    ("x", "y", "weight", "message"),
    [
        (X * 1e200, Y, None, r"X must be within \+-1e\+150, got"),
        (X, Y, np.zeros(len(Y)), "at least one non-zero"),
        (X, Y, np.full(len(Y), np.nan), "NaN"),
    ],
)
def test_bad_data(x: Any, y: Any, weight: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        quick().fit(x, y, sample_weight=weight)
