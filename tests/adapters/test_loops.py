"""Training loops of other people: compiled steps, attention masks, checkpoints, ranks, mixing that stops."""

import copy
import io
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

from cmixup import CMixup, InputError, PairDataset, mixing_at
from cmixup.adapters.pairs import Pair
from tests.adapters.test_hidden import net, rows


def test_vmap_is_refused_in_one_line_and_maps_over_what_is_mixed() -> None:
    x, y = torch.randn(4, 8, 3), torch.randn(4, 8, 1)
    mixing = CMixup(1.0, seed=0)
    with pytest.raises(InputError, match=r"labels are inside torch.func.vmap: mix before it"):
        torch.func.vmap(mixing, randomness="different")(x, y)
    mixed, labels = zip(*(mixing(*rows) for rows in zip(x, y, strict=True)), strict=True)
    summed = torch.func.vmap(lambda a, b: a.sum() + b.sum())(torch.stack(mixed), torch.stack(labels))
    assert summed.shape == (4,)
    weight = torch.ones(3, requires_grad=True)
    (slope,) = torch.autograd.grad((mixing(x[0], y[0])[0] @ weight).sum(), weight)
    assert slope.isfinite().all()


@pytest.mark.slow  # the import of the compiler alone takes seconds
@pytest.mark.parametrize("where", ["input", "dictionary", "hidden"])
@pytest.mark.parametrize("bandwidth", [0.7, "auto"])
def test_a_compiled_step_mixes_as_the_same_step_does(where: str, bandwidth: Any) -> None:
    model, (x, y) = net(), rows()

    def step(mixing: CMixup) -> Tensor:
        if where == "hidden":
            with mixing_at(model, "1", mixing, y) as mixed_y:
                return (model(x) - mixed_y).square().mean()
        mixed = mixing({"x": x, "y": y}) if where == "dictionary" else mixing(x, y)
        mixed_x, mixed_y = mixed.values() if isinstance(mixed, dict) else mixed
        return (model(mixed_x) - mixed_y).square().mean()

    compiled = torch.compile(step, backend="eager")
    one, other = CMixup(bandwidth, seed=0), CMixup(bandwidth, seed=0)
    losses = [(step(one).item(), compiled(other).item()) for _ in range(4)]
    assert [a for a, _ in losses] == pytest.approx([b for _, b in losses])
    assert len({a for a, _ in losses}) == 4


def test_a_mask_is_the_one_of_row_or_partner() -> None:
    x, y = torch.eye(6), torch.arange(6.0)
    lengths = torch.tensor([1, 2, 3, 4, 5, 6])
    used = torch.arange(6) < lengths[:, None]
    model = nn.Sequential(nn.Identity())
    for mask in (used, used.long(), torch.where(used, 0.0, -torch.inf)):
        with mixing_at(model, "0", CMixup(10.0, seed=0, return_mix=True), y, mask=mask) as (_, used_mask, (partner, _)):
            model(x)
        assert used_mask.dtype == mask.dtype
        longest = torch.maximum(lengths, lengths[partner])
        assert torch.equal((used_mask == mask[5, 0]).sum(1), longest)
        assert not torch.equal(used_mask, mask)
    with mixing_at(model.eval(), "0", CMixup(10.0), y, mask=used) as (same_y, same):
        assert same is used
        assert same_y is y
    with (
        pytest.raises(InputError, match=r"mask must be a tensor of 6 rows .* got shape \(5, 6\)"),
        mixing_at(model.train(), "0", CMixup(10.0), y, mask=used[:5]),
    ):
        pass


