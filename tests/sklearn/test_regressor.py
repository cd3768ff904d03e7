"""`TabularRegressor`: scikit-learn's own checks, and what it promises beyond them."""

import itertools
import random
from typing import Any

import numpy as np
import pytest
import torch

from cmixup import InputError
from cmixup.sklearn import TabularRegressor, fitting, options
from cmixup.sklearn.fitting import BANDWIDTHS, choose
from cmixup.sklearn.network import MLP, arrays_of, predict_networks

QUICK = {"hidden_layer_sizes": (16,), "epochs": 6, "patience": 3, "lr": 0.02, "batch_size": 32, "members": 2,
         "random_state": 0, "blend": None}  # fmt: skip


def quick(**changes: Any) -> TabularRegressor:
    return TabularRegressor(**{"bandwidth": ("std", 0.3), **QUICK, **changes})


def table(n: int = 60, outputs: int | None = None, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 4))
    y = 100 + 20 * np.sin(x @ rng.normal(size=(4, outputs or 1))) + rng.normal(size=(n, 1))
    return x, y if outputs else y[:, 0]


X, Y = table()
FITTED = quick().fit(X, Y)


def test_predictions_are_in_label_units() -> None:
    """By the formula, and a power of two as unit of the labels changes nothing else."""
    z = (X - FITTED.x_mean_) / FITTED.x_scale_
    predictions = []
    for first, second, bias, last in zip(*FITTED.coefs_, *FITTED.intercepts_, strict=True):
        predictions.append((np.maximum(z @ first + bias, 0) @ second + last)[:, 0])
    assert len(predictions) == 2
    assert not np.allclose(*predictions)
    expected = np.mean(predictions, axis=0) * FITTED.y_scale_[0] + FITTED.y_mean_[0]
    np.testing.assert_allclose(FITTED.predict(X), expected, rtol=1e-12)
    scaled = quick().fit(X, Y * 1024)
    assert np.array_equal(scaled.predict(X), 1024 * FITTED.predict(X))
    assert scaled.bandwidth_ == 1024 * FITTED.bandwidth_ == 1024 * 0.3 * FITTED.y_scale_[0]
    assert np.array_equal(quick(bandwidth=FITTED.bandwidth_).fit(X, Y).predict(X), FITTED.predict(X))


@pytest.mark.parametrize("validated", [10, 1000])
def test_auto_keeps_what_predicts_held_out_rows_best(monkeypatch: pytest.MonkeyPatch, validated: int) -> None:
    """On the rows that all members hold out, or on those of the first; every network as it would be alone."""
    monkeypatch.setattr(fitting, "CROSS_VALIDATED", validated)
    monkeypatch.setattr(fitting, "choose", lambda errors, weight: int((errors @ weight).argmin()))
    model = quick(bandwidth="validated", lr=0.1).fit(X, Y)
    tried = BANDWIDTHS if validated == 1000 else (0.0, 0.3, np.inf)
    np.testing.assert_allclose(model.bandwidths_, np.array(tried) * model.y_scale_[0])
    assert model.validation_scores_.shape == (len(tried),)
    best = int(model.validation_scores_.argmin())
    assert model.bandwidth_ == model.bandwidths_[best]
    for place in {best, 0}:
        bandwidth = model.bandwidths_[place]
        alone = quick(bandwidth=bandwidth, lr=0.1, members=2 if validated == 1000 else 1).fit(X, Y)
        np.testing.assert_allclose(alone.validation_scores_, model.validation_scores_[place], rtol=1e-3)
        if bandwidth == model.bandwidth_:
            alone = quick(bandwidth=bandwidth, lr=0.1).fit(X, Y)
            assert alone.best_epoch_ == model.best_epoch_
            np.testing.assert_allclose(alone.predict(X), model.predict(X), rtol=1e-3)


def test_another_bandwidth_than_the_first_must_win_by_a_standard_error() -> None:
    first, weight = np.array([4.0, 4.0, 4.0, 4.0]), np.array([1.0, 1.0, 2.0, 0.5])
    steady, lucky, worse = first - 0.1, np.array([0.0, 4.4, 4.4, 4.4]), first + 0.1
    assert choose(np.stack([first, lucky, worse]), weight) == 0  # 0.62 better, with a standard error of 0.99
    assert choose(np.stack([first, lucky, steady]), weight) == 2
    assert choose(np.stack([first, first]), weight) == 0
    gain, share = first - lucky, weight / weight.sum()
    mean = gain @ share
    error = np.sqrt((gain - mean) ** 2 @ share * (share**2).sum())
    for shift, wins in ((1.01, 1), (0.99, 0)):  # the mean gain becomes so many standard errors
        assert choose(np.stack([first, lucky + mean - shift * error]), weight) == wins
    assert choose(np.stack([np.full(4, np.inf), steady, worse]), weight) == 1


