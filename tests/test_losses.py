"""Networks with a mean and a variance: their loss, and what a run with `train.loss=gaussian` gives."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.distributions import Normal

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.label_scaling import LabelScaling
from cmixup.losses import GAUSSIAN, SQUARED, joined, mean_names, variance_of
from cmixup.methods.base import Method
from cmixup.methods.erm import ERM
from cmixup.metrics import nll, std_factor
from cmixup.training.trainer import Run, RunResult, train
from models.fcn3 import FCN3
from tests.helpers import make_data, make_run, make_split, settings


def test_the_error_is_the_likelihood_of_a_normal_distribution() -> None:
    prediction, target = torch.randn(3, 5, 4), torch.randn(3, 5, 2)
    expected = -Normal(prediction[..., :2], variance_of(prediction[..., 2:]).sqrt()).log_prob(target)
    torch.testing.assert_close(GAUSSIAN.error(prediction, target), expected.mean(dim=(-2, -1)))
    torch.testing.assert_close(GAUSSIAN.errors(prediction, target), expected.mean(dim=-1))
    weight = torch.tensor([0.0, 0.0, 1.0, 0.0, 1.0]).expand(3, 5)
    chosen = expected[:, [2, 4]].mean(dim=(-2, -1))
    torch.testing.assert_close(GAUSSIAN.error(prediction, target, weight), chosen)


def test_members_have_a_likelihood_each() -> None:
    prediction, target = torch.randn(6, 5, 4), torch.randn(5, 2)
    errors = torch.stack([GAUSSIAN.error(one, target) for one in prediction])
    torch.testing.assert_close(GAUSSIAN.error(prediction, target), errors.mean())


@pytest.mark.parametrize("shape", [(5, 2), (4, 4), (2, 5, 3)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="prediction must have a mean and a variance for each label"):
        GAUSSIAN.error(torch.zeros(shape), torch.zeros(5, 2))


def test_outputs_become_means_and_standard_deviations_in_label_units() -> None:
    labels = LabelScaling("standard", torch.tensor([[10.0, -1.0]]), torch.tensor([[4.0, 0.5]]))
    outputs = torch.tensor([[1.0, 2.0, 0.0, 3.0]])
    normal = GAUSSIAN.by_predictor("", GAUSSIAN.to_labels(outputs, labels))
    torch.testing.assert_close(normal[""], torch.tensor([[14.0, 0.0]]))
    spread = variance_of(torch.tensor([[0.0, 3.0]])).sqrt()
    torch.testing.assert_close(normal["std"], spread * torch.tensor([[4.0, 0.5]]))
    assert list(GAUSSIAN.by_predictor("steps", outputs)) == ["steps", "steps_std"]
    assert mean_names(["", "std", "steps", "steps_std"]) == ["", "steps"]
    assert list(joined({"": outputs, "std": outputs, "alone": outputs})) == [""]
    assert list(SQUARED.by_predictor("", outputs)) == [""]


def noisy(seed: int = 0, n: int = 400) -> RegressionData:
    """Labels whose noise grows with the first feature."""
    data = make_data()

    def spread(split_seed: int, name: str) -> object:
        split, rng = make_split(n, seed=split_seed, name=name), torch.Generator().manual_seed(split_seed)
        width = torch.where(split.x[:, :1] > 0.5, 2.0, 0.2)
        return replace(split, y=30 + 10 * width * torch.randn(n, 1, generator=rng))

    parts = {name: spread(10 * seed + k, name) for k, name in enumerate(("train", "val", "test"))}
    return replace(data, **parts)


def gaussian_run(seed: int, data: RegressionData, method: Method | None = None) -> Run:
    run = make_run(method or ERM(), seed, data)
    torch.manual_seed(seed)
    return replace(run, model=FCN3(tuple(data.train.x.shape[1:]), 2 * data.train.y.shape[1], width=16))


def trained(seeds: list[int], form: str = "standard", epochs: int = 30) -> list[RunResult]:
    how = settings(epochs=epochs, lr=0.01, loss="gaussian", label_scaling=form)
    return train([gaussian_run(seed, noisy()) for seed in seeds], how)


@pytest.fixture(scope="module")
def result() -> RunResult:
    (one,) = trained([1])
    return one


def test_a_network_learns_where_labels_are_noisy_and_its_scores_are_of_its_predictions(result: RunResult) -> None:
    data, test = noisy(), result.predictions["test"]
    wide = data.test.x[:, 0] > 0.6
    narrow = data.test.x[:, 0] < 0.4
    assert 14 < float(test["std"][wide].mean()) < 35
    assert 1.5 < float(test["std"][narrow].mean()) < 4
    both = {part: joined(result.predictions[part])[""] for part in ("val", "test")}
    assert result.scores["test"]["nll"] == float(nll(both["test"], data.test.y))
    factor = float(std_factor(both["val"], data.val.y))
    scaled = torch.cat([test[""].double(), factor * test["std"].double()], dim=-1)
    assert result.scores["test"]["nll_rescaled"] == float(nll(scaled, data.test.y))
    assert 0.85 < result.scores["test"]["coverage90_rescaled"] < 0.95
    assert {"rmse", "crps", "crps_rescaled", "coverage90"} <= result.scores["test"].keys()
    assert not {name for name in result.scores["test"] if name.endswith("_std")}


def test_the_best_epoch_is_that_of_the_likelihood_on_validation(result: RunResult) -> None:
    by_epoch = [row["val_nll"] for row in result.history]
    assert result.best_epoch == 1 + int(np.argmin(by_epoch))
    assert result.scores["val"]["nll"] == min(by_epoch)


def test_a_stack_gives_the_numbers_of_each_alone() -> None:
    together = trained([1, 2], epochs=3)
    for one, seed in zip(together, [1, 2], strict=True):
        (alone,) = trained([seed], epochs=3)
        for name in ("", "std"):
            torch.testing.assert_close(one.predictions["test"][name], alone.predictions["test"][name])


def test_a_method_with_an_error_of_its_own_and_scaled_losses_are_refused() -> None:
    class LossOfItself(Method):
        pass

    data = noisy()
    with pytest.raises(InputError, match="loss must be squared for LossOfItself, got 'gaussian'"):
        train([gaussian_run(0, data, LossOfItself())], settings(loss="gaussian"))
    with pytest.raises(InputError, match="label_scaling must be standard, centre or none for loss gaussian"):
        settings(loss="gaussian", label_scaling="loss")
    with pytest.raises(InputError, match="loss must be one of squared, gaussian, got 'normal'"):
        settings(loss="normal")
