"""A stack of runs is as many separate runs: seeds, options that only draw, and what is stacked of their modules."""

import copy
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.methods.erm import ERM
from cmixup.methods.group_dro import GroupDRO
from cmixup.methods.regmixup import RegMixup
from cmixup.methods.sk_mixup import SKMixup
from cmixup.mixing.cutmix import CutMix
from cmixup.mixing.lam import Beta
from cmixup.pairing.neighbours import Neighbours
from cmixup.pairing.uniform import Uniform
from cmixup.training.loader import BatchLoader
from cmixup.training.method import Method, per_run
from cmixup.training.model_stack import stack_modules
from cmixup.training.trainer import grouped, train
from tests.helpers import (
    METHODS,
    assert_diagnostics_close,
    assert_states_close,
    assert_states_equal,
    composed,
    fitted,
    in_float64,
    make_data,
    make_run,
    settings,
    states_differ,
    train_one,
)

SEEDS = (0, 1, 5)


# ---- a stack of seeds is as many separate runs


@pytest.mark.parametrize("name", METHODS)
def test_a_stack_equals_separate_runs(name: str, float64: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """In float64: in float32 Adam, above all where it starts anew, makes steps of the rounding of small gradients."""
    align, fit = BatchLoader._aligned, Neighbours.fit

    def align_in_float64(*given: Any) -> Tensor:
        value = align(*given)
        return value.double() if value.is_floating_point() else value

    def fit_in_float64(pairing: Neighbours, train_split: Split) -> None:
        fit(pairing, train_split)
        pairing.features = pairing.features.double()

    monkeypatch.setattr(BatchLoader, "_aligned", align_in_float64)
    monkeypatch.setattr(Neighbours, "fit", fit_in_float64)
    data = {seed: in_float64(make_data(seed)) for seed in SEEDS}
    together = train([make_run(METHODS[name](), seed, data[seed]) for seed in SEEDS], settings())
    assert [result.stack for result in together] == [3 if METHODS[name]().stackable else 1] * 3
    for seed, ours in zip(SEEDS, together, strict=True):
        alone = train_one(METHODS[name](), seed, data[seed])
        assert alone.stack == 1
        assert_states_close(ours.state_dict, alone.state_dict, 1e-10)
        assert ours.best_epoch == alone.best_epoch
        assert_diagnostics_close(ours.diagnostics, alone.diagnostics, 1e-9)
        for split in ("val", "test"):
            assert ours.scores[split] == pytest.approx(alone.scores[split], rel=1e-6)
        for one, other in zip(ours.history, alone.history, strict=True):
            assert one == pytest.approx(other, rel=1e-9)


def test_runs_whose_splits_have_equal_shapes_share_a_stack() -> None:
    """Results keep the order of the runs, and every run is the one of its own stack to the last bit."""
    data = {seed: make_data(seed, (48, 20, 17) if seed % 2 else (40, 20, 17)) for seed in range(5)}
    mixed = train([make_run(composed("cmixup"), seed, data[seed]) for seed in data], settings())
    assert [result.stack for result in mixed] == [3, 2, 3, 2, 3]
    for kind in (0, 1):
        seeds = [seed for seed in data if seed % 2 == kind]
        apart = train([make_run(composed("cmixup"), seed, data[seed]) for seed in seeds], settings())
        for seed, result in zip(seeds, apart, strict=True):
            assert_states_equal(mixed[seed].state_dict, result.state_dict)
            assert mixed[seed].scores == result.scores


def test_what_is_frozen_stays_frozen() -> None:
    runs = [make_run(ERM(), seed) for seed in SEEDS]
    for run in runs:
        run.model.linear1.requires_grad_(False)
    before = [run.model.linear1.weight.clone() for run in runs]
    for weight, result in zip(before, train(runs, settings(epochs=1)), strict=True):
        assert torch.equal(result.state_dict["linear1.weight"], weight)


# ---- the same seed gives the same numbers


@pytest.mark.parametrize("name", ["cmixup", "mixrl", "rc_mixup" if "rc_mixup" in METHODS else "k_mixup"])
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
    one = train_one(composed("cmixup"), 3)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    state = torch.get_rng_state()
    other = train_one(composed("cmixup"), 3)
    assert_states_equal(one.state_dict, other.state_dict)
    assert torch.equal(torch.get_rng_state(), state)


OPTIONS = [(0.0, 0.5), (0.1, 0.5), (0.1, 2.0), (float("inf"), 0.5)]  # bandwidth and alpha


@pytest.mark.parametrize("layer", ["input", "hidden"])
def test_a_stack_over_bandwidth_and_alpha_equals_separate_runs(layer: str) -> None:
    members = [(bandwidth, alpha, seed) for bandwidth, alpha in OPTIONS for seed in (0, 3)]
    made = [make_run(composed("cmixup", bandwidth=b, alpha=a, layer=layer), seed) for b, a, seed in members]
    together = train(made, settings(epochs=2))
    assert {result.stack for result in together} == {8}
    for (bandwidth, alpha, seed), ours in zip(members, together, strict=True):
        alone = train_one(composed("cmixup", bandwidth=bandwidth, alpha=alpha, layer=layer), seed, epochs=2)
        assert_states_close(ours.state_dict, alone.state_dict, 1e-5)
        assert ours.scores["test"] == pytest.approx(alone.scores["test"], rel=1e-4, abs=1e-5)
        assert_diagnostics_close(ours.diagnostics, alone.diagnostics, 1e-9)
    assert all(states_differ(together[0].state_dict, other.state_dict) for other in together[1:])


def regmixup(alpha: float, eta: float = 1.0) -> Method:
    return RegMixup(Uniform(), Beta(alpha), eta=eta)


def sk(tau_max: float = 1.0, tau_std: float = 1.0, distance: str = "labels") -> Method:
    return SKMixup(Uniform(), Beta(1.0), tau_max=tau_max, tau_std=tau_std, distance=distance)


@pytest.mark.parametrize(
    "make",
    [
        [lambda: sk(0.1, 0.3), lambda: sk(5.0, 0.3), lambda: sk(5.0, 1.0)],
        [lambda: composed("local_mixup", quantile=0.05), lambda: composed("local_mixup", alpha=2.0, quantile=0.5)],
    ],
    ids=["sk_mixup", "local_mixup"],
)
def test_a_stack_over_what_else_only_draws_equals_separate_runs(make: list[Callable[[], Method]]) -> None:
    together = train([make_run(made(), 3) for made in make], settings(epochs=2))
    assert {result.stack for result in together} == {len(make)}
    for made, ours in zip(make, together, strict=True):
        alone = train_one(made(), 3, epochs=2)
        assert_states_close(ours.state_dict, alone.state_dict, 1e-5)
        assert_diagnostics_close(ours.diagnostics, alone.diagnostics, 1e-9)
    assert all(states_differ(together[0].state_dict, other.state_dict) for other in together[1:])


def edited(method: Any, path: str, value: Any) -> Any:
    changed = copy.deepcopy(method)
    *parts, name = path.split(".")
    setattr(changed.get_submodule(".".join(parts)), name, value)
    return changed


@pytest.mark.parametrize(
    ("one", "other", "together"),
    [
        (composed("cmixup"), composed("cmixup", bandwidth=["std", 0.3], alpha=5.0, lam_per="batch"), True),
        (composed("k_mixup", k=2), composed("k_mixup", alpha=2.0, k=5), True),
        (composed("cmixup"), composed("cmixup", layer="hidden"), False),
        (ERM(), composed("mixup"), False),
        (composed("mixup"), edited(composed("mixup"), "mixing", CutMix(0.5)), False),
        (edited(composed("mixup"), "mixing", CutMix(0.1)), edited(composed("mixup"), "mixing", CutMix(0.5)), False),
        (regmixup(0.5), regmixup(0.5, eta=0.3), False),  # the loss reads it
        (sk(distance="labels"), sk(distance="inputs"), False),
        (composed("cmixup_h", bandwidth=0.1), composed("cmixup_h", bandwidth=9.0), False),  # the stack itself draws
        (composed("cmixup_h_pool", bandwidth=0.1), composed("cmixup_h_pool", bandwidth=9.0), False),
        (composed("mixrl", m=3), edited(composed("mixrl", m=3), "final", "argmax"), False),
    ],
)
def test_only_what_draws_may_differ_in_a_stack(one: Method, other: Method, together: bool) -> None:
    runs = [make_run(method, seed) for seed, method in enumerate((one, other, copy.deepcopy(one)))]
    assert grouped(runs) == ([[0, 1, 2]] if together else [[0, 2], [1]])


def test_a_subclass_does_not_inherit_what_only_draws() -> None:
    class Reads(type(composed("cmixup", bandwidth=0.1))):  # type: ignore[misc]
        pass

    class Says(Reads):
        per_run: ClassVar[tuple[str, ...]] = ("lam",)

    base = composed("cmixup", bandwidth=0.1)
    assert per_run(base) == ("pairing", "lam")
    assert per_run(Reads(base.pairing, base.lam)) == ()
    assert per_run(Says(base.pairing, base.lam)) == ("lam",)


class Outer(nn.Module):
    def __init__(self, seed: int, width: int = 2):
        super().__init__()
        self.inner = nn.Module()
        self.inner.weight = nn.Parameter(torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)))
        self.inner.register_buffer("count", torch.full((width,), float(seed)))
        self.inner.register_parameter("absent", None)
        self.scale = nn.Parameter(torch.tensor(float(seed)))
        self.labels = [seed]