@pytest.mark.parametrize(("early_stopping", "held"), [(True, 12), (False, 6)])
def test_held_out_rows_choose_and_are_not_trained_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], early_stopping: bool, held: int
) -> None:
    """Each counts by its weight, a tenth is held out where nothing is said, and every member has its own."""
    seen, weight, rows_of = [], np.random.default_rng(0).uniform(0.1, 4, len(X)), []
    original, labels = fitting.Networks, fitting.WeightedLabels

    class Spied(original):
        def __init__(self, rows: Any, parts: Any, nets: Any, *rest: Any, **more: Any) -> None:
            super().__init__(rows, parts, nets, *rest, **more)
            self.about = rows, [part.held for part in parts], nets

        def train(self) -> list[fitting.Trained]:
            seen.append((*self.about, super().train()))
            return seen[-1][-1]

    monkeypatch.setattr(fitting, "Networks", Spied)
    monkeypatch.setattr(fitting, "WeightedLabels", lambda y, *rest: rows_of.append(y) or labels(y, *rest))
    share = {"validation_fraction": 0.2} if held == 12 else {}
    model = quick(bandwidth="validated", early_stopping=early_stopping, patience=2, epochs=9, **share)
    model.fit(X, Y, sample_weight=weight)
    ((rows, held_out, nets, results),) = seen
    assert nets == [(bandwidth, member) for bandwidth in BANDWIDTHS for member in (0, 1)]
    assert [len(out) for out in held_out] == [held, held]
    assert not set(held_out[0]) & set(held_out[1])
    np.testing.assert_allclose(np.average(rows.x, axis=0, weights=rows.weight), 0, atol=1e-12)
    for (_, member), network, trained_on in zip(nets, results, rows_of, strict=True):
        out = held_out[member]
        assert np.array_equal(trained_on, np.delete(rows.y, out, axis=0))
        arrays = arrays_of([network.weights])
        predicted = predict_networks(*arrays, np.empty((0, 5)), torch.from_numpy(rows.x[out]))[0].numpy()
        np.testing.assert_allclose(network.errors, ((predicted - rows.y[out]) ** 2).mean(axis=1), rtol=1e-4, atol=1e-9)
        assert early_stopping or network.best_epoch == 9
    errors = np.concatenate([network.errors for network in results[:2]])
    expected = np.sqrt(np.average(errors, weights=rows.weight[np.concatenate(held_out)]))
    assert model.validation_scores_[0] == pytest.approx(expected)
    assert not early_stopping or model.n_epochs_ in {9, *(network.best_epoch + 2 for network in results)}
    quick(epochs=1, verbose=True, **share).fit(X, Y, sample_weight=weight)  # tells by what an epoch is chosen
    rows, held_out, _, results = seen[-1]
    validation = [np.average(one.errors, weights=rows.weight[out]) for one, out in zip(results, held_out, strict=True)]
    assert capsys.readouterr().out.endswith(f", {np.mean(validation):.4f} held out\n")


def test_partners_are_among_the_rows_trained_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    class Spied(fitting.BatchLoader):
        def batches(self, orders: Any, draws: Any) -> Any:
            seen.append(([order.index for order in orders], [draw["partner"] for draw in draws]))
            return super().batches(orders, draws)

    monkeypatch.setattr(fitting, "BatchLoader", Spied)
    quick(bandwidth=np.inf, epochs=2, validation_fraction=0.4).fit(X, Y)
    for orders, partners in seen:
        for order, partner in zip(orders, partners, strict=True):
            assert len(set(order)) == 36
            assert set(partner) <= set(order)


