"""The loop: selection, evaluation, batches, learning rates and divergence."""

import copy
from dataclasses import replace
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.metrics import METRICS as SCORES
from cmixup.networks.fcn3 import FCN3
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.method import Method
from cmixup.training.model_stack import ModelStack
from cmixup.training.trainer import train
from cmixup.training.training import Training
from tests.helpers import assert_states_close, assert_states_equal, composed, make_data, make_run, settings, train_one

# ---- evaluation


@pytest.mark.parametrize("n_seeds", [1, 2])
@pytest.mark.parametrize("eval_batch_size", [1, 6])
def test_evaluation_does_not_depend_on_its_batch_size(eval_batch_size: int, n_seeds: int) -> None:
    def run(size: int) -> list:
        runs = [make_run(composed("mixup"), seed) for seed in range(n_seeds)]
        return train(runs, settings(epochs=2, eval_batch_size=size))

    for ours, whole in zip(run(eval_batch_size), run(4096), strict=True):
        assert_states_close(ours.state_dict, whole.state_dict, 1e-7)
        for split in ("val", "test"):
            assert ours.scores[split] == pytest.approx(whole.scores[split], rel=1e-6)


def test_scores_are_those_of_the_returned_weights() -> None:
    data = make_data(1, worst=("rmse", "r"), metrics=("rmse", "mse", "mape", "r"))
    result = train_one(composed("mixup"), 1, data, epochs=4)
    model = FCN3((3,), 1)
    model.load_state_dict(result.state_dict)
    model.eval()
    for name, split in (("val", data.val), ("test", data.test)):
        with torch.no_grad():
            prediction = model(split.x)
        for metric in data.metrics:
            expected = float(SCORES[metric].score(prediction, split.y))
            assert result.scores[name][metric] == pytest.approx(expected, rel=1e-9)
        by_domain = [
            float(SCORES["rmse"].score(prediction[split.domain == d], split.y[split.domain == d])) for d in (0, 1)
        ]
        assert result.scores[name]["worst_rmse"] == pytest.approx(max(by_domain), rel=1e-9)
        assert result.scores[name]["mean_rmse"] == pytest.approx(sum(by_domain) / 2, rel=1e-9)
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


@pytest.mark.parametrize(("values", "best"), [([3, 1, 2, 1, 5], 2), ([1, 2, 3], 1), ([3, 2, 1], 3), ([2, 2, 2], 1)])
def test_the_checkpoint_is_the_first_with_the_best_val_metric(values: list[float], best: int) -> None:
    run = make_run(Scripted("bias", values), data=zeros(), model=OneNumber)
    (result,) = train([run], settings(epochs=len(values)))
    assert result.best_epoch == best
    assert result.state_dict["bias"].tolist() == [values[best - 1]]
    assert result.scores["val"]["rmse"] == result.scores["test"]["rmse"] == values[best - 1]
    assert [row["epoch"] for row in result.history] == list(range(1, len(values) + 1))
    assert [row["val_rmse"] for row in result.history] == pytest.approx(values, nan_ok=True)
    assert not result.failure


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


def test_without_shuffling_every_epoch_has_the_rows_in_their_order() -> None:
    method, data = Counting(), make_data(0, (50, 20, 17))
    train_one(method, data=data, epochs=2, drop_last=True, shuffle=False)
    assert list(chain(*method.seen)) == data.train.y[:48, 0].tolist() * 2
    train_one(method := Counting(), data=data, epochs=2)
    first, second = list(chain(*method.seen[:4])), list(chain(*method.seen[4:]))
    assert first != second != data.train.y[:, 0].tolist() != first
    assert sorted(first) == sorted(second) == sorted(data.train.y[:, 0].tolist())


def test_tracked_splits_are_scored_clean_after_every_epoch_and_change_nothing() -> None:
    runs = [make_run(composed("cmixup"), seed) for seed in range(3)]
    tracked = train(runs, settings(epochs=3, track=["train", "test"]))
    plain = train([make_run(composed("cmixup"), seed) for seed in range(3)], settings(epochs=3))
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


