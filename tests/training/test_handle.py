"""What methods are given when training begins, and how they hear of its epochs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from cmixup.pairing.uniform import Uniform
from cmixup.seeding import Streams
from cmixup.training.batch import shuffled
from cmixup.training.trainer import Run, train
from cmixup.training.training import Training
from tests.helpers import (
    assert_same,
    assert_states_equal,
    checkpoints,
    interrupted,
    make_data,
    make_run,
    make_training,
    settings,
)


def scaled_runs(seeds: tuple[int, ...]) -> tuple[list[Run], Any]:
    runs = [make_run(ERM(), seed) for seed in seeds]
    return runs, make_training(runs, label_scaling="standard", epochs=2)


@pytest.mark.parametrize("seeds", [(3,), (3, 5)])
def test_rows_are_read_as_a_step_gets_them(seeds: tuple[int, ...]) -> None:
    runs, training = scaled_runs(seeds)
    for rows in (np.array([4, 0]), np.array([[4, 0], [1, 1]])[: len(seeds)]):
        for name in ("train", "val"):
            batch = training.read(name, rows)
            for e, run in enumerate(runs):
                split, index = getattr(run.data, name), torch.from_numpy(rows if rows.ndim == 1 else rows[e])
                y = run.data.train.y
                expected = split.x[index], (split.y[index] - y.mean()) / y.std(correction=0), split.domain[index]
                for actual, wanted in zip((batch.x, batch.y, batch.domain), expected, strict=True):
                    torch.testing.assert_close(actual if len(seeds) == 1 else actual[e], wanted)


@pytest.mark.parametrize("seeds", [(3,), (3, 5)])
def test_an_epoch_predictions_and_scores_are_those_of_the_loop(seeds: tuple[int, ...]) -> None:
    runs, training = scaled_runs(seeds)
    orders = [run.method.order(run.data.train, 16, run.streams, drop_last=False) for run in runs]
    losses = training.run_epoch(orders, [{}] * len(runs))
    again = [make_run(ERM(), seed) for seed in seeds]
    results = train(again, settings(lr=1e-3, label_scaling="standard"))
    assert losses.double().mean(dim=0).reshape(-1).tolist() == [result.history[0]["train_loss"] for result in results]
    assert training.score("val", training.predict("val")).tolist() == [
        result.history[0]["val_rmse"] for result in results
    ]
    actual = training.predict("val").reshape(len(runs), -1, 1)
    assert all(torch.equal(actual[e], result.predictions["val"][""]) for e, result in enumerate(results))


class Listening(ERM):
    """Hears of every epoch, and weighs the loss by the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[int, float]] = []

    def draw(self, order: Any, streams: Any) -> dict[str, np.ndarray]:
        last = self.heard[-1][1] if self.heard else 1.0
        return {"weight_of_all": np.full(len(order.index), last, dtype=np.float32)}

    def loss(self, model: Any, batch: Any) -> torch.Tensor:
        return super().loss(model, batch) * batch.draws["weight_of_all"].mean(dim=-1)

    def end_epoch(self, epoch: int, error: float) -> None:
        self.heard.append((epoch, error))

    def get_extra_state(self) -> dict[str, Any]:
        return {"heard": self.heard}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        self.heard = [(int(epoch), float(value)) for epoch, value in state["heard"]]


@pytest.mark.parametrize("epoch", [1, 4])
def test_what_a_run_heard_is_there_when_it_goes_on(epoch: int, tmp_path: Path) -> None:
    def make() -> list[Run]:
        return [make_run(Listening(), seed) for seed in (0, 1)]

    straight = train(make(), settings(epochs=5))
    assert_same(interrupted(make, checkpoints(tmp_path), epoch), straight)


def test_a_handle_that_is_kept_keeps_no_rows() -> None:
    kept: list[Training] = []

    class Keeping(ERM):
        def begin(self, training: Training) -> None:
            kept.append(training)

    ours, plain = (train([make_run(method, 1, make_data(1))], settings())[0] for method in (Keeping(), ERM()))
    assert_states_equal(ours.state_dict, plain.state_dict)
    assert kept[0].rows == {}  # type: ignore[attr-defined]


@pytest.mark.parametrize(("selection", "sign"), [("rmse", 1), ("r", -1)])
def test_a_lower_error_is_better_whatever_the_score_is(selection: str, sign: int) -> None:
    run = make_run(Listening(), data=make_data(metrics=("rmse", "r"), selection=selection))
    (result,) = train([run], settings(epochs=2))
    method: Any = run.method
    assert method.heard == [(row["epoch"], sign * row[f"val_{selection}"]) for row in result.history]


class Narrowing(Mix):
    """Halves its bandwidth with every epoch."""

    def end_epoch(self, epoch: int, error: float) -> None:
        self.pairing.set_bandwidth(self.pairing.sampler.bandwidth / 2)  # type: ignore[union-attr, operator]


def test_a_bandwidth_that_changes_between_epochs_is_drawn_with_and_kept_by_a_checkpoint(tmp_path: Path) -> None:
    def make() -> list[Run]:
        return [make_run(Narrowing(LabelDistance(["std", 1.0]), Beta(2.0)), seed) for seed in (0, 1)]

    straight = train(runs := make(), settings(epochs=5))
    assert_same(interrupted(make, checkpoints(tmp_path), 2), straight)
    for run, result in zip(runs, straight, strict=True):
        sigma = float(run.data.train.y.std(correction=0)) / 2**5
        assert result.diagnostics["bandwidth"] == pytest.approx(sigma, rel=1e-3)
        again, order = (
            LabelDistance(result.diagnostics["bandwidth"]),
            shuffled(48, 16, Streams(0).order, drop_last=False),
        )
        again.fit(run.data.train)
        method: Any = run.method
        drawn = [pairing.draw(order, np.random.default_rng(1)).tolist() for pairing in (method.pairing, again)]
        assert drawn[0] == drawn[1]


def test_a_pairing_without_a_bandwidth_and_a_bad_bandwidth_are_refused() -> None:
    with pytest.raises(InputError, match="pairing Uniform has no bandwidth that can change between epochs"):
        Uniform().set_bandwidth(1.0)
    with pytest.raises(InputError, match="bandwidth must be 0 or more"):
        LabelDistance(1.0).set_bandwidth(-1.0)