def test_the_loss_curve_is_that_of_the_epochs(capsys: pytest.CaptureFixture[str]) -> None:
    """Without mixing and steps the loss of an epoch is the squared error of the rows trained on."""
    model = quick(bandwidth=0, lr=1e-30, epochs=3, early_stopping=False, batch_size=60, verbose=True).fit(X, Y)
    z, y = (torch.from_numpy(v) for v in ((X - model.x_mean_) / model.x_scale_, (Y - model.y_mean_) / model.y_scale_))
    singles = predict_networks(model.coefs_, model.intercepts_, np.empty((0, 5)), z)
    expected = float((singles[..., 0] - y).square().mean())
    np.testing.assert_allclose(model.loss_curve_, [expected] * 3, rtol=1e-5)
    assert capsys.readouterr().out == "".join(f"epoch {k}: squared error {expected:.4f}\n" for k in (1, 2, 3))
    quick(epochs=1, verbose=True).fit(X, Y)
    assert capsys.readouterr().out.endswith(" held out\n")


def test_of_equals_the_first_epoch_and_the_narrowest_bandwidth_are_kept() -> None:
    """A rate too small to move a weight: no epoch is better than the first; training ends (patience + 1) / 2 later."""
    model = quick(bandwidth="validated", lr=1e-30, patience=5, epochs=9).fit(X, Y)
    np.testing.assert_allclose(model.validation_scores_, model.validation_scores_[0], rtol=1e-12)
    assert (model.best_epoch_, model.n_epochs_, model.bandwidth_) == ([1, 1], 4, 0.0)


def test_networks_that_have_stopped_leave_the_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others come to what they come to beside them, and epochs are trained by fewer."""
    options: dict[str, Any] = {"bandwidth": 0.3, "members": 5, "epochs": 30, "patience": 4, "lr": 0.05}
    sizes, build = [], fitting.Networks._build
    monkeypatch.setattr(
        fitting.Networks, "_build", lambda nets, places: sizes.append(len(places)) or build(nets, places)
    )
    smaller = quick(**options).fit(X, Y)
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-1]) == (5, 2)
    monkeypatch.setattr(fitting.Networks, "go_on_with", lambda *_: None)
    whole = quick(**options).fit(X, Y)
    assert smaller.best_epoch_ == whole.best_epoch_
    assert len(set(smaller.best_epoch_)) > 1
    np.testing.assert_allclose(smaller.predict(X), whole.predict(X), rtol=1e-4)
    np.testing.assert_allclose(smaller.loss_curve_, whole.loss_curve_, rtol=1e-4)


def test_of_many_rows_networks_that_wait_go_on_with_their_best_weights_at_a_lower_rate(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Errors are scripted: no epoch is better than the first."""
    few = (quick(patience=patience, epochs=25).fit(X, Y).predict(X) for patience in (None, 20))
    np.testing.assert_array_equal(*few)
    epochs: list[tuple[torch.Tensor, Any]] = []
    original = fitting.Networks.run_epoch

    def spied(networks: fitting.Networks) -> torch.Tensor:
        begun = next(networks.stack.model.parameters()).detach().clone()
        loss = original(networks)
        epochs.append((begun, networks.stack.optimizer.lr))
        return loss

    monkeypatch.setattr(fitting.Networks, "run_epoch", spied)
    monkeypatch.setattr(fitting.Networks, "errors", lambda nets: torch.ones(nets.scored.shape, dtype=torch.float64))
    monkeypatch.setattr(options, "MANY_ROWS", len(X))
    assert quick(patience=None, epochs=9, lr=0.02).fit(X, Y).n_epochs_ == 5
    rates = [[0.04] * 2] * 3 + [[0.04 * 0.3] * 2, [0.04 * 0.09] * 2]
    np.testing.assert_allclose([rate for _, rate in epochs], rates)
    after_first = epochs[1][0]
    assert [torch.equal(begun, after_first) for begun, _ in epochs] == [False, True, False, True, True]


