from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.methods.base import Method
from cmixup.methods.cmixup import cmixup
from cmixup.methods.erm import ERM
from cmixup.methods.manifold_mixup import manifold_mixup
from cmixup.methods.mixup import mixup
from cmixup.metrics import METRICS as SCORES
from cmixup.mixing.lam import Beta
from cmixup.model_stack import ModelStack
from cmixup.pairing.neighbours import Neighbours
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import train
from models.fcn3 import FCN3
from tests.helpers import (
    METHODS,
    Lazy,
    assert_diagnostics_close,
    assert_states_close,
    assert_states_equal,
    fitted,
    in_float64,
    make_data,
    make_run,
    settings,
    states_differ,
    train_one,
)

THREE_STEPS, ONE_EPOCH = (48, 20, 17), (203, 20, 17)
SEEDS = (0, 1, 5)


# ---- a stack of seeds is as many separate runs


# Adam that starts anew after the annealing moves by lr g / |g|: in float32 that makes steps of the rounding of small g.
RESTARTS = ("irm", "ib_irm", "vrex")
# Three steps of Adam from a search's pairs leave one weight in 16384 further apart than 1e-5 in float32.
IN_FLOAT64 = (*RESTARTS, "mixrl_hidden")


@pytest.mark.parametrize("sizes", [THREE_STEPS, ONE_EPOCH], ids=["3 steps", "an epoch"])
@pytest.mark.parametrize("name", IN_FLOAT64)
def test_a_stack_equals_separate_runs_in_float64(
    name: str, sizes: tuple[int, int, int], float64: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw, fit = Beta.draw, Neighbours.fit

    def fit_in_float64(pairing: Neighbours, train_split: Split) -> None:
        fit(pairing, train_split)
        pairing.features = pairing.features.double()

    monkeypatch.setattr(Beta, "draw", lambda lam, *given: draw(lam, *given).astype(np.float64))
    monkeypatch.setattr(Neighbours, "fit", fit_in_float64)
    data = {seed: in_float64(make_data(seed, sizes)) for seed in SEEDS}
    together = train([make_run(METHODS[name](), seed, data[seed]) for seed in SEEDS], settings())
    for seed, ours in zip(SEEDS, together, strict=True):
        alone = train_one(METHODS[name](), seed, data[seed])
        assert_states_close(ours.state_dict, alone.state_dict, 1e-10)
        assert ours.diagnostics == alone.diagnostics


@pytest.mark.parametrize("sizes", [THREE_STEPS, ONE_EPOCH], ids=["3 steps", "an epoch"])
@pytest.mark.parametrize("name", [name for name in METHODS if name not in IN_FLOAT64])
def test_a_stack_equals_separate_runs(name: str, sizes: tuple[int, int, int]) -> None:
    data = {seed: make_data(seed, sizes) for seed in SEEDS}
    together = train([make_run(METHODS[name](), seed, data[seed]) for seed in SEEDS], settings())
    assert [result.stack for result in together] == [3, 3, 3]
    for seed, ours in zip(SEEDS, together, strict=True):
        alone = train_one(METHODS[name](), seed, data[seed])
        assert alone.stack == 1
        assert_states_close(ours.state_dict, alone.state_dict, 1e-5)
        assert ours.best_epoch == alone.best_epoch
        assert_diagnostics_close(ours.diagnostics, alone.diagnostics, 1e-5)
        for split in ("val", "test"):
            assert ours.scores[split] == pytest.approx(alone.scores[split], rel=1e-4, abs=1e-5)
        for one, other in zip(ours.history, alone.history, strict=True):
            assert one == pytest.approx(other, rel=1e-5, abs=1e-5)


def test_runs_of_a_stack_differ() -> None:
    one, other = train([make_run(mixup(0.5), seed) for seed in (0, 1)], settings())
    assert states_differ(one.state_dict, other.state_dict)
    assert one.scores != other.scores


@pytest.mark.parametrize("optimizer", ["adam", "sgd"])
def test_a_stack_equals_separate_runs_with_weight_decay(optimizer: str) -> None:
    changes = {"optimizer": optimizer, "weight_decay": 0.1, "epochs": 2}
    together = train([make_run(ERM(), seed) for seed in SEEDS], settings(**changes))
    for seed, ours in zip(SEEDS, together, strict=True):
        assert_states_close(ours.state_dict, train_one(ERM(), seed, **changes).state_dict, 1e-5)


def test_each_run_keeps_its_own_best_epoch() -> None:
    changes = {"epochs": 8, "lr": 0.05}
    together = train([make_run(ERM(), seed) for seed in range(6)], settings(**changes))
    for result in together:
        curve = [row["val_rmse"] for row in result.history]
        assert result.best_epoch == 1 + int(np.argmin(curve))
        assert result.scores["val"]["rmse"] == pytest.approx(min(curve), rel=1e-12)
    assert len({result.best_epoch for result in together}) > 1


# ---- the same seed gives the same numbers


@pytest.mark.parametrize("name", METHODS)
def test_same_seed_same_numbers(name: str) -> None:
    one, other = (train_one(METHODS[name](), 3, epochs=2) for _ in range(2))
    assert_states_equal(one.state_dict, other.state_dict)
    assert one.scores == other.scores
    assert one.history == other.history
    different = train_one(METHODS[name](), 4, make_data(3), epochs=2)
    assert states_differ(one.state_dict, different.state_dict)


def test_the_global_generators_do_not_matter() -> None:
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    one = train_one(cmixup(0.3, 0.5), 3)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    state = torch.get_rng_state()
    other = train_one(cmixup(0.3, 0.5), 3)
    assert_states_equal(one.state_dict, other.state_dict)
    assert torch.equal(torch.get_rng_state(), state)


# ---- evaluation


@pytest.mark.parametrize("n_seeds", [1, 2])
@pytest.mark.parametrize("eval_batch_size", [1, 6, 17, 20])
def test_evaluation_does_not_depend_on_its_batch_size(eval_batch_size: int, n_seeds: int) -> None:
    def run(size: int) -> list:
        runs = [make_run(mixup(0.5), seed) for seed in range(n_seeds)]
        return train(runs, settings(epochs=2, eval_batch_size=size))

    for ours, whole in zip(run(eval_batch_size), run(4096), strict=True):
        assert_states_close(ours.state_dict, whole.state_dict, 1e-7)
        for split in ("val", "test"):
            assert ours.scores[split] == pytest.approx(whole.scores[split], rel=1e-6)


def test_scores_are_those_of_the_returned_weights() -> None:
    data = make_data(1, worst=("rmse", "r"), metrics=("rmse", "mse", "mape", "r"))
    result = train_one(mixup(0.5), 1, data, epochs=4)
    model = FCN3((3,), 1)
    model.load_state_dict(result.state_dict)
    model.eval()
    for name, split in (("val", data.val), ("test", data.test)):
        with torch.no_grad():
            prediction = model(split.x)
        for metric in data.metrics:
            expected = float(SCORES[metric].score(prediction, split.y))
            assert result.scores[name][metric] == pytest.approx(expected, rel=1e-9)
        each = [float(SCORES["rmse"].score(prediction[split.domain == d], split.y[split.domain == d])) for d in (0, 1)]
        assert result.scores[name]["worst_rmse"] == pytest.approx(max(each), rel=1e-9)
        assert result.scores[name]["mean_rmse"] == pytest.approx(sum(each) / 2, rel=1e-9)
        assert set(result.scores[name]) == {*data.metrics, "worst_rmse", "worst_r", "mean_rmse", "mean_r"}


# ---- selection


class OneNumber(nn.Module):
    """Predicts one number everywhere, or minus the input."""

    def __init__(self, width: int = 1, d_y: int = 1):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(1))
        self.slope = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        return self.bias + self.slope * x


