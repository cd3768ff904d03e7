"""Labels in other units: what the network learns, and that nothing outside the loss knows."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from cmixup.data import Episode, RegressionData, Split
from cmixup.methods.erm import ERM
from cmixup.methods.group_dro import GroupDRO
from cmixup.training.loader import BatchLoader
from cmixup.training.losses import LabelScaling
from cmixup.training.method import Method
from cmixup.training.model_stack import ModelStack
from cmixup.training.trainer import RunResult, train
from tests.helpers import CPU, METHODS, assert_states_equal, make_data, make_run, settings
from tests.methods import episodes
from tests.methods.test_rc_mixup import rc_mixup

SCALED = ("centre", "standard")


def shifted(data: RegressionData, scale: float, shift: float) -> RegressionData:
    """The same rows with labels in another unit."""
    parts = {name: getattr(data, name) for name in ("train", "val", "test")}
    return replace(data, **{name: replace(s, y=scale * s.y + shift) for name, s in parts.items()})


def split_of(y: Tensor) -> Split:
    return Split(torch.zeros(len(y), 1), y, torch.zeros(len(y), dtype=torch.int64))


def trained(make: Callable[[], Method], data: list[RegressionData], form: str, **changes: object) -> list[RunResult]:
    runs = [make_run(make(), seed, some) for seed, some in enumerate(data)]
    return train(runs, settings(**{"epochs": 2, "label_scaling": form, **changes}))


# ---- the map


def test_mean_and_std_are_those_of_each_dimension_of_the_training_labels() -> None:
    y = torch.tensor([[1.0, 10.0, 5.0], [3.0, 30.0, 5.0]])
    standard = LabelScaling.fit("standard", [split_of(y)])
    torch.testing.assert_close(standard.scale(y), torch.tensor([[-1.0, -1.0, 0.0], [1.0, 1.0, 0.0]]))
    assert standard.facts(0) == {"mean": [2.0, 20.0, 5.0], "std": [1.0, 10.0, 1.0]}  # what is constant: divided by 1
    centre = LabelScaling.fit("centre", [split_of(y)])
    assert centre.scale(y).tolist() == [[-1.0, -10.0, 0.0], [1.0, 10.0, 0.0]]
    pooled = LabelScaling.fit("loss", [split_of(y)]).facts(0)["std"]
    assert pooled == [pytest.approx(((1 + 100 + 0) / 3) ** 0.5)]
    assert LabelScaling.fit("none", [split_of(y)]).facts(0) == {}


@pytest.mark.parametrize("form", SCALED)
@pytest.mark.parametrize("unit", [(6.9, 124.8), (1e-4, 1.0), (1e6, -3e7), (1.0, 0.0)])
def test_scaling_and_back_is_exact_to_1e_6(form: str, unit: tuple[float, float]) -> None:
    y = unit[0] * torch.randn(500, 2) + unit[1]
    y[:, 1] = unit[1]
    labels = LabelScaling.fit(form, [split_of(y)])
    torch.testing.assert_close(labels.to_labels(labels.scale(y)), y, rtol=1e-6, atol=1e-6 * unit[0])


def test_every_run_of_a_stack_has_its_own() -> None:
    splits = [split_of(scale * torch.arange(4.0)[:, None] + scale) for scale in (1.0, 10.0)]
    labels = LabelScaling.fit("standard", splits)
    alone = [LabelScaling.fit("standard", [split]) for split in splits]
    together = torch.stack([split.y for split in splits])
    torch.testing.assert_close(
        labels.scale(together), torch.stack([e.scale(s.y) for e, s in zip(alone, splits, strict=True)])
    )
    torch.testing.assert_close(labels.to_labels(labels.scale(together)), together)
    assert [labels.facts(e) for e in (0, 1)] == [one.facts(0) for one in alone]


def test_tasks_have_one_label_whose_support_is_scaled_like_its_query() -> None:
    run = episodes.make_run(ERM())  # type: ignore[abstract]
    train_split = run.data.train
    labels = LabelScaling.fit("standard", [train_split])
    plain = BatchLoader([train_split], CPU).fetch(torch.tensor([[0, 2]]))
    scaled = BatchLoader([train_split], CPU, labels).fetch(torch.tensor([[0, 2]]))
    mean, std = train_split.y.mean(), train_split.y.std(correction=0)
    assert isinstance(plain.x, Episode)
    assert isinstance(scaled.x, Episode)
    torch.testing.assert_close(scaled.y, (plain.y - mean) / std)
    torch.testing.assert_close(scaled.x.labels, (plain.x.labels - mean) / std)
    assert torch.equal(scaled.x.query, plain.x.query)


# ---- training


@pytest.mark.parametrize("n_seeds", [1, 2])
def test_the_unit_of_the_label_changes_nothing_but_the_unit_of_the_prediction(n_seeds: int) -> None:
    data = [make_data(seed, d_y=2) for seed in range(n_seeds)]
    for form, scale in (("standard", 64.0), ("centre", 1.0)):
        ours = trained(ERM, data, form, optimizer="sgd")
        theirs = trained(ERM, [shifted(some, scale, 256.0) for some in data], form, optimizer="sgd")
        for one, other in zip(ours, theirs, strict=True):
            expected = scale * one.predictions["test"][""] + 256
            torch.testing.assert_close(other.predictions["test"][""], expected, rtol=1e-5, atol=1e-3)
            assert other.scores["test"]["rmse"] == pytest.approx(scale * one.scores["test"]["rmse"], rel=1e-3)


@pytest.mark.parametrize("form", SCALED)
def test_it_is_training_on_labels_scaled_by_hand(form: str) -> None:
    data = shifted(make_data(1), 5.0, 30.0)
    labels = LabelScaling.fit(form, [data.train])
    parts = {name: getattr(data, name) for name in ("train", "val", "test")}
    by_hand = replace(data, **{name: replace(s, y=labels.scale(s.y)) for name, s in parts.items()})
    (ours,), (theirs,) = trained(ERM, [data], form), trained(ERM, [by_hand], "none")
    assert_states_equal(ours.state_dict, theirs.state_dict)
    for part in ("val", "test"):
        back = labels.to_labels(theirs.predictions[part][""])
        assert torch.equal(ours.predictions[part][""], back)
        rmse = (back - getattr(data, part).y).double().square().mean().sqrt().item()
        assert ours.scores[part]["rmse"] == pytest.approx(rmse, rel=1e-6)
    assert ours.history[-1]["val_rmse"] == pytest.approx(ours.scores["val"]["rmse"]) or ours.best_epoch == 1
    assert ours.label_scaling == labels.facts(0)
    assert theirs.label_scaling == {}


@pytest.mark.parametrize("name", ["cmixup", "cmixup_batch_both", "k_mixup_hidden", "local_mixup", "group_dro"])
def test_draws_come_from_labels_in_their_own_unit(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, list[dict[str, np.ndarray]]] = {}
    for form in ("none", "standard"):
        drawn = seen.setdefault(form, [])
        method = METHODS[name]()
        draw = method.draw

        def kept(*given: object, draw: Callable = draw, drawn: list = drawn) -> dict[str, np.ndarray]:
            drawn.append(draw(*given))
            return drawn[-1]

        monkeypatch.setattr(method, "draw", kept)
        train([make_run(method, 3, shifted(make_data(3), 4.0, 50.0))], settings(epochs=2, label_scaling=form))
    for one, other in zip(seen["none"], seen["standard"], strict=True):
        assert one.keys() == other.keys()
        assert all(np.array_equal(one[key], other[key]) for key in one)


@pytest.mark.parametrize("form", ["none", *SCALED])
@pytest.mark.parametrize("name", ["mixrl", "rc_mixup"])
def test_methods_that_read_rows_by_themselves_see_scaled_labels(name: str, form: str) -> None:
    """What their inner training and choices give does not depend on an offset that scaling takes away."""
    rc = {"noise": 0.25, "warm_up": 1, "bandwidths": [1e-3, 0.3, 1e3]}
    make = METHODS["mixrl"] if name == "mixrl" else lambda: rc_mixup(**rc)
    offsets = (0.0, 64.0)
    (one,), (other,) = (trained(make, [shifted(make_data(4), 1.0, offset)], form, epochs=4) for offset in offsets)
    close = torch.allclose(other.predictions["test"][""] - 64, one.predictions["test"][""], atol=2e-2)
    assert close == (form != "none")


def test_outputs_stay_in_label_units_and_weights_of_domains_see_the_scaled_risk() -> None:
    data = shifted(make_data(5), 100.0, 5000.0)
    stack = ModelStack([make_run(GroupDRO(0.5), 5, data).model], CPU, labels=LabelScaling.fit("loss", [data.train]))
    seen = stack.seen_by_loss()
    x = data.train.x[torch.arange(4)]
    torch.testing.assert_close(seen.model(x), (stack.model(x) - data.train.y.mean()) / data.train.y.std(correction=0))
    torch.testing.assert_close(seen.model(x), seen.model.head(seen.model.features(x)))  # type: ignore[operator]
    (result,) = trained(lambda: GroupDRO(0.5), [data], "loss")
    assert result.predictions["test"][""].abs().max() < 100  # labels of 5000 are far when outputs start near 0
    far = (data.train.y.mean() / data.train.y.std()).square().item()  # of outputs near 0, in standard units
    assert result.history[0]["train_loss"] == pytest.approx(far, rel=0.2)