def test_mixing_that_is_worse_once_training_without_has_stopped_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are scripted: without mixing 1 from epoch 2 on, with 0.3 from 4.5 down, with inf below 1."""
    seen: list[list[int]] = []
    original, epoch = fitting.Networks.train, itertools.count(1)

    def scripted(networks: fitting.Networks) -> torch.Tensor:
        now = next(epoch)
        errors = torch.tensor([1.0 + (now < 2), 5 - 0.5 * now, 0.9 - 0.01 * now])
        return errors[networks.places, None].double().expand(-1, networks.scored.shape[1])

    monkeypatch.setattr(fitting.Networks, "errors", scripted)

    def spied(networks: fitting.Networks) -> list[fitting.Trained]:
        trained = original(networks)
        seen.append([network.best_epoch for network in trained])
        return trained

    monkeypatch.setattr(fitting.Networks, "train", spied)
    quick(bandwidth="validated", members=1, epochs=20, patience=4, blend="trees").fit(X, Y)
    assert seen == [[2, 5, 20]]


def test_the_loss_curve_ends_where_the_networks_that_are_kept_have_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors are scripted: both ways of mixing get better to the end, but by less than a standard error."""
    uneven = torch.tensor([-3.0, 0.59, 0.59, 0.59, 0.59, 0.59])

    def scripted(networks: fitting.Networks) -> torch.Tensor:
        now = next(epoch)
        mixed = 1 + uneven - 0.001 * now
        return torch.stack([torch.ones(6) + (now < 2), mixed, mixed])[networks.places].double()

    monkeypatch.setattr(fitting.Networks, "errors", scripted)
    curves = []
    for bandwidth in ("validated", 0):
        epoch = itertools.count(1)
        model = quick(bandwidth=bandwidth, members=1, epochs=20, patience=4, blend="trees").fit(X, Y)
        assert (model.bandwidth_, model.best_epoch_, model.n_epochs_) == (0.0, [2], 5)
        curves.append(model.loss_curve_)
    np.testing.assert_allclose(*curves, rtol=1e-3)


def test_the_seed_decides_and_nothing_global_is_touched() -> None:
    torch.set_num_threads(2)
    before = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    again, other, any_ = (quick(random_state=seed).fit(X, Y).predict(X) for seed in (0, 1, None))
    after = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert before == after
    assert threads == 2
    assert np.array_equal(again, FITTED.predict(X))
    assert not np.allclose(other, again)
    assert not np.allclose(any_, again)
    by_generator = [quick(random_state=np.random.default_rng(5)).fit(X, Y).predict(X) for _ in range(2)]
    assert np.array_equal(*by_generator)


def test_one_thread_while_fitting(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    forward = MLP.forward
    monkeypatch.setattr(MLP, "forward", lambda self, x: seen.append(torch.get_num_threads()) or forward(self, x))
    torch.set_num_threads(2)
    try:
        quick(epochs=1).fit(X, Y)
        quick(epochs=1, n_threads=None).fit(X, Y)
    finally:
        torch.set_num_threads(1)
    assert set(seen[: len(seen) // 2]) == {1}
    assert set(seen[len(seen) // 2 :]) == {2}


@pytest.mark.parametrize("loss", ["squared", "absolute", "quantile"])
def test_weights_count_rows(loss: str) -> None:
    """0 is no row, 2 is the row twice, and only ratios and no order matter: to the last bit."""
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    expected = quick(loss=loss).fit(X, Y, sample_weight=weight).predict(X)
    order = np.random.default_rng(1).permutation(weight.sum())
    rows = np.repeat(np.arange(len(X)), weight)[order]
    assert np.array_equal(quick(loss=loss).fit(X[rows], Y[rows]).predict(X), expected)
    assert np.array_equal(quick(loss=loss).fit(X, Y, sample_weight=4.0 * weight).predict(X), expected)
    assert not np.allclose(quick(loss=loss).fit(X, Y, sample_weight=weight > 0).predict(X), expected)


def test_several_outputs() -> None:
    x, y = table(outputs=2)
    model = quick(bandwidth=0.3).fit(x, y)
    assert model.predict(x).shape == y.shape
    assert model.bandwidth_ == 0.3
    stretched = quick(bandwidth=0.3).fit(x, y * [1.0, 1024.0]).predict(x)  # each output in its own units
    assert np.array_equal(stretched, model.predict(x) * [1.0, 1024.0])
    assert quick().fit(X, Y[:, None]).predict(X).shape == (len(X), 1)


@pytest.mark.gpu
def test_a_gpu_gives_the_same_up_to_rounding() -> None:
    model = quick(device="cuda", bandwidth="validated").fit(X, Y)
    expected = quick(bandwidth="validated").fit(X, Y)
    np.testing.assert_allclose(model.validation_scores_, expected.validation_scores_, rtol=0.01)
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=0.01)
    assert np.array_equal(quick(device="auto", bandwidth="validated").fit(X, Y).predict(X), model.predict(X))


def test_a_diverged_fit_is_an_error() -> None:
    with pytest.raises(InputError, match="lr must be smaller: training diverged, got 1e\\+30"):
        quick(lr=1e30).fit(X, Y)