class Scripted(Method):
    """Sets a parameter to planned values, one an epoch (of one batch)."""

    stackable = False

    def __init__(self, name: str, values: list[float]):
        super().__init__()
        self.name, self.values = name, list(values)

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        with torch.no_grad():
            getattr(stack.model, self.name).fill_(self.values.pop(0))
        return torch.zeros(())


def zeros(**changes: object) -> RegressionData:
    n = 8
    x = torch.arange(n, dtype=torch.float32)[:, None]
    y = x if changes.get("selection") == "r" else torch.zeros(n, 1)
    return RegressionData(
        "zeros", *(Split(x, y, torch.zeros(n, dtype=torch.int64)) for _ in range(3)), unit="none", **changes
    )


@pytest.mark.parametrize(
    ("values", "best"),
    [([3, 1, 2, 1, 5], 2), ([1, 2, 3], 1), ([3, 2, 1], 3), ([float("nan"), 4, 5], 2), ([2, float("inf"), 1], 3)],
)
def test_the_checkpoint_is_the_first_with_the_best_val_metric(values: list[float], best: int) -> None:
    run = make_run(Scripted("bias", values), data=zeros(), model=OneNumber)
    (result,) = train([run], settings(epochs=len(values)))
    assert result.best_epoch == best
    assert result.state_dict["bias"].tolist() == [values[best - 1]]
    assert result.scores["val"]["rmse"] == result.scores["test"]["rmse"] == values[best - 1]
    assert [row["epoch"] for row in result.history] == list(range(1, len(values) + 1))
    assert [row["val_rmse"] for row in result.history] == pytest.approx(values, nan_ok=True)
    assert not result.diverged


