"""`mixing_at`: any module's hidden layer, and everything that could leave it silently unmixed."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from cmixup import CMixup, InputError, mixing_at


def net() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def rows(n: int = 12) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return torch.randn(n, 4, generator=generator), torch.randn(n, 1, generator=generator)


@pytest.mark.parametrize("layer", [None, "0", "1", "2"])
def test_states_and_labels_are_the_closed_form(layer: str | None) -> None:
    model, (x, y) = net(), rows()
    with mixing_at(model, layer, CMixup(0.7, seed=0, return_mix=True), y) as (mixed_y, (partner, lam)):
        prediction = model(x)
    at = 0 if layer is None else int(layer) + 1
    state = model[:at](x)
    expected = model[at:](lam[:, None] * state + (1 - lam[:, None]) * state[partner])
    torch.testing.assert_close(prediction, expected)
    torch.testing.assert_close(mixed_y, lam[:, None] * y + (1 - lam[:, None]) * y[partner])
    assert not torch.equal(partner, torch.arange(12))
    torch.testing.assert_close(model(x), model[:](x))  # the hook is gone


@pytest.mark.parametrize("who", ["model", "mixing"])
def test_evaluation_changes_nothing(who: str) -> None:
    model, (x, y) = net(), rows()
    mixing = CMixup(0.7, seed=0)
    (model if who == "model" else mixing).eval()
    expected = model(x)
    with mixing_at(model, "1", mixing, y) as same_y:
        assert torch.equal(model(x), expected)
    assert same_y is y


def test_a_layer_that_runs_twice_is_an_error() -> None:
    model, (x, y) = net(), rows()
    with pytest.raises(InputError, match="got a second run"), mixing_at(model, "1", CMixup(0.7), y):
        torch.cat([model(x), model(x)])
    assert not model[1]._forward_hooks


def test_keyword_inputs() -> None:
    class Model(nn.Module):
        def forward(self, *, values: Tensor, mask: Tensor) -> Tensor:
            assert mask.dtype == torch.bool
            return values

    model, x, y = Model(), torch.eye(6), torch.arange(6.0)
    with mixing_at(model, None, CMixup(2.0, seed=0, keep=("mask",)), y) as mixed_y:
        mixed = model(values=x, mask=torch.ones(6, dtype=torch.bool))
    torch.testing.assert_close(mixed @ y, mixed_y)
    with (
        pytest.raises(InputError, match=r"input\['mask'\] must be of a floating dtype .* got torch.bool"),
        mixing_at(model, None, CMixup(2.0), y),
    ):
        model(values=x, mask=torch.ones(6, dtype=torch.bool))


@pytest.mark.parametrize("rows", [2, 4])
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU])
def test_last_states_of_a_recurrent_layer_are_mixed_by_rows(kind: type[nn.RNNBase], rows: int) -> None:
    net, x = nn.ModuleDict({"rnn": kind(3, 5, num_layers=2, batch_first=True)}), torch.randn(rows, 7, 3)
    mixing = CMixup(10.0, seed=3, return_mix=True)
    with mixing_at(net, "rnn", mixing, torch.arange(float(rows))) as (_, (partner, lam)):
        mixed = net["rnn"](x)[1]
    plain, lam = net["rnn"](x)[1], lam[:, None]
    for ours, state in zip(*((mixed, plain) if kind is nn.LSTM else ([mixed], [plain])), strict=True):
        torch.testing.assert_close(ours, lam * state + (1 - lam) * state[:, partner])


class Checkpointed(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(super().forward, x, use_reentrant=True)


def test_a_run_in_a_checkpoint_is_refused_since_the_second_would_not_be_mixed() -> None:
    net, x = Checkpointed(nn.Linear(3, 1)), torch.randn(8, 3, requires_grad=True)
    with (
        pytest.raises(InputError, match=r"layer '0' must run once, got a run in torch.utils.checkpoint"),
        mixing_at(net, "0", CMixup(10.0, seed=0), torch.randn(8)),
    ):
        net(x)
    with mixing_at(nn.Sequential(net), "0", CMixup(10.0, seed=0), torch.randn(8)):
        net(x)  # a layer that checkpoints inside itself is mixed after it


def test_places_of_keep_are_those_of_the_arguments() -> None:
    net, cat = Pair(), torch.arange(6)
    with mixing_at(net, None, CMixup(10.0, seed=0, keep=(0, "flag")), torch.arange(6.0)) as y:
        kept, mixed, flag = net(cat, torch.eye(6), flag=True)
    assert kept is cat
    assert flag is True
    torch.testing.assert_close(mixed @ torch.arange(6.0), y)


class Pair(nn.Module):
    def forward(self, categories: Tensor, numbers: Tensor, *, flag: bool = False) -> tuple[Tensor, Tensor, bool]:
        return categories, numbers, flag


def test_a_sequence_first_output_is_refused() -> None:
    model, x, y = nn.ModuleDict({"rnn": nn.LSTM(3, 5)}), torch.randn(7, 4, 3), torch.randn(4)
    with (
        pytest.raises(InputError, match=r"output of layer 'rnn'\[0\] must have 4 rows .* got shape \(7, 4, 5\)"),
        mixing_at(model, "rnn", CMixup(1.0), y),
    ):
        model["rnn"](x)


def test_a_part_of_the_batch_is_refused_as_data_parallel_on_two_devices_would_give_it() -> None:
    model, (x, y) = net(), rows()
    with (
        pytest.raises(InputError, match=r"must have 12 rows as the labels, got shape \(6, 8\)"),
        mixing_at(nn.DataParallel(model), "1", CMixup(0.7), y),
    ):
        model(x[:6])


@pytest.mark.slow
@pytest.mark.parametrize("layer", ["0", "1"])
def test_a_compiled_model_is_refused(layer: str) -> None:
    model, (_, y) = net(), rows()
    compiled = torch.compile(model, backend="eager")
    with (
        pytest.raises(InputError, match="must not lie in a compiled module"),
        mixing_at(compiled, layer, CMixup(0.7), y),  # type: ignore[arg-type]
    ):
        pass
    model.compile(backend="eager")
    with pytest.raises(InputError, match="must not lie in a compiled module"), mixing_at(model, layer, CMixup(0.7), y):
        pass


@pytest.mark.slow
@pytest.mark.parametrize("how", ["layer", "input"])
def test_compiled_parts_and_compiled_models_input(how: str) -> None:
    model, (x, y) = net(), rows()
    with mixing_at(model, "1" if how == "layer" else None, CMixup(0.7, seed=0), y) as mixed_y:
        expected = model(x)
    plain = model(x)
    used: Any = model
    if how == "layer":
        model[1] = torch.compile(model[1], backend="eager")
    else:
        used = torch.compile(model, backend="eager")
    used(x)
    with mixing_at(used, "1" if how == "layer" else None, CMixup(0.7, seed=0), y) as again:
        torch.testing.assert_close(used(x), expected)
    assert torch.equal(again, mixed_y)
    torch.testing.assert_close(used(x), plain)


class Attending(nn.Module):
    """A layer deep inside that puts a tuple out, as those of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([nn.ModuleDict({"attention": nn.MultiheadAttention(4, 2, batch_first=True)})])
        self.head = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        state, none = self.blocks[0]["attention"](x, x, x, need_weights=False)
        assert none is None
        return self.head(state.mean(dim=1))


def test_a_layer_inside_whose_output_is_a_tuple() -> None:
    torch.manual_seed(0)
    model, x, y = Attending(), torch.randn(6, 3, 4), torch.arange(6.0)
    with mixing_at(model, "blocks.0.attention", CMixup(1.0, seed=0, return_mix=True), y) as (mixed_y, (partner, lam)):
        mixed = model(x)
    alone = model(x)  # the mean and the head are linear
    torch.testing.assert_close(mixed, lam[:, None] * alone + (1 - lam[:, None]) * alone[partner])
    torch.testing.assert_close(mixed_y, lam * y + (1 - lam) * y[partner])
    assert not torch.allclose(mixed, alone)