class Encoder(nn.Module):
    """Computes its own loss from labels and a mask, as models of Hugging Face do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Identity()

    def forward(self, x: Tensor, mask: Tensor | None = None, labels: Tensor | None = None) -> Any:
        return self.layer(x), mask, labels


@pytest.mark.parametrize("layer", ["layer", None])
def test_a_model_that_takes_labels_and_mask_by_keyword_sees_the_mixed_ones(layer: str | None) -> None:
    x, y, mask = torch.eye(6), torch.arange(6), torch.eye(6, dtype=torch.long)
    mixing, model = CMixup(10.0, seed=0), Encoder()
    with mixing_at(model, layer, mixing, y, mask=mask) as (mixed_y, used_mask):
        mixed_x, seen_mask, seen_y = model(x=x, mask=mask, labels=y)
    assert seen_y is mixed_y
    assert seen_mask is used_mask
    torch.testing.assert_close(mixed_x @ y.float(), mixed_y)
    assert torch.equal(model(x, mask, y)[2], y)  # the hooks are gone
    with mixing_at(model, layer, mixing, y.float()) as mixed_y:  # mixed labels are not mixed twice
        assert model(x, labels=mixed_y)[2] is mixed_y


@pytest.mark.parametrize("bandwidth", [0.5, "auto"])
def test_a_resumed_mixing_draws_what_it_would_have_drawn(bandwidth: Any) -> None:
    _, y = rows(60)
    mixing = nn.ModuleDict({"mixing": CMixup(bandwidth, seed=0)})
    for part in y.split(20)[:2]:
        mixing["mixing"].draw(part)
    file = io.BytesIO()
    torch.save(mixing.state_dict(), file)
    file.seek(0)
    resumed = nn.ModuleDict({"mixing": CMixup(bandwidth, seed=5)})
    resumed.load_state_dict(torch.load(file, weights_only=True))
    for part in y.split(20) * 12:  # on past 512 labels, where "auto" is found for the last time
        one, other = mixing["mixing"].draw(part), resumed["mixing"].draw(part)
        assert torch.equal(one.partner, other.partner)
        assert torch.equal(one.lam, other.lam)
    assert resumed["mixing"].bandwidth == mixing["mixing"].bandwidth
    with pytest.raises(InputError, match="state must be that of a CMixup, got tensor"):
        CMixup().load_state_dict({"_extra_state": torch.zeros(3)})


def test_the_state_from_before_the_first_batch_forgets_the_bandwidth() -> None:
    mixing, fresh, y = CMixup("auto", seed=0), CMixup("auto", seed=0), torch.randn(32, 1)
    first = copy.deepcopy(mixing.state_dict())
    mixing.draw(1000 * torch.randn(32, 2))  # of two outputs
    mixing.load_state_dict(first)
    assert torch.equal(mixing.draw(y).partner, fresh.draw(y).partner)
    assert mixing.bandwidth == fresh.bandwidth


class Net(nn.Module):
    """A network with a mixing, or from before it had one."""

    def __init__(self, mixing: CMixup | None) -> None:
        super().__init__()
        self.layer, self.mixing = nn.Linear(4, 1), mixing


@pytest.mark.parametrize(("bandwidth", "size"), [(0.5, 4096), (("std", 0.5), 69632)])
def test_the_state_has_one_size_and_averages_load(bandwidth: Any, size: int) -> None:
    """As checkpoints of several processes, averages of weights over steps (EMA) and over models (soups) need it."""
    x, y = rows(700)
    nets = [Net(CMixup(bandwidth, seed=seed)) for seed in range(2)]
    before = nets[0].state_dict()
    assert before["mixing._extra_state"].shape == (size,)
    for part in (5, 700, 64):
        for one in nets:
            one.mixing(x[:part], y[:part])
            assert one.state_dict()["mixing._extra_state"].shape == (size,)
    states = [one.state_dict() for one in nets]
    soup = {key: torch.stack([state[key].float() for state in states]).mean(0) for key in before}
    ours = copy.deepcopy(nets[0])
    with pytest.warns(UserWarning, match="averaged or damaged"):
        ours.load_state_dict(soup)
    torch.testing.assert_close(ours.layer.weight, soup["layer.weight"])
    assert torch.equal(ours.mixing.draw(y).lam, nets[0].mixing.draw(y).lam)
    for average, value in zip(nets[1].state_dict().values(), nets[0].state_dict().values(), strict=True):
        average.copy_(0.9 * average + 0.1 * value)  # as timm's ModelEma does


def test_checkpoints_from_before_a_mixing_load_and_those_with_one_deploy_without() -> None:
    _, y = rows(20)
    old, new = Net(None), Net(CMixup(0.5, seed=0))
    new.load_state_dict(old.state_dict(), strict=True)
    assert torch.equal(new.layer.weight, old.layer.weight)
    assert torch.equal(new.mixing.draw(y).lam, CMixup(0.5, seed=0).draw(y).lam)
    with pytest.raises(RuntimeError, match=r"Unexpected key.*mixing\.other"):
        new.load_state_dict({**new.state_dict(), "mixing.other": torch.zeros(1)})
    new.mixing = None
    old.load_state_dict(new.state_dict(), strict=True)


def test_a_mixing_made_on_the_device_meta_has_its_numbers() -> None:
    """As FSDP makes modules, whose parameters come later."""
    with torch.device("meta"):
        model = Net(CMixup(0.5))
    model.to_empty(device="cpu")
    assert model.mixing.draw(rows(20)[1]).lam.isfinite().all()
    assert model.state_dict()["mixing._extra_state"].device.type == "cpu"


def test_labels_of_many_outputs_are_looked_at_again_after_a_state() -> None:
    y = torch.randn(40, 17, generator=torch.Generator().manual_seed(0))
    mixing, resumed = CMixup("auto", seed=0), CMixup("auto", seed=0)
    mixing.draw(y)
    resumed.load_state_dict(mixing.state_dict())
    assert resumed.bandwidth is None
    assert torch.equal(resumed.draw(y).lam, mixing.draw(y).lam)


def test_a_rank_draws_apart_from_one_whose_state_it_loads_and_needs_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    _, y = rows(20)
    first = CMixup(0.5, seed=0)
    first.draw(y)
    state, on = first.state_dict(), first.draw(y).lam.tolist()
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    second, fresh = CMixup(0.5, seed=0), CMixup(0.5, seed=0)
    second.load_state_dict(state)
    lams = [on, *(rank.draw(y).lam.tolist() for rank in (second, fresh))]
    assert lams[0] != lams[1] != lams[2] != lams[0]
    with pytest.raises(InputError, match="labels must be given, the same on each of 2 ranks"):
        CMixup("auto", seed=0).draw(y)
    CMixup("auto", seed=0, labels=y).draw(y)


def test_names_that_are_no_entries_are_refused() -> None:
    x, y = rows(6)
    batch = {"x": x, "y": y, "ids": torch.arange(6)}
    with pytest.raises(InputError, match="keep must name entries of the batch, got 'idz'; the nearest name is 'ids'"):
        CMixup(1.0, keep=("ids", "idz"))(batch)
    with pytest.raises(InputError, match=r"keep must name .* got \(0, 2\); the nearest name is"):
        CMixup(1.0, keep=((0, 2),))([x, x], y)
    with pytest.raises(InputError, match="keep must name entries of the batch, got 'ids'"):
        PairDataset([{"x": a, "y": b} for a, b in zip(x, y, strict=True)], y, 1.0, keep=("ids",))[0]
    model = Encoder()
    with (
        pytest.raises(InputError, match="got 'masks'; the nearest name is 'mask'"),
        mixing_at(model, None, CMixup(1.0, keep=("masks",)), y),
    ):
        model(x, mask=x)


def test_a_list_of_categories_and_numbers_is_mixed_in_its_numbers() -> None:
    """The categories of a row stay its own, by their place in the batch (fastai #2112)."""
    x, y = torch.eye(6), torch.arange(6.0)
    categories = torch.arange(6)[:, None]
    (same, mixed_x), mixed_y = CMixup(10.0, seed=0, keep=((0, 0),))([categories, x], y)
    assert same is categories
    torch.testing.assert_close(mixed_x @ y, mixed_y)
    with pytest.raises(InputError, match=r"batch\[0\]\[0\] must be of a floating dtype .* place in keep"):
        CMixup(10.0)([categories, x], y)
    pairs = PairDataset(TensorDataset(categories, x, y), y, 10.0, labels_getter=lambda b: b[2], keep=((0,),))
    kept, mixed, label = pairs[Pair(2, 5, 0.25)]
    assert kept.tolist() == [2]
    assert mixed.tolist() == [0, 0, 0.25, 0, 0, 0.75]
    assert label == 0.25 * 2 + 0.75 * 5


@pytest.mark.parametrize("batch", [((0, 1, 2),), (0, 1, 2)], ids=["one argument", "three"])
def test_weights_after_the_labels_are_kept_by_their_place(batch: Any) -> None:
    x, y, w = torch.eye(6), torch.arange(6.0), torch.arange(6)
    given = ((x, y, w),) if len(batch) == 1 else (x, y, w)
    mixed_x, mixed_y, same = CMixup(10.0, seed=0, keep=(2,))(*given)
    assert same is w
    torch.testing.assert_close(mixed_x @ y, mixed_y)
    assert not torch.equal(mixed_x, x)
    pair = PairDataset(TensorDataset(x, y, w), y, 10.0, keep=(2,))[Pair(2, 5, 0.25)]
    assert (pair[1], pair[2]) == (0.25 * 2 + 0.75 * 5, 2)
    first, mixed_x, mixed_y = CMixup(10.0, seed=0, keep=(0,))((w, x, y))
    assert first is w
    torch.testing.assert_close(mixed_x @ y, mixed_y)


def test_workers_hear_before_an_epoch_that_mixing_has_stopped() -> None:
    mixing = CMixup(10.0, seed=0)
    loader: Any = DataLoader(TensorDataset(torch.eye(8), torch.arange(8.0)), 8, collate_fn=mixing, num_workers=1)
    same = [torch.equal(x, torch.eye(8)) for on in (True, False) for x, _ in (mixing.train(on), loader)[1]]
    assert same == [False, True]


class Nested(Dataset):
    """Each row is a dictionary with tuples and lists in it."""

    def __len__(self) -> int:
        return 8

    def __getitem__(self, i: int) -> dict[str, Any]:
        return {"x": np.full(3, float(i)), "y": float(i), "more": (torch.eye(8)[i], [torch.tensor(i / 2)])}


def test_a_batch_is_that_of_its_rows_one_by_one() -> None:
    pairs = PairDataset(Nested(), range(8), 100.0, seed=0)
    drawn = [Pair(0, 2, 0.3), Pair(4, 6, 0.7), Pair(2, 2, 1.0), Pair(1, 3, 0.2)]
    together, alone = pairs.__getitems__(drawn), [pairs[pair] for pair in drawn]
    assert repr(together) == repr(alone)
    assert type(together[0]["more"]) is tuple
    assert pairs.__getitems__([]) == []