def test_a_metric_where_higher_is_better_selects_the_highest() -> None:
    run = make_run(Scripted("slope", [-1, 1, 0]), data=zeros(selection="r"), model=OneNumber)
    (result,) = train([run], settings(epochs=3))
    assert [row["val_r"] for row in result.history] == pytest.approx([-1, 1, 0])
    assert result.best_epoch == 2
    assert result.state_dict["slope"].tolist() == [1]


def test_the_test_split_has_no_say() -> None:
    data = make_data(2)
    other = replace(data, test=make_data(9).test)
    one, two = train_one(ERM(), 2, data, epochs=5), train_one(ERM(), 2, other, epochs=5)
    assert one.best_epoch == two.best_epoch
    assert_states_equal(one.state_dict, two.state_dict)
    assert one.scores["test"] != two.scores["test"]


# ---- the loop


class Counting(ERM):
    """ERM that remembers the labels of its batches."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[float]] = []

    @property
    def sizes(self) -> list[int]:
        return [len(labels) for labels in self.seen]

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        self.seen.append(batch.y[..., 0].tolist())
        return super().step(stack, batch)


@pytest.mark.parametrize(("drop_last", "sizes"), [(False, [16, 16, 16, 2]), (True, [16, 16, 16])])
def test_drop_last(drop_last: bool, sizes: list[int]) -> None:
    method = Counting()
    train_one(method, data=make_data(0, (50, 20, 17)), epochs=2, drop_last=drop_last)
    assert method.sizes == sizes * 2


def test_without_shuffling_every_epoch_has_the_rows_in_their_order() -> None:
    method, data = Counting(), make_data(0, (50, 20, 17))
    train_one(method, data=data, epochs=2, drop_last=True, shuffle=False)
    assert list(chain(*method.seen)) == data.train.y[:48, 0].tolist() * 2
    train_one(method := Counting(), data=data, epochs=2)
    first, second = list(chain(*method.seen[:4])), list(chain(*method.seen[4:]))
    assert first != second != data.train.y[:, 0].tolist() != first
    assert sorted(first) == sorted(second) == sorted(data.train.y[:, 0].tolist())


def test_drop_last_with_too_few_rows_is_refused() -> None:
    with pytest.raises(InputError, match="batch_size 64 is larger than the 48 training rows"):
        train_one(ERM(), batch_size=64, drop_last=True)


def test_training_learns() -> None:
    result = train_one(ERM(), 0, make_data(0, (203, 50, 50)), epochs=30)
    assert result.scores["test"]["rmse"] < 0.2
    assert result.scores["test"]["r"] > 0.9
    assert result.history[-1]["train_loss"] < result.history[0]["train_loss"] / 5
    assert result.seconds > 0


def test_tracked_splits_are_scored_clean_after_every_epoch_and_change_nothing() -> None:
    runs = [make_run(cmixup(0.3, 0.5), seed) for seed in range(3)]
    tracked = train(runs, settings(epochs=3, track=["train", "test"]))
    plain = train([make_run(cmixup(0.3, 0.5), seed) for seed in range(3)], settings(epochs=3))
    for run, ours, theirs in zip(runs, tracked, plain, strict=True):
        assert_states_equal(ours.state_dict, theirs.state_dict)
        assert ours.scores == theirs.scores
        assert list(ours.history[0]) == ["epoch", "train_loss", "val_rmse", "train_rmse", "test_rmse"]
        best = ours.history[ours.best_epoch - 1]
        assert best["test_rmse"] == pytest.approx(ours.scores["test"]["rmse"], rel=1e-6)
        run.model.load_state_dict(ours.state_dict)
        split = run.data.train
        with torch.no_grad():
            clean = (run.model(split.x) - split.y).square().mean().sqrt()
        assert best["train_rmse"] == pytest.approx(float(clean), rel=1e-5)
    with pytest.raises(InputError, match="track must be one of train, test, got 'val'"):
        settings(track=["val"])


def test_on_epoch_hears_of_every_epoch_and_run() -> None:
    heard: list[tuple[int, int]] = []
    runs = [make_run(ERM(), seed) for seed in range(2)]
    results = train(runs, settings(epochs=3), on_epoch=lambda epoch, rows: heard.append((epoch, len(rows))))
    assert heard == [(1, 2), (2, 2), (3, 2)]
    assert [len(result.history) for result in results] == [3, 3]


@pytest.mark.parametrize("name", ["epochs", "batch_size", "eval_batch_size", "lr_decay_every"])
def test_counts_below_one_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} must be 1 or more, got 0"):
        TrainSettings(**{"epochs": 1, "batch_size": 1, "lr": 0.1, name: 0})


@pytest.mark.parametrize("value", [0.0, -0.5, float("nan")])
def test_a_decay_that_is_not_above_zero_is_refused(value: float) -> None:
    with pytest.raises(InputError, match="lr_decay must be a finite number above 0"):
        settings(lr_decay=value)


@pytest.mark.parametrize(("gamma", "every"), [(0.96, 1), (0.1, 3), (1.0, 1)])
def test_the_learning_rate_decays_as_steplr(gamma: float, every: int) -> None:
    parameter = nn.Parameter(torch.zeros(1))
    theirs = torch.optim.SGD([parameter], lr=0.3)
    schedule = torch.optim.lr_scheduler.StepLR(theirs, every, gamma)
    expected, seen = [], []
    for _ in range(7):
        expected.append(theirs.param_groups[0]["lr"])
        theirs.step()
        schedule.step()

    class Watching(ERM):
        def step(self, stack: ModelStack, batch: Batch) -> Tensor:
            seen.append(stack.optimizer.lr)
            return super().step(stack, batch)

    train_one(Watching(), epochs=7, batch_size=48, lr=0.3, lr_decay=gamma, lr_decay_every=every, optimizer="sgd")
    assert seen == pytest.approx(expected, rel=1e-12)


def test_splits_of_different_sizes_do_not_stack() -> None:
    runs = [make_run(ERM(), 0), make_run(ERM(), 1, make_data(1, (49, 20, 17)))]
    with pytest.raises(InputError, match="splits of one shape"):
        train(runs, settings())


# ---- divergence


def test_a_run_without_finite_scores_has_diverged() -> None:
    result = train_one(ERM(), optimizer="sgd", lr=1e30, epochs=2)
    assert result.diverged
    assert result.best_epoch == 0


def test_one_run_that_diverges_leaves_the_others() -> None:
    healthy, huge = make_data(0), make_data(1)
    huge.train.y.mul_(1e25)
    changes = {"optimizer": "sgd", "lr": 0.01, "epochs": 2}
    one, other = train([make_run(ERM(), 0, healthy), make_run(ERM(), 1, huge)], settings(**changes))
    assert other.diverged
    assert not one.diverged
    assert_states_close(one.state_dict, train_one(ERM(), 0, healthy, **changes).state_dict, 1e-5)


# ---- models and inputs of other kinds


class WithBatchNorm(nn.Module):
    """A model that cannot be stacked and has buffers, one of them without axes."""

    def __init__(self, width: int, d_y: int):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, d_y))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


@pytest.mark.parametrize("name", ["erm", "mixup", "cmixup"])
def test_models_that_do_not_stack_train_one_after_another(name: str) -> None:
    def runs(seeds: tuple[int, ...]) -> list:
        return [make_run(METHODS[name](), seed, model=WithBatchNorm) for seed in seeds]

    together = train(runs((0, 1)), settings(epochs=2))
    assert [result.stack for result in together] == [1, 1]
    for seed, ours in zip((0, 1), together, strict=True):
        (alone,) = train(runs((seed,)), settings(epochs=2))
        assert_states_equal(ours.state_dict, alone.state_dict)
        assert ours.scores == alone.scores
        WithBatchNorm(3, 1).load_state_dict(ours.state_dict)


class WithDropout(nn.Module):
    def __init__(self, width: int, d_y: int):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 8), nn.Dropout(0.5), nn.Linear(8, d_y))

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x)


def test_dropout_is_seeded_and_off_in_evaluation() -> None:
    def run() -> tuple:
        run = make_run(ERM(), 2, model=WithDropout)
        (result,) = train([run], settings(epochs=2))
        return result, run

    (one, run), (other, _) = run(), run()
    assert_states_equal(one.state_dict, other.state_dict)
    fresh = WithDropout(3, 1)
    fresh.load_state_dict(one.state_dict)
    fresh.eval()
    with torch.no_grad():
        prediction = fresh(run.data.test.x)
    assert one.scores["test"]["rmse"] == pytest.approx(float(SCORES["rmse"].score(prediction, run.data.test.y)))


class WithLayerList(nn.Module):
    """An ordinary model whose attributes happen to carry the names that backbones use."""

    def __init__(self, width: int, d_y: int):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, 8), nn.Linear(8, d_y)])
        self.hidden = nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return self.layers[1](self.hidden(self.layers[0](x)).relu())


@pytest.mark.parametrize("model", [nn.Linear, WithBatchNorm, WithLayerList])
@pytest.mark.parametrize("name", ["erm", "mixup", "mixup_permutation", "cmixup"])
def test_a_plain_module_trains_with_input_level_methods(name: str, model: Callable[[int, int], nn.Module]) -> None:
    run = make_run(METHODS[name](), model=model)
    (result,) = train([run], settings(epochs=2))
    assert np.isfinite(list(result.scores["test"].values())).all()
    assert result.best_epoch > 0


@pytest.mark.parametrize("model", [nn.Linear, WithLayerList])
@pytest.mark.parametrize("layer", ["hidden", "block1"])
def test_a_hidden_layer_asked_of_a_model_without_one_is_refused(
    layer: str, model: Callable[[int, int], nn.Module]
) -> None:
    with pytest.raises(InputError, match=rf"layer must be a mix point of \w+ \(input\), got '{layer}'"):
        fitted(make_run(manifold_mixup(0.5, layer=layer), model=model))


@pytest.mark.parametrize("name", METHODS)
def test_lazily_read_inputs_give_the_same_numbers(name: str) -> None:
    data = make_data(6, (50, 20, 17))
    lazies = {part: Lazy(getattr(data, part).x) for part in ("train", "val", "test")}
    lazy = replace(data, **{part: replace(getattr(data, part), x=x) for part, x in lazies.items()})
    changes = {"epochs": 2, "eval_batch_size": 9}
    ours, theirs = train_one(METHODS[name](), 6, lazy, **changes), train_one(METHODS[name](), 6, data, **changes)
    assert_states_equal(ours.state_dict, theirs.state_dict)
    assert ours.scores == theirs.scores
    assert ours.history == theirs.history
    looks_at_inputs = name.startswith(("k_mixup", "local_mixup", "mixrl"))  # in pieces of `flat.INPUT_BYTES_PER_CHUNK`
    assert max(lazies["train"].asked) == (32 if name == "fish" else 16) or looks_at_inputs
    assert max(lazies["test"].asked) == 9
    assert max(lazies["val"].asked) == 9 or name.startswith("mixrl")  # its search reads in batches of its own


def test_lazily_read_inputs_train_seeds_one_after_another() -> None:
    def lazy(seed: int) -> RegressionData:
        data = make_data(seed)
        return replace(data, train=replace(data.train, x=Lazy(data.train.x)))

    together = train([make_run(mixup(0.5), seed, lazy(seed)) for seed in (0, 1)], settings())
    for seed, ours in zip((0, 1), together, strict=True):
        assert ours.stack == 1
        assert_states_equal(ours.state_dict, train_one(mixup(0.5), seed, make_data(seed)).state_dict)


def test_models_that_do_not_stack_are_refused_by_the_stack() -> None:
    with pytest.raises(InputError, match="models of class Linear cannot be trained as one stack"):
        ModelStack([nn.Linear(2, 1), nn.Linear(2, 1)], torch.device("cpu"))


def test_labels_of_several_dimensions() -> None:
    together = train([make_run(cmixup(0.3, 0.5), seed, make_data(seed, d_y=3)) for seed in (0, 1)], settings())
    for seed, ours in zip((0, 1), together, strict=True):
        assert ours.state_dict["out.weight"].shape == (3, 128)
        assert_states_close(ours.state_dict, train_one(cmixup(0.3, 0.5), seed, make_data(seed, d_y=3)).state_dict, 1e-5)
