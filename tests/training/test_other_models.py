"""Models and inputs of other kinds: those that do not stack, dropout, plain modules, inputs read on demand."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData
from cmixup.methods.erm import ERM
from cmixup.metrics import METRICS as SCORES
from cmixup.training.trainer import train
from tests.helpers import (
    METHODS,
    Lazy,
    WithBatchNorm,
    assert_states_close,
    assert_states_equal,
    composed,
    make_data,
    make_run,
    settings,
    train_one,
)


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
    looking = ("k_mixup", "local_mixup", "mixrl", "cmixup_x", "cmixup_h")  # in pieces of `flat.INPUT_BYTES_PER_CHUNK`
    looks_at_inputs = name.startswith(looking) and name != "cmixup_hidden"
    assert max(lazies["train"].asked) == (32 if name == "fish" else 16) or looks_at_inputs
    assert max(lazies["test"].asked) == 9
    assert max(lazies["val"].asked) == 9 or name.startswith("mixrl")  # its search reads in batches of its own


def test_lazily_read_inputs_train_seeds_one_after_another() -> None:
    def lazy(seed: int) -> RegressionData:
        data = make_data(seed)
        return replace(data, train=replace(data.train, x=Lazy(data.train.x)))

    together = train([make_run(composed("mixup"), seed, lazy(seed)) for seed in (0, 1)], settings())
    for seed, ours in zip((0, 1), together, strict=True):
        assert ours.stack == 1
        assert_states_equal(ours.state_dict, train_one(composed("mixup"), seed, make_data(seed)).state_dict)


def test_labels_of_several_dimensions() -> None:
    together = train([make_run(composed("cmixup"), seed, make_data(seed, d_y=3)) for seed in (0, 1)], settings())
    for seed, ours in zip((0, 1), together, strict=True):
        assert ours.state_dict["out.weight"].shape == (3, 128)
        assert_states_close(
            ours.state_dict, train_one(composed("cmixup"), seed, make_data(seed, d_y=3)).state_dict, 1e-5
        )
