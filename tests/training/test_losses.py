"""What outputs are fitted by: means and variances (`train.loss=gaussian`), and labels with gaps."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import nan_euclidean_distances
from torch import nn
from torch.distributions import Normal

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.methods.ada import ADA
from cmixup.methods.erm import ERM
from cmixup.methods.foma import FOMA
from cmixup.methods.group_dro import GroupDRO
from cmixup.methods.mix import Mix
from cmixup.metrics import nll, std_factor
from cmixup.mixing.lam import Beta
from cmixup.networks.fcn3 import FCN3
from cmixup.pairing.inputs import InputDistance
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.neighbours import Neighbours
from cmixup.pairing.representation import RepresentationDistance
from cmixup.pairing.second_batch import SecondBatch
from cmixup.pairing.whole_pool import WholePool
from cmixup.sampling.bandwidth import diagnose
from cmixup.seeding import Streams
from cmixup.training.losses import GAUSSIAN, SQUARED, LabelScaling, joined, known_squared_error, mean_names, variance_of
from cmixup.training.method import Method
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import Run, RunResult, train
from models.lstnet import LSTNet
from models.tabm import TabM
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
    raw = outputs.to("meta")  # any device: without a scale, no number of the CPU meets the outputs
    assert GAUSSIAN.to_labels(raw, LabelScaling()).device == raw.device
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
    series = replace(make_data(), **{part: make_split(40, d_y=1) for part in ("train", "val", "test")})
    with pytest.raises(InputError, match="loss must be squared for LSTNet, got 'gaussian'"):
        train([Run(series, ERM(), LSTNet((54, 3), 2), Streams(0))], settings(loss="gaussian"))
    with pytest.raises(InputError, match="loss must be one of squared, gaussian, got 'normal'"):
        settings(loss="normal")


def with_gaps(n: int) -> RegressionData:
    """Labels (x1 + x2, x1) of which every fourth second one is missing."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(n, 2)).astype(np.float32))
    y = torch.stack([x.sum(dim=1), x[:, 0]], dim=1)
    parts = [Split(x[k::3], y[k::3].clone(), torch.zeros(len(x[k::3]), dtype=torch.int64)) for k in range(3)]
    for part in parts:
        part.y[::4, 1] = torch.nan
    return RegressionData("gaps", *parts, unit="none")


def test_labels_with_gaps_are_fitted_and_scored_by_what_is_there() -> None:
    data = with_gaps(180)
    for method in (ERM(), *(Mix(kind("auto"), Beta(2.0, "example")) for kind in (LabelDistance, SecondBatch))):
        torch.manual_seed(0)
        run = Run(data, method, nn.Linear(2, 2), Streams(0))
        (result,) = train([run], TrainSettings(60, 16, 0.03, label_scaling="standard"))
        prediction, y = result.predictions["test"][""], data.test.y
        known = ~y.isnan()
        error = (prediction - y)[known].square().mean().sqrt()
        assert result.scores["test"]["rmse"] == pytest.approx(float(error), rel=1e-5)
        assert error < 0.2
        corr = [np.corrcoef(p[k], t[k])[0, 1] for p, t, k in zip(prediction.T, y.T, known.T, strict=True)]
        assert result.scores["test"]["r"] == pytest.approx(np.mean(corr), rel=1e-4)


def test_labels_are_counted_in_32_bits_beside_predictions_in_bfloat16() -> None:
    y = torch.ones(600, 1)
    y[0] = torch.nan
    assert known_squared_error(torch.zeros(600, 1, dtype=torch.bfloat16), y) == 1.0


@pytest.mark.parametrize("gaps", [True, False])
def test_members_learn_in_a_stack_as_alone(gaps: bool) -> None:
    """With labels that lack values, and with those that each run scales in its loss; both have an axis of members."""

    def losses(*seeds: int) -> list[float]:
        runs = []
        for seed in seeds:
            data = with_gaps(60) if gaps else make_data(seed, d_y=2)
            torch.manual_seed(seed)
            made = TabM(data.train.x.shape[1:], 2, k=2, width=8, dropout=0.0)
            runs.append(Run(data, ERM() if gaps else GroupDRO(), made, Streams(seed)))
        form = "standard" if gaps else "loss"
        return [one.history[-1]["train_loss"] for one in train(runs, settings(epochs=2, label_scaling=form))]

    assert losses(1, 2) == pytest.approx(losses(1) + losses(2), rel=1e-5)


def test_auto_is_a_fifth_of_the_rows_whether_labels_have_gaps_or_not() -> None:
    data = with_gaps(300)
    data.train.y[1::4, 0] = torch.nan
    pairing = LabelDistance("auto")
    pairing.fit(data.train)
    assert pairing.diagnostics()["effective_fraction"] == pytest.approx(0.2, abs=0.001)
    report = diagnose(data.train.y, 1.0)
    distance = nan_euclidean_distances(data.train.y.double().numpy())
    weight = np.where(np.isnan(distance), 0.0, np.exp(-np.square(np.nan_to_num(distance)) / 2))
    assert report.uniform_gap == pytest.approx(np.nanmean(distance, axis=1).mean(), rel=1e-6)
    gap = (weight * np.nan_to_num(distance)).sum(axis=1) / weight.sum(axis=1)
    assert report.pair_gap == pytest.approx(gap.mean(), rel=1e-6)


def test_where_a_seeds_gap_lies_makes_no_difference() -> None:
    """A table with one gap is split anew for each seed; a stack has one loss for all of its runs."""
    runs = []
    for seed, part in enumerate(("test", "train", "val")):
        data = make_data(0, d_y=2)
        getattr(data, part).y[3, 1] = torch.nan
        runs.append(make_run(ERM(), seed, data))
    together = train(runs, settings(epochs=1))
    assert [(result.stack, result.failure) for result in together] == [(3, "")] * 3
    for run in runs:
        with pytest.raises(InputError, match="loss must be squared for labels with gaps"):
            train([run], settings(epochs=1, loss="gaussian"))


def test_what_takes_no_gaps_says_so() -> None:
    data = with_gaps(60)
    x, domain = data.train.x, data.train.domain
    for y in (torch.full((20, 2), torch.nan), torch.full((20, 1), torch.nan)):  # no label at all is no gap
        with pytest.raises(InputError, match="y of split has values that are not finite, first in row 0"):
            Split(x, y, domain)
    squared = type("Squared", (ERM,), {"losses": ("squared",)})
    empty = replace(data, train=Split(x, torch.stack([x[:, 0], torch.full((20,), torch.nan)], 1), domain, "rows"))
    with pytest.raises(InputError, match="label 2 has no value in any row of rows"):
        train([Run(empty, ERM(), nn.Linear(2, 2), Streams(0))], TrainSettings(1, 16, 0.1))
    for method, loss, message in (
        (ERM(), "gaussian", "loss must be squared for labels with gaps, got gaussian"),
        (squared(), "squared", "method Squared takes no labels with gaps, which split has"),
        (FOMA(), "squared", "method FOMA takes no labels with gaps, which split has"),
        (ADA(), "squared", "method ADA takes no labels with gaps, which split has"),
    ):
        with pytest.raises(InputError, match=message):
            train([Run(data, method, nn.Linear(2, 2), Streams(0))], TrainSettings(1, 16, 0.1, loss=loss))
    for pairing in (InputDistance(1.0, labels=True), RepresentationDistance(1.0, labels=True),
                    WholePool(1.0, labels=True), Neighbours(distance="both")):  # fmt: skip
        with pytest.raises(
            InputError, match=f"pairing {type(pairing).__name__} takes no labels with gaps, which split"
        ):
            pairing.fit(data.train)