@pytest.mark.parametrize(("gamma", "every"), [(0.96, 1), (0.1, 3), (1.0, 1)])
def test_the_learning_rate_decays_as_steplr(gamma: float, every: int) -> None:
    parameter = nn.Parameter(torch.zeros(1))
    theirs = torch.optim.SGD([parameter], lr=0.3)
    schedule = torch.optim.lr_scheduler.StepLR(theirs, every, gamma)
    expected, seen, drawing = [], [], []
    for _ in range(7):
        expected.append(theirs.param_groups[0]["lr"])
        theirs.step()
        schedule.step()

    class Watching(ERM):
        def begin(self, training: Training) -> None:
            self._stack = training.stack

        def order(self, *args: Any, **options: Any) -> EpochBatches:
            drawing.extend(self._stack.optimizer.lr)  # RC-Mixup takes steps here
            return super().order(*args, **options)

        def step(self, stack: ModelStack, batch: Batch) -> Tensor:
            seen.extend(stack.optimizer.lr)
            return super().step(stack, batch)

    train_one(Watching(), epochs=7, batch_size=48, lr=0.3, lr_decay=gamma, lr_decay_every=every, optimizer="sgd")
    assert seen == drawing == pytest.approx(expected, rel=1e-12)


def test_steps_in_bfloat16_read_the_weights_as_they_are_and_predictions_are_of_32_bits() -> None:
    data, run = make_data(0), make_run(ERM(), 0)
    model = copy.deepcopy(run.model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses = []
    for _ in range(4):
        losses.append([])
        for x, y in zip(data.train.x.split(16), data.train.y.split(16), strict=True):
            with torch.autocast("cpu", torch.bfloat16):
                output = model(x)
            loss = (output.float() - y).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    how = {"epochs": 4, "optimizer": "sgd", "lr": 0.05, "shuffle": False, "select": "last"}
    half, full = (train_one(ERM(), 0, data, precision=p, **how) for p in ("bfloat16", "float32"))
    assert [row["train_loss"] for row in half.history] == pytest.approx([sum(of) / len(of) for of in losses], rel=1e-5)
    assert half.history[-1]["train_loss"] < 0.9 * half.history[0]["train_loss"]
    assert half.history[0]["train_loss"] != full.history[0]["train_loss"]
    model.load_state_dict(half.state_dict)
    with torch.no_grad():
        torch.testing.assert_close(half.predictions["test"][""], model(data.test.x), rtol=0, atol=0)
    with pytest.raises(InputError, match="precision must be one of float32, bfloat16, got 'half'"):
        settings(precision="half")


# ---- divergence


def test_a_run_fails_at_the_first_step_whose_loss_is_not_finite_and_training_ends() -> None:
    result = train_one(ERM(), optimizer="sgd", lr=1e30, epochs=5, batch_size=7)
    message, _, step = result.failure.rpartition(" ")
    assert message == "the training loss is not finite at epoch 1, step"
    assert 1 < int(step) <= 7  # the loss of the first step is that of the initial weights
    assert len(result.history) == 1
    assert result.scores == {}


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_prediction_on_val_that_is_not_finite_fails_the_run_whatever_was_reached_before(bad: float) -> None:
    run = make_run(Scripted("bias", [1, bad, 1]), data=zeros(selection="r"), model=OneNumber)
    (result,) = train([run], settings(epochs=3))
    assert result.failure == "a prediction on val is not finite at epoch 2, step 1"


def test_one_run_that_fails_leaves_the_others() -> None:
    healthy, huge = make_data(0), make_data(1)
    huge.train.y.mul_(1e25)
    changes = {"optimizer": "sgd", "lr": 0.01, "epochs": 2}
    one, other = train([make_run(ERM(), 0, healthy), make_run(ERM(), 1, huge)], settings(**changes))
    assert other.failure
    assert not one.failure
    assert_states_close(one.state_dict, train_one(ERM(), 0, healthy, **changes).state_dict, 1e-5)