def test_parameters_and_buffers_are_stacked_and_other_attributes_shared() -> None:
    modules = [Outer(seed) for seed in range(3)]
    together = stack_modules(modules)
    assert isinstance(together, Outer)
    for name, value in together.state_dict().items():
        assert torch.equal(value, torch.stack([module.state_dict()[name] for module in modules])), name
    assert set(together.state_dict()) == {"scale", "inner.weight", "inner.count"}
    assert {name for name, _ in together.named_parameters()} == {"scale", "inner.weight"}
    assert together.labels is modules[0].labels
    assert together.inner.absent is None
    assert together.inner is not modules[0].inner


def test_shapes_that_differ_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"all runs of a stack need count of one shape, got \[\(2,\), \(5,\)\]"):
        stack_modules([Outer(0), Outer(1, width=5)])


def test_each_run_tells_of_its_own_slice_after_training() -> None:
    runs = []
    for seed in range(3):
        data = make_data(seed)
        data.train.domain.copy_(torch.arange(48) % 3)
        runs.append(fitted(make_run(GroupDRO(0.5), seed, data)))
    start = [run.method.log_q.clone() for run in runs]
    results = train(runs, settings(epochs=2))
    for run, result, before in zip(runs, results, start, strict=True):
        assert run.method.log_q.shape == (3,)
        assert not torch.allclose(run.method.log_q, before)
        assert result.diagnostics["largest_weight"] == run.method.log_q.exp().max().item()
    assert len({result.diagnostics["largest_weight"] for result in results}) == 3
