"""Several modules as one: what is stacked, what is shared, and what goes back."""

import pytest
import torch
from torch import nn

from cmixup.errors import InputError
from cmixup.methods.group_dro import GroupDRO
from cmixup.model_stack import stack_modules, unstack_modules
from cmixup.training.trainer import train
from tests.helpers import fitted, make_data, make_run, settings


class Inner(nn.Module):
    def __init__(self, seed: int, width: int = 2):
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(3, 4, generator=generator))
        self.register_buffer("count", torch.full((width,), float(seed)))
        self.register_parameter("absent", None)
        self.register_buffer("nothing", None)


class Outer(nn.Module):
    def __init__(self, seed: int, width: int = 2):
        super().__init__()
        self.inner = Inner(seed, width)
        self.scale = nn.Parameter(torch.tensor(float(seed)))
        self.register_buffer("total", torch.arange(3) + seed)
        self.labels, self.name = [seed], f"module {seed}"


def test_parameters_and_buffers_are_stacked_and_other_attributes_shared() -> None:
    modules = [Outer(seed) for seed in range(3)]
    together = stack_modules(modules)
    assert isinstance(together, Outer)
    assert together is not modules[0]
    for name, value in together.state_dict().items():
        each = [module.state_dict()[name] for module in modules]
        assert torch.equal(value, torch.stack(each)), name
    assert set(together.state_dict()) == {"scale", "total", "inner.weight", "inner.count"}
    assert {name for name, _ in together.named_parameters()} == {"scale", "inner.weight"}
    assert together.labels is modules[0].labels
    assert together.name == "module 0"
    assert together.inner.absent is None
    assert together.inner.nothing is None
    assert together.inner is not modules[0].inner


def test_the_modules_are_left_as_they_are() -> None:
    modules = [Outer(seed) for seed in range(2)]
    together = stack_modules(modules)
    with torch.no_grad():
        together.inner.weight.zero_()
        together.total.zero_()
    for seed, module in enumerate(modules):
        for name, value in Outer(seed).state_dict().items():
            assert torch.equal(module.state_dict()[name], value), name
        assert module.inner.weight.shape == (3, 4)


def test_one_module_is_itself() -> None:
    module = Outer(4)
    assert stack_modules([module]) is module
    unstack_modules(module, [module])
    assert module.inner.count.tolist() == [4, 4]


def test_shapes_that_differ_are_refused_by_name() -> None:
    with pytest.raises(InputError, match=r"all runs of a stack need count of one shape, got \[\(2,\), \(5,\)\]"):
        stack_modules([Outer(0), Outer(1, width=5)])


def test_buffers_go_back_slice_by_slice() -> None:
    modules = [Outer(seed) for seed in range(3)]
    together = stack_modules(modules)
    together.total = together.total * 10  # a new tensor, as a step may assign
    together.inner.count += torch.arange(3)[:, None]
    unstack_modules(together, modules)
    for seed, module in enumerate(modules):
        assert module.total.tolist() == [10 * (k + seed) for k in range(3)]
        assert module.inner.count.tolist() == [2 * seed] * 2


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
